//! A triage agent hands a customer over to billing; the run is printed as it is streamed.
//!
//! `cargo run --example triage`

use switchboard::testing::ScriptedModel;
use switchboard::{Agent, EventKind, Runner};

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
        .instructions("Find out what the customer needs and hand over to the agent that can help.")
        .handoff(&billing)
        .handoff(&technical);

    let question = "My bill is wrong";
    println!("User: {question}");
    let runner = Runner::new(&triage).model(model.clone());
    let mut stream = runner.stream(question);
    while let Some(event) = stream.next().await {
        match event.kind {
            EventKind::AgentUpdated { .. } => println!("[{}]", event.agent),
            EventKind::Handoff(handoff) => println!("  hands over to {}", handoff.to),
            EventKind::TextDelta { text, .. } => print!("{text}"),
            EventKind::RunFinished { .. } => println!(),
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
