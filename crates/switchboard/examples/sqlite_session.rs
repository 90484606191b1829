//! A conversation is stored in a file; a later process continues it with the agent that had it.
//!
//! `cargo run --features sqlite --example sqlite_session`

use std::path::Path;

use switchboard::callback::BoxError;
use switchboard::conversation::Conversations;
use switchboard::sessions::SqliteStore;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Runner, Session, Team};

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

    let conversations = Conversations::new(SqliteStore::open(&file).await?);
    let mut listed = conversations.list(None).await?;
    listed.sort_by(|a, b| a.id.cmp(&b.id));
    for head in listed {
        let items = conversations.get(head.id.clone()).load(None).await?.len();
        println!(
            "{}: {items} items, {}",
            head.id,
            head.agent.unwrap_or_default()
        );
    }
    // A customer asks to be forgotten.
    println!("deleted: {}", conversations.delete("customer-42").await?);
    println!("left: {}", conversations.list(None).await?.len());
    conversations.close().await;
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
    let conversations = Conversations::new(SqliteStore::open(file).await?);
    let session = conversations.get(customer);

    // The run begins with the agent that has the conversation, and stores it with each turn.
    let runner = Runner::new(&team["Triage"]).model(model.clone());
    let result = runner.session(&session).run(words).await?;

    println!("{customer}: {words}");
    println!("[{} begins]", result.run().first_agent());
    println!("{}: {}\n", result.last_agent().name(), result.final_text());
    conversations.close().await;
    Ok(())
}
