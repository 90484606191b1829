#![doc = include_str!("../../../README.md")]

#[doc(inline)]
pub use switchboard_core::output_union;
#[doc(inline)]
pub use switchboard_core::{
    Agent, Error, ErrorKind, EventKind, FinalOutput, Handoff, Input, Item, Json, MemorySession,
    Model, ModelRequest, ModelResponse, ModelSettings, Run, RunConfig, RunContext, RunResult,
    RunStream, Runner, Session, Step, StreamEvent, Team, Tool, ToolContext,
};
#[doc(inline)]
pub use switchboard_core::{
    agent, approval, callback, conversation, error, filters, guardrail, handle, handoff, hooks,
    items, model, output, people, run, schema, session, stream, team, testing, tool, trace,
};
// The attribute, beside the function and the module of the same name.
#[cfg(feature = "durable")]
#[doc(inline)]
pub use switchboard_durable as durable;
#[doc(inline)]
pub use switchboard_macros::tool;
#[doc(inline)]
pub use switchboard_models as models;
#[cfg(feature = "realtime")]
#[doc(inline)]
pub use switchboard_realtime as realtime;
#[cfg(feature = "server")]
#[doc(inline)]
pub use switchboard_server as server;
#[cfg(any(
    feature = "sqlite",
    feature = "postgres",
    feature = "redis",
    feature = "encryption"
))]
#[doc(inline)]
pub use switchboard_sessions as sessions;
#[cfg(feature = "team-files")]
#[doc(inline)]
pub use switchboard_teamfile as team_files;

#[doc(hidden)]
pub use switchboard_core::__private;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-python.md")]
pub struct FromPython;

/// The code of the guides is compiled and run.
#[cfg(all(doctest, feature = "team-files"))]
#[doc = include_str!("../../../docs/team-files.md")]
pub struct TeamFiles;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/models.md")]
pub struct Models;

/// The code of the guides is compiled and run.
#[cfg(all(doctest, feature = "sqlite", feature = "encryption"))]
#[doc = include_str!("../../../docs/sessions.md")]
pub struct Sessions;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-javascript.md")]
pub struct FromJavaScript;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/redaction.md")]
pub struct RedactionGuide;

/// The code of the guides is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/production.md")]
pub struct Production;

/// The code of the guides is compiled and run.
#[cfg(all(doctest, feature = "realtime"))]
#[doc = include_str!("../../../docs/realtime.md")]
pub struct Realtime;

/// The code of the guides is compiled and run.
#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../../../docs/service.md")]
pub struct ServiceGuide;
