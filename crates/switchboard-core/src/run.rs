//! Runs: starting, resuming, storing and streaming them.

mod accessors;
mod agent_keys;
mod calls;
mod config;
mod driver;
mod guardrail_results;
mod handoff;
mod handoff_log;
mod machine;
mod model_filter;
mod model_input;
mod recovery;
mod replacement;
mod response;
mod result;
mod runner;
mod server_history;
mod session_items;
mod small_map;
mod snapshot;
pub(crate) mod stream;
mod tool_error_text;
mod turn;

pub(crate) use agent_keys::targets;
pub use config::{DEFAULT_MAX_AGENT_DEPTH, DEFAULT_MAX_TURNS, NameCollision, RunConfig};
pub use handoff_log::{HandoffOutcome, HandoffRecord};
pub use machine::{Run, Step, UnknownTool};
pub use model_filter::ModelFilter;
pub use recovery::{Fallback, Recovery, RunFailure, RunProblem};
pub use result::{RunResult, RunStatus};
pub use runner::Runner;
pub use server_history::ServerHistory;
pub use tool_error_text::{ToolErrorMessage, ToolErrorText};
pub use turn::{HandoffCall, ToolCall};
