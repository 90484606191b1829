//! Running agents: the machine, its driver in this process, and what users hold of both.

mod answer;
mod calls;
mod config;
mod driver;
mod events;
mod few;
mod findings;
mod halves;
mod handover;
mod kept;
mod look;
mod machine;
mod model_filter;
mod progress;
mod recovery;
mod replaced;
mod result;
mod roster;
mod runner;
mod saved;
mod server;
mod stream;
mod trail;
mod turn;
mod view;

pub use config::{
    DEFAULT_MAX_AGENT_DEPTH, DEFAULT_MAX_TURNS, HooksHandle, NameCollision, RunConfig,
    ServerHistory,
};
pub use events::{RunItemEvent, StreamEvent};
pub use machine::{Run, Step, UnknownTool};
pub use model_filter::ModelFilter;
pub use recovery::{Recovery, RunProblem};
pub use result::{RunResult, RunStatus};
pub(crate) use roster::targets;
pub use runner::{ContextSource, NoContext, Runner, WithContext};
pub use stream::{RunStream, Stopper};
pub use trail::{HandoffOutcome, HandoffRecord};
pub use turn::{HandoffCall, ToolCall};
