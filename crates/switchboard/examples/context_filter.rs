//! Context-aware filtering: the next agent sees the first and the last items of the conversation,
//! without private data, and with a note about the customer.
//!
//! `cargo run --example context_filter`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::filters::{self, Redaction};
use switchboard::handoff::HandoffInputData;
use switchboard::testing::{ScriptedModel, describe_item};
use switchboard::{Agent, Item, Json, Runner, handoff, tool};

/// The application's record of the customer.
struct Customer {
    tier: &'static str,
    open_tickets: u32,
}

#[derive(Deserialize, JsonSchema)]
struct AccountQuery {
    email: String,
}

/// The note in front of the next agent's input.
fn customer_note(data: &HandoffInputData<Customer>) -> String {
    let customer = data.run_context();
    format!(
        "Handed over from triage. Tier: {}. Open tickets: {}.",
        customer.tier, customer.open_tickets
    )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let private_data = Redaction::new().pattern(r"\bACC-\d+\b", "[ACCOUNT]")?;
    let billing = Agent::<Customer>::new("Billing expert")
        .instructions("You handle bills.")
        .handoff_description("Bills, payments, refunds.");
    let triage = Agent::new("Triage")
        .instructions("Find the customer's account, then pass them on.")
        .tool(
            tool::<Customer>("find_account")
                .description("Finds an account by the customer's e-mail address.")
                .run(|_ctx, query: AccountQuery| {
                    Json(serde_json::json!({
                        "account": "ACC-20413",
                        "email": query.email,
                        "card": "4111 1111 1111 1111",
                        "charges": [{"month": "March", "times": 2}],
                    }))
                }),
        )
        .handoff(
            handoff(&billing).filter(
                filters::keep_first_and_last(2, 5)
                    .then(private_data)
                    .then(filters::note(customer_note)),
            ),
        );

    let model = ScriptedModel::new()
        .call("find_account", r#"{"email": "ann@example.com"}"#)
        .call("transfer_to_billing_expert", "{}")
        .say("You were charged twice in March. I have taken one charge back.");
    let result = Runner::new(&triage)
        .context(Customer {
            tier: "premium",
            open_tickets: 2,
        })
        .model(model.clone())
        .run(vec![
            Item::user("Hello, I was charged twice."),
            Item::assistant("I am sorry. Which month is it about?"),
            Item::user("March, I think. Is the weather as bad at your place?"),
            Item::assistant("It rains. How can I find your account?"),
            Item::user("ann@example.com, or call me: +1 415 555 0132."),
        ])
        .await?;

    for request in model.requests().iter().skip(1) {
        let agent = request.agent.as_deref().unwrap_or_default();
        println!("What the model saw as {agent}:");
        for item in &request.input {
            println!("  {}", describe_item(item));
        }
    }
    println!("{}: {}", result.last_agent().name(), result.final_text());
    Ok(())
}
