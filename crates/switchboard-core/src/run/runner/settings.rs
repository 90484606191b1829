//! The settings of a runner; each method writes into its `RunConfig`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::Runner;
use crate::agent::Agent;
use crate::callback::IntoOutcome;
use crate::context::RunContext;
use crate::filters::IntoFilter;
use crate::guardrail::{HandoffGuardrail, InputGuardrail, OutputGuardrail, ToolGuardrail};
use crate::handoff::{HistoryMapper, HistoryMarkers, ToolNames};
use crate::hooks::RunHooks;
use crate::items::Item;
use crate::model::{ModelHandle, ModelRequest, ModelSettings};
use crate::output::FinalOutput;
use crate::run::config::{HooksHandle, NameCollision, RunConfig, ServerHistory};
use crate::run::machine::UnknownTool;
use crate::run::model_filter::ModelFilter;
use crate::run::recovery::{Recovery, RunProblem};
use crate::session::SessionHandle;
use crate::trace::{Tracer, Tracing};

/// Settings.
impl<C, S> Runner<C, S> {
    /// All settings at once, in place of those made so far.
    #[must_use]
    pub fn config(mut self, config: impl Into<Arc<RunConfig<C>>>) -> Self {
        self.config = config.into();
        self
    }

    /// The model of every agent, instead of their own.
    #[must_use]
    pub fn model(self, model: impl Into<ModelHandle>) -> Self {
        self.with(|config| config.model = Some(model.into()))
    }

    /// Settings that override those of every agent, field by field.
    #[must_use]
    pub fn model_settings(self, settings: ModelSettings) -> Self {
        self.with(|config| config.model_settings = Some(Arc::new(settings)))
    }

    /// How many turns the run may take, over all agents.
    #[must_use]
    pub fn max_turns(self, turns: impl Into<Option<u32>>) -> Self {
        self.with(|config| config.max_turns = turns.into())
    }

    /// The filter of handoffs that have none of their own.
    #[must_use]
    pub fn handoff_input_filter<M>(self, filter: impl IntoFilter<C, M>) -> Self {
        self.with(|config| config.handoff_input_filter = Some(filter.into_filter()))
    }

    /// Whether handoffs that do not say otherwise nest the history.
    #[must_use]
    pub fn nest_handoff_history(self, nest: bool) -> Self {
        self.with(|config| config.nest_handoff_history = nest)
    }

    /// What makes the nested history, instead of summaries.
    #[must_use]
    pub fn handoff_history_mapper(
        self,
        map: impl Fn(Vec<Item>) -> Vec<Item> + Send + Sync + 'static,
    ) -> Self {
        self.with(|config| config.handoff_history_mapper = Some(HistoryMapper::new(map)))
    }

    /// The lines around a nested history.
    #[must_use]
    pub fn history_markers(self, markers: HistoryMarkers) -> Self {
        self.with(|config| config.history_markers = markers)
    }

    /// A check on the input, beside those of the first agent.
    #[must_use]
    pub fn input_guardrail(self, guardrail: InputGuardrail<C>) -> Self {
        self.with(|config| config.input_guardrails.push(guardrail))
    }

    /// A check on the output, beside those of the last agent.
    #[must_use]
    pub fn output_guardrail(self, guardrail: OutputGuardrail<C>) -> Self {
        self.with(|config| config.output_guardrails.push(guardrail))
    }

    /// A check on every handoff, beside those of its own.
    #[must_use]
    pub fn handoff_guardrail(self, guardrail: HandoffGuardrail<C>) -> Self {
        self.with(|config| config.handoff_guardrails.push(guardrail))
    }

