//! Tests of the built program: its arguments, its output, its exit codes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod approvals;
mod cases;
mod chat;
mod chat_commands;
mod checks;
mod command_line;
mod conversations;
#[cfg(unix)]
mod durable;
#[cfg(unix)]
mod durable_recipes;
mod encrypted_sessions;
mod files;
mod graphs;
mod inner_events;
mod io_errors;
mod language;
mod library_words;
mod models;
mod offline_model;
mod output_options;
mod people;
#[cfg(unix)]
mod production;
mod provider_errors;
mod recordings;
mod resuming;
mod routing;
mod run;
mod serve;
mod sessions;
mod sessions_command;
mod support;
mod talk;
mod team_files;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod workers;
