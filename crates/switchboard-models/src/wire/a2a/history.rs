//! The conversation for a remote agent: the messages that it has not seen, and the marks of those it has.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_core::items::ItemKind;
use switchboard_core::{Item, ModelRequest};

use crate::wire::lenient_json::{field, value};
use crate::wire::{PLACEHOLDER_ID, has_role};

/// The place of a conversation at a remote agent, which its answers carry in their `provider_data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The address of the agent's card.
    pub(super) agent: String,
    pub(super) context_id: Option<String>,
    pub(super) task_id: Option<String>,
    /// Set while the task waits for the next message.
    #[serde(default)]
    pub(super) is_open: bool,
}

/// The part of a conversation that is new to a remote agent.
#[derive(Debug)]
pub(super) struct News {
    /// The place of its last answer.
    pub(super) place: Option<Place>,
    /// The parts of the message.
    pub(super) parts: Vec<Value>,
    /// The hash of the user's last message, if that came after the agent's last answer and nothing has followed it.
    pub(super) direct_message: Option<u64>,
}

impl News {
    /// Finds what the agent with this card has not seen.
    pub(super) fn find(request: &ModelRequest, card: &str) -> Self {
        let items: Vec<&Item> = request.input.iter().collect();
        let last = items.iter().enumerate().rev();
        let mut last = last.filter_map(|(at, item)| Some((at, place_of(item)?)));
        let last = last.find(|(_, place)| place.agent == card);
        let (start, place) = match last {
            Some((at, place)) => (at + 1, Some(place)),
            None => (0, None),
        };
        let new = &items[start..];
        Self {
            place,
            parts: parts(new, request.agent.as_deref()),
            direct_message: direct_message(new),
        }
    }
}

fn place_of(item: &Item) -> Option<Place> {
    let data = field(item.provider_data()?, "a2a")?;
    serde_json::from_str(data).ok()
}

/// The answer of a remote agent as an item.
pub(super) fn answer_item(text: &str, place: &Place) -> Item {
    Item::builder()
        .string("type", "message")
        .string("id", PLACEHOLDER_ID)
        .string("role", "assistant")
        .string("status", "completed")
        .output_text(text)
        .value("provider_data", &json!({"a2a": place}))
        .build()
}

/// The hash of the last item, if it is a message of the user.
fn direct_message(new: &[&Item]) -> Option<u64> {
    use std::hash::BuildHasher as _;
    let last = new.last().filter(|item| has_role(item, "user"))?;
    Some(rustc_hash::FxBuildHasher.hash_one((last.as_json(), new.len())))
}

/// The parts of a message with these items: what was said before as one text, then the last words of the user, then the
/// payload of the handoff.
fn parts(new: &[&Item], agent: Option<&str>) -> Vec<Value> {
    let is_said = |item: &&&Item| {
        item.kind() == ItemKind::Message && (has_role(item, "user") || has_role(item, "assistant"))
    };
    let said: Vec<&Item> = new.iter().filter(is_said).copied().collect();
    // The user's last messages, without what agents said between them.
    let others = said.iter().rposition(|item| !has_role(item, "user"));
    let last_words = match others {
        None => 0,
        Some(at) if at + 1 < said.len() => at + 1,
        // An agent had the last word: the user's is before it.
        Some(_) => {
            let user = said.iter().rposition(|item| has_role(item, "user"));
            user.unwrap_or(said.len())
        }
    };
    let (before, last) = said.split_at(last_words);
    let mut parts = Vec::new();
    let mut transcript = String::new();
    let after = last.iter().filter(|item| !has_role(item, "user"));
    for item in before.iter().chain(after) {
        let text = item.text().unwrap_or_default();
        if text.is_empty() {
            continue;
        }
        let speaker = if has_role(item, "user") {
            "User"
        } else {
            "Assistant"
        };
        transcript.push_str(&format!("\n{speaker}: {text}"));
    }
    if !transcript.is_empty() {
        parts.push(json!({"text": format!("The conversation so far:{transcript}")}));
    }
    for item in last.iter().filter(|item| has_role(item, "user")) {
        add_content(item, &mut parts);
    }
    parts.extend(handoff_payload(new, agent).map(|data| json!({"data": data})));
    parts
}

/// Adds the texts, images and files of a message.
fn add_content(item: &Item, parts: &mut Vec<Value>) {
    let content = item.field("content").and_then(value);
    let Some(Value::Array(content)) = content else {
        let text = item.text().unwrap_or_default();
        if !text.is_empty() {
            parts.push(json!({"text": text}));
        }
        return;
    };
    for part in content {
        let text = part["text"].as_str();
        let file = ["image_url", "file_url", "file_data"]
            .iter()
            .find_map(|field| part[*field].as_str());
        match (text, file) {
            (Some(text), _) => parts.push(json!({"text": text})),
            (None, Some(address)) => parts.extend(file_part(address, &part)),
            (None, None) => {}
        }
    }
}

