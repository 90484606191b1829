//! Every setting of a run, in one place.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::machine::UnknownTool;
use super::model_filter::ModelFilter;
use super::recovery::Recovery;
use crate::filters::Filter;
use crate::guardrail::{HandoffGuardrail, InputGuardrail, OutputGuardrail, ToolGuardrail};
use crate::handoff::{HistoryMapper, HistoryMarkers, ToolNames};
use crate::hooks::{DynRunHooks, RunHooks};
use crate::model::{ModelHandle, ModelSettings};
use crate::session::SessionHandle;
use crate::trace::Tracing;

/// How many turns a run may take unless it is told otherwise.
pub const DEFAULT_MAX_TURNS: u32 = 10;

/// How many agents that are tools may be inside each other unless a run is told otherwise.
pub const DEFAULT_MAX_AGENT_DEPTH: u32 = 8;

/// Every setting of a run.
///
/// A [`Runner`](crate::Runner)'s methods write into one; give it a whole one with
/// [`Runner::config`](crate::Runner::config) to use the same settings for many runs.
///
/// ```
/// use switchboard_core::{RunConfig, filters};
///
/// let config: RunConfig = RunConfig {
///     max_turns: Some(20),
///     handoff_input_filter: Some(filters::remove_all_tools()),
///     ..RunConfig::default()
/// };
/// ```
pub struct RunConfig<C = ()> {
    /// The model of every agent, instead of their own.
    pub model: Option<ModelHandle>,
    /// Settings that override those of every agent, field by field.
    pub model_settings: Option<Arc<ModelSettings>>,
    /// How many turns the run may take, over all agents; `None` is no limit.
    pub max_turns: Option<u32>,
    /// The filter of handoffs that have none of their own.
    pub handoff_input_filter: Option<Filter<C>>,
    /// Whether handoffs that do not say otherwise nest the history.
    pub nest_handoff_history: bool,
    /// What makes the nested history, instead of summaries.
    pub handoff_history_mapper: Option<HistoryMapper>,
    /// The lines around a nested history.
    pub history_markers: HistoryMarkers,
    /// Checks on the input beside those of the first agent.
    pub input_guardrails: Vec<InputGuardrail<C>>,
    /// Checks on the output beside those of the last agent.
    pub output_guardrails: Vec<OutputGuardrail<C>>,
    /// Checks on every handoff, beside those of its own.
    pub handoff_guardrails: Vec<HandoffGuardrail<C>>,
    /// Checks on the calls and outputs of every tool, beside those of the tool and of its agent.
    pub tool_guardrails: Vec<ToolGuardrail<C>>,
    /// Hooks told of what happens.
    pub hooks: Option<HooksHandle<C>>,
    /// Where the conversation is kept.
    pub session: Option<SessionHandle>,
    /// Where the provider keeps the conversation, so that only what is new is sent.
    pub server_history: Option<ServerHistory>,
    /// How many of the session's latest items to load; `None` is all.
    pub session_limit: Option<usize>,
    /// How many tools of one response run side by side; `None` is all.
    pub tool_concurrency: Option<NonZeroUsize>,
    /// Changes every request before a model is asked.
    pub model_filter: Option<ModelFilter<C>>,
    /// Whether halves of calls are taken out of every request. The engine and the library's filters
    /// leave none; filters of your own may.
    pub drop_orphaned_calls: bool,
    /// Has an output for a run that cannot go on.
    pub recovery: Option<Recovery<C>>,
    /// What happens when the model calls a tool that is not there.
    pub unknown_tool: UnknownTool,
    /// How the tools of handoffs are named where no name is given.
    pub tool_names: ToolNames,
    /// What happens when tools or handoffs of an agent share a name that was given to them.
    pub name_collision: NameCollision,
    /// Where the spans of the run go.
    pub tracing: Tracing,
    /// Whether spans hold what was said: arguments, outputs, payloads, answers.
    pub trace_sensitive_data: bool,
    /// How many agents that are tools may be inside each other.
    pub max_agent_depth: u32,
}

