//! Durable runs.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod child_process;
mod clocks;
mod counting_store;
mod deletion;
#[cfg(all(feature = "restate", feature = "dbos"))]
mod engines;
mod fault_store;
mod hooks;
mod inner_runs;
mod interruptions;
mod killed;
mod logged;
mod lost_answers;
mod order;
#[cfg(unix)]
mod outages;
mod places;
mod queues;
mod replays;
mod runs;
mod sizes;
mod streams;
mod timers;
mod world;
