//! Customer service: a triage agent sends customers to departments with a typed request, and a
//! callback records each request and lists the urgent ones.
//!
//! `cargo run --example customer_service`

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::handoff::IntoHandoff;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Runner, handoff};

/// The payload of each handoff.
#[derive(Debug, Deserialize, JsonSchema)]
struct TransferRequest {
    department: Department,
    priority: Priority,
    /// The customer's name and company.
    user_info: String,
    /// The problem in one sentence.
    issue_summary: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Department {
    Billing,
    Technical,
    Sales,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    Medium,
    High,
    Urgent,
}

/// The service desk's own state. Models never see it.
#[derive(Default)]
struct ServiceDesk {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    requests: Vec<TransferRequest>,
    /// The customers to call back today.
    urgent: Vec<String>,
}

impl ServiceDesk {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: TransferRequest) {
        let mut book = self.book();
        if request.priority == Priority::Urgent {
            book.urgent.push(request.user_info.clone());
        }
        book.requests.push(request);
    }
}

/// A handoff to a department, the same for all of them.
fn transfer_to(department: &Agent<ServiceDesk>) -> impl IntoHandoff<ServiceDesk> + use<> {
    handoff(department)
        .payload::<TransferRequest>()
        .on_handoff(|ctx, request| ctx.record(request))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let billing = Agent::new("Billing expert")
        .instructions("You explain bills, take payments back and look after subscriptions.")
        .handoff_description("Bills, payments, refunds.");
    let technical = Agent::new("Technical support")
        .instructions("You find out why something does not work, and make it work.")
        .handoff_description("Errors, outages, API integration.");
    let sales = Agent::new("Sales consultant")
        .instructions("You recommend plans and explain prices.")
        .handoff_description("Plans, prices, contracts.");
    let triage = Agent::new("Customer triage")
        .instructions("Understand the customer's problem and pass them to the right department.")
        .handoff(transfer_to(&billing))
        .handoff(transfer_to(&technical))
        .handoff(transfer_to(&sales));

    let model = ScriptedModel::new()
        .call(
            "transfer_to_technical_support",
            r#"{"department": "technical", "priority": "urgent", "user_info": "Ann Lee, Acme Ltd",
                "issue_summary": "The payment API has answered 500 since 09:10."}"#,
        )
        .say("Your API key had expired. I have renewed it, and payments go through again.")
        .call(
            "transfer_to_billing_expert",
            r#"{"department": "billing", "priority": "low", "user_info": "Bob Ray",
                "issue_summary": "Wants the March invoice once more."}"#,
        )
        .say("I have sent you the invoice of March.");

    let desk = Arc::new(ServiceDesk::default());
    let runner = Runner::new(&triage).context(desk.clone()).model(model);
    for question in [
        "Ann Lee from Acme here. Nobody can pay in our shop!",
        "Could I have my March invoice again? Bob Ray",
    ] {
        let result = runner.run(question).await?;
        println!("Customer: {question}");
        println!("{}: {}\n", result.last_agent().name(), result.final_text());
    }
    let book = desk.book();
    for request in &book.requests {
        println!(
            "{:?}, {:?}: {} ({})",
            request.department, request.priority, request.issue_summary, request.user_info
        );
    }
    println!("Urgent: {:?}", book.urgent);
    Ok(())
}
