//! The events of a streamed run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item_event::ItemEvent;
use crate::approval::Interruption;
use crate::error::ErrorKind;
use crate::guardrail::{GuardrailKind, GuardrailResult};
use crate::items::RunItem;
use crate::model::{ModelEvent, RawEvent, Usage};
use crate::run::{HandoffTrigger, Run};

/// The version of the JSON form of [`StreamEvent`], which [`EventKind::RunStarted`] carries. A new
/// version changes or removes something; kinds and fields are added without one.
pub const STREAM_VERSION: u32 = 1;

/// Something that happened in a streamed run.
///
/// As JSON it is one flat object: `{"type": "text_delta", "agent": "Billing", "turn": 1, ...}`, with
/// the fields of its [`EventKind`]. A type that the reader does not know becomes
/// [`EventKind::Unknown`], and fields that it does not know are ignored.
///
/// ```
/// use switchboard_core::stream::{EventKind, StreamEvent};
///
/// let json = r#"{"type":"text_delta","agent":"Billing","turn":1,"item":"msg_1","text":"Hi"}"#;
/// let event: StreamEvent = serde_json::from_str(json).unwrap();
/// assert!(matches!(&event.kind, EventKind::TextDelta { text, .. } if text == "Hi"));
/// assert_eq!(serde_json::to_string(&event).unwrap(), json);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StreamEvent {
    /// The kind of event, with its data.
    pub kind: EventKind,
    /// The agent that has the conversation, by name.
    pub agent: Arc<str>,
    /// The turn, counted from 1; 0 before the first.
    pub turn: u32,
}

impl StreamEvent {
    /// Creates an event, for streams of your own. Kinds come from other events, from JSON, or from
    /// [`EventKind::run_failed`].
    pub fn new(kind: EventKind, agent: impl Into<Arc<str>>, turn: u32) -> Self {
        Self {
            kind,
            agent: agent.into(),
            turn,
        }
    }

    /// Returns `true` for a progress report, also of a tool in a run inside.
    pub(crate) fn is_progress(&self) -> bool {
        match &self.kind {
            EventKind::ToolProgress { .. } => true,
            EventKind::Inner { event, .. } => event.is_progress(),
            _ => false,
        }
    }
}

