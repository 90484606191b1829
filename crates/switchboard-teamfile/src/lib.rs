//! Teams of agents described in a file: agents, tools, handoffs, guardrails and settings, in TOML or
//! JSON, with no Rust at all.
//!
//! ```
//! use switchboard_teamfile::TeamFile;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let file = TeamFile::parse(
//!     r#"
//!     [agents.Triage]
//!     instructions = "Route the customer."
//!     handoffs = ["Billing"]
//!
//!     [agents.Billing]
//!     description = "Bills, charges and refunds."
//!     knowledge = [{ title = "Charged twice", text = "The second charge is reversed in three days." }]
//!     "#,
//!     "team.toml",
//! )?;
//! let result = file.open()?.runner().run("I was charged twice").await?;
//! assert_eq!(result.last_agent().name(), "Billing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`TeamFile::read`] finds everything that is wrong in one go, unless the file is no TOML or JSON at all. Each [`Problem`] says where it is and
//! what to do:
//!
//! ```
//! use switchboard_teamfile::TeamFile;
//!
//! let text = "[agents.Triage]\nhandoffs = [\"Biling\"]\n[agents.Billing]\n";
//! let problems = TeamFile::parse(text, "team.toml").unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     r#"error[unknown-agent]: there is no agent "Biling"
//!  --> team.toml:2:13
//!   |
//! 2 | handoffs = ["Biling"]
//!   |             ^^^^^^^^ did you mean "Billing"?
//!   |
//!   = help: there are "Triage" and "Billing"
//! "#
//! );
//! ```
//!
//! A file reaches for nothing that it does not name: no variable of the environment, no program that
//! its allow-list does not have, and no model but the offline one. What a model says never becomes
//! part of a command line or an address as it is; see [`TeamFile`].

mod build;
mod cases;
mod condition;
mod context;
mod document;
mod file;
mod filters;
mod guard;
mod mistake;
mod models;
mod named_files;
mod open;
mod problem;
mod resolve;
mod schema;
mod suggest;
mod template;
mod tools;
mod types;
mod validate;

pub use cases::Case;
pub use context::Context;
pub use file::TeamFile;
pub use open::{OpenTeam, Opening};
pub use problem::{Problem, Problems, Severity};
pub use suggest::closest;
