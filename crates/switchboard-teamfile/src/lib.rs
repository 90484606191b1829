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
//! [`TeamFile::read`] reports all problems at once, unless the file is not TOML or JSON at all. Each
//! [`Problem`] has a position and advice on how to fix it:
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
//! A file uses nothing that it does not name: no environment variable, no program outside its
//! allow-list, and no model but the offline one. The output of a model is escaped or checked before it
//! becomes part of a command or a URL; see [`TeamFile`].

mod approval_rules;
mod approve;
mod cases;
mod condition;
mod context;
mod cycle_bounds;
mod diagnostics;
mod document;
mod file_refs;
mod filters;
mod guardrail_coverage;
mod guardrails;
mod handoff_rules;
mod missing_programs;
mod models;
mod open_team;
mod policies;
mod recorded_case;
mod resolve;
mod schema;
mod suggest;
mod team_builder;
mod team_file;
mod template;
mod tools;
mod types;
mod unanswerable_people;
mod validate;

pub use approval_rules::ApprovalRules;
pub use cases::{Case, ExpectedCall};
pub use context::Context;
pub use diagnostics::{Problem, Problems, Severity};
pub use open_team::{OpenOptions, OpenTeam};
pub use recorded_case::RecordedCase;
pub use suggest::closest;
pub use team_file::TeamFile;
