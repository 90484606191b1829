//! Scenarios over the wire: a provider answers from the script, a client asks it.
//!
//! The run is compared as ever, with what the client was given in the place of what the model was
//! given. What the client made of it is the provider's to check: every body must be one that the API
//! takes.

mod client;
mod modulo;

use fake_provider::{FakeProvider, Protocol, Reply, Rules, check};
use serde_json::{Value, json};
use switchboard_core::ModelHandle;

use crate::types::Answer;

pub(crate) use modulo::without_ids;

/// A provider, and the protocol it is spoken to in.
pub(crate) struct Wire {
    provider: FakeProvider,
    protocol: Protocol,
}

impl Wire {
    pub(crate) fn new(protocol: Protocol) -> Result<Self, String> {
        let provider = FakeProvider::on_thread_with(rules()).map_err(|error| error.to_string())?;
        Ok(Self { provider, protocol })
    }

    /// A client whose answers follow the script.
    pub(crate) fn model(&self, script: &[Answer], key: &str) -> Result<ModelHandle, String> {
        self.provider.script(key, replies(script)?);
        client::model(self.protocol, &self.provider.url(), key)
    }

    /// What the client sent that the API would refuse.
    pub(crate) fn refused(&self, key: &str) -> Result<(), String> {
        match self.provider.violations_of(key).first() {
            Some(violation) => Err(format!("the provider refuses what was sent: {violation}")),
            None => Ok(()),
        }
    }

    /// Why a case cannot be run over the wire.
    pub(crate) fn why_not(&self, script: &[Answer], expected: &Value) -> Option<String> {
        let in_chat = || match (self.protocol, replies(script)) {
            (Protocol::Chat, Ok(replies)) => replies.iter().find_map(Reply::chat_problem),
            _ => None,
        };
        refused_anyway(expected).or_else(in_chat)
    }

    /// What is compared: all but what the protocol does not carry.
    pub(crate) fn compared(&self, run: &Value) -> Value {
        without_ids(run, self.protocol)
    }
}

fn rules() -> Rules {
    Rules::default()
}

fn replies(script: &[Answer]) -> Result<Vec<Reply>, String> {
    let replies = script.iter().map(|answer| {
        Ok(match answer.said()? {
            // Frames of this size cut through events and characters.
            Ok(items) => Reply::items(items).frames(61),
            Err(message) => Reply::status(500, json!({"error": {"message": message}})),
        })
    });
    replies.collect()
}

/// Some scenarios give a model what the API refuses, like an output without its call that a filter
/// of the scenario's own has left. The reference did so too, so the case says nothing of the client.
fn refused_anyway(expected: &Value) -> Option<String> {
    let streamed = &expected["streamed_differs"]["model_calls"];
    let calls = [&expected["model_calls"], streamed];
    let calls = calls.into_iter().filter_map(Value::as_array).flatten();
    calls.enumerate().find_map(|(number, call)| {
        let body = json!({"model": "gpt-test", "input": call["input"]});
        let problem = check(Protocol::Responses, &body, rules()).err()?;
        Some(format!(
            "the API refuses what the reference gives to model call {number}: {problem}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    fn script(items: Value) -> Vec<Answer> {
        vec![Answer::deserialize(json!({"output": items})).unwrap()]
    }

    fn message() -> Value {
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Hi", "annotations": []}]})
    }

    #[test]
    fn what_chat_cannot_carry_is_skipped_in_chat_only() {
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
                          "arguments": "{}"});
        let script = script(json!([call, message()]));
        let why_not = |protocol| {
            let wire = Wire::new(protocol).unwrap();
            wire.why_not(&script, &json!({"model_calls": []}))
        };
        assert_eq!(why_not(Protocol::Responses), None);
        assert_eq!(
            why_not(Protocol::Chat).as_deref(),
            Some("Chat cannot say that an item of type \"message\" came after the others")
        );
    }

    #[test]
    fn what_the_api_refuses_of_the_reference_is_skipped() {
        let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "x"});
        let expected = json!({"model_calls": [{"input": [message()]}, {"input": [output]}]});
        let wire = Wire::new(Protocol::Responses).unwrap();
        assert_eq!(
            wire.why_not(&script(json!([message()])), &expected)
                .as_deref(),
            Some(
                "the API refuses what the reference gives to model call 1: input: No tool call found \
                 for function call output with call_id call_1."
            )
        );
    }
}
