//! The context of a tool call.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use serde_json::Value;

use crate::context::RunContext;
use crate::model::Usage;
use crate::run::stream::channel::EventChannel;
use crate::run::stream::{EventKind, StreamEvent};
use crate::run::{Run, RunConfig};
use crate::team::Registry;

/// The context of a tool call: the run's context, and the call's details.
///
/// It dereferences to the application's context.
pub struct ToolContext<C = ()> {
    run: RunContext<C>,
    call: Arc<CallInfo>,
    /// The settings of the run.
    config: Arc<RunConfig<C>>,
    /// The team of the agent whose model called the tool.
    team: Option<Arc<Registry<C>>>,
}

/// The details of a tool call.
pub(crate) struct CallInfo {
    pub(crate) agent: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) call_id: Arc<str>,
    pub(crate) arguments: Arc<str>,
    /// Set if the run is streamed.
    pub(crate) progress: Option<ProgressReporter>,
}

/// The way of progress reports to the stream.
pub(crate) struct ProgressReporter {
    pub(crate) events: EventChannel,
    pub(crate) turn: u32,
    /// Weak, so that the run is not copied when it changes.
    pub(crate) run: Weak<Run>,
}

impl<C> ToolContext<C> {
    pub(crate) fn new(
        run: RunContext<C>,
        call: CallInfo,
        config: Arc<RunConfig<C>>,
        team: Option<&Arc<Registry<C>>>,
    ) -> Self {
        Self {
            run,
            call: Arc::new(call),
            config,
            team: team.cloned(),
        }
    }

    pub(crate) fn config(&self) -> &Arc<RunConfig<C>> {
        &self.config
    }

    pub(crate) fn team(&self) -> Option<&Arc<Registry<C>>> {
        self.team.as_ref()
    }

    /// Reports progress to the stream of the run, as [`EventKind::ToolProgress`]. It does nothing if
    /// the run is not streamed, and never waits: if the stream is not read, reports are dropped and
    /// counted.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::tool;
    ///
    /// let import = tool::<()>("import").run(|ctx, (): ()| async move {
    ///     for done in 1..=3 {
    ///         ctx.report_progress(json!({"files": done}));
    ///     }
    ///     "imported 3 files"
    /// });
    /// ```
    pub fn report_progress(&self, progress: impl Into<Value>) {
        let Some(reporter) = &self.call.progress else {
            return;
        };
        let event = StreamEvent {
            kind: EventKind::ToolProgress {
                call_id: self.call.call_id.clone(),
                tool: self.call.tool.clone(),
                progress: progress.into(),
                dropped: 0,
            },
            agent: self.call.agent.clone(),
            turn: reporter.turn,
        };
        reporter.events.report_progress(event, &reporter.run);
    }

    /// Counts usage of models that the tool called itself as part of the run; see
    /// [`RunContext::add_usage`].
    pub fn add_usage(&self, usage: Usage) {
        self.run.add_usage(usage);
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run
    }

    /// The name of the agent whose model called the tool.
    pub fn agent(&self) -> &str {
        &self.call.agent
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.call.tool
    }

    /// The identifier of the call. It is stable over retries, so it can serve as an idempotency key.
    pub fn call_id(&self) -> &str {
        &self.call.call_id
    }

    /// The arguments as the model wrote them.
    pub fn arguments(&self) -> &str {
        &self.call.arguments
    }
}

impl<C> Deref for ToolContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.run
    }
}

impl_clone! { struct ToolContext<C> { run, call, config, team } }

impl_debug! { ToolContext<C> { tool: call.tool, call_id: call.call_id } }
