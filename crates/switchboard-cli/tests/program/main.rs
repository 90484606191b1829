//! The program as its users meet it: the built binary, its arguments, its output, its exit codes.

mod chat;
mod files;
mod manners;
mod models;
mod recordings;
mod routing;
mod run;
mod sessions;
mod support;
