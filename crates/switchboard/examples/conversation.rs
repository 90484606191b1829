//! The promises of a whole conversation: redacted data stays redacted, a refused message is not stored, the
//! last message can be taken back.
//!
//! `cargo run --example conversation`

use switchboard::conversation::{Conversations, EntryContent};
use switchboard::guardrail::{InputGuardrail, InputVerdict};
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Input, Runner, Team, filters, handoff};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), switchboard::callback::BoxError> {
    let no_passwords = InputGuardrail::new("no_passwords", |_ctx, _agent, input: Input| {
        let words = input.last_words().unwrap_or_default();
        InputVerdict::trip_if(words.contains("password"), "a password")
    });
    let team: Team = Team::new()
        .agent(
            Agent::new("Triage")
                .handoff(handoff("Billing").filter(filters::redact_pii()))
                .input_guardrail(no_passwords),
        )
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()?;
    // Any model will do. This one follows a script, so that the example needs no key.
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill is it?")
        .say("I have taken one charge back.")
        .say("The one of April is paid.");

    let session = Conversations::in_memory().get("customer-42");
    let runner = Runner::new(&team["Triage"])
        .model(model.clone())
        .session(&session);
    for words in [
        "I paid twice with 4111 1111 1111 1111",
        "My password is hunter2",
        "The one of March",
    ] {
        match runner.run(words).await {
            Ok(result) => println!("{}: {}", result.last_agent().name(), result.final_text()),
            Err(error) => println!("refused: {error}"),
        }
    }
    // The customer meant another month: the last message is taken back, and sent again.
    session.undo().await?;
    let result = runner.run("The one of April").await?;
    println!("{}: {}", result.last_agent().name(), result.final_text());

    println!("\nwhat Billing's model was sent with the last message:");
    let requests = model.requests();
    for item in requests
        .last()
        .into_iter()
        .flat_map(|request| &request.input)
    {
        println!("  {}", item.text().unwrap_or(item.as_json().into()));
    }
    println!("\nthe record:");
    for entry in session.record(None).await? {
        let agent = entry.agent.as_deref().unwrap_or("user");
        match &entry.content {
            EntryContent::Item(item) => {
                println!("  {agent}: {}", item.text().unwrap_or("...".into()))
            }
            content => println!("  {agent}: {}", content.as_json()),
        }
    }
    Ok(())
}
