//! Checks on a handoff: a guardrail on the edge refuses what is too much, a callback refuses what
//! nobody has time for, and another guardrail stops the run. A refusal is told to the model,
//! which goes on as the same agent.
//!
//! `cargo run --example edge_guardrails`

use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchboard::testing::{Report, ScriptedModel};
use switchboard::{
    Agent, BoxError, HandoffDecision, HandoffGuardrail, HandoffRequest, HandoffVerdict, RunContext,
    Runner, handoff,
};

#[derive(Serialize, Deserialize, JsonSchema)]
struct RefundRequest {
    order: String,
    amount: u32,
}

struct Shop {
    refund_limit: u32,
    free_managers: AtomicU32,
}

/// Looks at the payload before anything happens. What it says is told to the model.
fn within_limit(check: HandoffRequest<Shop>) -> Result<HandoffVerdict, BoxError> {
    let request: RefundRequest = serde_json::from_value(check.payload.clone().unwrap_or_default())?;
    let limit = check.run_context().refund_limit;
    Ok(if request.amount > limit {
        HandoffVerdict::refuse(format!(
            "{} refunds up to {limit}; ask a manager.",
            check.to.name()
        ))
    } else {
        HandoffVerdict::Allow
    })
}

/// Runs for every handoff of the run, and stops the run where it must.
fn no_test_orders(check: HandoffRequest<Shop>) -> HandoffVerdict {
    match check.payload.as_ref().map(|payload| &payload["order"]) {
        Some(order) if order == "TEST" => HandoffVerdict::trip("a test order in production"),
        _ => HandoffVerdict::Allow,
    }
}

/// The callback takes a manager's time where there is some left.
fn take_a_manager(shop: RunContext<Shop>) -> HandoffDecision {
    let taken = shop
        .free_managers
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            free.checked_sub(1)
        });
    match taken {
        Ok(_) => HandoffDecision::Proceed,
        Err(_) => HandoffDecision::refuse("All managers are busy; offer a call tomorrow."),
    }
}

fn desk() -> Agent<Shop> {
    let refunds = Agent::new("Refunds").handoff_description("Pays money back.");
    let manager = Agent::new("Manager").handoff_description("Decides on large refunds.");
    Agent::new("Desk")
        .instructions("Pass refunds on.")
        .handoff(
            handoff(&refunds)
                .payload::<RefundRequest>()
                .guardrail(HandoffGuardrail::new("within_limit", within_limit)),
        )
        .handoff(handoff(&manager).on_handoff(take_a_manager))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        // The first customer: too much for refunds, so the manager takes over.
        .call("transfer_to_refunds", r#"{"order": "A-1", "amount": 900}"#)
        .call("transfer_to_manager", "{}")
        .say("I approve the refund of 900.")
        // The second: too much as well, and the only manager is busy now.
        .call("transfer_to_refunds", r#"{"order": "B-2", "amount": 700}"#)
        .call("transfer_to_manager", "{}")
        .say("A manager will call you tomorrow.")
        // The third must not be there at all.
        .call("transfer_to_refunds", r#"{"order": "TEST", "amount": 1}"#);
    let runner = Runner::new(&desk())
        .context(Shop {
            refund_limit: 500,
            free_managers: AtomicU32::new(1),
        })
        .handoff_guardrail(HandoffGuardrail::new("no_test_orders", no_test_orders))
        .model(model);

    for question in [
        "I want 900 back for order A-1.",
        "I want 700 back for order B-2.",
        "I want 1 back for order TEST.",
    ] {
        println!("Customer: {question}");
        match runner.run(question).await {
            Ok(result) => println!("{}", Report::of(&result)),
            Err(error) => println!("Stopped: {error}"),
        }
    }
    Ok(())
}