    /// A check on the calls and outputs of every tool, after those of the tool and of the agent.
    #[must_use]
    pub fn tool_guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|config| config.tool_guardrails.push(guardrail))
    }

    /// Hooks told of what happens.
    #[must_use]
    pub fn hooks(self, hooks: impl RunHooks<C>) -> Self
    where
        C: Send + Sync + 'static,
    {
        self.with(|config| config.hooks = Some(HooksHandle::new(hooks)))
    }

    /// Where the conversation is kept.
    #[must_use]
    pub fn session(self, session: impl Into<SessionHandle>) -> Self {
        self.with(|config| config.session = Some(session.into()))
    }

    /// Goes on with a conversation that the provider keeps; see [`ServerHistory`].
    #[must_use]
    pub fn conversation(self, id: impl Into<Arc<str>>) -> Self {
        self.server_history(ServerHistory::Conversation(id.into()))
    }

    /// Goes on from a response that the provider keeps; see [`ServerHistory`].
    #[must_use]
    pub fn previous_response(self, id: impl Into<Arc<str>>) -> Self {
        let previous = Some(id.into());
        self.server_history(ServerHistory::Responses { previous })
    }

    /// Where the provider keeps the conversation, so that only what is new is sent.
    #[must_use]
    pub fn server_history(self, history: ServerHistory) -> Self {
        self.with(|config| config.server_history = Some(history))
    }

    /// How many agents that are tools may be inside each other.
    #[must_use]
    pub fn max_agent_depth(self, depth: u32) -> Self {
        self.with(|config| config.max_agent_depth = depth)
    }

    /// How many tools of one response run side by side.
    #[must_use]
    pub fn tool_concurrency(self, limit: NonZeroUsize) -> Self {
        self.with(|config| config.tool_concurrency = Some(limit))
    }

    /// Changes every request before a model is asked: its instructions, its input, its settings.
    ///
    /// ```
    /// use switchboard_core::{Agent, Runner};
    ///
    /// let agent: Agent = Agent::new("A");
    /// let runner = Runner::new(&agent).model_filter(|_ctx, _agent, mut request| {
    ///     request.input = request.input.skip(request.input.len().saturating_sub(50));
    ///     request
    /// });
    /// ```
    #[must_use]
    pub fn model_filter<F, R, M>(self, filter: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, ModelRequest) -> R + Send + Sync + 'static,
        R: IntoOutcome<ModelRequest, M>,
    {
        self.with(|config| config.model_filter = Some(ModelFilter::new(filter)))
    }

    /// Whether halves of calls are taken out of every request. The engine and the library's filters
    /// leave none; filters of your own may.
    #[must_use]
    pub fn drop_orphaned_calls(self, pair: bool) -> Self {
        self.with(|config| config.drop_orphaned_calls = pair)
    }

    /// Has an output for a run that cannot go on: too many turns, a refusal, an answer that is not
    /// in the form asked for. `None` lets the error stand. Where the agent has an output type, the
    /// output has to be of it.
    ///
    /// ```
    /// use switchboard_core::{Agent, FinalOutput, Runner};
    ///
    /// let agent: Agent = Agent::new("A");
    /// let runner = Runner::new(&agent).recover(|_ctx, problem, _message| {
    ///     Some(FinalOutput::from(format!("Sorry, I have to stop here ({problem:?}).")))
    /// });
    /// ```
    #[must_use]
    pub fn recover<F, R, M>(self, recover: F) -> Self
    where
        F: Fn(RunContext<C>, RunProblem, String) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<FinalOutput>, M>,
    {
        self.with(|config| config.recovery = Some(Recovery::new(recover)))
    }

    /// How many of the session's latest items to load.
    #[must_use]
    pub fn session_limit(self, limit: usize) -> Self {
        self.with(|config| config.session_limit = Some(limit))
    }

    /// What happens when the model calls a tool that is not there.
    #[must_use]
    pub fn unknown_tool(self, unknown: UnknownTool) -> Self {
        self.with(|config| config.unknown_tool = unknown)
    }

    /// What happens when tools or handoffs of an agent share a name that was given to them.
    #[must_use]
    pub fn name_collision(self, collision: NameCollision) -> Self {
        self.with(|config| config.name_collision = collision)
    }

    /// Whether spans hold what was said: arguments, outputs, payloads, answers.
    #[must_use]
    pub fn trace_sensitive_data(self, include: bool) -> Self {
        self.with(|config| config.trace_sensitive_data = include)
    }

    /// How the tools of handoffs are named where no name is given.
    #[must_use]
    pub fn tool_names(self, names: ToolNames) -> Self {
        self.with(|config| config.tool_names = names)
    }

    /// Where the spans of the run go.
    #[must_use]
    pub fn tracer(self, tracer: impl Tracer) -> Self {
        self.with(|config| config.tracing = Tracing::To(Arc::new(tracer)))
    }

    /// Makes no spans.
    #[must_use]
    pub fn tracing_off(self) -> Self {
        self.with(|config| config.tracing = Tracing::Off)
    }

    fn with(mut self, change: impl FnOnce(&mut RunConfig<C>)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }
}
