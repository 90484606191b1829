//! Measures the cost of runs: CPU time, allocations and memory, in process and over HTTP, of realtime sessions, and of
//! durable runs.
//!
//! The program `bench` runs one case and prints its cost. `bench/run` compares that with the cost in
//! other libraries. See `bench/README.md`.

mod ages;
mod baseline;
mod concurrent;
mod conversations;
mod durable;
mod history;
mod measure;
mod models;
mod realtime;
mod service;
mod wire;
mod work;

pub use baseline::Baseline;
pub use concurrent::{HistoryOwner, ParkedRuns, measure_spawned};
pub use conversations::SessionCase;
pub use durable::{
    DurablePlace, check_durable, journal_sizes, recover_waiting, store_waiting, work_durably,
};
pub use history::{LONG, SHORT, history};
pub use measure::{Measurement, measure, resident_bytes, runs_in};
pub use realtime::{Load, RealtimeClient, RealtimeLoadServer};
pub use service::{Pace, ServiceLoad, TeamServer};
pub use wire::{WireCase, provider};
pub use work::Work;
