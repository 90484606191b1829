//! The engine of Switchboard: agents that hand a conversation to each other.
//!
//! An [`Agent`] is a name, instructions, tools and handoffs. A [`Handoff`] is an edge to another
//! agent; the model takes it by calling a tool named `transfer_to_<agent>`. A [`Runner`] runs a
//! conversation through agents until one has the final output.
//!
//! ```
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let billing: Agent = Agent::new("Billing agent")
//!     .instructions("You handle bills.")
//!     .handoff_description("Bills, invoices and payments.");
//! let triage = Agent::new("Triage agent")
//!     .instructions("Route the user.")
//!     .handoff(&billing);
//!
//! // Any `Model` will do; this one follows a script.
//! let model = ScriptedModel::new()
//!     .call("transfer_to_billing_agent", "{}")
//!     .say("Your bill is fixed.");
//! let result = Runner::new(&triage).model(model).run("My bill is wrong").await?;
//! println!("{}: {}", result.last_agent().name(), result.final_text());
//! # Ok::<(), switchboard_core::Error>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! The names that most programs use are here; the modules hold the rest, each with its subject.
//!
//! This crate does no I/O. Models, sessions and tracers come through the traits [`Model`],
//! [`Session`] and [`Tracer`](trace::Tracer).

#[macro_use]
mod impls;

mod agent_tool;
mod condition;
mod context;
mod driver;
mod environment;
mod json;
mod lock;
mod offered_tools;
mod runner;
mod seq;

pub mod agent;
pub mod approval;
pub mod callback;
pub mod conversation;
pub mod error;
pub mod filters;
pub mod guardrail;
pub mod handle;
pub mod handoff;
pub mod hooks;
pub mod items;
pub mod journal;
pub mod model;
pub mod output;
pub mod people;
pub mod run;
pub mod schema;
pub mod session;
pub mod stream;
pub mod team;
pub mod testing;
pub mod tool;
pub mod trace;

pub use agent::Agent;
pub use context::RunContext;
pub use error::{Error, ErrorKind};
pub use handoff::{Handoff, handoff};
pub use items::{Input, Item};
pub use model::{Model, ModelRequest, ModelResponse, ModelSettings};
pub use output::FinalOutput;
pub use run::{Run, RunConfig, RunResult, Runner, Step};
pub use session::{MemorySession, Session};
pub use stream::{EventKind, RunStream, StreamEvent};
pub use team::Team;
pub use tool::{Json, Tool, ToolContext, tool};

/// The parts of agents for drivers of other machines than [`Run`]. Not part of the public API.
#[doc(hidden)]
pub mod __agent_parts {
    pub use crate::driver::agent_parts::{
        AgentParts, MODEL, MODEL_SETTINGS, PartCall, PartFailure, PartResult, error,
        handoff_parts_of_runs, handoff_target, is_same_guardrail, output_guardrails, parts_of_runs,
        tool_is_conditional,
    };
}

/// Dependencies of the code that `#[tool]` generates, and JSON helpers that the crates of Switchboard
/// share. Not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::json::{replace_lone_surrogates, select_fields, unquote};
    pub use {schemars, serde};

    use crate::callback::{BoxError, BoxFuture, IntoOutcome, Outcome};
    use crate::tool::ToolOutput;

    /// Converts the value of an async function. The type of the future does not depend on the
    /// value, so the compiler reports a value that cannot be converted only once.
    pub fn tool_output<M>(
        value: impl IntoOutcome<ToolOutput, M>,
    ) -> BoxFuture<'static, Result<ToolOutput, BoxError>> {
        match value.into_outcome() {
            Outcome::Ready(result) => Box::pin(std::future::ready(result)),
            Outcome::Pending(future) => future,
        }
    }
}
