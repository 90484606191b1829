//! A team as a service under load: many conversations whose answers are streamed at once.
//!
//! A server and its callers are processes of their own, so that the CPU time of each is known. The model is part of
//! the server's process and answers at a fixed pace; each piece of its answers has the time at which it was made, and the
//! caller who receives it notes its age.

mod callers;
mod paced_model;
mod team_server;

pub use callers::ServiceLoad;
pub use team_server::TeamServer;

use std::error::Error;

type Failed = Box<dyn Error + Send + Sync>;

/// The pace of a model's answers.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The number of pieces of an answer.
    pub pieces: usize,
    /// The time before each piece.
    pub pause: std::time::Duration,
    /// The share of requests that fail, from 0 to 1: half of them at once, half of them in the middle of an answer.
    pub failures: f64,
}
