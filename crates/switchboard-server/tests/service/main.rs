//! A service that listens, and its clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod a2a;
mod agui;
mod api;
mod attacks;
mod clients;
mod contexts;
mod durability;
mod openai;
mod openapi;
mod operations;
mod realtime;
mod recordings;
mod refused;
mod remote;
mod studio;
mod support;
mod tenants;
mod watched_store;
