//! A conversation is stored in a file; a later process continues it with the agent that had it.
//!
//! `cargo run --features sqlite --example sqlite_session`

use std::path::Path;

use switchboard::callback::BoxError;
use switchboard::sessions::SqliteSessions;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Runner, Team};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("conversations.db");

    // Any model will do. These follow a script, so that the example needs no key.
    let on_monday = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill is it?");
    visit(&file, "customer-42", "My bill is wrong", &on_monday).await?;
    let on_tuesday = ScriptedModel::new().say("Thank you. I have taken one charge back.");
    visit(&file, "customer-42", "The one of March", &on_tuesday).await?;
    let of_another = ScriptedModel::new().say("Hello! What can I do for you?");
    visit(&file, "customer-43", "Hello", &of_another).await?;

    let sessions = SqliteSessions::open(&file).await?;
    let mut listed = sessions.list().await?;
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    for session in listed {
        let agent = session.agent.unwrap_or_default();
        println!("{}: {} items, {agent}", session.name, session.items);
    }
    // A customer asks to be forgotten.
    println!("deleted: {}", sessions.delete("customer-42").await?);
    println!("left: {}", sessions.list().await?.len());
    sessions.close().await;
    Ok(())
}

/// One message of a customer, as a program of its own would handle it.
async fn visit(
    file: &Path,
    customer: &str,
    words: &str,
    model: &ScriptedModel,
) -> Result<(), BoxError> {
    let team: Team = Team::new()
        .agent(Agent::new("Triage").handoff("Billing"))
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()?;
    let sessions = SqliteSessions::open(file).await?;
    let session = sessions.session(customer);

    let last = session.agent().await?;
    let agent = last.and_then(|name| team.get(&name));
    let agent = agent.unwrap_or(&team["Triage"]);
    let runner = Runner::new(agent).model(model.clone()).session(&session);
    let result = runner.run(words).await?;
    session.set_agent(result.last_agent().name()).await?;

    println!("{customer}: {words}");
    println!("[{} begins]", agent.name());
    println!("{}: {}\n", result.last_agent().name(), result.final_text());
    sessions.close().await;
    Ok(())
}
