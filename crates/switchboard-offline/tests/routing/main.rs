//! The share of messages that the offline model routes to the right agent.
//!
//! ```sh
//! cargo test -p switchboard-offline --test routing -- --nocapture
//! ```

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod customer_support;
mod trades;

/// The page that reports the figures.
const DOCS: &str = include_str!("../../../../docs/models.md");
