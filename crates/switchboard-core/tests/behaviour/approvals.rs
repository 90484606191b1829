//! Calls that wait for a person's decision.

mod changed_teams;
mod checks;
mod conversations;
mod crossed;
mod deciding;
mod handoffs;
mod hostile;
mod inside_agent_tools;
mod provider_tools;
mod resuming_once;
mod side_by_side;
mod states;

use std::sync::{Arc, Mutex};

use switchboard_core::approval::{Decision, Interruption};
use switchboard_core::{Agent, Run, RunResult, Runner, Tool, tool};

/// The names and arguments of the tools that ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ran(Arc<Mutex<Vec<String>>>);

impl Ran {
    pub(crate) fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A tool that waits for approval, and notes that it ran.
    fn refund(&self) -> Tool {
        let ran = self.clone();
        let arguments = serde_json::json!({"type": "object"});
        tool::<()>("refund")
            .needs_approval()
            .run_raw(&arguments, move |ctx| {
                ran.add(format!("refund {}", ctx.arguments()));
                "refunded"
            })
    }

    /// A tool that needs no approval, and notes that it ran.
    fn lookup(&self) -> Tool {
        let ran = self.clone();
        tool("lookup").run(move |_ctx, (): ()| {
            ran.add("lookup");
            "account 42"
        })
    }
}

/// An agent with both tools.
fn desk(ran: &Ran) -> Agent {
    Agent::new("Desk").tool(ran.refund()).tool(ran.lookup())
}

/// Decides all that waits.
pub(crate) fn decide_all(run: &mut Run, decision: &Decision) -> Vec<Interruption> {
    let waiting = run.interruptions();
    for waiting in &waiting {
        run.decide(waiting, decision.clone()).unwrap();
    }
    waiting
}

/// Decides all that waits, and resumes the run.
async fn resume_after(runner: &Runner, result: RunResult, decision: Decision) -> RunResult {
    let mut run = result.into_run();
    decide_all(&mut run, &decision);
    runner.resume(run).await.unwrap()
}
