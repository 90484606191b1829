//! Running agents: the machine, its driver in this process, and what users hold of both.

mod accessors;
mod answer;
mod calls;
mod config;
mod driver;
mod events;
mod guardrail_results;
mod halves;
mod handoff_log;
mod handover;
mod machine;
mod model_filter;
mod model_input;
mod progress;
mod recovery;
mod replaced;
mod result;
mod roster;
mod runner;
mod server;
mod session_items;
mod small_map;
mod snapshot;
mod stream;
mod turn;

pub use config::{
    DEFAULT_MAX_AGENT_DEPTH, DEFAULT_MAX_TURNS, HooksHandle, NameCollision, RunConfig,
    ServerHistory,
};
pub use events::{RunItemEvent, StreamEvent};
pub use handoff_log::{HandoffOutcome, HandoffRecord};
pub use machine::{Run, Step, UnknownTool};
pub use model_filter::ModelFilter;
pub use recovery::{Recovery, RunProblem};
pub use result::{RunResult, RunStatus};
pub(crate) use roster::targets;
pub use runner::{ContextSource, NoContext, Runner, WithContext};
pub use stream::{RunStream, StopHandle};
pub use turn::{HandoffCall, ToolCall};
