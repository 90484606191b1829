//! The objects and parameters that clients of the API send. Their schemas are part of its OpenAPI document.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use switchboard_core::approval::Decision;
use switchboard_core::people::PersonAnswer;
use switchboard_core::{Input, Item};

use crate::error::ServiceError;
use crate::realtime::{PlaybackReports, Turns};

/// A message to a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageBody {
    /// The message: text, or messages of the user in the form of OpenAI's Responses.
    pub(super) input: MessageInput,
    /// The team; needed for a new conversation if there are several.
    #[serde(default)]
    pub(super) team: Option<String>,
    /// The agent that a new conversation begins with, instead of the team's first one.
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// Values of the team's context for a new conversation, by path. They are kept with it.
    #[serde(default)]
    pub(super) context: Map<String, Value>,
    /// Answers with the events of the run as they happen, instead of with the run once it has ended.
    #[serde(default)]
    pub(super) stream: bool,
}

/// A message to be sent again, or another one in its place.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResendBody {
    /// The position of the message.
    #[serde(deserialize_with = "position")]
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub(super) position: u64,
    /// The message in its place; without one it is sent again.
    #[serde(default)]
    pub(super) input: Option<MessageInput>,
    /// The identifier of the copy that goes on; made up if it is missing.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200), regex(pattern = CONVERSATION_ID))]
    pub(super) to: Option<String>,
    /// Goes back in the conversation itself, instead of making a copy. What followed stays in its record.
    #[serde(default)]
    pub(super) in_place: bool,
    /// Answers with the events of the run as they happen.
    #[serde(default)]
    pub(super) stream: bool,
}

pub(super) fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = whole_number(deserializer)?;
    number.ok_or_else(|| D::Error::custom("a whole number of at least 0 is expected"))
}

