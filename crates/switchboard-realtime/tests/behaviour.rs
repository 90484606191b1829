//! The behaviour of realtime sessions, through the public API.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, a panic is the report"
)]

#[path = "behaviour/agents.rs"]
mod agents;
#[path = "behaviour/approvals.rs"]
mod approvals;
#[path = "behaviour/conversations.rs"]
mod conversations;
#[path = "behaviour/decisions.rs"]
mod decisions;
#[path = "behaviour/handoffs.rs"]
mod handoffs;
#[path = "behaviour/policies.rs"]
mod policies;
#[path = "behaviour/sessions.rs"]
mod sessions;
#[path = "behaviour/support.rs"]
mod support;
