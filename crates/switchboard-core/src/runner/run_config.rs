//! The settings of a run.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::budgets::Budgets;
use super::compaction::Compaction;
use super::fallback_output::Recovery;
use super::handoff_policy::HandoffPolicy;
use super::run_callbacks::{BlockedOutputText, ModelFilter, SessionInput, ToolErrorText};
use super::run_policies::{ActiveAgent, Exclusive, HistoryPolicy, InnerEvents, StreamedOutput};
use crate::environment::environment;
use crate::filters::Filter;
use crate::guardrail::{HandoffGuardrail, InputGuardrail, OutputGuardrail, ToolGuardrail};
use crate::handoff::{HistoryMapper, HistoryMarkers, ToolNames};
use crate::hooks::HooksHandle;
use crate::model::{ModelHandle, ModelSettings};
use crate::run::{ServerHistory, UnknownTool};
use crate::session::SessionHandle;
use crate::trace::{TraceSettings, Tracing};

/// The default limit of turns.
pub const DEFAULT_MAX_TURNS: u32 = 10;

/// The default limit of nested agents used as tools.
pub const DEFAULT_MAX_AGENT_DEPTH: u32 = 8;

/// Declares the settings of a run with their defaults. A derived `Clone`, `Debug` or `Default` would
/// ask for the same of `C`.
macro_rules! run_config {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident<C = ()> {
            $($(#[$doc:meta])* pub $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $name<C = ()> {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl<C> Default for $name<C> {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl<C> Clone for $name<C> {
            fn clone(&self) -> Self {
                Self { $($field: self.$field.clone(),)* }
            }
        }

        impl<C> fmt::Debug for $name<C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut debug = f.debug_struct(stringify!($name));
                $(debug.field(stringify!($field), &self.$field);)*
                debug.finish()
            }
        }
    };
}

run_config! {
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
        pub model: Option<ModelHandle> = None,
        /// Settings that override those of all agents, field by field.
        pub model_settings: Option<Arc<ModelSettings>> = None,
        /// The limit of turns, over all agents; `None` is no limit.
        pub max_turns: Option<u32> = Some(DEFAULT_MAX_TURNS),
        /// The filter of handoffs that have none of their own.
        pub handoff_input_filter: Option<Filter<C>> = None,
        /// Nests the history on handoffs that have no setting of their own.
        pub nest_handoff_history: bool = false,
        /// The function that makes the nested history, instead of a summary.
        pub handoff_history_mapper: Option<HistoryMapper> = None,
        /// The lines around a nested history.
        pub history_markers: HistoryMarkers = HistoryMarkers::default(),
        /// Guardrails on the input, beside those of the first agent.
        pub input_guardrails: Vec<InputGuardrail<C>> = Vec::new(),
        /// Guardrails on the output, beside those of the last agent.
        pub output_guardrails: Vec<OutputGuardrail<C>> = Vec::new(),
        /// The policy for the stream of an output that guardrails have yet to pass.
        pub streamed_output: StreamedOutput = StreamedOutput::default(),
        /// The policy for the events of runs inside a streamed one.
        pub inner_events: InnerEvents = InnerEvents::default(),
        /// The budgets of the run, its agents and its handoffs.
        pub budgets: Option<Arc<Budgets>> = None,
        /// The policy for handoffs and approvals.
        pub handoff_policy: HandoffPolicy = HandoffPolicy::production(),
        /// Guardrails on every handoff, beside its own.
        pub handoff_guardrails: Vec<HandoffGuardrail<C>> = Vec::new(),
        /// Guardrails on every tool, after those of the tool and of its agent.
        pub tool_guardrails: Vec<ToolGuardrail<C>> = Vec::new(),
        /// The hooks of the run.
        pub hooks: Vec<HooksHandle<C>> = Vec::new(),
        /// The session that stores the conversation.
        pub session: Option<SessionHandle> = None,
        /// The policy for what the session keeps from one run to the next.
        pub history: HistoryPolicy = HistoryPolicy::default(),
        /// The policy for the agent that gets the next message, where an agent has none of its own.
        pub active_agent: ActiveAgent = ActiveAgent::default(),
        /// The name of the team, which its conversations store: those of another name are refused.
        pub team_name: Option<Arc<str>> = None,
        /// The place that the team was read from, such as a file, which its conversations store: without
        /// names, those of teams from another place are refused.
        pub team_source: Option<Arc<str>> = None,
        /// Agents that get the conversations of others, which do not exist any more: from, to.
        pub stored_agents: Vec<(Arc<str>, Arc<str>)> = Vec::new(),
        /// Takes over conversations of other teams, instead of refusing them.
        pub take_over_conversations: bool = false,
        /// Lets runs with the same conversation wait for each other.
        pub exclusive: Option<Exclusive> = None,
        /// Keeps what a guardrail has refused in the conversation's record, for review. No model is
        /// shown it.
        pub keep_refused: bool = false,
        /// Shortens what models are shown of a long conversation.
        pub compaction: Option<Compaction> = None,
        /// The conversation that the provider keeps, so that only new items are sent.
        pub server_history: Option<ServerHistory> = None,
        /// The number of the session's latest items to load; `None` is all.
        pub session_limit: Option<usize> = None,
        /// Merges the history of the session with the new input, instead of putting it before.
        pub session_input: Option<SessionInput<C>> = None,
        /// Leaves the identifiers of reasoning items out of requests, sessions and results.
        pub omit_reasoning_ids: bool = false,
        /// Makes the text in place of a tool's output that an output guardrail has rejected.
        pub blocked_output_text: Option<BlockedOutputText> = None,
        /// The number of tools of one response that run concurrently; `None` is no limit.
        pub tool_concurrency: Option<NonZeroUsize> = None,
        /// Rewrites every model request.
        pub model_filter: Option<ModelFilter<C>> = None,
        /// Drops calls without outputs and outputs without calls from every request. The engine and the
        /// library's filters leave none; your own filters may.
        pub drop_orphaned_calls: bool = false,
        /// Gives a fallback output for a run that cannot continue.
        pub recovery: Option<Recovery<C>> = None,
        /// Makes the texts that models get about failed and unknown tools.
        pub tool_error_text: Option<ToolErrorText<C>> = None,
        /// The policy for calls of tools that do not exist.
        pub unknown_tool: UnknownTool = UnknownTool::default(),
        /// The names of the tools of handoffs, where no name is given.
        pub tool_names: ToolNames = ToolNames::default(),
        /// The policy for tools or handoffs of an agent that share a name.
        pub name_collision: NameCollision = NameCollision::default(),
        /// The destination of spans.
        pub tracing: Tracing = Tracing::default(),
        /// The name, group, identifier and metadata of the trace.
        pub trace: TraceSettings = TraceSettings::default(),
        /// Includes arguments, outputs, payloads, requests and responses in spans. The default is
        /// `true`, unless the variable `OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA` is something else.
        pub trace_sensitive_data: bool = environment().traces_sensitive_data,
        /// Makes a span of the run and one of each turn. Without them, the spans of agents are at the
        /// root, and those of model and tool calls lie under their agents.
        pub trace_tasks_and_turns: bool = true,
        /// The limit of nested agents used as tools.
        pub max_agent_depth: u32 = DEFAULT_MAX_AGENT_DEPTH,
    }
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
