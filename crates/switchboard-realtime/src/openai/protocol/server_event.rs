//! Reading the events of the server.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_core::__private::replace_lone_surrogates;

use super::required_fields;
use crate::items::RealtimeItem;
use crate::model::{
    AudioFormat, AudioPart, RealtimeModelAudio, RealtimeModelDelta, RealtimeModelUsage,
    RealtimeResponseStatus, RealtimeToolCall, RealtimeTurnEnd, ReportedError,
};
use crate::openai::protocol::server_item::{self, ServerItem};

/// An event of the server.
#[derive(Debug)]
pub(super) enum ServerEvent {
    SessionCreated(Option<ServerSession>),
    SessionUpdated(Option<ServerSession>),
    ResponseCreated {
        id: Option<Arc<str>>,
    },
    ResponseDone {
        end: RealtimeTurnEnd,
        usage: Option<Box<RealtimeModelUsage>>,
    },
    Audio(RealtimeModelAudio),
    AudioDone(AudioPart),
    TranscriptDelta(RealtimeModelDelta),
    TextDelta(RealtimeModelDelta),
    /// A tool call that is complete.
    ToolCall(RealtimeToolCall),
    /// A message of a response, begun or done.
    OutputMessage(RealtimeItem),
    /// An item of the conversation.
    Item {
        item: Option<RealtimeItem>,
        previous_item_id: Option<Arc<str>>,
        /// Set for `conversation.item.created`.
        is_created: bool,
    },
    ItemDone(Option<RealtimeItem>),
    ItemDeleted {
        item_id: Arc<str>,
    },
    ItemTruncated {
        part: AudioPart,
        audio_end_ms: u64,
    },
    Transcribed {
        item_id: Arc<str>,
        transcript: String,
    },
    TranscriptionFailed {
        item_id: Arc<str>,
        error: Value,
    },
    SpeechStarted {
        item_id: Arc<str>,
        audio_start_ms: u64,
        /// Not official; some servers tell how much of the answer was heard.
        audio_end_ms: Option<f64>,
    },
    SpeechStopped {
        item_id: Arc<str>,
        audio_end_ms: u64,
    },
    Timeout {
        item_id: Arc<str>,
        audio_start_ms: u64,
        audio_end_ms: u64,
    },
    Error(ReportedError),
    /// An event that is known and changes nothing.
    Ignored,
    /// An event of an unknown type.
    Unknown(Value),
}

/// The session as the server reports it.
#[derive(Debug)]
pub(super) struct ServerSession {
    /// Set if the server cancels the response itself when the user speaks.
    pub(super) interrupts: bool,
    pub(super) output_format: Option<AudioFormat>,
    pub(super) instructions: Option<String>,
}

/// A frame that cannot be read.
#[derive(Debug)]
pub(super) enum FrameError {
    /// It is not JSON.
    NotJson(serde_json::Error),
    /// It is JSON of another shape.
    Shape(String),
}

/// Reads a frame. With `strict`, the official types decide which fields it must have, and an unknown type
/// is an error.
pub(super) fn read(text: &str, strict: bool) -> Result<ServerEvent, FrameError> {
    if let Some(audio) = read_audio(text) {
        return audio.map(ServerEvent::Audio);
    }
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        Err(error) => match replace_lone_surrogates(text) {
            Cow::Owned(replaced) => serde_json::from_str(&replaced).map_err(FrameError::NotJson)?,
            Cow::Borrowed(_) => return Err(FrameError::NotJson(error)),
        },
    };
    let Value::Object(fields) = value else {
        return Err(FrameError::Shape("the event is no object".to_owned()));
    };
    let Some(kind) = fields.get("type").and_then(Value::as_str) else {
        return Err(FrameError::Shape("the event has no type".to_owned()));
    };
    let is_known = required_fields::of_server_event(kind);
    if strict {
        let Some(required) = is_known else {
            return Err(FrameError::Shape(format!(
                "events of the type `{kind}` are not known"
            )));
        };
        let is_loose = kind.starts_with("response.output_item.")
            && fields
                .get("item")
                .is_some_and(|item| item["type"] == "message");
        if !is_loose {
            required_fields::check(&fields, required).map_err(FrameError::Shape)?;
        }
    } else if is_known.is_none() {
        return Ok(ServerEvent::Unknown(Value::Object(fields)));
    }
    Fields(&fields)
        .event(kind, strict)
        .map_err(FrameError::Shape)
}

