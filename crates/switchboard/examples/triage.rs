//! A triage agent passes a customer to billing, and the run is told as it happens.
//!
//! `cargo run --example triage`

use switchboard::testing::ScriptedModel;
use switchboard::{Agent, ModelEvent, RunItemEvent, Runner, StreamEvent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Any model will do. This one follows a script, so that the example needs no key.
    let model = ScriptedModel::new()
        .call("transfer_to_billing_agent", "{}")
        .say("You were charged twice in March. I have taken one charge back.");

    let billing: Agent = Agent::new("Billing agent")
        .instructions("You handle bills.")
        .handoff_description("Bills, invoices and payments.");
    let technical = Agent::new("Technical agent")
        .instructions("You fix what does not work.")
        .handoff_description("Errors, crashes and outages.");
    let triage = Agent::new("Triage agent")
        .instructions("Find out what the customer needs and pass them to who can help.")
        .handoff(&billing)
        .handoff(&technical);

    let question = "My bill is wrong";
    println!("User: {question}");
    let runner = Runner::new(&triage).model(model.clone());
    let mut stream = runner.stream(question);
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::AgentUpdated(agent) => println!("[{}]", agent.name()),
            StreamEvent::Item(RunItemEvent::HandoffRequested, item) => {
                println!("  asks for {}", item.item().name().unwrap_or_default());
            }
            StreamEvent::Item(RunItemEvent::MessageOutputCreated, _) => println!(),
            StreamEvent::Model(ModelEvent::TextDelta { text, .. }) => print!("{text}"),
            _ => {}
        }
    }
    let result = stream.finish().await?;

    println!("{}: {}", result.last_agent().name(), result.final_text());
    for (call, request) in model.requests().iter().enumerate() {
        let offered: Vec<&str> = request.handoffs.iter().map(|h| &*h.tool_name).collect();
        println!(
            "model call {}: {} items, offered {offered:?}",
            call + 1,
            request.input.len()
        );
    }
    Ok(())
}
