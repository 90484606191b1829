//! Events: what a realtime session tells the application.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_core::guardrail::GuardrailResult;

use crate::error::RealtimeError;
use crate::history::RealtimeHistory;
use crate::items::RealtimeItem;
use crate::model::{
    AudioPart, RealtimeClose, RealtimeModelEvent, RealtimeResponseStatus, RealtimeServerError,
};

/// An event of a realtime session.
///
/// Agents are told by their names; of several agents with one name, the second is `name#2`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RealtimeEvent {
    /// An agent begins to answer.
    AgentStart {
        /// The agent.
        agent: Arc<str>,
    },
    /// An agent has answered.
    AgentEnd {
        /// The agent that began the answer.
        agent: Arc<str>,
    },
    /// An agent has handed the conversation over.
    Handoff {
        /// The agent that had it.
        from: Arc<str>,
        /// The agent that has it.
        to: Arc<str>,
    },
    /// A handoff was not made, and the model was told.
    HandoffFailed {
        /// The agent that keeps the conversation.
        agent: Arc<str>,
        /// The name of the handoff's tool.
        tool: Arc<str>,
        /// The identifier of the call.
        call_id: Arc<str>,
        /// The text that the model got.
        reason: Arc<str>,
    },
    /// A tool begins.
    ToolStart(ToolCallEvent),
    /// A tool has ended.
    ToolEnd {
        /// The call.
        call: ToolCallEvent,
        /// The output; the failure text, where it failed.
        output: Value,
    },
    /// A call waits for a person; see
    /// [`RealtimeHandle::decide`](crate::RealtimeHandle::decide).
    ApprovalRequired(ToolCallEvent),
    /// Audio of the agent.
    Audio {
        /// The audio, in the session's output format.
        data: Bytes,
        /// The response that it is part of.
        response_id: Arc<str>,
        /// The message and the part that it belongs to.
        part: AudioPart,
    },
    /// The audio of a part is complete.
    AudioEnd(AudioPart),
    /// The playback of a part has to stop.
    AudioInterrupted(AudioPart),
    /// The transcript of the agent's audio, or its text, has grown.
    TranscriptDelta {
        /// The message.
        item_id: Arc<str>,
        /// The piece.
        delta: String,
    },
    /// The user began to speak.
    SpeechStarted,
    /// The user stopped speaking.
    SpeechStopped,
    /// The user has been silent for the time that was set.
    InputAudioTimeoutTriggered,
    /// An item was added to the history.
    HistoryAdded(Arc<RealtimeItem>),
    /// The history has changed.
    HistoryUpdated(RealtimeHistory),
    /// Output guardrails have interrupted the answer.
    GuardrailTripped {
        /// The results of those that tripped.
        results: Vec<GuardrailResult>,
        /// The text that they saw.
        message: Arc<str>,
    },
    /// A response is not complete.
    ResponseFailed {
        /// The identifier of the response.
        response_id: Option<Arc<str>>,
        /// The outcome.
        status: RealtimeResponseStatus,
        /// The reason, as the server sent it.
        details: Option<Box<Value>>,
    },
    /// Something went wrong, and the session goes on.
    Error(SessionProblem),
    /// The connection is being made again.
    Reconnecting {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The server's close before the first attempt. Code 1001 is the end of the time that the provider allows.
        close: Option<RealtimeClose>,
    },
    /// The connection was made again, and the conversation replayed.
    Reconnected {
        /// The length of the user's audio that was lost meanwhile, in milliseconds.
        dropped_audio_ms: u64,
    },
    /// The connection has ended. Code 1001 is the end of the time that the provider allows.
    Disconnected {
        /// The code and the reason of the server's close.
        close: Option<RealtimeClose>,
    },
    /// Events were dropped, because they were not read in time.
    Dropped {
        /// The number of events.
        events: u64,
        /// The bytes of audio in them.
        audio_bytes: u64,
    },
    /// An event of the model as it came, where the session was asked for them.
    Raw(Box<RealtimeModelEvent>),
}

