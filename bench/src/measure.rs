//! CPU time and memory of this process.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use serde_json::{Value, json};

/// What some runs cost.
#[derive(Debug, Default)]
pub struct Measured {
    /// How many there were.
    pub runs: u32,
    /// CPU time of the process, user and system, in seconds.
    pub cpu: f64,
    /// How long each took on the clock, where that was noted.
    pub waits: Vec<Duration>,
}

impl Measured {
    /// As the programs of all peers print it.
    pub fn to_json(&self) -> Value {
        let mut told = json!({"runs": self.runs, "cpu_s": self.cpu});
        let mut waits = self.waits.clone();
        waits.sort();
        for (name, percent) in [("p50_us", 50), ("p99_us", 99)] {
            let at = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
            if let Some(wait) = waits.get(at) {
                told[name] = (wait.as_secs_f64() * 1e6).into();
            }
        }
        told
    }
}

/// Does the work again and again for about this many seconds of CPU time, after a tenth of that
/// which does not count.
pub fn repeated(seconds: f64, work: impl Fn()) -> Measured {
    let warm = spend(seconds / 10.0, &work);
    spend_runs(runs_in(seconds, &warm), &work)
}

/// How many runs take this many seconds, going by some that were measured.
pub fn runs_in(seconds: f64, measured: &Measured) -> u32 {
    let once = measured.cpu / f64::from(measured.runs.max(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped"
    )]
    let runs = (seconds / once.max(1e-9)).clamp(1.0, 1e9) as u32;
    runs
}

/// Doubles the number of runs until they took this long.
fn spend(seconds: f64, work: &impl Fn()) -> Measured {
    let mut runs = 1;
    loop {
        let measured = spend_runs(runs, work);
        if measured.cpu >= seconds || runs > 1 << 28 {
            return measured;
        }
        runs *= 2;
    }
}

fn spend_runs(runs: u32, work: &impl Fn()) -> Measured {
    let start = ProcessTime::now();
    for _ in 0..runs {
        work();
    }
    Measured {
        runs,
        cpu: start.elapsed().as_secs_f64(),
        waits: Vec::new(),
    }
}

/// Notes how long something takes on the clock.
pub(crate) async fn clocked<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let made = work.await;
    (made, start.elapsed())
}

/// The memory of this process that is in use, in bytes; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = told.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