/// The content of a message.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum MessageInput {
    Text(#[schemars(length(min = 1))] String),
    Items(#[schemars(length(min = 1))] Vec<UserMessage>),
}

/// A message of the user.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UserMessage {
    /// `message`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    kind: Option<MessageKind>,
    role: UserRole,
    content: UserContent,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MessageKind {
    Message,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum UserRole {
    User,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum UserContent {
    Text(#[schemars(length(min = 1))] String),
    Parts(#[schemars(length(min = 1))] Vec<ContentPart>),
}

/// A part of a message. Not tagged: a tag could also be the number of the variant.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
enum ContentPart {
    Text {
        #[serde(rename = "type")]
        kind: TextPart,
        text: String,
    },
    Image {
        #[serde(rename = "type")]
        kind: ImagePart,
        image_url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    File {
        #[serde(rename = "type")]
        kind: FilePart,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_url: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TextPart {
    InputText,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ImagePart {
    InputImage,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FilePart {
    InputFile,
}

impl MessageInput {
    pub(super) fn into_input(self) -> Result<Input, ServiceError> {
        let messages = match self {
            Self::Text(text) if text.is_empty() => {
                return Err(ServiceError::invalid("the message is empty"));
            }
            Self::Text(text) => return Ok(text.as_str().into()),
            Self::Items(messages) => messages,
        };
        if messages.is_empty() {
            return Err(ServiceError::invalid("the message is empty"));
        }
        let item = |message: &UserMessage| {
            if matches!(&message.content, UserContent::Parts(parts) if parts.is_empty())
                || matches!(&message.content, UserContent::Text(text) if text.is_empty())
            {
                return Err(ServiceError::invalid("the message is empty"));
            }
            let value = serde_json::to_value(message);
            let value = value.map_err(|error| ServiceError::invalid(error.to_string()))?;
            Item::from_value(&value).map_err(|error| ServiceError::invalid(error.to_string()))
        };
        let items: Vec<Item> = messages.iter().map(item).collect::<Result<_, _>>()?;
        Ok(items.into())
    }
}

/// Decisions on calls that wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionsBody {
    #[schemars(length(min = 1))]
    pub(crate) decisions: Vec<DecisionBody>,
    /// Answers with the events of the run as they happen.
    #[serde(default)]
    pub(super) stream: bool,
}

/// A decision on a call that waits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    /// The identifier of the call.
    pub(crate) call_id: String,
    /// Lets the call run.
    pub(crate) approve: bool,
    /// The text that the model gets for a call that is rejected.
    #[serde(default)]
    pub(crate) message: Option<String>,
    /// Decides all calls of the same tool by the same agent until the run ends.
    #[serde(default)]
    pub(crate) always: bool,
}

impl DecisionBody {
    pub(crate) fn decision(&self) -> Decision {
        let mut decision = if self.approve {
            Decision::approve()
        } else {
            Decision::reject()
        };
        if let Some(message) = &self.message {
            decision = decision.message(message.as_str());
        }
        if self.always {
            decision = decision.always();
        }
        decision
    }
}

/// The answer of a person that a run waits for: a reply, or a handoff, or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    /// The person, where several wait.
    #[serde(default)]
    pub(crate) person: Option<String>,
    /// The words for the user. Without a handoff the run ends with them, and the person keeps the conversation.
    #[serde(default)]
    text: Option<String>,
    /// The agent that gets the conversation.
    #[serde(default)]
    hand_to: Option<String>,
    /// Hands the conversation back to the agent that the person has it from.
    #[serde(default)]
    hand_back: bool,
    /// Ends the run with the words, and lets the next agent wait for the next message.
    #[serde(default)]
    then_wait: bool,
    /// Words for the next agent alone.
    #[serde(default)]
    note: Option<String>,
    /// Answers with the events of the run as they happen.
    #[serde(default)]
    pub(super) stream: bool,
}

impl AnswerBody {
    pub(crate) fn answer(&self) -> Result<PersonAnswer, ServiceError> {
        let text = self.text.as_deref();
        let answer = match (text, self.hand_to.as_deref(), self.hand_back) {
            (_, Some(_), true) => {
                return Err(ServiceError::invalid(
                    "hand_to and hand_back exclude each other",
                ));
            }
            (Some(text), None, false) => PersonAnswer::reply(text),
            (Some(text), Some(agent), _) if self.then_wait => {
                PersonAnswer::reply(text).then_hand_to(agent)
            }
            (Some(text), None, true) if self.then_wait => {
                PersonAnswer::reply(text).then_hand_back()
            }
            (text, Some(agent), _) => with_text(PersonAnswer::hand_to(agent), text),
            (text, None, true) => with_text(PersonAnswer::hand_back(), text),
            (None, None, false) => {
                return Err(ServiceError::invalid("an answer needs a text or a handoff"));
            }
        };
        Ok(match &self.note {
            Some(note) => answer.note(note.as_str()),
            None => answer,
        })
    }
}

fn with_text(answer: PersonAnswer, text: Option<&str>) -> PersonAnswer {
    match text {
        Some(text) => answer.message(text),
        None => answer,
    }
}

/// The identifiers of conversations; see `tenant.rs`.
pub(super) const CONVERSATION_ID: &str = "^[^/~\\x00-\\x1f\\x7f-\\x9f][^/\\x00-\\x1f\\x7f-\\x9f]*$";

/// The copy of a conversation to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkBody {
    /// The identifier of the copy.
    #[schemars(length(min = 1, max = 200), regex(pattern = CONVERSATION_ID))]
    pub(super) to: String,
    /// The copy goes on from what came before this position.
    #[serde(default, deserialize_with = "whole_number")]
    #[schemars(range(max = 9_007_199_254_740_991_u64))]
    pub(super) before: Option<u64>,
}

/// Reads a whole number in the forms that JSON Schema takes for one: `3` and `3.0`.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let of_float =
        |number: &f64| (0.0..=9_007_199_254_740_991.0).contains(number) && number.fract() == 0.0;
    let whole = number
        .as_u64()
        .or_else(|| number.as_f64().filter(of_float).map(|float| float as u64));
    whole
        .map(Some)
        .ok_or_else(|| D::Error::custom("a whole number of at least 0 is expected"))
}

/// A realtime session to be opened.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RealtimeBody {
    /// The conversation; a new one is named by the service.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200), regex(pattern = CONVERSATION_ID))]
    pub(super) conversation: Option<String>,
    /// The agent that a new conversation begins with, instead of the team's first one.
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// The end of the user's turns.
    #[serde(default)]
    pub(super) turns: Turns,
    /// The way in which the service knows what was played.
    #[serde(default)]
    pub(super) playback: PlaybackReports,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct ListParameters {
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<String>,
}

/// A page of a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct PageParameters {
    pub(super) limit: Option<usize>,
    #[serde(default, deserialize_with = "query_number")]
    pub(super) before: Option<u64>,
    #[serde(default, deserialize_with = "query_number")]
    pub(super) after: Option<u64>,
}

/// Reads a number of a query that JSON readers keep exactly.
pub(super) fn query_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    match u64::deserialize(deserializer)? {
        number @ 0..=9_007_199_254_740_991 => Ok(Some(number)),
        _ => Err(D::Error::custom("the number is too large")),
    }
}

/// A search.
#[derive(Debug, Deserialize)]
pub(super) struct SearchParameters {
    pub(super) q: String,
    pub(super) limit: Option<usize>,
}

/// A form of a drawing.
#[derive(Debug, Deserialize)]
pub(super) struct GraphParameters {
    #[serde(default)]
    pub(super) format: GraphFormat,
}

/// A form of a drawing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GraphFormat {
    #[default]
    Mermaid,
    Dot,
    Svg,
    Json,
}
