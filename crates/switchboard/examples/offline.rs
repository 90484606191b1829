//! `cargo run --example offline`
//!
//! A support desk on the offline model: no key, no network, English and Chinese.

use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::agent::Knowledge;
use switchboard::handoff::HandoffContext;
use switchboard::models::OfflineModel;
use switchboard::{Agent, Error, Runner, Team, handoff, tool};

#[derive(Default)]
struct App {
    tickets: Mutex<Vec<Ticket>>,
}

/// The payload of a handoff to a person.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ticket {
    /// What the customer wants, in their words.
    reason: String,
    priority: Priority,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    Normal,
    Urgent,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The order's number, such as ORD-123.
    order_id: String,
}

fn desk() -> Result<Team<App>, Error> {
    let billing = Agent::new("Billing")
        .instructions("You answer questions about bills.")
        .handoff_description(
            "Bills, invoices, charges, payments and refunds. 账单、发票、扣款、付款和退款。",
        )
        .knowledge(Knowledge::new(
            "Charged twice, double charge",
            "A second charge is reversed within three working days.",
        ))
        .knowledge(Knowledge::new(
            "重复扣款，多扣钱",
            "多扣的款项会在三个工作日内退回。",
        ));
    let shipping = Agent::new("Shipping")
        .instructions("You answer questions about parcels.")
        .handoff_description("Parcels, delivery and tracking of orders. 快递、物流和订单查询。")
        .tool(
            tool::<App>("track_order")
                .description("Says where an order or parcel is.")
                .run(|_ctx, order: Order| {
                    format!("{} is on its way and arrives on Friday.", order.order_id)
                }),
        );
    let person = Agent::new("Manager")
        .instructions("You take over from the desk.")
        .handoff_description("A manager or a person, for complaints. 经理，人工，投诉。")
        .knowledge(Knowledge::new(
            "manager, complaint, person, 投诉, 经理, 人工",
            "I have your case and call you back today.",
        ));
    let escalate = handoff::<App>("Manager").payload::<Ticket>().on_handoff(
        |ctx: HandoffContext<App>, ticket| {
            let mut tickets = ctx.tickets.lock().unwrap_or_else(PoisonError::into_inner);
            tickets.push(ticket);
        },
    );
    let triage = Agent::new("Triage")
        .instructions("Route the customer to the right colleague.")
        .handoff("Billing")
        .handoff("Shipping")
        .handoff(escalate);
    Team::new()
        .agent(triage)
        .agent(billing)
        .agent(shipping)
        .agent(person)
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let team = desk()?;
    let app = std::sync::Arc::new(App::default());
    let runner = Runner::new(&team["Triage"])
        .model(OfflineModel::new())
        .context(app.clone());
    for message in [
        "Hi there, you took the money from my card twice!",
        "where is ORD-123? it should have been here by now",
        "你们多扣了我一次钱",
        "This is urgent: I want to complain to a manager",
        "What is the capital of France?",
    ] {
        println!("Customer: {message}");
        let result = runner.run(message).await?;
        for taken in result.handoffs() {
            println!("  {} → {} {}", taken.from, taken.to, taken.payload);
        }
        println!("{}: {}\n", result.last_agent().name(), result.final_text());
    }
    let tickets = app.tickets.lock().unwrap_or_else(PoisonError::into_inner);
    for ticket in tickets.iter() {
        println!("ticket, {:?}: {}", ticket.priority, ticket.reason);
    }
    Ok(())
}
