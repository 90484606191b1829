//! The settings of a run.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::machine::UnknownTool;
use super::model_filter::ModelFilter;
use super::recovery::Recovery;
use super::server_history::ServerHistory;
use crate::filters::Filter;
use crate::guardrail::{HandoffGuardrail, InputGuardrail, OutputGuardrail, ToolGuardrail};
use crate::handoff::{HistoryMapper, HistoryMarkers, ToolNames};
use crate::hooks::HooksHandle;
use crate::model::{ModelHandle, ModelSettings};
use crate::session::SessionHandle;
use crate::trace::Tracing;

/// The default limit of turns.
pub const DEFAULT_MAX_TURNS: u32 = 10;

/// The default limit of nested agents used as tools.
pub const DEFAULT_MAX_AGENT_DEPTH: u32 = 8;

/// The settings of a run.
///
/// The methods of [`Runner`](crate::Runner) write into one. To use the same settings for many
/// runners, pass it to [`Runner::replace_config`](crate::Runner::replace_config).
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
    /// The model of all agents, instead of their own.
    pub model: Option<ModelHandle>,
    /// Settings that override those of all agents, field by field.
    pub model_settings: Option<Arc<ModelSettings>>,
    /// The limit of turns, over all agents; `None` is no limit.
    pub max_turns: Option<u32>,
    /// The filter of handoffs that have none of their own.
    pub handoff_input_filter: Option<Filter<C>>,
    /// Nests the history on handoffs that have no setting of their own.
    pub nest_handoff_history: bool,
    /// The function that makes the nested history, instead of a summary.
    pub handoff_history_mapper: Option<HistoryMapper>,
    /// The lines around a nested history.
    pub history_markers: HistoryMarkers,
    /// Guardrails on the input, beside those of the first agent.
    pub input_guardrails: Vec<InputGuardrail<C>>,
    /// Guardrails on the output, beside those of the last agent.
    pub output_guardrails: Vec<OutputGuardrail<C>>,
    /// Guardrails on every handoff, beside its own.
    pub handoff_guardrails: Vec<HandoffGuardrail<C>>,
    /// Guardrails on every tool, after those of the tool and of its agent.
    pub tool_guardrails: Vec<ToolGuardrail<C>>,
    /// The hooks of the run.
    pub hooks: Option<HooksHandle<C>>,
    /// The session that stores the conversation.
    pub session: Option<SessionHandle>,
    /// The conversation that the provider keeps, so that only new items are sent.
    pub server_history: Option<ServerHistory>,
    /// The number of the session's latest items to load; `None` is all.
    pub session_limit: Option<usize>,
    /// The number of tools of one response that run concurrently; `None` is no limit.
    pub tool_concurrency: Option<NonZeroUsize>,
    /// Rewrites every model request.
    pub model_filter: Option<ModelFilter<C>>,
    /// Drops calls without outputs and outputs without calls from every request. The engine and the
    /// library's filters leave none; your own filters may.
    pub drop_orphaned_calls: bool,
    /// Gives a fallback output for a run that cannot continue.
    pub recovery: Option<Recovery<C>>,
    /// The policy for calls of tools that do not exist.
    pub unknown_tool: UnknownTool,
    /// The names of the tools of handoffs, where no name is given.
    pub tool_names: ToolNames,
    /// The policy for tools or handoffs of an agent that share a name.
    pub name_collision: NameCollision,
    /// The destination of spans.
    pub tracing: Tracing,
    /// Includes arguments, outputs, payloads and responses in spans.
    pub trace_sensitive_data: bool,
    /// The limit of nested agents used as tools.
    pub max_agent_depth: u32,
}

/// Policy for tools or handoffs of an agent that share a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameCollision {
    /// A warning is logged; the last handoff with the name gets the calls, or else the last tool.
    #[default]
    Warn,
    /// The run ends with an error before the model is asked.
    Fail,
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
