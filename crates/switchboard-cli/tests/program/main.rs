//! Tests of the built program: its arguments, its output, its exit codes.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod chat;
mod command_line;
mod conversations;
mod files;
mod io_errors;
mod models;
mod recordings;
mod routing;
mod run;
mod sessions;
mod support;
#[cfg(unix)]
mod terminal;