/// A conversation that the provider keeps, so that only what is new is sent.
///
/// What the provider has cannot be changed afterwards. So handoffs must have no filter, which is
/// refused before the handoff does anything; history is not nested; and neither a session nor an
/// output guardrail goes with it. An agent used as a tool has a conversation of its own.
///
/// A run that ends with what a tool returned ([`ToolUseBehavior`](crate::ToolUseBehavior)) leaves the tool's call
/// unanswered at the provider: give the output to the next run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerHistory {
    /// The conversation of this identifier.
    Conversation(Arc<str>),
    /// Each response follows the one before it; the first of the run follows this one.
    Responses {
        /// The response to go on from.
        previous: Option<Arc<str>>,
    },
}

/// What happens when tools or handoffs of an agent share a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameCollision {
    /// A warning; the last handoff of the name gets the calls, or else the last tool.
    #[default]
    Warn,
    /// The run ends with an error before the model is asked.
    Fail,
}

/// Hooks of a run, to be shared.
pub struct HooksHandle<C>(pub(crate) Arc<dyn DynRunHooks<C>>);

impl<C: Send + Sync + 'static> HooksHandle<C> {
    /// Hooks.
    pub fn new(hooks: impl RunHooks<C>) -> Self {
        Self(Arc::new(hooks))
    }
}

impl<C> Clone for HooksHandle<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for HooksHandle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HooksHandle")
    }
}

impl<C> Default for RunConfig<C> {
    fn default() -> Self {
        Self {
            model: None,
            model_settings: None,
            max_turns: Some(DEFAULT_MAX_TURNS),
            handoff_input_filter: None,
            nest_handoff_history: false,
            handoff_history_mapper: None,
            history_markers: HistoryMarkers::default(),
            input_guardrails: Vec::new(),
            output_guardrails: Vec::new(),
            tool_guardrails: Vec::new(),
            handoff_guardrails: Vec::new(),
            hooks: None,
            session: None,
            server_history: None,
            session_limit: None,
            tool_concurrency: None,
            model_filter: None,
            drop_orphaned_calls: false,
            recovery: None,
            unknown_tool: UnknownTool::default(),
            tool_names: ToolNames::default(),
            name_collision: NameCollision::default(),
            tracing: Tracing::default(),
            trace_sensitive_data: true,
            max_agent_depth: DEFAULT_MAX_AGENT_DEPTH,
        }
    }
}

impl<C> Clone for RunConfig<C> {
    fn clone(&self) -> Self {
        Self {
            model: self.model.clone(),
            model_settings: self.model_settings.clone(),
            max_turns: self.max_turns,
            handoff_input_filter: self.handoff_input_filter.clone(),
            nest_handoff_history: self.nest_handoff_history,
            handoff_history_mapper: self.handoff_history_mapper.clone(),
            history_markers: self.history_markers.clone(),
            input_guardrails: self.input_guardrails.clone(),
            output_guardrails: self.output_guardrails.clone(),
            tool_guardrails: self.tool_guardrails.clone(),
            handoff_guardrails: self.handoff_guardrails.clone(),
            hooks: self.hooks.clone(),
            session: self.session.clone(),
            server_history: self.server_history.clone(),
            session_limit: self.session_limit,
            tool_concurrency: self.tool_concurrency,
            model_filter: self.model_filter.clone(),
            drop_orphaned_calls: self.drop_orphaned_calls,
            recovery: self.recovery.clone(),
            unknown_tool: self.unknown_tool,
            tool_names: self.tool_names,
            name_collision: self.name_collision,
            tracing: self.tracing.clone(),
            trace_sensitive_data: self.trace_sensitive_data,
            max_agent_depth: self.max_agent_depth,
        }
    }
}

impl<C> fmt::Debug for RunConfig<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunConfig")
            .field("model", &self.model)
            .field("model_settings", &self.model_settings)
            .field("max_turns", &self.max_turns)
            .field("handoff_input_filter", &self.handoff_input_filter)
            .field("nest_handoff_history", &self.nest_handoff_history)
            .field("history_markers", &self.history_markers)
            .field("input_guardrails", &self.input_guardrails)
            .field("output_guardrails", &self.output_guardrails)
            .field("tool_guardrails", &self.tool_guardrails)
            .field("handoff_guardrails", &self.handoff_guardrails)
            .field("session", &self.session)
            .field("tool_concurrency", &self.tool_concurrency)
            .field("unknown_tool", &self.unknown_tool)
            .field("tool_names", &self.tool_names)
            .field("name_collision", &self.name_collision)
            .field("tracing", &self.tracing)
            .finish_non_exhaustive()
    }
}
