//! What the programs of the peers have in common: reading a case, doing it, printing what it cost.
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
pub use history::{Past, history};

/// What goes wrong ends the program: then nothing was measured.
pub type Failed = Box<dyn Error + Send + Sync>;

/// The words of the user.
pub const INPUT: &str = "My bill is wrong";

/// What only the second agent is told, so that the provider knows whose turn it is.
pub const SECOND: &str = "You handle bills.";

/// A peer, ready to do one case again and again.
pub trait Peer: Send + Sync + Sized + 'static {
    /// Sets a case up.
    fn new(case: &Case) -> Result<Self, Failed>;

    /// Does it once.
    fn run(&self) -> impl Future<Output = Result<(), Failed>> + Send;
}

/// The program of a peer.
pub fn main<P: Peer>() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, url @ ..] = arguments.as_slice() else {
        return Err("usage: CASE SECONDS [URL]".into());
    };
    let case = Case::named(name, url.first()).ok_or("no such case")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let told = runtime.block_on(measured::<P>(&case, seconds.parse()?))?;
    println!("{told}");
    Ok(())
}

async fn measured<P: Peer>(case: &Case, seconds: f64) -> Result<Value, Failed> {
    if case.name == "cold" {
        return P::new(case)?.run().await.map(|()| json!({"runs": 1}));
    }
    if case.wait == Wait::Parks {
        return parked::<P>(case);
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
    let mut told = json!({"runs": times, "cpu_s": cpu});
    for (name, percent) in [("p50_us", 50), ("p99_us", 99)] {
        if let Some(wait) =
            waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)))
        {
            told[name] = (wait.as_secs_f64() * 1e6).into();
        }
    }
    Ok(told)
}

/// Does `runs` runs, as many at once as the case says; CPU time in seconds, and over HTTP each run's time on
/// the clock.
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

/// How much memory a run holds that waits for its model.
fn parked<P: Peer>(case: &Case) -> Result<Value, Failed> {
    const RUNS: usize = 2000;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    // Where each run has a history of its own, each has a peer that was given it.
    let shared = Arc::new(P::new(case)?);
    let mut park = |runs: usize| -> Result<Vec<_>, Failed> {
        let mut parked = Vec::with_capacity(runs);
        for _ in 0..runs {
            let peer = if case.own_history { Arc::new(P::new(case)?) } else { shared.clone() };
            let mut run = Box::pin(async move { peer.run().await });
            if run.as_mut().poll(&mut context).is_ready() {
                return Err("a run that should wait is over".into());
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
    let told = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = told.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(pages * 4096)
}
