//! The model asks for three handoffs in one response: the first is taken, the others are ignored
//! and their calls answered; the trace records it.
//!
//! `cargo run --example several_handoffs`

use switchboard::items::RunItemKind;
use switchboard::testing::ScriptedModel;
use switchboard::trace::{MemoryTracer, SpanData};
use switchboard::{Agent, Runner};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        .calls([
            ("transfer_to_technical", "{}"),
            ("transfer_to_sales", "{}"),
            ("transfer_to_support", "{}"),
        ])
        .say("I see the error in your logs. After that I can tell you about the bigger plan, too.");

    let front_desk: Agent = Agent::new("Front desk")
        .instructions("Pass the customer to the right colleague.")
        .handoff(Agent::new("Technical").handoff_description("Errors and outages."))
        .handoff(Agent::new("Sales").handoff_description("Plans and prices."))
        .handoff(Agent::new("Support").handoff_description("Everything else."));

    let tracer = MemoryTracer::new();
    let result = Runner::new(&front_desk)
        .model(model)
        .tracer(tracer.clone())
        .run("The API answers 500, and what does the bigger plan cost?")
        .await?;

    for made in result.new_items() {
        let text = match made.kind() {
            RunItemKind::HandoffCall => format!("calls {}", made.item().name().unwrap_or_default()),
            RunItemKind::HandoffOutput { to, .. } => format!("hands over to {to}"),
            RunItemKind::ToolCallOutput { output } => format!("gets {output}"),
            _ => made.item().text().unwrap_or_default().into_owned(),
        };
        println!("{}: {text}", made.agent());
    }
    for span in tracer.spans() {
        if let (SpanData::Handoff { from, to, .. }, Some(error)) = (&span.data, &span.error) {
            let to = to.as_deref().unwrap_or("nobody");
            println!("span: {from} → {to}: {}", error.message);
            println!("span: asked for {}", error.data["requested_agents"]);
        }
    }
    Ok(())
}