/// The kinds of events.
///
/// Kinds and fields may be added: end a `match` with `_`, and a pattern with `..`.
///
/// ```
/// use switchboard_core::stream::EventKind;
///
/// fn show(kind: &EventKind) -> Option<String> {
///     match kind {
///         EventKind::TurnStarted { .. } => Some("thinking".to_owned()),
///         EventKind::ToolEnded { tool, seconds, .. } => Some(format!("{tool}: {seconds} s")),
///         EventKind::Handoff(handoff) => Some(format!("{} -> {}", handoff.from, handoff.to)),
///         _ => None,
///     }
/// }
/// # let turn = r#"{"type":"turn_started","agent":"A","turn":1}"#;
/// # let event: switchboard_core::stream::StreamEvent = serde_json::from_str(turn).unwrap();
/// # assert_eq!(show(&event.kind).as_deref(), Some("thinking"));
/// ```
///
/// Without `..` it would not compile:
///
/// ```compile_fail,E0638
/// # use switchboard_core::stream::EventKind;
/// fn is_text(kind: &EventKind) -> bool {
///     matches!(kind, EventKind::TextDelta { item: _, text: _ })
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The run begins, or continues after it was stopped.
    #[non_exhaustive]
    RunStarted {
        /// The version of the JSON form, [`STREAM_VERSION`].
        version: u32,
        /// The names of all agents that can get the conversation.
        #[serde(default)]
        agents: Vec<Arc<str>>,
        /// The user's new message, where it is text. If guardrails have yet to pass it, it is in
        /// [`InputPassed`](Self::InputPassed).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
    },
    /// Guardrails have passed the user's new message, perhaps in another form.
    #[non_exhaustive]
    InputPassed {
        /// The message, where it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
    },
    /// An agent has got the conversation; the first one at the start of the run.
    #[non_exhaustive]
    AgentUpdated {
        /// The name of its model.
        #[serde(default)]
        model: Arc<str>,
    },
    /// The stored conversation is too long, and no summary could be written for its older part; see
    /// [`Runner::compact`](crate::Runner::compact). The run goes on with all of it.
    #[non_exhaustive]
    CompactionFailed {
        /// The reason.
        reason: String,
    },
    /// A turn begins: the model is about to be asked.
    #[non_exhaustive]
    TurnStarted {},
    /// A piece of a message.
    #[non_exhaustive]
    TextDelta {
        /// The identifier of the message within the response.
        item: Arc<str>,
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    #[non_exhaustive]
    ReasoningDelta {
        /// The identifier of the reasoning item within the response.
        item: Arc<str>,
        /// The piece.
        text: String,
    },
    /// A piece of the arguments of a tool call or a handoff.
    #[non_exhaustive]
    ArgumentsDelta {
        /// The identifier of the call's item within the response.
        item: Arc<str>,
        /// The identifier of the call; empty where the provider has not sent it yet.
        call_id: Arc<str>,
        /// The name of the tool.
        tool: Arc<str>,
        /// The piece.
        text: String,
    },
    /// An event of the provider's protocol.
    #[non_exhaustive]
    Raw {
        /// The event as the provider sent it.
        event: RawEvent,
    },
    /// A model request failed and is sent again.
    #[non_exhaustive]
    ModelRetry {
        /// The number of the next attempt; the first retry is attempt 2.
        attempt: u32,
        /// The pause before it, in seconds.
        delay_seconds: f64,
        /// The reason the attempt before it failed.
        reason: String,
    },
    /// A model has responded.
    #[non_exhaustive]
    Usage {
        /// The usage of the response.
        response: Usage,
        /// The usage of the run so far.
        run: Usage,
    },
    /// The run has a new item.
    #[non_exhaustive]
    Item {
        /// The reference's name of the event.
        name: ItemEvent,
        /// The text of a message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The item.
        item: RunItem,
    },
    /// A tool starts.
    #[non_exhaustive]
    ToolStarted {
        /// The identifier of the call.
        call_id: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments; a string where they are not JSON.
        arguments: Value,
    },
    /// A running tool reports progress; see [`ToolContext::report_progress`](crate::ToolContext::report_progress).
    #[non_exhaustive]
    ToolProgress {
        /// The identifier of the call.
        call_id: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// The report.
        progress: Value,
        /// The number of reports that were dropped since the last one, because the stream was not
        /// read fast enough.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped: u64,
    },
    /// A tool has ended. Each ends on its own, also while others still run, and once: not again if the
    /// run fails afterwards and is resumed.
    #[non_exhaustive]
    ToolEnded {
        /// The identifier of the call.
        call_id: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments; a string where they are not JSON.
        arguments: Value,
        /// The result, or the failure text for the model.
        output: Value,
        /// Set if the tool failed, or does not exist.
        failed: bool,
        /// The error behind a failure, which the model does not get.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The data that the tool attached for the application, which the model does not get; see
        /// [`ToolContext::attach`](crate::ToolContext::attach).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// The time it took, in seconds.
        seconds: f64,
    },
    /// A handoff that the model asked for was taken, refused or ignored.
    Handoff(HandoffEvent),
    /// An event of a run inside this one: of an agent used as a tool, or of one that answers beside others; see
    /// [`Runner::inner_events`](crate::Runner::inner_events). Such a run has events of all kinds, from
    /// [`RunStarted`](Self::RunStarted) to its own last event.
    ///
    /// ```
    /// use switchboard_core::stream::{EventKind, StreamEvent};
    ///
    /// /// The agents and calls that an event lies inside of, outermost first, and the event itself.
    /// fn unfold(event: &StreamEvent) -> (Vec<(&str, &str)>, &StreamEvent) {
    ///     match &event.kind {
    ///         EventKind::Inner { call_id, event: inner, .. } => {
    ///             let (mut path, innermost) = unfold(inner);
    ///             path.insert(0, (&*event.agent, &**call_id));
    ///             (path, innermost)
    ///         }
    ///         _ => (Vec::new(), event),
    ///     }
    /// }
    /// # let json = r#"{"type":"inner","agent":"A","turn":1,"call_id":"c","tool":"ask",
    /// #     "event":{"type":"turn_started","agent":"B","turn":1}}"#;
    /// # let event: StreamEvent = serde_json::from_str(json).unwrap();
    /// # let (path, innermost) = unfold(&event);
    /// # assert_eq!((path, &*innermost.agent), (vec![("A", "c")], "B"));
    /// ```
    #[non_exhaustive]
    Inner {
        /// The identifier of the call, which tells runs side by side apart.
        call_id: Arc<str>,
        /// The tool's name, or that of the handoff's tool.
        tool: Arc<str>,
        /// The event, with the agent and the turn of the run inside.
        event: Box<StreamEvent>,
    },
    /// A guardrail has decided.
    #[non_exhaustive]
    Guardrail {
        /// The kind of guardrail.
        on: GuardrailKind,
        /// Its result.
        result: GuardrailResult,
    },
    /// The run has its final output. This is the last event.
    #[non_exhaustive]
    RunFinished {
        /// The final output; a string where it is text.
        output: Value,
        /// The number of turns.
        turns: u32,
        /// The usage of all models of the run.
        usage: Usage,
    },
    /// Calls wait for a person's decision, and the run can be resumed after it. This is the last event.
    #[non_exhaustive]
    RunInterrupted {
        /// The calls that wait.
        interruptions: Vec<Interruption>,
        /// The number of turns.
        turns: u32,
        /// The usage of all models of the run.
        usage: Usage,
    },
    /// The run was stopped and can be resumed. This is the last event.
    #[non_exhaustive]
    RunStopped {
        /// The number of turns.
        turns: u32,
        /// The usage of all models of the run.
        usage: Usage,
    },
    /// The run has failed. This is the last event; [`RunStream::finish`](super::RunStream::finish)
    /// returns the error.
    #[non_exhaustive]
    RunFailed {
        /// The kind of error.
        error: ErrorKind,
        /// The error's message.
        message: String,
        /// The result of the guardrail that tripped, where one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guardrail: Option<GuardrailResult>,
        /// The number of turns.
        turns: u32,
        /// The usage of all models of the run.
        usage: Usage,
    },
    /// A kind that this version does not know, as it was read.
    #[serde(skip)]
    Unknown(RawEvent),
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A handoff that the model or a condition asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandoffEvent {
    /// The agent that had the conversation.
    pub from: Arc<str>,
    /// The agent that got it, or would have got it.
    pub to: Arc<str>,
    /// The name of the handoff's tool.
    pub tool: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The arguments of the call; an empty object where there are none, and a string where they are
    /// not JSON.
    pub payload: Value,
    /// The outcome.
    pub status: HandoffStatus,
    /// The reason it was refused or ignored, as the model gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of items the next agent gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_items: Option<usize>,
    /// The number of items it would get without a filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_items: Option<usize>,
    /// The cause of the handoff.
    #[serde(default, skip_serializing_if = "HandoffTrigger::is_model")]
    pub trigger: HandoffTrigger,
}

/// The outcome of a handoff in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffStatus {
    /// The conversation was handed over.
    Taken,
    /// A guardrail, the callback, a person or a policy refused it.
    Refused,
    /// It could not be made, and the model was told.
    Failed,
    /// Another handoff of the same response was taken or refused.
    Ignored,
    /// The agent answers beside others, and the conversation stays where it is.
    FannedOut,
}