/// Audio is most of what a server sends: its text is not copied before it is decoded. `None` if the frame
/// is another event.
fn read_audio(text: &str) -> Option<Result<RealtimeModelAudio, FrameError>> {
    #[derive(Deserialize)]
    struct AudioDelta<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        #[expect(dead_code, reason = "the official types ask for it")]
        #[serde(borrow)]
        event_id: Cow<'a, str>,
        #[serde(borrow)]
        delta: Cow<'a, str>,
        item_id: Arc<str>,
        response_id: Arc<str>,
        content_index: u32,
        #[expect(dead_code, reason = "the official types ask for it")]
        output_index: u32,
    }

    const KIND: &str = "response.output_audio.delta";
    let head = &text.as_bytes()[..text.len().min(256)];
    if head.first() != Some(&b'{')
        || !head
            .windows(KIND.len())
            .any(|window| window == KIND.as_bytes())
    {
        return None;
    }
    let delta: AudioDelta<'_> = serde_json::from_str(text).ok()?;
    if delta.kind != KIND {
        return None;
    }
    let audio = decode(&delta.delta).map(|data| RealtimeModelAudio {
        data,
        response_id: delta.response_id,
        part: AudioPart::new(delta.item_id, delta.content_index),
    });
    Some(audio.map_err(FrameError::Shape))
}

/// Decodes audio; padding may be missing.
fn decode(text: &str) -> Result<Bytes, String> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, CONFIG);
    let bytes = ENGINE.decode(text);
    bytes
        .map(Bytes::from)
        .map_err(|error| format!("the audio is not base64: {error}"))
}

