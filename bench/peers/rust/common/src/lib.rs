//! The common parts of the peers' programs: parse a case, run it, and print its cost.
//!
//! `PROGRAM CASE SECONDS [URL]` prints the same line of JSON as Switchboard's own program.

mod case;
mod history;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use serde_json::{Value, json};

pub use case::{Case, Protocol, Wait, Wire};
pub use history::{HistoryItem, history};

/// The error of a failed measurement, which ends the program.
pub type Failed = Box<dyn Error + Send + Sync>;

/// The user's message.
pub const INPUT: &str = "My bill is wrong";

/// The instructions of the second agent, by which the provider recognizes its requests.
pub const SECOND: &str = "You handle bills.";

/// A peer library, set up to run one case repeatedly.
pub trait Peer: Send + Sync + Sized + 'static {
    /// Sets up a case.
    fn new(case: &Case) -> Result<Self, Failed>;

    /// Runs the case once.
    fn run(&self) -> impl Future<Output = Result<(), Failed>> + Send;
}

/// Runs the program of a peer.
pub fn main<P: Peer>() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, url @ ..] = arguments.as_slice() else {
        return Err("usage: CASE SECONDS [URL]".into());
    };
    let case = Case::named(name, url.first()).ok_or("no such case")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let cost = runtime.block_on(measure::<P>(&case, seconds.parse()?))?;
    println!("{cost}");
    Ok(())
}

async fn measure<P: Peer>(case: &Case, seconds: f64) -> Result<Value, Failed> {
    if case.name == "cold" {
        return P::new(case)?.run().await.map(|()| json!({"runs": 1}));
    }
    if case.wait == Wait::Parks {
        return measure_parked::<P>(case);
    }
    let peer = Arc::new(P::new(case)?);
    let runs = case.at_once;
    batch(&peer, case, runs).await?;
    let mut count = runs;
    let mut warm = batch(&peer, case, count).await?;
    while warm.0 < seconds / 10.0 && count < 1 << 24 {
        count *= 2;
        warm = batch(&peer, case, count).await?;
    }
    let times = (seconds / (warm.0 / f64::from(count)).max(1e-9)).clamp(1.0, 1e8) as u32;
    let times = times.div_ceil(runs) * runs;
    let (cpu, mut waits) = batch(&peer, case, times).await?;
    waits.sort();
    let mut cost = json!({"runs": times, "cpu_s": cpu});
    for (name, percent) in [("p50_us", 50), ("p99_us", 99)] {
        if let Some(wait) =
            waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)))
        {
            cost[name] = (wait.as_secs_f64() * 1e6).into();
        }
    }
    Ok(cost)
}

/// Runs the case `runs` times, with its number of concurrent runs. Returns the CPU time in seconds, and for
/// HTTP the wall-clock time of each run.
async fn batch<P: Peer>(
    peer: &Arc<P>,
    case: &Case,
    runs: u32,
) -> Result<(f64, Vec<Duration>), Failed> {
    let start = ProcessTime::now();
    let mut waits = Vec::new();
    if case.wire.is_some() {
        let each = runs.div_ceil(case.at_once);
        let tasks: Vec<_> = (0..case.at_once)
            .map(|_| tokio::spawn(worker(peer.clone(), each)))
            .collect();
        for task in tasks {
            waits.extend(task.await??);
        }
    } else if case.wait == Wait::Yields {
        for _ in 0..runs.div_ceil(case.at_once) {
            let spawned = |_| {
                let peer = peer.clone();
                tokio::spawn(async move { peer.run().await })
            };
            let tasks: Vec<_> = (0..case.at_once).map(spawned).collect();
            for task in tasks {
                task.await??;
            }
        }
    } else {
        for _ in 0..runs {
            peer.run().await?;
        }
    }
    Ok((start.elapsed().as_secs_f64(), waits))
}

async fn worker<P: Peer>(peer: Arc<P>, runs: u32) -> Result<Vec<Duration>, Failed> {
    let mut waits = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        peer.run().await?;
        waits.push(start.elapsed());
    }
    Ok(waits)
}

/// Measures the memory of a run that waits for its model.
fn measure_parked<P: Peer>(case: &Case) -> Result<Value, Failed> {
    const RUNS: usize = 2000;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    // If each run has its own history, each has its own peer.
    let shared = Arc::new(P::new(case)?);
    let mut park = |runs: usize| -> Result<Vec<_>, Failed> {
        let mut parked = Vec::with_capacity(runs);
        for _ in 0..runs {
            let peer = if case.own_history { Arc::new(P::new(case)?) } else { shared.clone() };
            let mut run = Box::pin(async move { peer.run().await });
            if run.as_mut().poll(&mut context).is_ready() {
                return Err("a run that should wait has ended".into());
            }
            parked.push(run);
        }
        Ok(parked)
    };
    drop(park(10)?);
    let before = resident_bytes()?;
    let parked = park(RUNS)?;
    let bytes = resident_bytes()?.saturating_sub(before) / parked.len() as u64;
    Ok(json!({"runs": RUNS, "bytes": bytes}))
}

fn resident_bytes() -> Result<u64, Failed> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(pages * 4096)
}
