//! `cargo run --example service --features server`
//!
//! A team as a service, mounted into an application of one's own, and a client that uses the team as its model: over
//! Responses and over Chat Completions. Any client of OpenAI's protocols would do.

use std::error::Error;

use axum::Router;
use axum::routing::get;
use switchboard::agent::Knowledge;
use switchboard::conversation::Conversations;
use switchboard::models::{Endpoint, OfflineModel, Providers};
use switchboard::server::{ServedTeam, Service};
use switchboard::{Agent, Runner, Team};

fn support() -> Result<Team, switchboard::Error> {
    let model = OfflineModel::new();
    let bills = Knowledge::new(
        "A wrong bill, charged twice",
        "The second charge is paid back.",
    );
    Team::new()
        .agent(Agent::new("Triage").handoff("Billing").model(model.clone()))
        .agent(
            Agent::new("Billing")
                .handoff_description("Bills, charges and refunds.")
                .knowledge(bills)
                .model(model),
        )
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let service = Service::builder()
        .team(ServedTeam::new("support", support()?, ()).description("Helps customers."))
        .conversations(Conversations::in_memory())
        .build()?;
    let app = Router::new()
        .route("/hello", get(|| async { "My own page." }))
        .merge(service.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });

    let providers = Providers::new().endpoint(Endpoint::at(url).key("none"));
    for model in ["openai/support", "chat/support", "openai/support/Billing"] {
        let outside: Agent = Agent::new("Outside").model(providers.model(model)?);
        let result = Runner::new(&outside)
            .run("I was charged twice on my bill")
            .await?;
        println!("{model}: {}", result.final_text());
    }
    service.drain(std::time::Duration::from_secs(1)).await;
    Ok(())
}
