//! What runs cost: CPU time, allocations and memory, in process and over HTTP.
//!
//! The program `bench` does one case at a time and prints what it cost; `bench/run` compares that with
//! what the same work costs others. See `bench/README.md`.

mod at_once;
mod history;
mod limits;
mod measure;
mod models;
mod wire;
mod work;

pub use at_once::{HistoryOf, Parked, spawned};
pub use history::{LONG, SHORT, history};
pub use limits::Limit;
pub use measure::{Measured, repeated, resident_bytes, runs_in};
pub use wire::{WireCase, provider};
pub use work::Work;
