//! The program as its users meet it: the built binary, its arguments, its output, its exit codes.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod chat;
mod files;
mod manners;
mod mishaps;
mod models;
mod recordings;
mod routing;
mod run;
mod sessions;
mod support;
#[cfg(unix)]
mod terminal;
