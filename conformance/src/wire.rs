//! Scenarios over HTTP: the model is a client of a fake provider that replies from the script.
//!
//! The comparison uses the requests that the client was called with. The provider checks the bodies
//! that the client sent: each must be one that the API accepts.

mod normalize;

use fake_provider::{FakeProvider, Protocol, Reply, Rules, Usage, check};
use serde_json::{Value, json};
use switchboard_core::model::ModelHandle;
use switchboard_models::{ChatModel, Endpoint, ResponsesModel};

use crate::case::{Case, ScriptedReply, TokenCounts};

/// A fake provider, and the protocol of its clients.
pub(crate) struct Wire {
    provider: FakeProvider,
    protocol: Protocol,
}

impl Wire {
    pub(crate) fn new(protocol: Protocol) -> Result<Self, String> {
        let provider = FakeProvider::on_thread_with(rules()).map_err(|error| error.to_string())?;
        Ok(Self { provider, protocol })
    }

    /// A client that gets the replies of the script. Its requests carry `key` as the API key.
    pub(crate) fn model(&self, script: &[ScriptedReply], key: &str) -> Result<ModelHandle, String> {
        self.provider.script(key, replies(script)?);
        let endpoint = Endpoint::at(self.provider.url()).key(key).retries(0);
        let client = endpoint.connect().map_err(|error| error.to_string())?;
        Ok(match self.protocol {
            Protocol::Responses => ResponsesModel::new(&client, "gpt-test").into(),
            Protocol::Chat => ChatModel::new(&client, "gpt-test").into(),
        })
    }

    /// Returns an error if the client sent a request that the API would reject.
    pub(crate) fn check_requests(&self, key: &str) -> Result<(), String> {
        match self.provider.violations_of(key).first() {
            Some(violation) => Err(format!("the provider refuses what was sent: {violation}")),
            None => Ok(()),
        }
    }

    /// The reason why a case cannot run over HTTP, or `None` if it can.
    pub(crate) fn skip_reason(&self, case: &Case, expected: &Value) -> Option<String> {
        if case.is_kept_by_the_provider() {
            return Some("the provider of this program keeps no conversations".to_owned());
        }
        rejected_request(expected).or_else(|| match (self.protocol, replies(&case.model)) {
            (Protocol::Chat, Ok(replies)) => replies.iter().find_map(Reply::chat_problem),
            _ => None,
        })
    }

    /// Removes the fields that the protocol does not carry from a serialized run.
    pub(crate) fn normalize(&self, run: &Value) -> Value {
        normalize::normalize(run, self.protocol)
    }
}

fn rules() -> Rules {
    Rules::default()
}

fn replies(script: &[ScriptedReply]) -> Result<Vec<Reply>, String> {
    let replies = script.iter().map(|reply| {
        Ok(match reply.output()? {
            // Frames of this size cut through events and characters.
            Ok(items) => Reply::items(items).usage(usage(reply.usage)).frames(61),
            Err(message) => Reply::status(500, json!({"error": {"message": message}})),
        })
    });
    replies.collect()
}

fn usage(tokens: TokenCounts) -> Usage {
    Usage {
        input: tokens.input,
        cached: tokens.cached,
        output: tokens.output,
        reasoning: tokens.reasoning,
        ..Usage::default()
    }
}

/// The reason why the API rejects a request of the reference, if it does. In some scenarios a filter
/// leaves an orphaned call output, for example. Such a case cannot test the client.
fn rejected_request(expected: &Value) -> Option<String> {
    let plain = &expected["model_calls"];
    let streamed = &expected["streamed_differs"]["model_calls"];
    let calls = [plain, streamed].into_iter().filter_map(Value::as_array);
    calls.flatten().enumerate().find_map(|(number, call)| {
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

    fn case(items: Value) -> Case {
        let case = json!({"agents": [], "start": "A", "model": [{"output": items}]});
        Case::deserialize(case).unwrap()
    }

    fn message() -> Value {
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Hi", "annotations": []}]})
    }

    #[test]
    fn a_script_that_chat_cannot_carry_is_skipped_in_chat_only() {
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
                          "arguments": "{}"});
        let case = case(json!([call, message()]));
        let skip_reason = |protocol| {
            let wire = Wire::new(protocol).unwrap();
            wire.skip_reason(&case, &json!({"model_calls": []}))
        };
        assert_eq!(skip_reason(Protocol::Responses), None);
        assert_eq!(
            skip_reason(Protocol::Chat).as_deref(),
            Some("Chat cannot say that an item of type \"message\" came after the others")
        );
    }

    #[test]
    fn a_case_with_a_conversation_that_the_provider_keeps_is_skipped() {
        let wire = Wire::new(Protocol::Responses).unwrap();
        let plain = case(json!([message()]));
        let kept = Case {
            previous_response_id: Some("resp_1".to_owned()),
            ..case(json!([message()]))
        };
        let expected = json!({"model_calls": []});
        assert_eq!(wire.skip_reason(&plain, &expected), None);
        assert_eq!(
            wire.skip_reason(&kept, &expected).as_deref(),
            Some("the provider of this program keeps no conversations")
        );
    }

    #[test]
    fn a_case_with_a_request_that_the_api_rejects_is_skipped() {
        let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "x"});
        let expected = json!({"model_calls": [{"input": [message()]}, {"input": [output]}]});
        let wire = Wire::new(Protocol::Responses).unwrap();
        assert_eq!(
            wire.skip_reason(&case(json!([message()])), &expected)
                .as_deref(),
            Some(
                "the API refuses what the reference gives to model call 1: input: No tool call found \
                 for function call output with call_id call_1."
            )
        );
    }
}
