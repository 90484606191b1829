//! The types of server events, and the fields that the official types ask for.

use serde_json::{Map, Value};

/// A field that an event must have.
pub(super) type Required = (&'static str, Kind);

/// The kind of a field's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
    Object,
    List,
    /// An item of a conversation.
    Item,
    /// A session.
    Session,
    /// An error.
    Error,
}

use Kind::{Error, Integer, Item, List, Number, Object, Session, Text};

const EVENT: Required = ("event_id", Text);
const ITEM_ID: Required = ("item_id", Text);
const RESPONSE_ID: Required = ("response_id", Text);
const CONTENT_INDEX: Required = ("content_index", Integer);
const OUTPUT_INDEX: Required = ("output_index", Integer);
const DELTA: Required = ("delta", Text);

/// The fields that events of this type must have; `None` if the type is not known.
pub(super) fn of_server_event(kind: &str) -> Option<&'static [Required]> {
    Some(match kind {
        "conversation.created" => &[EVENT, ("conversation", Object)],
        "conversation.item.created"
        | "conversation.item.retrieved"
        | "conversation.item.added"
        | "conversation.item.done" => &[EVENT, ("item", Item)],
        "conversation.item.deleted"
        | "conversation.item.input_audio_transcription.delta"
        | "input_audio_buffer.committed"
        | "mcp_list_tools.in_progress"
        | "mcp_list_tools.completed"
        | "mcp_list_tools.failed" => &[EVENT, ITEM_ID],
        "conversation.item.input_audio_transcription.completed" => &[
            EVENT,
            ITEM_ID,
            CONTENT_INDEX,
            ("transcript", Text),
            ("usage", Object),
        ],
        "conversation.item.input_audio_transcription.failed" => {
            &[EVENT, ITEM_ID, CONTENT_INDEX, ("error", Object)]
        }
        "conversation.item.input_audio_transcription.segment" => &[
            EVENT,
            ITEM_ID,
            CONTENT_INDEX,
            ("id", Text),
            ("start", Number),
            ("end", Number),
            ("speaker", Text),
            ("text", Text),
        ],
        "conversation.item.truncated" => {
            &[EVENT, ITEM_ID, CONTENT_INDEX, ("audio_end_ms", Integer)]
        }
        "error" => &[EVENT, ("error", Error)],
        "input_audio_buffer.cleared" => &[EVENT],
        "input_audio_buffer.dtmf_event_received" => &[("event", Text), ("received_at", Integer)],
        "input_audio_buffer.speech_started" => &[EVENT, ITEM_ID, ("audio_start_ms", Integer)],
        "input_audio_buffer.speech_stopped" => &[EVENT, ITEM_ID, ("audio_end_ms", Integer)],
        "input_audio_buffer.timeout_triggered" => &[
            EVENT,
            ITEM_ID,
            ("audio_start_ms", Integer),
            ("audio_end_ms", Integer),
        ],
        "rate_limits.updated" => &[EVENT, ("rate_limits", List)],
        "response.output_audio.delta"
        | "response.output_audio_transcript.delta"
        | "response.output_text.delta" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            CONTENT_INDEX,
            OUTPUT_INDEX,
            DELTA,
        ],
        "response.output_audio.done" => &[EVENT, ITEM_ID, RESPONSE_ID, CONTENT_INDEX, OUTPUT_INDEX],
        "response.output_audio_transcript.done" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            CONTENT_INDEX,
            OUTPUT_INDEX,
            ("transcript", Text),
        ],
        "response.output_text.done" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            CONTENT_INDEX,
            OUTPUT_INDEX,
            ("text", Text),
        ],
        "response.content_part.added" | "response.content_part.done" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            CONTENT_INDEX,
            OUTPUT_INDEX,
            ("part", Object),
        ],
        "response.created" | "response.done" => &[EVENT, ("response", Object)],
        "response.function_call_arguments.delta" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            OUTPUT_INDEX,
            ("call_id", Text),
            DELTA,
        ],
        "response.function_call_arguments.done" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            OUTPUT_INDEX,
            ("call_id", Text),
            ("arguments", Text),
            ("name", Text),
        ],
        "response.output_item.added" | "response.output_item.done" => {
            &[EVENT, RESPONSE_ID, OUTPUT_INDEX, ("item", Item)]
        }
        "session.created" | "session.updated" => &[EVENT, ("session", Session)],
        "output_audio_buffer.started"
        | "output_audio_buffer.stopped"
        | "output_audio_buffer.cleared" => &[EVENT, RESPONSE_ID],
        "response.mcp_call_arguments.delta" => &[EVENT, ITEM_ID, RESPONSE_ID, OUTPUT_INDEX, DELTA],
        "response.mcp_call_arguments.done" => &[
            EVENT,
            ITEM_ID,
            RESPONSE_ID,
            OUTPUT_INDEX,
            ("arguments", Text),
        ],
        "response.mcp_call.in_progress"
        | "response.mcp_call.completed"
        | "response.mcp_call.failed" => &[EVENT, ITEM_ID, OUTPUT_INDEX],
        _ => return None,
    })
}

/// Checks that the fields are there and have the right kinds.
pub(super) fn check(fields: &Map<String, Value>, required: &[Required]) -> Result<(), String> {
    for (field, kind) in required {
        let value = fields
            .get(*field)
            .ok_or_else(|| format!("`{field}` is missing"))?;
        if !kind.accepts(value) {
            return Err(format!("`{field}` has the wrong type"));
        }
    }
    Ok(())
}

impl Kind {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Text => value.is_string(),
            Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Number => value.is_number(),
            Object => value.is_object(),
            List => value.is_array(),
            Session => matches!(value["type"].as_str(), Some("realtime" | "transcription")),
            Error => value["message"].is_string() && value["type"].is_string(),
            Item => accepts_item(value),
        }
    }
}

fn accepts_item(item: &Value) -> bool {
    let has_texts = |fields: &[&str]| fields.iter().all(|field| item[*field].is_string());
    match item["type"].as_str() {
        Some("message") => {
            matches!(item["role"].as_str(), Some("system" | "user" | "assistant"))
                && item["content"].is_array()
        }
        Some("function_call") => has_texts(&["name", "arguments"]),
        Some("function_call_output") => has_texts(&["call_id", "output"]),
        Some("mcp_approval_response") => {
            has_texts(&["id", "approval_request_id"]) && item["approve"].is_boolean()
        }
        Some("mcp_list_tools") => item["server_label"].is_string() && item["tools"].is_array(),
        Some("mcp_call" | "mcp_approval_request") => {
            has_texts(&["id", "arguments", "name", "server_label"])
        }
        _ => false,
    }
}
