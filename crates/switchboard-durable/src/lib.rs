//! Durable runs: a run whose process ends in the middle of a turn goes on in another one, where it was.
//!
//! A [`DurableRunner`] runs the agents of a team through an engine. The outcome of each step (a model's answer, a
//! tool's output, a callback's decision) is recorded in a journal before the run goes on. After a crash the run is made
//! again from its start and its journal, without a second call of what is recorded, and goes on from there.
//!
//! ```
//! use switchboard_core::conversation::Conversations;
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner};
//! use switchboard_durable::{DurableRunner, Embedded};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello!"));
//! // `SqliteStore`, `PostgresStore` or `RedisStore` of `switchboard-sessions` outlive the process.
//! let engine = Embedded::new(Conversations::in_memory());
//! let durable = DurableRunner::new(engine, &agent);
//!
//! // At the start of a process: goes on with what was interrupted.
//! durable.recover().await?;
//!
//! // The same conversation and key are the same run, however often it is started.
//! let run = durable.start("customer-42", "message-1", "Hi").await?;
//! let ended = run.wait().await?;
//! assert_eq!(ended.text().as_deref(), Some("Hello!"));
//! # Ok::<(), switchboard_durable::DurableError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Model answers, tools, hooks, guardrails, callbacks of handoffs, summaries and the commits to the conversation are
//! steps. A step that was interrupted begins again: tools get the same
//! [idempotency key](switchboard_core::ToolContext::idempotency_key), and one that must not begin again is built with
//! [`at_most_once`](switchboard_core::tool::ToolBuilder::at_most_once). Conditions and filters are evaluated again; one
//! that answers differently is a warning.
//!
//! The [`Embedded`] engine keeps journals in the store of the conversations. It is made for one service with a few
//! processes.

mod active_runs;
#[cfg(feature = "dbos")]
mod dbos;
#[cfg(any(feature = "restate", feature = "dbos"))]
mod drain;
mod durable_run;
mod embedded;
mod engine;
mod entry;
mod error;
mod events;
mod execution;
mod executor;
mod journal;
mod message_queues;
mod order;
mod overdue;
mod record;
#[cfg(feature = "restate")]
mod restate;
mod run_store;
mod runner;
#[cfg(any(feature = "restate", feature = "dbos"))]
mod sweep;
mod teams;

/// The guide, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/durable.md")]
struct Guide;

#[cfg(feature = "dbos")]
pub use dbos::Dbos;
pub use durable_run::{DurableRun, Reply};
pub use embedded::Embedded;
pub use engine::{BeginWait, Engine, IntoEngine, NewBatch, StepLog, is_empty_batch};
pub use error::{DurableError, DurableErrorKind};
pub use events::{RunEvent, RunEvents};
pub use executor::{Execution, Executor};
pub use record::{RunRecord, RunStatus};
#[cfg(feature = "restate")]
pub use restate::Restate;
pub use run_store::{DeletedRuns, RunStore};
pub use runner::DurableRunner;
pub use teams::{IntoTeams, Teams};
