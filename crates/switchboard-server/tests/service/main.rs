//! A service that listens, and its clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod api;
mod attacks;
mod clients;
mod durability;
mod openai;
mod operations;
mod recordings;
mod studio;
mod support;
mod tenants;
