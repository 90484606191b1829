//! Agents as tools: an editor asks a researcher and a translator, gets their answers, and keeps
//! the conversation. A listener prints the events of their runs.
//!
//! `cargo run --example agents_as_tools`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, EventKind, Runner, StreamEvent, ToolContext, tool};

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}

/// Prints the events of an agent that works for the editor.
fn print_event(_ctx: ToolContext, event: StreamEvent) {
    match &event.kind {
        EventKind::AgentUpdated { .. } => println!("  [{}]", event.agent),
        EventKind::ToolStarted { tool, .. } => println!("    calls {tool}"),
        EventKind::ToolEnded { output, .. } => println!("    gets {output}"),
        EventKind::Item {
            text: Some(text), ..
        } => println!("    says: {text}"),
        _ => {}
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Each agent has its own model here; one for all would do as well.
    let researcher: Agent = Agent::new("Researcher")
        .instructions("Find facts. Name your sources.")
        .tool(
            tool("search")
                .description("Searches the library.")
                .run(|_ctx, args: Topic| format!("{}: first built 1886, page 12", args.topic)),
        )
        .model(
            ScriptedModel::new()
                .call("search", r#"{"topic": "the car"}"#)
                .say("The first car was built in 1886 (page 12)."),
        );
    let translator = Agent::new("Translator")
        .instructions("Translate into French.")
        .model(ScriptedModel::new().say("La première voiture date de 1886."));

    let editor_model = ScriptedModel::new()
        .call("research", r#"{"input": "When was the first car built?"}"#)
        .call(
            "translate",
            r#"{"input": "The first car was built in 1886."}"#,
        )
        .say("Here is your line: La première voiture date de 1886.");
    let editor = Agent::new("Editor")
        .instructions("Write what the reader asks for. Ask your colleagues.")
        .model(editor_model.clone())
        .tool(
            researcher
                .as_tool("research")
                .description("Answers a question with facts and sources.")
                .max_turns(3)
                .on_event(print_event),
        )
        .tool(
            translator
                .as_tool("translate")
                .description("Translates a text into French.")
                .answer_with(|_ctx, result| format!("French: {}", result.final_text()))
                .on_event(print_event),
        );

    let question = "One line in French on the first car, please.";
    println!("User: {question}");
    let result = Runner::new(&editor).run(question).await?;

    println!("{}: {}", result.last_agent().name(), result.final_text());
    if let Some(request) = editor_model.requests().last() {
        println!("The editor's model saw only:");
        for item in &request.input {
            println!("  {}", item.as_json());
        }
    }
    println!("Model calls in total: {}", result.usage().requests);
    Ok(())
}
