//! An asynchronous filter: another model writes a summary of the older conversation, and the next
//! agent sees the summary and the last messages. The session keeps everything.
//!
//! `cargo run --example async_summary`

use switchboard::testing::{ScriptedModel, describe_item};
use switchboard::{Agent, Item, MemorySession, Runner, filters, handoff};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A small, fast model is good enough for summaries.
    let summary_model = ScriptedModel::new().say(
        "Ann's flight LX 318 on 4 May was cancelled. She wants to fly on 5 May, before noon. She \
         was promised a hotel for the night.",
    );
    let model = ScriptedModel::new()
        .call("transfer_to_rebooking", "{}")
        .say("You are on LX 316 on 5 May at 09:05, on an aisle seat.");

    let rebooking: Agent = Agent::new("Rebooking")
        .instructions("You move passengers to other flights.")
        .handoff_description("Other flights after a cancellation.");
    // Kept unchanged: the passenger's last message, and this handoff's call and output.
    let keep_last = 3;
    let service = Agent::new("Passenger service")
        .instructions("Find out what the passenger needs and pass them on.")
        .handoff(handoff(&rebooking).filter(filters::summarize(summary_model.clone(), keep_last)));

    let session = MemorySession::new();
    let result = Runner::new(&service)
        .model(model.clone())
        .session(&session)
        .run(vec![
            Item::user("Hello! I am Ann. Flight LX 318 on 4 May is cancelled!"),
            Item::assistant("I am sorry. We pay for a hotel for the night."),
            Item::user("Good. Can I fly on 5 May, before noon?"),
            Item::assistant("I will ask rebooking. Window or aisle?"),
            Item::user("Aisle, please."),
        ])
        .await?;

    if let Some(request) = summary_model.requests().first() {
        println!("Instructions of the model that summarises:");
        print_indented(request.instructions.as_deref().unwrap_or_default());
        println!("Its input:");
        for item in &request.input {
            print_indented(&item.text().unwrap_or_default());
        }
    }
    if let Some(request) = model.requests().last() {
        println!("\nRebooking saw:");
        for item in &request.input {
            print_indented(&describe_item(item));
        }
    }
    println!("\n{}: {}", result.last_agent().name(), result.final_text());
    println!("The session keeps {} items.", session.items().len());
    Ok(())
}

fn print_indented(text: &str) {
    for line in text.trim().lines() {
        println!("  {line}");
    }
}