/// A call of a tool or a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallEvent {
    /// The agent whose model made the call.
    pub agent: Arc<str>,
    /// The name of the tool. Of a handoff that a callback has redirected, that of the handoff to the other
    /// agent.
    pub tool: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The arguments, as the model wrote them, or those of the redirect.
    pub arguments: Arc<str>,
}

/// A problem that does not end the session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SessionProblem {
    /// The server reported an error.
    Server(RealtimeServerError),
    /// Something failed in the session.
    Session(String),
    /// Something failed in the session, with its error.
    Failed(RealtimeError),
}

impl SessionProblem {
    /// The message.
    pub fn message(&self) -> String {
        match self {
            Self::Server(RealtimeServerError::Reported(error)) => error.message.clone(),
            Self::Server(RealtimeServerError::Unreadable(error)) => error.to_string(),
            Self::Session(message) => message.clone(),
            Self::Failed(error) => error.to_string(),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Server(RealtimeServerError::Reported(error)) => {
                let mut value = serde_json::to_value(error).unwrap_or_default();
                if error.kind.is_empty()
                    && let Some(fields) = value.as_object_mut()
                {
                    fields.shift_remove("type");
                }
                value
            }
            _ => json!({"message": self.message()}),
        }
    }
}

impl ToolCallEvent {
    fn to_value(&self, kind: &str) -> Value {
        json!({
            "type": kind,
            "agent": self.agent,
            "tool": self.tool,
            "call_id": self.call_id,
            "arguments": self.arguments,
        })
    }
}

impl RealtimeEvent {
    /// The name of the event, as in its JSON form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AgentStart { .. } => "agent_start",
            Self::AgentEnd { .. } => "agent_end",
            Self::Handoff { .. } => "handoff",
            Self::HandoffFailed { .. } => "handoff_failed",
            Self::ToolStart(_) => "tool_start",
            Self::ToolEnd { .. } => "tool_end",
            Self::ApprovalRequired(_) => "tool_approval_required",
            Self::Audio { .. } => "audio",
            Self::AudioEnd(_) => "audio_end",
            Self::AudioInterrupted(_) => "audio_interrupted",
            Self::TranscriptDelta { .. } => "transcript_delta",
            Self::SpeechStarted => "speech_started",
            Self::SpeechStopped => "speech_stopped",
            Self::InputAudioTimeoutTriggered => "input_audio_timeout_triggered",
            Self::HistoryAdded(_) => "history_added",
            Self::HistoryUpdated(_) => "history_updated",
            Self::GuardrailTripped { .. } => "guardrail_tripped",
            Self::ResponseFailed { .. } => "response_failed",
            Self::Error(_) => "error",
            Self::Reconnecting { .. } => "reconnecting",
            Self::Reconnected { .. } => "reconnected",
            Self::Disconnected { .. } => "disconnected",
            Self::Dropped { .. } => "dropped",
            Self::Raw(_) => "raw_model_event",
        }
    }

    /// The event as JSON, in the reference's words where it has the event. Audio is the number of its
    /// bytes, not the bytes.
    pub fn to_value(&self) -> Value {
        let kind = self.name();
        match self {
            Self::AgentStart { agent } | Self::AgentEnd { agent } => {
                json!({"type": kind, "agent": agent})
            }
            Self::Handoff { from, to } => json!({"type": kind, "from": from, "to": to}),
            Self::HandoffFailed {
                agent,
                tool,
                call_id,
                reason,
            } => json!({
                "type": kind, "agent": agent, "tool": tool, "call_id": call_id, "reason": reason
            }),
            Self::ToolStart(call) | Self::ApprovalRequired(call) => call.to_value(kind),
            Self::ToolEnd { call, output } => {
                let mut value = call.to_value(kind);
                value["output"] = output.clone();
                value
            }
            Self::Audio {
                data,
                response_id,
                part,
            } => json!({
                "type": kind, "item_id": part.item_id, "content_index": part.content_index,
                "response_id": response_id, "bytes": data.len()
            }),
            Self::AudioEnd(part) | Self::AudioInterrupted(part) => json!({
                "type": kind, "item_id": part.item_id, "content_index": part.content_index
            }),
            Self::TranscriptDelta { item_id, delta } => {
                json!({"type": kind, "item_id": item_id, "delta": delta})
            }
            Self::SpeechStarted | Self::SpeechStopped | Self::InputAudioTimeoutTriggered => {
                json!({"type": kind})
            }
            Self::HistoryAdded(item) => json!({"type": kind, "item": item}),
            Self::HistoryUpdated(history) => json!({"type": kind, "history": history}),
            Self::GuardrailTripped { results, message } => {
                let names: Vec<&Arc<str>> =
                    results.iter().map(|result| &result.guardrail).collect();
                json!({"type": kind, "guardrails": names, "message": message})
            }
            Self::ResponseFailed {
                response_id,
                status,
                details,
            } => json!({
                "type": kind, "response_id": response_id, "status": status, "details": details
            }),
            Self::Error(problem) => json!({"type": kind, "error": problem.to_value()}),
            Self::Reconnecting { attempt, close } => {
                let mut value = close_to_value(kind, close.as_ref());
                value["attempt"] = (*attempt).into();
                value
            }
            Self::Reconnected { dropped_audio_ms } => {
                json!({"type": kind, "dropped_audio_ms": dropped_audio_ms})
            }
            Self::Disconnected { close } => close_to_value(kind, close.as_ref()),
            Self::Dropped {
                events,
                audio_bytes,
            } => json!({"type": kind, "events": events, "audio_bytes": audio_bytes}),
            Self::Raw(event) => json!({"type": kind, "of": raw_name(event)}),
        }
    }
}

