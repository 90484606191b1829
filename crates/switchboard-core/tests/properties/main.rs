//! Property tests over generated teams, scripts and conversations.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod filters;
mod runs;
