//! The settings of a runner. Each method writes into its `RunConfig`.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Runner;
use crate::agent::Agent;
use crate::callback::IntoOutcome;
use crate::context::RunContext;
use crate::filters::IntoFilter;
use crate::guardrail::{
    GuardrailResult, HandoffGuardrail, InputGuardrail, OutputGuardrail, ToolGuardrail,
};
use crate::handle::IntoHandle;
use crate::handoff::{HistoryMapper, HistoryMarkers, ToolNames};
use crate::hooks::HooksHandle;
use crate::items::{Item, Items};
use crate::model::{ModelHandle, ModelRequest, ModelSettings};
use crate::run::{ServerHistory, UnknownTool};
use crate::runner::{
    ActiveAgent, BlockedOutputText, Budgets, Compaction, Exclusive, Fallback, HandoffPolicy,
    HistoryPolicy, InnerEvents, ModelFilter, NameCollision, Recovery, RunConfig, RunFailure,
    RunProblem, SessionInput, StreamedOutput, ToolErrorMessage, ToolErrorText,
};
use crate::session::SessionHandle;
use crate::trace::{TraceId, Tracer, Tracing};

/// Settings.
impl<C, S> Runner<C, S> {
    /// Replaces all settings, also those made before.
    pub fn replace_config(mut self, config: impl Into<Arc<RunConfig<C>>>) -> Self {
        self.config = config.into();
        self
    }

    /// Sets the model of all agents, instead of their own.
    pub fn model<M>(self, model: impl IntoHandle<ModelHandle, M>) -> Self {
        self.with(|config| config.model = Some(model.into_handle()))
    }

    /// Overrides the model settings of all agents, field by field.
    pub fn model_settings(self, settings: ModelSettings) -> Self {
        self.with(|config| config.model_settings = Some(Arc::new(settings)))
    }

    /// Limits the turns of the run, over all agents; `None` is no limit.
    pub fn max_turns(self, turns: impl Into<Option<u32>>) -> Self {
        self.with(|config| config.max_turns = turns.into())
    }

    /// Sets the filter of handoffs that have none of their own.
    pub fn handoff_input_filter<M>(self, filter: impl IntoFilter<C, M>) -> Self {
        self.with(|config| config.handoff_input_filter = Some(filter.into_filter()))
    }

    /// Nests the history on handoffs that have no setting of their own.
    pub fn nest_handoff_history(self, nest: bool) -> Self {
        self.with(|config| config.nest_handoff_history = nest)
    }

    /// Sets the function that makes the nested history, instead of a summary.
    pub fn handoff_history_mapper(
        self,
        map: impl Fn(Vec<Item>) -> Vec<Item> + Send + Sync + 'static,
    ) -> Self {
        self.with(|config| config.handoff_history_mapper = Some(HistoryMapper::new(map)))
    }

    /// Sets the lines around a nested history.
    pub fn history_markers(self, markers: HistoryMarkers) -> Self {
        self.with(|config| config.history_markers = markers)
    }

    /// Adds a guardrail on the input, beside those of the first agent.
    pub fn input_guardrail(self, guardrail: InputGuardrail<C>) -> Self {
        self.with(|config| config.input_guardrails.push(guardrail))
    }

    /// Adds a guardrail on the output, beside those of the last agent.
    pub fn output_guardrail(self, guardrail: OutputGuardrail<C>) -> Self {
        self.with(|config| config.output_guardrails.push(guardrail))
    }

    /// Sets whether a stream shows an output before its guardrails have passed it.
    pub fn streamed_output(self, policy: StreamedOutput) -> Self {
        self.with(|config| config.streamed_output = policy)
    }

    /// Sets the policy for the events of agents used as tools, and of agents that answer beside others, in the
    /// stream of the run.
    pub fn inner_events(self, policy: InnerEvents) -> Self {
        self.with(|config| config.inner_events = policy)
    }

    /// Sets budgets of the run, its agents and its handoffs, also for agents used as tools.
    pub fn budgets(self, budgets: Budgets) -> Self {
        self.with(|config| config.budgets = Some(Arc::new(budgets)))
    }

    /// Sets the policy for handoffs and approvals.
    pub fn handoff_policy(self, policy: HandoffPolicy) -> Self {
        self.with(|config| config.handoff_policy = policy)
    }