/// The fields of an event.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn event(&self, kind: &str, strict: bool) -> Result<ServerEvent, String> {
        let event = match kind {
            "session.created" => ServerEvent::SessionCreated(self.session()?),
            "session.updated" => ServerEvent::SessionUpdated(self.session()?),
            "response.created" => ServerEvent::ResponseCreated {
                id: self
                    .response()?
                    .get("id")
                    .and_then(Value::as_str)
                    .map(Into::into),
            },
            "response.done" => self.response_done()?,
            "response.output_audio.delta" => ServerEvent::Audio(RealtimeModelAudio {
                data: decode(self.text("delta")?)?,
                response_id: self.text("response_id")?.into(),
                part: self.part()?,
            }),
            "response.output_audio.done" => ServerEvent::AudioDone(self.part()?),
            "response.output_audio_transcript.delta" => ServerEvent::TranscriptDelta(self.delta()?),
            "response.output_text.delta" => ServerEvent::TextDelta(self.delta()?),
            "response.output_item.added" => self.output_item(strict, false)?,
            "response.output_item.done" => self.output_item(strict, true)?,
            "conversation.item.added"
            | "conversation.item.created"
            | "conversation.item.retrieved" => ServerEvent::Item {
                item: self.conversation_item(strict)?,
                previous_item_id: self.previous_item_id(strict),
                is_created: kind == "conversation.item.created",
            },
            "conversation.item.done" => ServerEvent::ItemDone(self.conversation_item(false)?),
            "conversation.item.deleted" => ServerEvent::ItemDeleted {
                item_id: self.text("item_id")?.into(),
            },
            "conversation.item.truncated" => ServerEvent::ItemTruncated {
                part: self.part()?,
                audio_end_ms: self.ms("audio_end_ms")?,
            },
            "conversation.item.input_audio_transcription.completed" => ServerEvent::Transcribed {
                item_id: self.text("item_id")?.into(),
                transcript: self.text("transcript")?.to_owned(),
            },
            "conversation.item.input_audio_transcription.failed" => {
                ServerEvent::TranscriptionFailed {
                    item_id: self.text("item_id")?.into(),
                    error: self.0.get("error").cloned().unwrap_or_default(),
                }
            }
            "input_audio_buffer.speech_started" => ServerEvent::SpeechStarted {
                item_id: self.optional_text("item_id").unwrap_or_default().into(),
                audio_start_ms: self.ms("audio_start_ms").unwrap_or_default(),
                audio_end_ms: self.0.get("audio_end_ms").and_then(Value::as_f64),
            },
            "input_audio_buffer.speech_stopped" => ServerEvent::SpeechStopped {
                item_id: self.optional_text("item_id").unwrap_or_default().into(),
                audio_end_ms: self.ms("audio_end_ms").unwrap_or_default(),
            },
            "input_audio_buffer.timeout_triggered" => ServerEvent::Timeout {
                item_id: self.text("item_id")?.into(),
                audio_start_ms: self.ms("audio_start_ms")?,
                audio_end_ms: self.ms("audio_end_ms")?,
            },
            "error" => ServerEvent::Error(self.error()?),
            _ => ServerEvent::Ignored,
        };
        Ok(event)
    }

    fn session(&self) -> Result<Option<ServerSession>, String> {
        let session = self.object("session")?;
        if session
            .get("type")
            .is_some_and(|kind| kind == "transcription")
        {
            return Ok(None);
        }
        let audio = session.get("audio").unwrap_or(&Value::Null);
        let format = audio["output"]["format"]["type"].as_str();
        Ok(Some(ServerSession {
            interrupts: audio["input"]["turn_detection"]["interrupt_response"] == true,
            output_format: match format {
                Some("audio/pcm") => Some(AudioFormat::Pcm16),
                Some("audio/pcmu") => Some(AudioFormat::G711Ulaw),
                Some("audio/pcma") => Some(AudioFormat::G711Alaw),
                _ => None,
            },
            instructions: session
                .get("instructions")
                .and_then(Value::as_str)
                .map(Into::into),
        }))
    }

    fn response(&self) -> Result<&Map<String, Value>, String> {
        self.object("response")
    }

    fn response_done(&self) -> Result<ServerEvent, String> {
        let response = self.response()?;
        let status = match response.get("status").and_then(Value::as_str) {
            Some("cancelled") => RealtimeResponseStatus::Cancelled,
            Some("failed") => RealtimeResponseStatus::Failed,
            Some("incomplete") => RealtimeResponseStatus::Incomplete,
            _ => RealtimeResponseStatus::Completed,
        };
        let details = response
            .get("status_details")
            .filter(|details| !details.is_null());
        let usage = response.get("usage").and_then(Value::as_object);
        Ok(ServerEvent::ResponseDone {
            end: RealtimeTurnEnd {
                response_id: response.get("id").and_then(Value::as_str).map(Into::into),
                status,
                details: details.cloned().map(Box::new),
            },
            usage: usage.map(|usage| Box::new(server_item::usage(usage))),
        })
    }

    fn output_item(&self, strict: bool, is_done: bool) -> Result<ServerEvent, String> {
        let item = self.object("item")?;
        Ok(match server_item::read_output(item, strict, is_done)? {
            ServerItem::Message(message) => ServerEvent::OutputMessage(message.into()),
            ServerItem::ToolCall(mut call) => {
                call.response_id = self.optional_text("response_id").map(Into::into);
                ServerEvent::ToolCall(call)
            }
            ServerItem::Other => ServerEvent::Ignored,
        })
    }

    fn conversation_item(&self, strict: bool) -> Result<Option<RealtimeItem>, String> {
        let item = self.object("item")?;
        let message = server_item::read_message(item, strict)?;
        Ok(message.map(Into::into))
    }

    /// The predecessor of an item. The reference reads null as an empty identifier.
    fn previous_item_id(&self, strict: bool) -> Option<Arc<str>> {
        match self.0.get("previous_item_id")? {
            Value::Null => strict.then(Arc::default),
            id => id.as_str().map(Into::into),
        }
    }

    fn delta(&self) -> Result<RealtimeModelDelta, String> {
        Ok(RealtimeModelDelta {
            item_id: self.text("item_id")?.into(),
            delta: self.text("delta")?.to_owned(),
            response_id: self.text("response_id")?.into(),
        })
    }

    fn part(&self) -> Result<AudioPart, String> {
        let index = self.0.get("content_index").and_then(Value::as_u64);
        let index = index.and_then(|index| u32::try_from(index).ok());
        let index = index.ok_or("`content_index` is no number")?;
        Ok(AudioPart::new(self.text("item_id")?, index))
    }

    fn error(&self) -> Result<ReportedError, String> {
        let error = self.object("error")?;
        let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_owned);
        Ok(ReportedError {
            message: text("message").ok_or("`error.message` is no text")?,
            kind: text("type").unwrap_or_default(),
            code: text("code"),
            event_id: text("event_id"),
            param: text("param"),
        })
    }

    fn object(&self, field: &str) -> Result<&Map<String, Value>, String> {
        let object = self.0.get(field).and_then(Value::as_object);
        object.ok_or_else(|| format!("`{field}` is no object"))
    }

    fn text(&self, field: &str) -> Result<&str, String> {
        self.optional_text(field)
            .ok_or_else(|| format!("`{field}` is no text"))
    }

    fn optional_text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }

    /// A time in milliseconds; negative ones are 0.
    fn ms(&self, field: &str) -> Result<u64, String> {
        let ms = self.0.get(field).and_then(Value::as_f64);
        ms.map(|ms| ms as u64)
            .ok_or_else(|| format!("`{field}` is no number"))
    }
}
