//! Returning to the previous agent: specialists do their part and hand back, with a typed report,
//! to the agent that asked them. A team resolves agents that refer to each other by name.
//!
//! `cargo run --example return_to_caller`

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::handoff::IntoHandoff;
use switchboard::items::RunItemKind;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Runner, Team, handoff};

/// The payload of a handoff back to the planner.
#[derive(Deserialize, JsonSchema)]
struct Report {
    booked: String,
    price: u32,
}

/// The journey that is being planned.
#[derive(Default)]
struct Journey {
    bookings: Mutex<Vec<Report>>,
}

impl Journey {
    fn bookings(&self) -> MutexGuard<'_, Vec<Report>> {
        self.bookings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PLANNER: &str = "Planner";

/// The handoff back to the planner, the same for all specialists.
fn hand_back() -> impl IntoHandoff<Journey> {
    handoff::<Journey>(PLANNER)
        .tool_name("hand_back")
        .tool_description("Your part is done: report it to the planner.")
        .payload::<Report>()
        .on_handoff(|journey, report| journey.bookings().push(report))
}

fn team() -> Result<Team<Journey>, switchboard::Error> {
    Team::new()
        .agent(
            Agent::new(PLANNER)
                .instructions("Plan the journey, ask specialists, and sum up at the end.")
                .handoff_description("Has the whole journey in view.")
                .handoff("Flights")
                .handoff("Hotels"),
        )
        .agent(
            Agent::new("Flights")
                .instructions("You book flights, then hand back.")
                .handoff_description("Books flights.")
                .handoff(hand_back()),
        )
        .agent(
            Agent::new("Hotels")
                .instructions("You book hotels, then hand back.")
                .handoff_description("Books hotels.")
                .handoff(hand_back()),
        )
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let team = team()?;
    println!("{}", team.graph().to_mermaid());
    for finding in team.check() {
        println!("{finding}");
    }

    let model = ScriptedModel::new()
        .call("transfer_to_flights", "{}")
        .call("hand_back", r#"{"booked": "ZRH-LIS, 4 May", "price": 180}"#)
        .call("transfer_to_hotels", "{}")
        .call(
            "hand_back",
            r#"{"booked": "Hotel Alfama, 3 nights", "price": 330}"#,
        )
        .say("You fly to Lisbon on 4 May and stay three nights. It is 510 in total.");
    let journey = Arc::new(Journey::default());
    let planner = team.get(PLANNER).ok_or("the team has no planner")?;
    let result = Runner::new(planner)
        .context(journey.clone())
        .model(model)
        // Agents that hand back could do so forever.
        .max_turns(8)
        .run("Three days in Lisbon in May, please.")
        .await?;

    for made in result.new_items() {
        if let RunItemKind::HandoffOutput { from, to } = made.kind() {
            println!("{from} → {to}");
        }
    }
    let bookings = journey.bookings();
    for Report { booked, price } in bookings.iter() {
        println!("booked: {booked} for {price}");
    }
    let total: u32 = bookings.iter().map(|report| report.price).sum();
    println!("total: {total}");
    println!("{}: {}", result.last_agent().name(), result.final_text());
    Ok(())
}
