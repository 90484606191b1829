//! Messages of clients: input for a team, or the answer to what a task waits for.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::approval::{Decision, Interruption, InterruptionKind};
use switchboard_core::people::PersonAnswer;
use switchboard_core::{Input, Item};

use super::error::{A2aError, A2aErrorKind};
use crate::api::{AnswerBody, DecisionsBody};

/// The media types of parts, as the agent card has them.
pub(super) const INPUT_MODES: [&str; 8] = [
    "text/plain",
    "text/markdown",
    "application/json",
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
];

/// The most parts of a message.
const MAX_PARTS: usize = 256;

/// A message of a client.
#[derive(Debug)]
pub(super) struct ClientMessage {
    pub(super) context: Option<String>,
    pub(super) task: Option<String>,
    parts: Vec<Part>,
    /// The message as it came.
    raw: Value,
}

/// The fields of a message that the service reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageFields {
    #[serde(default, alias = "message_id")]
    message_id: String,
    #[serde(default, alias = "context_id")]
    context_id: Option<String>,
    #[serde(default, alias = "task_id")]
    task_id: Option<String>,
    #[serde(default)]
    role: String,
    #[serde(default)]
    parts: Vec<PartFields>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartFields {
    text: Option<String>,
    raw: Option<String>,
    url: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
    filename: Option<String>,
    #[serde(alias = "media_type")]
    media_type: Option<String>,
}

/// Tells `null` from a missing field: null is data as well.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Debug)]
enum Part {
    Text(String),
    Data(Value),
    File {
        media_type: String,
        filename: Option<String>,
        source: FileSource,
    },
}

#[derive(Debug)]
enum FileSource {
    /// In base64.
    Bytes(String),
    Url(String),
}

impl ClientMessage {
    /// Reads the message of a request.
    pub(super) fn parse(raw: Value) -> Result<Self, A2aError> {
        let fields = MessageFields::deserialize(&raw).map_err(|error| {
            A2aError::invalid("message", format!("this is no message: {error}"))
        })?;
        if fields.message_id.is_empty() {
            let message = "a message has an identifier, messageId";
            return Err(A2aError::invalid("message.messageId", message));
        }
        if fields.role != "ROLE_USER" {
            let message = "the role of a message to an agent is ROLE_USER";
            return Err(A2aError::invalid("message.role", message));
        }
        if fields.parts.is_empty() || fields.parts.len() > MAX_PARTS {
            let message = "a message has at least one part, and at most 256";
            return Err(A2aError::invalid("message.parts", message));
        }
        let parts: Vec<Part> = fields
            .parts
            .into_iter()
            .map(read_part)
            .collect::<Result<_, _>>()?;
        let is_given = |id: &String| !id.is_empty();
        Ok(Self {
            context: fields.context_id.filter(is_given),
            task: fields.task_id.filter(is_given),
            parts,
            raw,
        })
    }

    /// The message for the history of a task.
    pub(super) fn for_history(&self, context: &str, task: &str) -> Value {
        let mut message = self.raw.clone();
        message["contextId"] = context.into();
        message["taskId"] = task.into();
        if let Value::Object(fields) = &mut message {
            fields.remove("context_id");
            fields.remove("task_id");
        }
        message
    }

    /// The message as input of a run.
    pub(super) fn input(&self) -> Result<Input, A2aError> {
        if let [Part::Text(text)] = &*self.parts {
            return Ok(text.as_str().into());
        }
        let content: Vec<Value> = self.parts.iter().map(Part::content).collect();
        let item = json!({"type": "message", "role": "user", "content": content});
        let item = Item::from_value(&item)
            .map_err(|error| A2aError::invalid("message.parts", error.to_string()))?;
        Ok(vec![item].into())
    }

    /// The text of the message.
    fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        texts.join("\n")
    }

    /// The first part that is data.
    fn data(&self) -> Option<&Value> {
        self.parts.iter().find_map(|part| match part {
            Part::Data(data) => Some(data),
            _ => None,
        })
    }

    /// The answer to what a task waits for; `None` if the message is none.
    pub(super) fn reply(&self, waiting: &[Interruption]) -> Result<Option<Reply>, A2aError> {
        let is_person =
            |waiting: &Interruption| matches!(waiting.kind, InterruptionKind::Person { .. });
        let calls: Vec<&Interruption> = waiting.iter().filter(|call| !is_person(call)).collect();
        if calls.is_empty() {
            return self.person_reply().map(Some);
        }
        if let Some(data) = self.data() {
            let body = DecisionsBody::deserialize(data)
                .map_err(|error| A2aError::invalid("message.parts", error.to_string()))?;
            let decisions = body.decisions.iter();
            let decisions =
                decisions.map(|decision| (decision.call_id.as_str().into(), decision.decision()));
            return Ok(Some(Reply::Decisions(decisions.collect())));
        }
        let Some(decision) = decision_of(&self.text()) else {
            return Ok(None);
        };
        let decided = calls
            .iter()
            .map(|call| (call.call_id.clone(), decision.clone()));
        Ok(Some(Reply::Decisions(decided.collect())))
    }

    fn person_reply(&self) -> Result<Reply, A2aError> {
        if let Some(data) = self.data() {
            let body = AnswerBody::deserialize(data)
                .map_err(|error| A2aError::invalid("message.parts", error.to_string()))?;
            return Ok(Reply::Person(body.person.clone(), body.answer()?));
        }
        let text = self.text();
        if text.trim().is_empty() {
            let message = "a person answers with text, or with data that has text or hand_to";
            return Err(A2aError::invalid("message.parts", message));
        }
        Ok(Reply::Person(None, PersonAnswer::reply(text.as_str())))
    }
}

