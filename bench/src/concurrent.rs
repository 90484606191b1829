//! Concurrent runs: the CPU time of each, and its memory while it waits.

use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};

use cpu_time::ProcessTime;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use switchboard_core::items::Items;
use switchboard_core::{Agent, Model, RunResult, Runner};

use crate::history::{SHORT, history};
use crate::measure::{Measurement, resident_bytes};
use crate::models::Waiting;

/// A runner for one handoff on the given model.
fn triage(model: impl Model) -> Runner {
    let billing: Agent = Agent::new("Billing").instructions("You handle bills.");
    let triage = Agent::new("Triage")
        .instructions("Route.")
        .handoff(&billing);
    Runner::new(&triage).model(model).tracing_off()
}

/// Spawns `at_once` runs and waits for all of them, repeatedly, for about `seconds` of CPU time.
///
/// # Errors
/// Returns an error if the runtime cannot start or a run fails.
pub fn measure_spawned(at_once: u32, seconds: f64) -> io::Result<Measurement> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let runner = triage(Waiting::yields());
    runtime.block_on(async {
        spawn_all(&runner, at_once).await?;
        let start = ProcessTime::now();
        let mut measurement = Measurement::default();
        while measurement.cpu < seconds {
            // Reading the clock is a system call, so not after each single run.
            for _ in 0..(1000 / at_once).max(1) {
                spawn_all(&runner, at_once).await?;
                measurement.runs += at_once;
            }
            measurement.cpu = start.elapsed().as_secs_f64();
        }
        Ok(measurement)
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

/// Runs that wait for their model after a handoff.
pub struct ParkedRuns {
    runs: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The ownership of the history of parked runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOwner {
    /// All runs share one history.
    Shared,
    /// Each run has its own copy.
    Own,
}

impl ParkedRuns {
    /// Starts this many runs with a history of 20 items each.
    ///
    /// # Panics
    /// Panics if a run does not wait.
    pub fn start(runs: usize, owner: HistoryOwner) -> Self {
        let runner = triage(Waiting::parks());
        let shared = history(SHORT);
        let input = || -> Items {
            match owner {
                HistoryOwner::Shared => shared.clone(),
                HistoryOwner::Own => history(SHORT),
            }
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut started = Self {
            runs: Vec::with_capacity(runs),
        };
        for _ in 0..runs {
            // An `async` block would hold the run twice.
            let mut run = Box::pin(runner.run(input()).map(drop));
            assert!(run.as_mut().poll(&mut context).is_pending());
            started.runs.push(run);
        }
        started
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns `true` if there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Measures how much the memory of the process grows for each parked run.
    pub fn measure(runs: usize, owner: HistoryOwner) -> Option<Value> {
        // One-time allocations, such as patterns and tables, are not measured.
        drop(Self::start(10, owner));
        let before = resident_bytes()?;
        let parked = Self::start(runs, owner);
        let bytes = resident_bytes()?.saturating_sub(before) / parked.len() as u64;
        Some(json!({"runs": runs, "bytes": bytes}))
    }
}
