//! The final output of a team as one enum over the outputs of its agents.
//!
//! `cargo run --example output_union`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Runner, Team, output_union};

#[derive(Debug, Deserialize, JsonSchema)]
struct Bill {
    number: u32,
    total: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Ticket {
    subject: String,
}

output_union! {
    /// The final output of a conversation with the team.
    #[derive(Debug)]
    enum Answer {
        Text(String),
        Bill(Bill),
        Ticket(Ticket),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let team: Team = Team::new()
        .agent(Agent::new("Triage").handoff("Billing").handoff("Support"))
        .agent(Agent::new("Billing").output::<Bill>())
        .agent(Agent::new("Support").output::<Ticket>())
        .build()?;
    // An agent whose output has no variant would be an error here, not in production.
    team.check_output::<Answer>()?;

    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say(r#"{"number": 12, "total": 9.5}"#)
        .call("transfer_to_support", "{}")
        .say(r#"{"subject": "No connection"}"#)
        .say("Hello!");
    let runner = Runner::new(&team["Triage"]).model(model);
    for message in ["My bill, please.", "I am offline.", "Hi"] {
        match runner.run(message).await?.output_of::<Answer>()? {
            Answer::Bill(bill) => println!("bill {}: {:.2}", bill.number, bill.total),
            Answer::Ticket(ticket) => println!("ticket: {}", ticket.subject),
            Answer::Text(text) => println!("{text}"),
        }
    }
    Ok(())
}