impl EventKind {
    /// The last event of a run that has failed outside of its steps, as when its result could not be
    /// stored.
    pub fn run_failed(error: ErrorKind, message: impl Into<String>, run: &Run) -> Self {
        Self::RunFailed {
            error,
            message: message.into(),
            guardrail: None,
            turns: run.turns(),
            usage: *run.usage(),
        }
    }

    /// The `type` of the event in JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::InputPassed { .. } => "input_passed",
            Self::AgentUpdated { .. } => "agent_updated",
            Self::CompactionFailed { .. } => "compaction_failed",
            Self::TurnStarted {} => "turn_started",
            Self::TextDelta { .. } => "text_delta",
            Self::ReasoningDelta { .. } => "reasoning_delta",
            Self::ArgumentsDelta { .. } => "arguments_delta",
            Self::Raw { .. } => "raw",
            Self::ModelRetry { .. } => "model_retry",
            Self::Usage { .. } => "usage",
            Self::Item { .. } => "item",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolProgress { .. } => "tool_progress",
            Self::ToolEnded { .. } => "tool_ended",
            Self::Handoff(_) => "handoff",
            Self::Inner { .. } => "inner",
            Self::Guardrail { .. } => "guardrail",
            Self::RunFinished { .. } => "run_finished",
            Self::RunInterrupted { .. } => "run_interrupted",
            Self::RunStopped { .. } => "run_stopped",
            Self::RunFailed { .. } => "run_failed",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The event of a new item; `None` for items that are not reported.
    pub(crate) fn of_item(item: RunItem) -> Option<Self> {
        let name = ItemEvent::of(item.kind())?;
        let text = (name == ItemEvent::MessageOutputCreated)
            .then(|| item.item().text().or_else(|| item.item().refusal()))
            .flatten()
            .map(|text| text.into_owned());
        Some(Self::Item { name, text, item })
    }

    /// The event of a piece of a streamed response; `None` for the complete response.
    pub(crate) fn of_model(event: ModelEvent) -> Option<Self> {
        Some(match event {
            ModelEvent::TextDelta { item, text } => Self::TextDelta { item, text },
            ModelEvent::ReasoningDelta { item, text } => Self::ReasoningDelta { item, text },
            ModelEvent::ArgumentsDelta {
                item,
                call_id,
                tool,
                text,
            } => Self::ArgumentsDelta {
                item,
                call_id,
                tool,
                text,
            },
            ModelEvent::Retry(retry) => Self::ModelRetry {
                attempt: retry.attempt,
                delay_seconds: retry.delay.as_secs_f64(),
                reason: retry.reason,
            },
            ModelEvent::Raw(event) => Self::Raw { event },
            ModelEvent::Completed(_) => return None,
        })
    }
}
