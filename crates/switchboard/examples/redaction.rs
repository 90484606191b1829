//! Classes of personal data, hidden from the next agent or not, with placeholders of your own.
//!
//! `cargo run --example redaction`

use switchboard::filters::{Pii, Redaction};
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Item, Runner, handoff};

const MESSAGE: &str = "I am Ann, ann [at] example [dot] com, phone 020 7946 0958. Please refund order 4155552671 \
                       to DE89 3704 0044 0532 0130 00, I paid with 4111 1111 1111 1111.";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (name, redaction) in [
        ("all classes", Redaction::new()),
        (
            "cards and IBANs",
            Redaction::new().only([Pii::Card, Pii::Iban]),
        ),
        (
            "all but phones, own placeholders",
            Redaction::new()
                .without([Pii::Phone])
                .placeholder(Pii::Email, "<e-mail>")
                .pattern(r"\bAnn\b", "<name>")?,
        ),
    ] {
        println!("{name}:\n  {}", redaction.text(MESSAGE));
    }

    let call = Item::function_call(
        "c1",
        "refund",
        r#"{"phone":"020 7946 0958","count":3387418839}"#,
    );
    let redacted = Redaction::new().item(&call).unwrap_or(call);
    println!(
        "arguments of a tool:\n  {}",
        redacted.arguments().unwrap_or_default()
    );

    // The next agent sees the placeholders; the conversation itself is not changed.
    let billing = Agent::new("Billing").instructions("You handle refunds.");
    let without_phones = Redaction::new().without([Pii::Phone]);
    let triage: Agent = Agent::new("Triage").handoff(handoff(&billing).filter(without_phones));
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("It is on its way.");
    let result = Runner::new(&triage)
        .model(model.clone())
        .run(MESSAGE)
        .await?;
    for request in model.requests().iter() {
        let agent = request.agent.as_deref().unwrap_or_default();
        let message = request.input.iter().next().and_then(Item::text);
        println!("{agent} saw:\n  {}", message.unwrap_or_default());
    }
    println!("{}: {}", result.last_agent().name(), result.final_text());
    Ok(())
}
