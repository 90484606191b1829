//! Durable runs, on the embedded engine.

mod child_process;
mod fault_store;
mod killed;
mod replays;
mod runs;
mod sizes;
mod world;
