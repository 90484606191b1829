//! `cargo run --example remote_agent --features server`
//!
//! A handoff to an agent of another server, over A2A: a travel team is served, and the triage of a support team hands
//! travellers over to it. The travel team asks back before it books, and hands back once it is done.

use std::error::Error;

use serde_json::json;
use switchboard::conversation::Conversations;
use switchboard::models::{Endpoint, RemoteAgent};
use switchboard::server::{ServedTeam, Server, Service};
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, EventKind, Handoff, Runner, Team, tool};

/// A team with a tool that needs approval. Its model follows a script.
fn travel() -> Result<Team, switchboard::Error> {
    let model = ScriptedModel::new()
        .call("transfer_to_flights", "{}")
        .call("book", r#"{"to": "Oslo"}"#)
        .say("Your flight to Oslo is booked.");
    let book = tool("book")
        .description("Books a flight.")
        .needs_approval()
        .run_raw(&json!({"type": "object"}), |_ctx| "booked");
    Team::new()
        .agent(Agent::new("Desk").handoff("Flights").model(model.clone()))
        .agent(
            Agent::new("Flights")
                .handoff_description("Flights.")
                .tool(book)
                .model(model),
        )
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let service = Service::builder()
        .team(ServedTeam::new("travel", travel()?, ()).description("Flights and hotels."))
        .build()?;
    let server = Server::bind(service, "127.0.0.1:0").await?;
    let address = format!("http://{}/a2a/travel", server.address());
    let running = server.start();

    // Another process, elsewhere: it knows the address alone.
    let remote = RemoteAgent::new(&Endpoint::at(address).connect()?);
    let card = remote.card().await?;
    println!(
        "{}: {} ({})",
        card.name,
        card.description,
        card.skills.join(", ")
    );
    let travel = Agent::new("Travel")
        .handoff_description(card.description.clone())
        .model(remote)
        .handoff(Handoff::to_previous());
    let model = ScriptedModel::new()
        .call("transfer_to_travel", "{}")
        .say("You are welcome. What else?");
    let triage: Agent = Agent::new("Triage").model(model).handoff(travel);
    let conversation = Conversations::in_memory().get("ann");
    let runner = Runner::new(&triage).session(&conversation);
    for message in ["Book me a flight to Oslo", "approve", "Thank you"] {
        println!("user: {message}");
        let mut stream = runner.stream(message);
        while let Some(event) = stream.next().await {
            if let EventKind::Handoff(handoff) = event.kind {
                println!("  ({} → {})", handoff.from, handoff.to);
            }
        }
        let result = stream.finish().await?;
        println!("{}: {}", result.last_agent().name(), result.final_text());
    }
    running.shut_down().await;
    Ok(())
}