/// A file: bytes of a data address, or its address.
fn file_part(address: &str, part: &Value) -> Option<Value> {
    let mut file = match address.strip_prefix("data:") {
        Some(data) => {
            let (media_type, base64) = data.split_once(";base64,")?;
            json!({"raw": base64, "mediaType": media_type})
        }
        None if address.starts_with("https://") || address.starts_with("http://") => {
            let media_type = media_type_of(address, part);
            json!({"url": address, "mediaType": media_type})
        }
        None => return None,
    };
    if let Some(name) = part["filename"].as_str() {
        file["filename"] = name.into();
    }
    Some(file)
}

/// A guess at the media type of an address, by its ending.
fn media_type_of(address: &str, part: &Value) -> &'static str {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit('.').next().unwrap_or_default();
    match &*ending.to_ascii_lowercase() {
        "png" => "image/png",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        _ if part["type"] == "input_image" => "image/jpeg",
        _ => "application/octet-stream",
    }
}

/// The payload of the last handoff to the agent, if it had one.
fn handoff_payload(new: &[&Item], agent: Option<&str>) -> Option<Value> {
    let agent = agent?;
    let handed = new.iter().rev().find(|item| {
        let output = item.output_text().and_then(|output| value(&output));
        output.is_some_and(|output| output["assistant"] == agent)
    })?;
    let call_id = handed.call_id()?;
    let is_call = |item: &&&Item| {
        item.kind() == ItemKind::FunctionCall && item.call_id().as_ref() == Some(&call_id)
    };
    let arguments = new.iter().find(is_call)?.arguments()?;
    match value(&arguments) {
        Some(Value::Object(payload)) if !payload.is_empty() => Some(payload.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(items: Vec<Item>) -> ModelRequest {
        let mut request = ModelRequest::new(items);
        request.agent = Some("Travel".into());
        request
    }

    fn handoff(arguments: &str) -> [Item; 2] {
        [
            Item::function_call("c1", "transfer_to_travel", arguments),
            Item::function_call_output("c1", r#"{"assistant": "Travel"}"#),
        ]
    }

    #[test]
    fn the_users_words_are_sent_with_the_payload_of_the_handoff() {
        let [call, output] = handoff(r#"{"city": "Oslo"}"#);
        let items = vec![Item::user("Book a flight"), call, output];
        let news = News::find(&request(items), "card");
        assert_eq!(
            news.parts,
            [
                json!({"text": "Book a flight"}),
                json!({"data": {"city": "Oslo"}})
            ]
        );
        assert_eq!((news.place, news.direct_message), (None, None));
    }

    #[test]
    fn what_was_said_before_is_one_text() {
        let [call, output] = handoff("{}");
        let items = vec![
            Item::user("Hi"),
            Item::assistant("How can I help?"),
            Item::function_call("c0", "lookup", r#"{"secret": 1}"#),
            Item::function_call_output("c0", "hidden"),
            Item::user("Book a flight"),
            call,
            output,
        ];
        let news = News::find(&request(items), "card");
        assert_eq!(
            news.parts,
            [
                json!({"text": "The conversation so far:\nUser: Hi\nAssistant: How can I help?"}),
                json!({"text": "Book a flight"}),
            ]
        );
    }

    #[test]
    fn only_what_follows_the_agents_own_answer_is_sent() {
        let place = Place {
            agent: "card".to_owned(),
            context_id: Some("ctx".to_owned()),
            task_id: Some("task".to_owned()),
            is_open: true,
        };
        let other = Place {
            agent: "another card".to_owned(),
            ..place.clone()
        };
        let items = vec![
            Item::user("Book a flight"),
            answer_item("Where to?", &place),
            answer_item("An answer of another agent.", &other),
            Item::user("Oslo"),
        ];
        let news = News::find(&request(items), "card");
        assert_eq!(news.place, Some(place));
        assert_eq!(
            news.parts,
            [
                json!({"text": "The conversation so far:\nAssistant: An answer of another agent."}),
                json!({"text": "Oslo"}),
            ]
        );
        assert!(news.direct_message.is_some());
    }

    #[test]
    fn images_and_files_are_parts() {
        let item = json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_file", "file_url": "https://f.example/a.pdf?x", "filename": "a.pdf"},
            {"type": "input_image", "file_id": "file_1"},
        ]});
        let items = vec![Item::from_value(&item).unwrap()];
        let news = News::find(&request(items), "card");
        assert_eq!(
            news.parts,
            [
                json!({"text": "look"}),
                json!({"raw": "AAAA", "mediaType": "image/png"}),
                json!({"url": "https://f.example/a.pdf?x", "mediaType": "application/pdf", "filename": "a.pdf"}),
            ]
        );
    }
}
