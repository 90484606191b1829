//! Many callers at once, and what they cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::Failed;
use super::stamp::stamped_frame;
use crate::ages::Ages;
use crate::measure::resident_bytes;

/// The connections that are made at a time.
const CONNECTING: usize = 32;

/// The work of the callers.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The number of callers, each with a session of its own.
    pub sessions: usize,
    /// The length of a frame of audio.
    pub frame: Duration,
}

/// A caller whose session is open.
pub(super) trait Caller: Send + 'static {
    /// Asks the first agent to speak, sends the caller's audio, and hears both agents to the end.
    fn talk(self, call: Call) -> impl Future<Output = Result<(), Failed>> + Send;
}

/// The parts of a call that its speaking and hearing share.
pub(super) struct Call {
    pub(super) counts: Arc<Counts>,
    frame: Duration,
    is_over: Arc<AtomicBool>,
}

/// The counts of all callers.
pub(super) struct Counts {
    pub(super) heard: Ages,
    sent: AtomicU64,
    pub(super) handoffs: AtomicU64,
    pub(super) dropped_events: AtomicU64,
}

impl Call {
    /// Sends a frame after each length of one, until the call is over.
    pub(super) fn speaking<F>(
        &self,
        send: impl Fn(Vec<u8>) -> F + Send + 'static,
    ) -> impl Future<Output = Result<(), Failed>> + Send + 'static
    where
        F: Future<Output = Result<(), Failed>> + Send,
    {
        let (frame, counts, is_over) = (self.frame, self.counts.clone(), self.is_over.clone());
        async move {
            let mut ticks = tokio::time::interval(frame);
            // Late frames are made up for: the rate is that of speech.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            while !is_over.load(Ordering::Relaxed) {
                ticks.tick().await;
                send(stamped_frame(frame)).await?;
                counts.sent.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }
    }

    /// Stops the caller after the current frame.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Connects all callers, then lets them talk. The connecting is measured apart.
pub(super) async fn measure<C: Caller, F>(
    load: Load,
    connect: impl Fn() -> F,
) -> Result<Value, Failed>
where
    F: Future<Output = Result<C, Failed>>,
{
    let before = resident_bytes().ok_or("no /proc on this system")?;
    let connecting = ProcessTime::now();
    let callers: Vec<C> = stream::iter(0..load.sessions)
        .map(|_| connect())
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await?;
    let connect_cpu = connecting.elapsed();
    let counts = Arc::new(Counts {
        heard: Ages::new(),
        sent: AtomicU64::new(0),
        handoffs: AtomicU64::new(0),
        dropped_events: AtomicU64::new(0),
    });
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let mut talking = JoinSet::new();
    for (number, caller) in callers.into_iter().enumerate() {
        let call = Call {
            counts: counts.clone(),
            frame: load.frame,
            is_over: Arc::default(),
        };
        // Spread over the length of a frame, as callers are.
        let share = number as f64 / load.sessions as f64;
        let delay = load.frame.mul_f64(share);
        talking.spawn(async move {
            tokio::time::sleep(delay).await;
            caller.talk(call).await
        });
    }
    let mut peak = before;
    let mut samples = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            _ = samples.tick() => peak = peak.max(resident_bytes().unwrap_or_default()),
            ended = talking.join_next() => match ended {
                Some(ended) => ended??,
                None => break,
            },
        }
    }
    let sessions = u64::try_from(load.sessions)?;
    Ok(json!({
        "sessions": sessions,
        "seconds": start.elapsed().as_secs_f64(),
        "cpu_s": cpu.elapsed().as_secs_f64(),
        "connect_cpu_s": connect_cpu.as_secs_f64(),
        "bytes": (peak - before) / sessions.max(1),
        "frames_sent": counts.sent.load(Ordering::Relaxed),
        "frames_received": counts.heard.count(),
        "heard": counts.heard.to_json(),
        "handoffs": counts.handoffs.load(Ordering::Relaxed),
        "dropped_events": counts.dropped_events.load(Ordering::Relaxed),
    }))
}
