//! Measures CPU time and memory of this process.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use serde_json::{Value, json};

/// The cost of some runs.
#[derive(Debug, Default)]
pub struct Measurement {
    /// The number of runs.
    pub runs: u32,
    /// CPU time of the process, user and system, in seconds.
    pub cpu: f64,
    /// The wall-clock time of each run, if it was measured.
    pub latencies: Vec<Duration>,
}

impl Measurement {
    /// Serializes it in the format that all peers print.
    pub fn to_json(&self) -> Value {
        let mut json = json!({"runs": self.runs, "cpu_s": self.cpu});
        let mut latencies = self.latencies.clone();
        latencies.sort();
        for (name, percent) in [("p50_us", 50), ("p99_us", 99)] {
            let at = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
            if let Some(latency) = latencies.get(at) {
                json[name] = (latency.as_secs_f64() * 1e6).into();
            }
        }
        json
    }
}

/// Runs `work` repeatedly for about this many seconds of CPU time, after a warm-up of a tenth of that.
pub fn measure(seconds: f64, work: impl Fn()) -> Measurement {
    let warm_up = run_at_least(seconds / 10.0, &work);
    run_times(runs_in(seconds, &warm_up), &work)
}

/// Estimates the number of runs that take this many seconds, from a measurement.
pub fn runs_in(seconds: f64, measurement: &Measurement) -> u32 {
    let once = measurement.cpu / f64::from(measurement.runs.max(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped"
    )]
    let runs = (seconds / once.max(1e-9)).clamp(1.0, 1e9) as u32;
    runs
}

/// Doubles the number of runs until they take this long.
fn run_at_least(seconds: f64, work: &impl Fn()) -> Measurement {
    let mut runs = 1;
    loop {
        let measurement = run_times(runs, work);
        if measurement.cpu >= seconds || runs > 1 << 28 {
            return measurement;
        }
        runs *= 2;
    }
}

fn run_times(runs: u32, work: &impl Fn()) -> Measurement {
    let start = ProcessTime::now();
    for _ in 0..runs {
        work();
    }
    Measurement {
        runs,
        cpu: start.elapsed().as_secs_f64(),
        latencies: Vec::new(),
    }
}

/// Awaits a future and returns its output and the wall-clock time.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let output = work.await;
    (output, start.elapsed())
}

/// The resident memory of this process in bytes, or `None` if the system has no `/proc`.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
