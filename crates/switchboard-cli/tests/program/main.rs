//! Tests of the built program: its arguments, its output, its exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod approvals;
mod chat;
mod command_line;
mod conversations;
mod encrypted_sessions;
mod files;
mod io_errors;
mod models;
mod people;
#[cfg(unix)]
mod production;
mod recordings;
mod routing;
mod run;
mod serve;
mod sessions;
mod support;
mod talk;
#[cfg(unix)]
mod terminal;