fn close_to_value(kind: &str, close: Option<&RealtimeClose>) -> Value {
    let code = close.map(|close| close.code);
    let reason = close.map(|close| close.reason.as_str());
    json!({"type": kind, "code": code, "reason": reason})
}

/// The reference's name of a model event.
fn raw_name(event: &RealtimeModelEvent) -> &'static str {
    use RealtimeModelEvent as Event;
    match event {
        Event::Error(_) => "error",
        Event::Exception { .. } => "exception",
        Event::ToolCall(_) => "function_call",
        Event::Audio(_) => "audio",
        Event::AudioInterrupted(_) => "audio_interrupted",
        Event::AudioDone(_) => "audio_done",
        Event::InputAudioTranscriptionCompleted { .. } => "input_audio_transcription_completed",
        Event::InputAudioTranscriptionFailed { .. } => "input_audio_transcription_failed",
        Event::SpeechStarted { .. } => "speech_started",
        Event::SpeechStopped { .. } => "speech_stopped",
        Event::InputAudioTimeoutTriggered { .. } => "input_audio_timeout_triggered",
        Event::TranscriptDelta(_) => "transcript_delta",
        Event::OutputTextDelta(_) => "output_text_delta",
        Event::ItemUpdated(_) => "item_updated",
        Event::ItemDeleted { .. } => "item_deleted",
        Event::ItemTruncated { .. } => "item_truncated",
        Event::ConnectionStatus(_) => "connection_status",
        Event::EndOfStream => "end_of_stream",
        Event::TurnStarted { .. } => "turn_started",
        Event::Usage(_) => "usage",
        Event::TurnEnded(_) => "turn_ended",
        Event::SessionUpdated { .. } => "session_updated",
        Event::SessionUpdateRefused { .. } => "session_update_refused",
        Event::Other(_) => "other",
        Event::RawServerEvent(_) => "raw_server_event",
    }
}
