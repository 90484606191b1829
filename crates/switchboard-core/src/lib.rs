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
//! This crate does no I/O. Models, sessions and tracers come through the traits [`Model`],
//! [`Session`] and [`Tracer`].

mod agent;
mod agent_tool;
mod callback;
mod context;
mod enabled;
mod error;
mod exchange;
pub mod filters;
mod guardrail;
mod handoff;
mod hooks;
mod items;
mod json;
mod knowledge;
mod model;
mod offer;
mod output;
mod prompt;
mod run;
mod scan;
pub mod schema;
mod seq;
mod session;
mod team;
pub mod testing;
mod tool;
mod trace;

pub use agent::{Agent, ToolResult, ToolUseBehavior};
pub use agent_tool::AgentTool;
pub use callback::{BoxError, BoxFuture, IntoOutcome, Outcome};
pub use context::RunContext;
pub use error::{Error, ErrorKind};
pub use guardrail::{
    GuardrailOutcome, GuardrailResult, GuardrailVerdict, HandoffGuardrail, HandoffRequest,
    HandoffVerdict, InputGuardrail, InputVerdict, OutputGuardrail, OutputVerdict, ToolGuardrail,
    ToolVerdict, Verdict,
};
pub use handoff::{
    Handoff, HandoffBuilder, HandoffDecision, HandoffInputData, HistoryMapper, HistoryMarkers,
    IntoHandoff, IntoTarget, ToolNames, default_history_mapper, default_tool_description,
    default_tool_name, handoff, nest_handoff_history, transfer_message,
};
pub use hooks::{AgentHooks, HookResult, RunHooks};
pub use items::{Input, InvalidItem, Item, ItemKind, Items, RunItem, RunItemKind, RunItems};
pub use knowledge::Knowledge;
pub use model::{
    HandoffSpec, Model, ModelEvent, ModelHandle, ModelRequest, ModelResponse, ModelRetry,
    ModelSettings, RawEvent, Reasoning, ServerState, ToolChoice, ToolSpec, Usage,
};
pub use output::{FinalOutput, OutputType};
pub use prompt::{HANDOFF_PROMPT, with_handoff_prompt};
pub use run::{
    ContextSource, DEFAULT_MAX_AGENT_DEPTH, DEFAULT_MAX_TURNS, HandoffCall, HandoffOutcome,
    HandoffRecord, HooksHandle, ModelFilter, NameCollision, NoContext, Recovery, Run, RunConfig,
    RunItemEvent, RunProblem, RunResult, RunStatus, RunStream, Runner, ServerHistory, Step,
    StopHandle, StreamEvent, ToolCall, UnknownTool, WithContext,
};
pub use seq::{Iter as SeqIter, Seq};
pub use session::{MemorySession, Session, SessionHandle};
pub use team::{Finding, FindingCode, Graph, Severity, Team, TeamBuilder};
pub use tool::{Json, Tool, ToolBuilder, ToolContext, ToolOutput, tool};
pub use trace::{MemoryTracer, Span, SpanData, SpanError, Tracer, Tracing};

/// What the code that `#[tool]` writes needs, so that its users need not depend on it themselves,
/// and what models over the wire need of items. Not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::items::{Building, Fact};
    pub use crate::json::quote_into;
    pub use crate::scan::{Scanner, detail, fill, keep, object};
    pub use crate::seq::{Chunk, Form, Usual};
    pub use {schemars, serde};
}