/// The answer to what a task waits for.
pub(super) enum Reply {
    Decisions(Vec<(Arc<str>, Decision)>),
    Person(Option<String>, PersonAnswer),
}

/// The decision that a text is. A text that is anything but one clear word approves nothing.
fn decision_of(text: &str) -> Option<Decision> {
    let text = text.trim();
    let word = text.trim_end_matches(['.', '!', '。', '！']).to_lowercase();
    match &*word {
        "approve" | "approved" | "yes" | "ok" | "okay" | "confirm" | "同意" | "批准" | "是" => {
            return Some(Decision::approve());
        }
        "reject" | "rejected" | "no" | "deny" | "decline" | "cancel" | "拒绝" | "不同意" | "否" =>
        {
            return Some(Decision::reject());
        }
        _ => {}
    }
    let (word, reason) = text.split_once([':', ',', '：', '，'])?;
    let word = word.trim().to_lowercase();
    let is_rejection = matches!(
        &*word,
        "reject" | "rejected" | "no" | "deny" | "拒绝" | "不"
    );
    is_rejection.then(|| Decision::reject().message(reason.trim()))
}

fn read_part(part: PartFields) -> Result<Part, A2aError> {
    let invalid = |message: &str| A2aError::invalid("message.parts", message);
    let media_type = part.media_type.filter(|given| !given.is_empty());
    if let Some(media_type) = &media_type {
        let plain = media_type.split(';').next().unwrap_or_default().trim();
        if !INPUT_MODES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(plain))
        {
            let message = format!(
                "parts of the type {media_type:?} are not understood, only {}",
                INPUT_MODES.join(", ")
            );
            return Err(A2aError::new(
                A2aErrorKind::ContentTypeNotSupported,
                message,
            ));
        }
    }
    let file = |source| {
        let media_type = media_type.clone().ok_or_else(|| {
            let message = "a part with raw or url needs a mediaType";
            A2aError::new(A2aErrorKind::ContentTypeNotSupported, message)
        })?;
        Ok(Part::File {
            media_type,
            filename: part.filename.clone(),
            source,
        })
    };
    match (part.text, part.raw, part.url, part.data) {
        (Some(text), None, None, None) => Ok(Part::Text(text)),
        (None, Some(raw), None, None) => {
            let is_base64 =
                |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
            if !raw.bytes().all(is_base64) {
                return Err(invalid("raw is not base64"));
            }
            file(FileSource::Bytes(raw))
        }
        (None, None, Some(url), None) => {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err(invalid("url begins with https:// or http://"));
            }
            file(FileSource::Url(url))
        }
        (None, None, None, Some(data)) => Ok(Part::Data(data)),
        _ => Err(invalid("a part has one of text, raw, url and data")),
    }
}

impl Part {
    /// The part in the form of a conversation's items.
    fn content(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "input_text", "text": text}),
            Self::Data(data) => json!({"type": "input_text", "text": data.to_string()}),
            Self::File {
                media_type,
                filename,
                source,
            } => {
                let is_image = media_type.starts_with("image/");
                let address = match source {
                    FileSource::Url(url) => url.clone(),
                    FileSource::Bytes(base64) => format!("data:{media_type};base64,{base64}"),
                };
                if is_image {
                    return json!({"type": "input_image", "image_url": address});
                }
                let field = match source {
                    FileSource::Url(_) => "file_url",
                    FileSource::Bytes(_) => "file_data",
                };
                let mut content = json!({"type": "input_file"});
                content[field] = address.into();
                if let Some(filename) = filename {
                    content["filename"] = filename.as_str().into();
                }
                content
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn only_a_clear_word_approves() {
        for text in ["approve", " Yes! ", "OK.", "同意"] {
            assert_eq!(decision_of(text), Some(Decision::approve()), "{text}");
        }
        for text in ["reject", "No.", "cancel", "拒绝"] {
            assert_eq!(decision_of(text), Some(Decision::reject()), "{text}");
        }
        let with_reason = Decision::reject().message("it is too much");
        assert_eq!(decision_of("no: it is too much"), Some(with_reason));
        for text in [
            "",
            "what is it for?",
            "yes, but only 3",
            "approve: refund 5000",
            "do not approve",
            "I said yes to the other one",
        ] {
            assert_eq!(decision_of(text), None, "{text}");
        }
    }

    #[test]
    fn parts_become_the_parts_of_a_message() {
        let message = ClientMessage::parse(json!({
            "messageId": "m", "role": "ROLE_USER", "parts": [
                {"text": "look"},
                {"data": {"a": 1}},
                {"raw": "AAAA", "mediaType": "image/png"},
                {"url": "https://files.example/a.pdf", "mediaType": "application/pdf", "filename": "a.pdf"},
            ],
        }));
        let input = message.unwrap().input().unwrap();
        let items = input.items();
        let item: Value = serde_json::from_str(items[0].as_json()).unwrap();
        assert_eq!(
            item,
            json!({"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_text", "text": "{\"a\":1}"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_file", "file_url": "https://files.example/a.pdf", "filename": "a.pdf"},
            ]})
        );
    }
}
