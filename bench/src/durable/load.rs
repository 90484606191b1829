//! Doing work again and again, one at a time or several at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use serde_json::{Value, json};
use switchboard_core::callback::BoxFuture;
use tokio::task::JoinSet;

use super::Failed;
use crate::measure::Measurement;

/// Work under a name that no other work has.
pub(super) type Work =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<(), Failed>> + Send + Sync + 'static>;

/// Boxes work.
pub(super) fn work<F>(run: impl Fn(String) -> F + Send + Sync + 'static) -> Work
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    Arc::new(move |name| Box::pin(run(name)))
}

/// Does work for this many seconds, or this many times.
pub(super) async fn measure(
    work: &Work,
    at_once: u32,
    seconds: f64,
    times: u32,
) -> Result<Value, Failed> {
    let number = Arc::new(AtomicU32::new(0));
    let session = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let (cpu, begun) = (ProcessTime::now(), Instant::now());
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let (work, number) = (work.clone(), number.clone());
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while begun.elapsed().as_secs_f64() < seconds {
                let number = number.fetch_add(1, Ordering::Relaxed);
                if number >= times {
                    break;
                }
                let name = format!("{}-{}-{number}", std::process::id(), session.as_micros());
                let start = Instant::now();
                work(name).await?;
                latencies.push(start.elapsed());
            }
            Ok::<Vec<Duration>, Failed>(latencies)
        });
    }
    let mut measured = Measurement::default();
    while let Some(latencies) = tasks.join_next().await {
        measured.latencies.extend(latencies??);
    }
    let seconds = begun.elapsed().as_secs_f64();
    measured.cpu = cpu.elapsed().as_secs_f64();
    measured.runs = u32::try_from(measured.latencies.len())?;
    let mut json = measured.to_json();
    json["seconds"] = json!(seconds);
    Ok(json)
}
