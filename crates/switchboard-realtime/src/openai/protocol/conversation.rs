//! The conversation as it would be told to a new session after a lost connection.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::items::{RealtimeContent, RealtimeItem, RealtimeRole};
use crate::model::{ImageDetail, RealtimeInputPart, RealtimeUserInput};

/// The items of a conversation, without audio. The oldest are dropped when the limit is reached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Conversation {
    entries: VecDeque<Entry>,
    limit: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    /// The identifier; `None` for a message of the user that the server has not confirmed.
    id: Option<Arc<str>>,
    body: Body,
    /// Set if it was cut to what was heard. It does not grow again.
    is_cut: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Body {
    Message {
        role: RealtimeRole,
        parts: Vec<Part>,
    },
    Call {
        call_id: Arc<str>,
        name: Arc<str>,
        arguments: Arc<str>,
        output: Option<Arc<str>>,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Part {
    Text(String),
    /// The transcript of audio, as far as it is known.
    Audio(String),
    Image {
        image_url: String,
        detail: Option<ImageDetail>,
    },
}

impl Conversation {
    pub(super) fn new(history: &[RealtimeItem], limit: usize) -> Self {
        let mut conversation = Self {
            entries: VecDeque::new(),
            limit,
        };
        for item in history {
            conversation.update(item, None);
        }
        conversation
    }

    /// Adds an item, or replaces the one with its identifier. Audio whose transcript is not known keeps the
    /// one that is.
    pub(super) fn update(&mut self, item: &RealtimeItem, previous: Option<&str>) {
        let id = item.item_id();
        let body = match item {
            RealtimeItem::Message(message) => {
                let mut parts: Vec<Part> = message.content.iter().map(Part::of).collect();
                if let Some(Entry {
                    body: Body::Message { parts: known, .. },
                    ..
                }) = self.find(id)
                {
                    keep_transcripts(&mut parts, known);
                }
                let role = message.role;
                Body::Message { role, parts }
            }
            RealtimeItem::ToolCall(call) => Body::Call {
                call_id: call.call_id.clone().unwrap_or_default(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                output: call.output.clone(),
            },
        };
        if let Some(known) = self.find(id) {
            if !known.is_cut || body.text_length() < known.body.text_length() {
                known.body = body;
            }
            return;
        }
        if let Some(unconfirmed) = self.unconfirmed_like(&body) {
            unconfirmed.id = Some(id.clone());
            unconfirmed.body = body;
            return;
        }
        let entry = Entry {
            id: Some(id.clone()),
            body,
            is_cut: false,
        };
        let after = previous.and_then(|previous| {
            let is_previous = |entry: &Entry| entry.id.as_deref() == Some(previous);
            self.entries.iter().rposition(is_previous)
        });
        match after {
            Some(position) => self.entries.insert(position + 1, entry),
            None => self.entries.push_back(entry),
        }
        self.drop_oldest();
    }

    /// Adds a message that the user has sent.
    pub(super) fn add_input(&mut self, input: &RealtimeUserInput) {
        let parts = match input {
            RealtimeUserInput::Text(text) => vec![Part::Text(text.clone())],
            RealtimeUserInput::Message(parts) => parts.iter().map(Part::of_input).collect(),
        };
        let role = RealtimeRole::User;
        self.entries.push_back(Entry {
            id: None,
            body: Body::Message { role, parts },
            is_cut: false,
        });
        self.drop_oldest();
    }

    /// Notes the output of a call.
    pub(super) fn answer(&mut self, id: &str, output: &Arc<str>) {
        let calls = self.entries.iter_mut().rev();
        for entry in calls {
            if let Body::Call {
                call_id,
                output: known,
                ..
            } = &mut entry.body
                && **call_id == *id
            {
                *known = Some(output.clone());
                return;
            }
        }
    }

    /// Returns `true` if there is a call with this identifier.
    pub(super) fn has_call(&self, id: &str) -> bool {
        let is_it =
            |entry: &Entry| matches!(&entry.body, Body::Call { call_id, .. } if **call_id == *id);
        self.entries.iter().rev().any(is_it)
    }

    /// Returns `true` if a call waits for its output.
    pub(super) fn has_open_calls(&self) -> bool {
        let is_open = |entry: &Entry| matches!(entry.body, Body::Call { output: None, .. });
        self.entries.iter().any(is_open)
    }

    pub(super) fn delete(&mut self, id: &str) {
        self.entries.retain(|entry| entry.id.as_deref() != Some(id));
    }

    /// Adds to the transcript or the text of a message of the model.
    pub(super) fn add_text(&mut self, id: &Arc<str>, text: &str) {
        if self.find(id).is_none() {
            let role = RealtimeRole::Assistant;
            self.entries.push_back(Entry {
                id: Some(id.clone()),
                body: Body::Message {
                    role,
                    parts: Vec::new(),
                },
                is_cut: false,
            });
            self.drop_oldest();
        }
        let Some(Entry {
            body: Body::Message { parts, .. },
            is_cut: false,
            ..
        }) = self.find(id)
        else {
            return;
        };
        match parts.last_mut() {
            Some(Part::Text(known) | Part::Audio(known)) => known.push_str(text),
            _ => parts.push(Part::Audio(text.to_owned())),
        }
    }

    /// Sets the transcript of a message of the user.
    pub(super) fn set_transcript(&mut self, id: &Arc<str>, transcript: &str) {
        match self.find(id) {
            Some(Entry {
                body: Body::Message { parts, .. },
                ..
            }) => {
                *parts = vec![Part::Audio(transcript.to_owned())];
            }
            Some(_) => {}
            None => {
                let parts = vec![Part::Audio(transcript.to_owned())];
                let role = RealtimeRole::User;
                self.entries.push_back(Entry {
                    id: Some(id.clone()),
                    body: Body::Message { role, parts },
                    is_cut: false,
                });
                self.drop_oldest();
            }
        }
    }

    /// Cuts the transcript of a message to the share of its audio that was heard.
    pub(super) fn truncate(&mut self, id: &Arc<str>, heard_ms: f64, length_ms: f64) {
        let Some(Entry {
            body: Body::Message { parts, .. },
            is_cut,
            ..
        }) = self.find(id)
        else {
            return;
        };
        *is_cut = true;
        let share = if length_ms > 0.0 {
            (heard_ms / length_ms).clamp(0.0, 1.0)
        } else {
            1.0
        };
        for part in parts {
            if let Part::Audio(transcript) = part {
                let chars = (transcript.chars().count() as f64 * share).ceil() as usize;
                let end = transcript.char_indices().nth(chars).map(|(end, _)| end);
                transcript.truncate(end.unwrap_or(transcript.len()));
            }
        }
    }

    /// The items as a new session is told them, with the identifiers that it will report again.
    pub(super) fn replay(&self) -> (Vec<Value>, Vec<Arc<str>>) {
        let mut items = Vec::new();
        let mut ids = Vec::new();
        for entry in &self.entries {
            let Some((item, output)) = entry.replay() else {
                continue;
            };
            items.push(item);
            items.extend(output);
            ids.extend(entry.id.clone());
        }
        (items, ids)
    }

    fn find(&mut self, id: &str) -> Option<&mut Entry> {
        let mut entries = self.entries.iter_mut().rev();
        entries.find(|entry| entry.id.as_deref() == Some(id))
    }

    /// The oldest message of the user that is not confirmed, if the item may be it: speech is never sent
    /// as a message.
    fn unconfirmed_like(&mut self, body: &Body) -> Option<&mut Entry> {
        let Body::Message {
            role: RealtimeRole::User,
            parts,
        } = body
        else {
            return None;
        };
        if parts.iter().any(|part| matches!(part, Part::Audio(_))) {
            return None;
        }
        self.entries.iter_mut().find(|entry| entry.id.is_none())
    }

    fn drop_oldest(&mut self) {
        while self.entries.len() > self.limit {
            self.entries.pop_front();
        }
    }
}

impl Body {
    /// The bytes of a message's text and transcripts.
    fn text_length(&self) -> usize {
        let Self::Message { parts, .. } = self else {
            return 0;
        };
        let lengths = parts.iter().map(|part| match part {
            Part::Text(text) | Part::Audio(text) => text.len(),
            Part::Image { .. } => 0,
        });
        lengths.sum()
    }
}

impl Entry {
    /// The item, and the output of a call that has one. `None` if nothing of a message is known.
    fn replay(&self) -> Option<(Value, Option<Value>)> {
        let mut output_item = None;
        let mut item = match &self.body {
            Body::Message { role, parts } => {
                let content: Vec<Value> =
                    parts.iter().filter_map(|part| part.replay(*role)).collect();
                if content.is_empty() {
                    return None;
                }
                json!({"type": "message", "role": role, "content": content})
            }
            Body::Call {
                call_id,
                name,
                arguments,
                output,
            } => {
                if let Some(output) = output {
                    output_item = Some(json!({
                        "type": "function_call_output", "call_id": call_id, "output": output,
                    }));
                }
                json!({
                    "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments,
                })
            }
        };
        if let (Some(id), Some(item)) = (&self.id, item.as_object_mut())
            && !id.is_empty()
        {
            item.insert("id".to_owned(), (**id).into());
        }
        Some((item, output_item))
    }
}

impl Part {
    fn of(content: &RealtimeContent) -> Self {
        match content {
            RealtimeContent::InputText { text } | RealtimeContent::Text { text } => {
                Self::Text(text.clone().unwrap_or_default())
            }
            RealtimeContent::InputAudio { transcript, .. }
            | RealtimeContent::Audio { transcript, .. } => {
                Self::Audio(transcript.clone().unwrap_or_default())
            }
            RealtimeContent::InputImage { image_url, detail } => Self::Image {
                image_url: image_url.clone().unwrap_or_default(),
                detail: match detail.as_deref() {
                    Some("auto") => Some(ImageDetail::Auto),
                    Some("low") => Some(ImageDetail::Low),
                    Some("high") => Some(ImageDetail::High),
                    _ => None,
                },
            },
        }
    }

    fn of_input(part: &RealtimeInputPart) -> Self {
        match part {
            RealtimeInputPart::Text { text } => Self::Text(text.clone()),
            RealtimeInputPart::Image { image_url, detail } => Self::Image {
                image_url: image_url.clone(),
                detail: *detail,
            },
        }
    }

    fn replay(&self, role: RealtimeRole) -> Option<Value> {
        match self {
            Self::Text(text) | Self::Audio(text) if text.is_empty() => None,
            Self::Text(text) | Self::Audio(text) => {
                let kind = match role {
                    RealtimeRole::Assistant => "output_text",
                    RealtimeRole::User | RealtimeRole::System => "input_text",
                };
                Some(json!({"type": kind, "text": text}))
            }
            Self::Image { image_url, .. } if image_url.is_empty() => None,
            Self::Image { image_url, detail } => {
                let mut part = json!({"type": "input_image", "image_url": image_url});
                if let (Some(detail), Some(part)) = (detail, part.as_object_mut()) {
                    part.insert("detail".to_owned(), json!(detail));
                }
                Some(part)
            }
        }
    }
}

/// Keeps the known transcripts of audio that comes without one.
fn keep_transcripts(parts: &mut [Part], known: &[Part]) {
    for (part, known) in parts.iter_mut().zip(known) {
        if let (Part::Audio(transcript), Part::Audio(known)) = (part, known)
            && transcript.is_empty()
        {
            transcript.clone_from(known);
        }
    }
}
