//! Property tests over generated teams, scripts and conversations.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod filters;
mod policies;
mod policy_world;
mod runs;
mod states;
mod stored_state;
