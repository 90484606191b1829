//! Agents as tools of others.

use std::sync::{Arc, Mutex};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Item, ModelResponse, RunResult, Runner, StreamEvent, ToolOutput, Usage, handoff,
};

use crate::told;

#[tokio::test]
async fn an_agent_is_asked_answers_and_the_conversation_stays() {
    let expert: Agent = Agent::new("Expert").instructions("You know.");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask_expert").description("Knows."));
    let usage = Usage {
        requests: 1,
        input_tokens: 7,
        ..Usage::default()
    };
    let call = Item::function_call("c", "ask_expert", r#"{"input": "Why?"}"#);
    let model = ScriptedModel::new()
        .respond_with(ModelResponse::new([call]).usage(usage))
        .respond_with(ModelResponse::new([Item::output_message("m", "Because.")]).usage(usage))
        .respond_with(ModelResponse::new([Item::output_message("n", "It is so.")]).usage(usage));
    let result = Runner::new(&clerk)
        .model(model.clone())
        .run("Hm?")
        .await
        .unwrap();
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("Clerk", "It is so.")
    );
    let asked = &model.requests()[1];
    assert_eq!(asked.instructions.as_deref(), Some("You know."));
    assert_eq!(told(&asked.input), ["user: Why?"]);
    assert_eq!(told(&result.to_input_list())[2], "output of c: Because.");
    assert_eq!(
        *result.usage(),
        usage + usage + usage,
        "what it used counts"
    );
}

#[tokio::test]
async fn its_events_can_be_listened_to_and_its_answer_chosen() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    let other: Agent = Agent::new("Other");
    let expert = Agent::new("Expert").handoff(handoff(&other));
    let tool = expert
        .as_tool("ask")
        .max_turns(2)
        .answer_with(|result: &RunResult| format!("{} says so", result.last_agent().name()))
        .on_event(move |_ctx, event| {
            if let StreamEvent::AgentUpdated(agent) = event {
                noted.lock().unwrap().push(agent.name().to_owned());
            }
        });
    let clerk = Agent::new("Clerk").tool(tool);
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .call("transfer_to_other", "{}")
        .say("y")
        .say("ok");
    let result = Runner::new(&clerk).model(model).run("Hm?").await.unwrap();
    assert_eq!(
        told(&result.to_input_list())[2],
        "output of call_1: Other says so"
    );
    assert_eq!(*heard.lock().unwrap(), ["Expert", "Other"]);
}

#[tokio::test]
async fn agents_inside_each_other_end_somewhere() {
    // A model for whom asking again is always the answer, until it is told that it cannot.
    struct Asking;
    impl switchboard_core::Model for Asking {
        async fn respond(
            &self,
            request: switchboard_core::ModelRequest,
        ) -> Result<ModelResponse, switchboard_core::BoxError> {
            let answered = request.input.iter().filter_map(Item::output).next();
            Ok(ModelResponse::new([match answered {
                Some(output) => Item::output_message("m", &output),
                None => Item::function_call("c", "again", r#"{"input": "x"}"#),
            }]))
        }
    }
    let mut agent: Agent = Agent::new("0");
    for n in 1..20 {
        agent = Agent::new(format!("{n}")).tool(agent.as_tool("again"));
    }
    let runner = Runner::new(&agent).model(Asking).max_agent_depth(3);
    let result = runner.run("x").await.unwrap();
    let expected = ToolOutput::from("An error occurred while running the tool. Please try again.");
    assert_eq!(result.final_text(), expected.text());
}
