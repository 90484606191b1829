//! CPU time, allocations and memory.

use cpu_time::ThreadTime;
use switchboard_core::{Agent, Runner};

use crate::work::{Parked, history};

/// What one piece of work costs.
pub(crate) struct Cost {
    pub(crate) micros: f64,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

/// Does the work until the figures are steady: the median of several rounds of CPU time.
pub(crate) fn cost_of(work: impl Fn()) -> Cost {
    work();
    let once = {
        let start = ThreadTime::now();
        work();
        start.elapsed().as_secs_f64()
    };
    // About 50 ms a round.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small count"
    )]
    let times = (0.05 / once.max(1e-7)).clamp(1.0, 100_000.0) as u32;
    let mut rounds: Vec<f64> = (0..9)
        .map(|_| {
            let start = ThreadTime::now();
            for _ in 0..times {
                work();
            }
            start.elapsed().as_secs_f64() * 1e6 / f64::from(times)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    let counted = allocation_counter::measure(&work);
    #[expect(clippy::cast_precision_loss, reason = "for a table")]
    Cost {
        micros: rounds[rounds.len() / 2],
        allocations: counted.count_total as f64,
        bytes: counted.bytes_total as f64,
    }
}

/// Bytes of heap that a run holds while it waits for its model, after a handoff and with a
/// shared history of 20 items.
pub(crate) fn parked_bytes(runs: usize) -> i64 {
    let billing: Agent = Agent::new("Billing").instructions("You handle bills.");
    let triage = Agent::new("Triage")
        .instructions("Route.")
        .handoff(&billing);
    let runner = Runner::new(&triage).model(Parked).tracing_off();
    let history = history(20, 500);
    let mut parked = Vec::with_capacity(runs);
    let counted = allocation_counter::measure(|| {
        for _ in 0..runs {
            let mut run = Box::pin(runner.run(&history));
            let waker = futures_util::task::noop_waker();
            let mut cx = std::task::Context::from_waker(&waker);
            assert!(run.as_mut().poll(&mut cx).is_pending());
            parked.push(run);
        }
    });
    let runs = i64::try_from(runs).unwrap_or(i64::MAX);
    counted.bytes_current / runs
}
