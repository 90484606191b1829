//! A handoff with a payload in the application's own type, a callback that uses it, and a filter
//! on what the next agent sees.
//!
//! `cargo run --example typed_payload`

use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::handoff::HandoffInputData;
use switchboard::hooks::{HookResult, RunHooks, Transfer};
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Item, RunContext, Runner, filters, handoff, tool};

/// The payload of a handoff to the analyst. The model gets the type's schema; its arguments are
/// parsed into the type before the handoff has any effect.
#[derive(Debug, Deserialize, JsonSchema)]
struct AnalysisRequest {
    /// The subject of the analysis.
    query: String,
    period: Quarter,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Quarter {
    Q1,
    Q2,
    Q3,
    Q4,
}

/// The application's own state. Models never see it.
#[derive(Default)]
struct App {
    requests: Mutex<Vec<AnalysisRequest>>,
}

impl App {
    fn requests(&self) -> MutexGuard<'_, Vec<AnalysisRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PrintHandoffs;

impl RunHooks<App> for PrintHandoffs {
    async fn on_handoff(&self, _ctx: &RunContext<App>, transfer: &Transfer<'_, App>) -> HookResult {
        let (from, to) = (transfer.from.name(), transfer.to.name());
        println!("hook: {from} → {to} with {}", transfer.payload);
        Ok(())
    }
}

/// Puts a note with the payload in front of what the next agent sees.
fn note_the_request(data: HandoffInputData<App>) -> HandoffInputData<App> {
    let note = format!("Requests so far: {:?}", data.run_context().requests());
    let mut history = vec![Item::system(note)];
    history.extend(data.history_items().iter().cloned());
    data.with_input_history(history)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        .call("find_tables", r#"{"topic": "sales"}"#)
        .call(
            "transfer_to_analyst",
            r#"{"query": "sales", "period": "Q3"}"#,
        )
        .say("Sales grew by 12 % in the third quarter.");

    let analyst = Agent::<App>::new("Analyst").instructions("You analyse data.");
    let coordinator = Agent::new("Coordinator")
        .instructions("Plan the work and pass it on.")
        .tool(
            tool("find_tables")
                .description("Finds tables by topic.")
                .run(|_ctx, topic: Topic| format!("{}_2026, {}_2025", topic.topic, topic.topic)),
        )
        .handoff(
            handoff(&analyst)
                .payload::<AnalysisRequest>()
                .on_handoff(|ctx, request| async move {
                    println!("callback: {} in {:?}", request.query, request.period);
                    ctx.requests().push(request);
                })
                .filter(filters::remove_all_tools().then(note_the_request)),
        );

    let result = Runner::new(&coordinator)
        .context(App::default())
        .model(model.clone())
        .hooks(PrintHandoffs)
        .run("How did sales do in the third quarter?")
        .await?;

    println!("{}: {}", result.last_agent().name(), result.final_text());
    println!("The analyst's model saw:");
    for item in &model.requests()[2].input {
        println!("  {}", item.as_json());
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}