    /// Adds a guardrail on every handoff, beside its own.
    pub fn handoff_guardrail(self, guardrail: HandoffGuardrail<C>) -> Self {
        self.with(|config| config.handoff_guardrails.push(guardrail))
    }

    /// Adds a guardrail on every tool, after those of the tool and of the agent.
    pub fn tool_guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with(|config| config.tool_guardrails.push(guardrail))
    }

    /// Adds hooks of the run, which are called after those that it has.
    pub fn hooks<M>(self, hooks: impl IntoHandle<HooksHandle<C>, M>) -> Self {
        self.with(|config| config.hooks.push(hooks.into_handle()))
    }

    /// Sets the session that stores the conversation.
    pub fn session<M>(self, session: impl IntoHandle<SessionHandle, M>) -> Self {
        self.with(|config| config.session = Some(session.into_handle()))
    }

    /// Sets what the session keeps from one run to the next.
    pub fn history(self, policy: HistoryPolicy) -> Self {
        self.with(|config| config.history = policy)
    }

    /// Sets which agent gets the next message of a conversation, where the agent that answered has no
    /// policy of its own.
    pub fn active_agent(self, policy: ActiveAgent) -> Self {
        self.with(|config| config.active_agent = policy)
    }

    /// Names the team. Its conversations store the name, and those of a team of another name are
    /// refused.
    pub fn team_name(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|config| config.team_name = Some(name.into()))
    }

    /// Names the place that the team was read from, such as a file, for teams without names: conversations
    /// of a team from another place are refused.
    pub fn team_source(self, source: impl Into<Arc<str>>) -> Self {
        self.with(|config| config.team_source = Some(source.into()))
    }

    /// Gives the conversations of an agent to another one, also if the first does not exist any more.
    pub fn stored_agent(self, from: impl Into<Arc<str>>, to: impl Into<Arc<str>>) -> Self {
        self.with(|config| config.stored_agents.push((from.into(), to.into())))
    }

    /// Takes over conversations of other teams, instead of refusing them: they go on with the agent of
    /// the runner, or with the one of the same name.
    pub fn take_over_conversations(self, take_over: bool) -> Self {
        self.with(|config| config.take_over_conversations = take_over)
    }

    /// Lets runs with the same conversation wait for each other, for at most this long. Without it, of
    /// two runs at the same time the one that commits later fails with
    /// [`ConversationErrorKind::Conflict`](crate::conversation::ConversationErrorKind::Conflict).
    pub fn exclusive(self, wait: Duration) -> Self {
        self.with(|config| config.exclusive = Some(Exclusive::new(wait)))
    }

    /// Tells that the lease of the conversation was taken for the next run a moment ago, by the owner
    /// [`lease_owner`](crate::journal::lease_owner).
    #[doc(hidden)]
    pub fn conversation_is_taken(self) -> Self {
        self.with(|config| {
            let mut exclusive = Exclusive::new(Duration::ZERO);
            exclusive.is_taken = true;
            config.exclusive = Some(exclusive);
        })
    }

    /// Shortens what models are shown of a long conversation: before a message, the older part of it is
    /// replaced by a summary that a model writes. The conversation's record keeps the originals.
    ///
    /// If a summary cannot be written, or not within [`Compaction::timeout`], the message goes on without
    /// one: a warning is logged, and a stream has
    /// [`CompactionFailed`](crate::EventKind::CompactionFailed).
    ///
    /// ```
    /// use switchboard_core::conversation::Conversations;
    /// use switchboard_core::run::Compaction;
    /// use switchboard_core::{Agent, Runner};
    ///
    /// let agent: Agent = Agent::new("Support");
    /// let session = Conversations::in_memory().get("customer-42");
    /// let runner = Runner::new(&agent)
    ///     .session(&session)
    ///     .compact(Compaction::new(50_000).keep_last(30));
    /// ```
    pub fn compact(self, compaction: Compaction) -> Self {
        self.with(|config| config.compaction = Some(compaction))
    }

    /// Keeps what a guardrail has refused in the conversation's record, for review. Otherwise it holds
    /// only that something was refused, by which guardrail and when. No model is shown either.
    pub fn keep_refused(self, keep: bool) -> Self {
        self.with(|config| config.keep_refused = keep)
    }

    /// Continues a conversation that the provider keeps; see [`ServerHistory`].
    pub fn conversation(self, id: impl Into<Arc<str>>) -> Self {
        self.server_history(ServerHistory::Conversation(id.into()))
    }

    /// Continues from a response that the provider keeps; see [`ServerHistory`].
    pub fn previous_response(self, id: impl Into<Arc<str>>) -> Self {
        let previous = Some(id.into());
        self.server_history(ServerHistory::Responses { previous })
    }

    /// Sets the conversation that the provider keeps, so that only new items are sent.
    pub fn server_history(self, history: ServerHistory) -> Self {
        self.with(|config| config.server_history = Some(history))
    }

    /// Limits how deep agents used as tools may be nested.
    pub fn max_agent_depth(self, depth: u32) -> Self {
        self.with(|config| config.max_agent_depth = depth)
    }

    /// Limits how many tools of one response run concurrently.
    pub fn tool_concurrency(self, limit: NonZeroUsize) -> Self {
        self.with(|config| config.tool_concurrency = Some(limit))
    }

    /// Sets a filter that rewrites every model request: its instructions, its input, its settings.
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
    pub fn model_filter<F, R, M>(self, filter: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>, ModelRequest) -> R + Send + Sync + 'static,
        R: IntoOutcome<ModelRequest, M>,
    {
        self.with(|config| config.model_filter = Some(ModelFilter::new(filter)))
    }

    /// Drops calls without outputs and outputs without calls from every request. The engine and the
    /// library's filters leave none; your own filters may.
    pub fn drop_orphaned_calls(self, pair: bool) -> Self {
        self.with(|config| config.drop_orphaned_calls = pair)
    }

    /// Sets a function that gives a fallback output for a run that cannot continue: too many turns, a
    /// refusal, an answer that does not match the output type. With `None` the run fails. The output
    /// must be of the agent's output type, where it has one.
    ///
    /// ```
    /// use switchboard_core::run::{Fallback, RunFailure};
    /// use switchboard_core::{Agent, Runner};
    ///
    /// let agent: Agent = Agent::new("A");
    /// let runner = Runner::new(&agent).recover(|_ctx, failure: RunFailure| {
    ///     let turns = failure.run.turns();
    ///     Some(Fallback::from(format!("Sorry, I have to stop after {turns} turns.")))
    /// });
    /// ```
    pub fn recover<F, R, M>(self, recover: F) -> Self
    where
        F: Fn(RunContext<C>, RunFailure) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<Fallback>, M>,
    {
        self.with(|config| {
            let recovery = config.recovery.take().unwrap_or_else(Recovery::none);
            config.recovery = Some(recovery.on_any(recover));
        })
    }

    /// Like [`recover`](Self::recover), for one problem only.
    pub fn recover_from<F, R, M>(self, problem: RunProblem, recover: F) -> Self
    where
        F: Fn(RunContext<C>, RunFailure) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<Fallback>, M>,
    {
        self.with(|config| {
            let recovery = config.recovery.take().unwrap_or_else(Recovery::none);
            config.recovery = Some(recovery.on(problem, recover));
        })
    }

    /// Sets a function that makes the texts that models get about failed and unknown tools, where a
    /// tool has no text of its own. With `None`, or if it fails, the model gets the default.
    ///
    /// ```
    /// use switchboard_core::tool::ToolErrorKind;
    /// use switchboard_core::{Agent, Runner};
    ///
    /// let agent: Agent = Agent::new("A");
    /// let runner = Runner::new(&agent).tool_error_text(|_ctx, message| {
    ///     let is_unknown = message.error.kind() == ToolErrorKind::NotFound;
    ///     is_unknown.then(|| format!("There is no tool {}. Ask the user.", message.tool))
    /// });
    /// ```
    pub fn tool_error_text<F, R, M>(self, text: F) -> Self
    where
        F: Fn(RunContext<C>, ToolErrorMessage) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<String>, M>,
    {
        self.with(|config| config.tool_error_text = Some(ToolErrorText::new(text)))
    }

    /// Loads only the latest items of the session. A handoff that filters then hands on only what was
    /// loaded.
    pub fn session_limit(self, limit: usize) -> Self {
        self.with(|config| config.session_limit = Some(limit))
    }

    /// Sets a function that merges the history of the session with the new input: it gets both and
    /// returns what the run begins with. Items that are not from the history are new, and the session
    /// gets them.
    ///
    /// ```
    /// use switchboard_core::{Agent, Runner};
    ///
    /// let agent: Agent = Agent::new("A");
    /// let runner = Runner::new(&agent).session_input(|_ctx, history, new| {
    ///     let latest = history.skip(history.len().saturating_sub(20));
    ///     latest.into_iter().chain(new).collect::<switchboard_core::items::Items>()
    /// });
    /// ```
    pub fn session_input<F, R, M>(self, merge: F) -> Self
    where
        F: Fn(RunContext<C>, Items, Items) -> R + Send + Sync + 'static,
        R: IntoOutcome<Items, M>,
    {
        self.with(|config| config.session_input = Some(SessionInput::new(merge)))
    }

    /// Leaves the identifiers of reasoning items out of requests, sessions and results, for providers
    /// that refuse those of others. The raw responses keep them.
    pub fn omit_reasoning_ids(self, omit: bool) -> Self {
        self.with(|config| config.omit_reasoning_ids = omit)
    }

    /// Sets a function that makes the text in place of a tool's output that an output guardrail has
    /// rejected.
    pub fn blocked_output_text(
        self,
        text: impl Fn(&GuardrailResult) -> String + Send + Sync + 'static,
    ) -> Self {
        self.with(|config| config.blocked_output_text = Some(BlockedOutputText::new(text)))
    }

    /// Sets what happens when the model calls a tool that does not exist.
    pub fn unknown_tool(self, unknown: UnknownTool) -> Self {
        self.with(|config| config.unknown_tool = unknown)
    }

    /// Sets what happens when tools or handoffs of an agent share a name.
    pub fn name_collision(self, collision: NameCollision) -> Self {
        self.with(|config| config.name_collision = collision)
    }

    /// Includes arguments, outputs, payloads, requests and responses in spans; see
    /// [`RunConfig::trace_sensitive_data`].
    pub fn trace_sensitive_data(self, include: bool) -> Self {
        self.with(|config| config.trace_sensitive_data = include)
    }

    /// Makes spans of the run and of its turns, which is the default; see
    /// [`RunConfig::trace_tasks_and_turns`].
    pub fn trace_tasks_and_turns(self, include: bool) -> Self {
        self.with(|config| config.trace_tasks_and_turns = include)
    }

    /// Sets how the tools of handoffs are named where no name is given.
    pub fn tool_names(self, names: ToolNames) -> Self {
        self.with(|config| config.tool_names = names)
    }

    /// Adds a tracer that receives the trace and the spans of the run, beside those that were added
    /// before. With one, they do not go to the `tracing` crate.
    ///
    /// [`tracing_off`](Self::tracing_off) leaves out all that were added. For tracers that come and go
    /// while runs use them, add a [`Tracers`](crate::trace::Tracers).
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::trace::MemoryTracer;
    /// use switchboard_core::{Agent, Runner};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let agent: Agent = Agent::new("Greeter");
    /// let (one, other) = (MemoryTracer::new(), MemoryTracer::new());
    /// let runner = Runner::new(&agent)
    ///     .workflow_name("Reception")
    ///     .trace_group("chat_7")
    ///     .trace_metadata("customer", "c_42")
    ///     .tracer(one.clone())
    ///     .tracer(other.clone());
    /// runner.model(ScriptedModel::new().say("Hello!")).run("Hi").await?;
    /// assert_eq!(one.traces(), other.traces());
    /// assert_eq!(one.traces()[0].metadata["customer"], "c_42");
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn tracer(self, tracer: impl Tracer) -> Self {
        self.with(|config| config.tracing.add(tracer))
    }

    /// Sets the name of the workflow in traces; `Agent workflow` where there is none.
    pub fn workflow_name(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|config| config.trace.workflow_name = Some(name.into()))
    }

    /// Sets the group of traces that those of the runs belong to, such as those of one chat.
    pub fn trace_group(self, group: impl Into<Arc<str>>) -> Self {
        self.with(|config| config.trace.group = Some(group.into()))
    }

    /// Sets the identifier of the trace, instead of a new one for each run.
    pub fn trace_id(self, id: impl Into<TraceId>) -> Self {
        self.with(|config| config.trace.id = Some(id.into()))
    }

    /// Adds an entry to the metadata of the trace.
    pub fn trace_metadata(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(|config| {
            config.trace.metadata.insert(name.into(), value.into());
        })
    }

    /// Makes no spans, also not for tracers that were added before.
    pub fn tracing_off(self) -> Self {
        self.with(|config| config.tracing = Tracing::Off)
    }

    fn with(mut self, change: impl FnOnce(&mut RunConfig<C>)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }
}
