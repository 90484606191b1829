//! Renders a reply as one chat completion.

use serde_json::{Value, json};

use super::RequestInfo;
use super::response::CREATED;
use crate::quirk::Quirk;
use crate::reply::Reply;
use crate::reply::content::{Ending, Usage};

/// The message of a chat completion.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) reasoning: Option<&'a str>,
    pub(super) content: Option<&'a str>,
    pub(super) refusal: Option<&'a str>,
    pub(super) calls: Vec<Call<'a>>,
}

pub(super) struct Call<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

/// The reason why Chat cannot carry these items, or `None` if it can.
pub(crate) fn chat_problem(items: &[Value]) -> Option<String> {
    Message::of(items).err()
}

impl<'a> Message<'a> {
    /// Converts items to a message. Fails unless a client can restore the same items from it: reasoning
    /// first, then text, then calls.
    pub(super) fn of(items: &'a [Value]) -> Result<Self, String> {
        let mut message = Self::default();
        let mut stage = 0;
        for item in items {
            let kind = item["type"].as_str().unwrap_or_default();
            let (this, has_room) = match kind {
                "reasoning" => (0, message.reasoning.is_none()),
                "message" => (1, message.content.is_none() && message.refusal.is_none()),
                "function_call" => (2, true),
                other => return Err(format!("Chat cannot carry an item of type {other:?}")),
            };
            if !has_room {
                return Err(format!(
                    "Chat cannot carry two items of type {kind:?} in one answer"
                ));
            }
            if this < stage {
                return Err(format!(
                    "Chat cannot say that an item of type {kind:?} came after the others"
                ));
            }
            stage = this;
            match this {
                0 => message.reasoning = Some(reasoning(item)?),
                1 => message.add_parts(item)?,
                _ => message.calls.push(call(item)?),
            }
        }
        Ok(message)
    }

    fn add_parts(&mut self, item: &'a Value) -> Result<(), String> {
        for part in item["content"].as_array().into_iter().flatten() {
            let has_annotations = part["annotations"]
                .as_array()
                .is_some_and(|a| !a.is_empty());
            let (slot, text) = match part["type"].as_str() {
                Some("output_text") => (&mut self.content, &part["text"]),
                Some("refusal") => (&mut self.refusal, &part["refusal"]),
                other => return Err(format!("Chat cannot carry a part of type {other:?}")),
            };
            let text = text.as_str().filter(|text| !text.is_empty());
            match (text, &slot, has_annotations) {
                (None, ..) => return Err("Chat cannot carry an empty text".to_owned()),
                (_, Some(_), _) => {
                    return Err("Chat cannot carry two texts in one answer".to_owned());
                }
                (_, _, true) => return Err("Chat cannot carry these annotations".to_owned()),
                (Some(text), None, false) => *slot = Some(text),
            }
        }
        if self.content.is_some() || self.refusal.is_some() {
            Ok(())
        } else {
            Err("Chat cannot carry a message without content".to_owned())
        }
    }

    /// The finish reason.
    pub(super) fn finish_reason(&self, reply: &Reply, end: &Ending) -> &'static str {
        match end {
            Ending::Incomplete { reason } if reason == "content_filter" => "content_filter",
            Ending::Incomplete { .. } => "length",
            _ if self.calls.is_empty() || reply.has(Quirk::FinishStop) => "stop",
            _ => "tool_calls",
        }
    }
}

fn reasoning(item: &Value) -> Result<&str, String> {
    if !item["encrypted_content"].is_null() {
        return Err("Chat cannot carry encrypted reasoning".to_owned());
    }
    let parts = |field: &str| item[field].as_array().into_iter().flatten();
    let texts: Vec<&Value> = parts("summary").chain(parts("content")).collect();
    match texts.as_slice() {
        [part] => part["text"]
            .as_str()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| "Chat cannot carry an empty text of reasoning".to_owned()),
        [] => Err("Chat cannot carry reasoning without a text".to_owned()),
        _ => Err("Chat cannot carry reasoning of several texts".to_owned()),
    }
}

fn call(item: &Value) -> Result<Call<'_>, String> {
    let field = |name: &str| {
        let text = item[name].as_str();
        text.ok_or_else(|| format!("Chat cannot carry a call without {name}"))
    };
    Ok(Call {
        id: field("call_id")?,
        name: field("name")?,
        arguments: field("arguments")?,
    })
}

impl Call<'_> {
    /// The arguments as text, or as an object with [`Quirk::ObjectArguments`].
    pub(super) fn arguments_json(&self, reply: &Reply) -> Value {
        if reply.has(Quirk::ObjectArguments)
            && let Ok(object) = serde_json::from_str(self.arguments)
        {
            return object;
        }
        self.arguments.into()
    }

    fn json(&self, reply: &Reply) -> Value {
        let function = json!({"name": self.name, "arguments": self.arguments_json(reply)});
        if reply.has(Quirk::NoCallId) {
            json!({"type": "function", "function": function})
        } else {
            json!({"id": self.id, "type": "function", "function": function})
        }
    }
}

/// The name of the field for reasoning.
pub(super) fn reasoning_field(reply: &Reply) -> &'static str {
    if reply.has(Quirk::ReasoningField) {
        "reasoning"
    } else {
        "reasoning_content"
    }
}

/// Renders the completion.
pub(super) fn completion(
    reply: &Reply,
    items: &[Value],
    end: &Ending,
    request: &RequestInfo<'_>,
) -> Result<Value, String> {
    let parts = Message::of(items)?;
    let mut message = json!({
        "role": "assistant", "content": parts.content, "refusal": parts.refusal, "annotations": [],
    });
    if let Some(reasoning) = parts.reasoning {
        message[reasoning_field(reply)] = json!(reasoning);
    }
    if !parts.calls.is_empty() {
        message["tool_calls"] = parts.calls.iter().map(|call| call.json(reply)).collect();
    }
    let mut completion = json!({
        "id": request.id(),
        "object": "chat.completion",
        "created": CREATED,
        "model": request.model(),
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": parts.finish_reason(reply, end),
        }],
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    });
    if !reply.has(Quirk::NoUsage) {
        completion["usage"] = usage(reply.usage);
    }
    Ok(completion)
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    })
}
