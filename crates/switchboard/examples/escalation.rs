//! Escalation: a case goes from first-level support up to the expert. The case is in the context;
//! each level adds to it with a typed payload, and the next one gets it in a note.
//!
//! `cargo run --example escalation`

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::handoff::HandoffInputData;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Item, Runner, filters, handoff};

#[derive(Debug)]
enum Level {
    L1,
    L2,
    L3,
}

/// The payload of a handoff from L1 to L2.
#[derive(Deserialize, JsonSchema)]
struct Escalation {
    reason: String,
    /// The steps that did not help.
    tried: Vec<String>,
}

/// The payload of a handoff from L2 to the expert.
#[derive(Deserialize, JsonSchema)]
struct ExpertRequest {
    finding: String,
    knowledge_needed: Vec<String>,
}

struct Case {
    id: &'static str,
    level: Level,
    history: Vec<String>,
}

impl Case {
    fn raise_to(&mut self, level: Level, note: String) {
        self.history
            .push(format!("{:?} → {level:?}: {note}", self.level));
        self.level = level;
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case {} at {:?}", self.id, self.level)?;
        self.history
            .iter()
            .try_for_each(|note| write!(f, "\n- {note}"))
    }
}

/// The application's state: the case.
struct Support {
    case: Mutex<Case>,
}

impl Support {
    fn case(&self) -> MutexGuard<'_, Case> {
        self.case.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts the case, which the callback has updated, in front of the history, and removes the outdated
/// note of the level before.
fn carry_the_case(data: HandoffInputData<Support>) -> HandoffInputData<Support> {
    let mut history = vec![Item::developer(data.run_context().case().to_string())];
    let items = data.history_items();
    let is_note = |item: &Item| item.role().as_deref() == Some("developer");
    history.extend(items.iter().filter(|item| !is_note(item)).cloned());
    data.with_input_history(history)
}

fn first_level() -> Agent<Support> {
    let l3 = Agent::<Support>::new("L3 support")
        .instructions("You are the expert: architecture, outages, fixes in the product.")
        .handoff_description("The product's experts.");
    let l2 = Agent::<Support>::new("L2 support")
        .instructions("You analyse. Call the expert where the product itself must change.")
        .handoff_description("Deep analysis, integration, performance.")
        .handoff(
            handoff(&l3)
                .payload::<ExpertRequest>()
                .on_handoff(|ctx, request| {
                    let needs = request.knowledge_needed.join(", ");
                    let note = format!("{} (needs: {needs})", request.finding);
                    ctx.case().raise_to(Level::L3, note);
                })
                .filter(filters::remove_all_tools().then(carry_the_case)),
        );
    Agent::new("L1 support")
        .instructions("You solve common problems. Escalate what you cannot solve.")
        .handoff(
            handoff(&l2)
                .payload::<Escalation>()
                .on_handoff(|ctx, escalation| {
                    let tried = escalation.tried.join(", ");
                    let note = format!("{} (tried: {tried})", escalation.reason);
                    ctx.case().raise_to(Level::L2, note);
                })
                .filter(filters::remove_all_tools().then(carry_the_case)),
        )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        .call(
            "transfer_to_l2_support",
            r#"{"reason": "Webhooks still arrive twice", "tried": ["new secret", "resend"]}"#,
        )
        .call(
            "transfer_to_l3_support",
            r#"{"finding": "The queue delivers again after 30 s",
                "knowledge_needed": ["queue internals"]}"#,
        )
        .say("We have raised the queue's timeout. Each webhook now arrives once.");
    let support = Arc::new(Support {
        case: Mutex::new(Case {
            id: "2041",
            level: Level::L1,
            history: Vec::new(),
        }),
    });

    let result = Runner::new(&first_level())
        .context(support.clone())
        .model(model.clone())
        .run("Our webhooks arrive twice.")
        .await?;

    for (level, request) in ["L1", "L2", "L3"].iter().zip(model.requests()) {
        println!("What {level} saw:");
        for item in &request.input {
            let text = item.text().unwrap_or_default().replace('\n', "\n    ");
            println!("  {}: {text}", item.role().unwrap_or_default());
        }
    }
    println!("\n{}: {}", result.last_agent().name(), result.final_text());
    println!("{}", support.case());
    Ok(())
}
