//! Many runs at once: what each costs, and how much memory it holds while it waits.

use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};

use cpu_time::ProcessTime;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use switchboard_core::{Agent, Items, Model, RunResult, Runner};

use crate::history::{SHORT, history};
use crate::measure::{Measured, resident_bytes};
use crate::models::Waiting;

/// One handoff on a model of its own.
fn triage(model: impl Model) -> Runner {
    let billing: Agent = Agent::new("Billing").instructions("You handle bills.");
    let triage = Agent::new("Triage")
        .instructions("Route.")
        .handoff(&billing);
    Runner::new(&triage).model(model).tracing_off()
}

/// Spawns this many runs, waits for all, and does so again until the time is spent. One at a time is
/// the same harness with one run.
///
/// # Errors
/// Where there is no runtime, or a run fails.
pub fn spawned(at_once: u32, seconds: f64) -> io::Result<Measured> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let runner = triage(Waiting::yields());
    runtime.block_on(async {
        spawn_all(&runner, at_once).await?;
        let start = ProcessTime::now();
        let mut measured = Measured::default();
        while measured.cpu < seconds {
            // Reading the clock is a system call; one run at a time must not pay for it each time.
            for _ in 0..(1000 / at_once).max(1) {
                spawn_all(&runner, at_once).await?;
                measured.runs += at_once;
            }
            measured.cpu = start.elapsed().as_secs_f64();
        }
        Ok(measured)
    })
}

async fn spawn_all(runner: &Runner, runs: u32) -> io::Result<()> {
    let runs: Vec<_> = (0..runs)
        .map(|_| tokio::spawn(runner.run("My bill is wrong")))
        .collect();
    for run in runs {
        let _: RunResult = run.await?.map_err(io::Error::other)?;
    }
    Ok(())
}

/// Runs that wait for their model, after a handoff.
pub struct Parked {
    runs: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Whose history a parked run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOf {
    /// One for all runs.
    All,
    /// Each run has its own.
    Each,
}

impl Parked {
    /// Starts this many runs over 20 items each.
    ///
    /// # Panics
    /// Where a run does not wait.
    pub fn start(runs: usize, history_of: HistoryOf) -> Self {
        let runner = triage(Waiting::parks());
        let shared = history(SHORT);
        let given = || -> Items {
            match history_of {
                HistoryOf::All => shared.clone(),
                HistoryOf::Each => history(SHORT),
            }
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut started = Self {
            runs: Vec::with_capacity(runs),
        };
        for _ in 0..runs {
            // Not an `async` block around it: that would hold the run twice.
            let mut run = Box::pin(runner.run(given()).map(drop));
            assert!(run.as_mut().poll(&mut context).is_pending());
            started.runs.push(run);
        }
        started
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// By how much the memory of the process grows for each run that is parked.
    pub fn measured(runs: usize, history_of: HistoryOf) -> Option<Value> {
        // What is made once, such as patterns and tables, does not count.
        drop(Self::start(10, history_of));
        let before = resident_bytes()?;
        let parked = Self::start(runs, history_of);
        let bytes = resident_bytes()?.saturating_sub(before) / parked.len() as u64;
        Some(json!({"runs": runs, "bytes": bytes}))
    }
}
