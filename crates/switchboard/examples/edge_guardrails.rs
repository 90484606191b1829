//! Checks on a handoff: a guardrail refuses refunds above a limit, a callback refuses when no
//! manager is free, and another guardrail stops the run. When a handoff is refused, the model gets
//! the reason and the same agent continues.
//!
//! `cargo run --example edge_guardrails`

use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::callback::BoxError;
use switchboard::guardrail::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
use switchboard::handoff::{HandoffContext, HandoffDecision};
use switchboard::testing::{Report, ScriptedModel};
use switchboard::{Agent, Runner, handoff};

#[derive(Deserialize, JsonSchema)]
struct RefundRequest {
    order: String,
    amount: u32,
}

struct Shop {
    refund_limit: u32,
    free_managers: AtomicU32,
}

/// Checks the payload before the handoff has any effect. The model gets the reason of a refusal.
fn within_limit(request: HandoffRequest<Shop>) -> Result<HandoffVerdict, BoxError> {
    let refund: RefundRequest = request.payload_as().ok_or("the handoff has no payload")?;
    let limit = request.run_context().refund_limit;
    if refund.amount <= limit {
        return Ok(HandoffVerdict::Allow);
    }
    let reason = format!(
        "{} refunds up to {limit}; ask a manager.",
        request.to.name()
    );
    Ok(HandoffVerdict::refuse(reason))
}

/// Checks every handoff of the run, and stops the run at a test order.
fn no_test_orders(request: HandoffRequest<Shop>) -> HandoffVerdict {
    match request.payload_as::<RefundRequest>() {
        Some(refund) if refund.order == "TEST" => {
            HandoffVerdict::trip("a test order in production")
        }
        _ => HandoffVerdict::Allow,
    }
}

/// The callback: takes a free manager, or refuses the handoff.
fn take_a_manager(shop: HandoffContext<Shop>) -> HandoffDecision {
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
        // The first customer: above the limit, so the manager takes over.
        .call("transfer_to_refunds", r#"{"order": "A-1", "amount": 900}"#)
        .call("transfer_to_manager", "{}")
        .say("I approve the refund of 900.")
        // The second: above the limit too, and the only manager is busy now.
        .call("transfer_to_refunds", r#"{"order": "B-2", "amount": 700}"#)
        .call("transfer_to_manager", "{}")
        .say("A manager will call you tomorrow.")
        // The third: a test order.
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
