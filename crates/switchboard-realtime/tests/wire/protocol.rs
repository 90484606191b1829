//! The protocol without a socket.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_realtime::model::{
    RealtimeInterrupt, RealtimeModelCommand, RealtimeModelConfig, RealtimeModelEvent,
    RealtimeModelPolicy, RealtimeToolOutput,
};
use switchboard_realtime::openai::{ProtocolOutput, RealtimeProtocol};

use crate::support::{audio, call_done, response_created, response_done, session_created};

fn opened(policy: RealtimeModelPolicy) -> RealtimeProtocol {
    let mut config = RealtimeModelConfig::default();
    config.policy = policy;
    let mut protocol = RealtimeProtocol::new(config);
    protocol.open().unwrap();
    protocol
}

#[test]
fn a_stored_protocol_goes_on_where_it_was() {
    let mut protocol = opened(RealtimeModelPolicy::production());
    protocol.frame(&response_created("r1").to_string(), Duration::ZERO);
    protocol
        .command(RealtimeModelCommand::say("wait"), Duration::ZERO)
        .unwrap();
    let stored = serde_json::to_string(&protocol).unwrap();
    let mut restored: RealtimeProtocol = serde_json::from_str(&stored).unwrap();
    let output = restored.frame(&response_done("r1").to_string(), Duration::ZERO);
    assert!(output.frames[0].contains("response.create"));
    assert_eq!(
        output.frames,
        protocol
            .frame(&response_done("r1").to_string(), Duration::ZERO)
            .frames
    );
}

#[test]
fn raw_events_are_passed_on_if_asked_for() {
    let mut config = RealtimeModelConfig::default();
    config.raw_events = true;
    let mut protocol = RealtimeProtocol::new(config);
    protocol.open().unwrap();
    let text = response_created("r1").to_string();
    let output = protocol.frame(&text, Duration::ZERO);
    assert!(matches!(&output.events[0], RealtimeModelEvent::RawServerEvent(raw) if **raw == *text));
}

#[test]
fn the_truncated_part_of_a_message_is_not_replayed() {
    let mut protocol = opened(RealtimeModelPolicy::production());
    // 100 ms of audio, of which 50 were heard.
    let zeros = "A".repeat(6_400);
    protocol.frame(&audio("r1", "a1", &zeros).to_string(), Duration::ZERO);
    let delta = json!({
        "type": "response.output_audio_transcript.delta", "event_id": "e", "response_id": "r1", "item_id": "a1",
        "output_index": 0, "content_index": 0, "delta": "abcdefghij",
    });
    protocol.frame(&delta.to_string(), Duration::ZERO);
    let truncated = json!({
        "type": "conversation.item.truncated", "event_id": "e", "item_id": "a1", "content_index": 0, "audio_end_ms": 50,
    });
    protocol.frame(&truncated.to_string(), Duration::ZERO);
    // What the server still tells of the message was not heard.
    protocol.frame(&delta.to_string(), Duration::ZERO);
    let whole = json!({
        "type": "response.output_item.done", "event_id": "e", "response_id": "r1", "output_index": 0,
        "item": {
            "type": "message", "id": "a1", "role": "assistant", "status": "incomplete",
            "content": [{"type": "output_audio", "transcript": "abcdefghijabcdefghij"}],
        },
    });
    protocol.frame(&whole.to_string(), Duration::ZERO);
    protocol.disconnected();
    let frames = protocol.open().unwrap().frames;
    let item: Value = serde_json::from_str(&frames[1]).unwrap();
    assert_eq!(item["item"]["content"][0]["text"], "abcde");
}

/// A step of a session.
#[derive(Debug, Clone)]
enum Step {
    Frame(Value),
    Say,
    Answer,
    Interrupt,
    Lose,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = || prop::sample::select(vec!["r1", "r2", "r3"]);
    let call = || prop::sample::select(vec!["c1", "c2", "c3", "c4"]);
    let error = json!({"type": "error", "event_id": "e", "error": {
        "type": "invalid_request_error", "code": "conversation_already_has_active_response", "message": "active",
    }});
    let speech = json!({
        "type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "u", "audio_start_ms": 1,
    });
    let step = prop_oneof![
        id().prop_map(|id| Step::Frame(response_created(id))),
        id().prop_map(|id| Step::Frame(response_done(id))),
        (id(), call()).prop_map(|(id, call)| Step::Frame(call_done(id, call, "tool"))),
        id().prop_map(|id| Step::Frame(audio(id, "a1", "AAAA"))),
        Just(Step::Frame(error)),
        Just(Step::Frame(speech)),
        Just(Step::Frame(session_created(&Value::Null))),
        Just(Step::Say),
        Just(Step::Answer),
        Just(Step::Interrupt),
        Just(Step::Lose),
    ];
    prop::collection::vec(step, 0..60)
}

/// A server that believes what the client sends: it counts the responses that are asked for.
#[derive(Default)]
struct Watch {
    /// Set while a request is unanswered.
    is_asked: bool,
    calls: Vec<switchboard_realtime::model::RealtimeToolCall>,
    seen: HashSet<String>,
    answered: HashSet<String>,
}

impl Watch {
    fn check(&mut self, output: ProtocolOutput) -> Result<(), TestCaseError> {
        for frame in &output.frames {
            let frame: Value = serde_json::from_str(frame).unwrap();
            prop_assert!(fake_provider::check_client_event(&frame).is_ok(), "{frame}");
            if frame["type"] == "response.create" {
                prop_assert!(!self.is_asked, "two requests at once");
                self.is_asked = true;
            }
        }
        for event in output.events {
            if let RealtimeModelEvent::ToolCall(call) = event {
                prop_assert!(
                    self.seen.insert(call.call_id.to_string()),
                    "a call was passed on twice"
                );
                self.calls.push(call);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn events_in_any_order_never_lead_to_two_requests_or_a_repeated_call(steps in steps()) {
        let mut protocol = opened(RealtimeModelPolicy::production());
        let mut watch = Watch::default();
        for step in steps {
            let output = match step {
                Step::Frame(frame) => {
                    // What the server sends lets it be asked again.
                    let kind = frame["type"].as_str();
                    if matches!(kind, Some("response.created" | "response.done" | "error")) {
                        watch.is_asked = false;
                    }
                    protocol.frame(&frame.to_string(), Duration::ZERO)
                }
                Step::Say => protocol.command(RealtimeModelCommand::say("x"), Duration::ZERO).unwrap(),
                Step::Answer => match watch.calls.pop() {
                    Some(call) => {
                        prop_assert!(watch.answered.insert(call.call_id.to_string()));
                        let output = RealtimeToolOutput { tool_call: call, output: "o".into(), start_response: true };
                        protocol.command(RealtimeModelCommand::ToolOutput(output), Duration::ZERO).unwrap()
                    }
                    None => continue,
                },
                Step::Interrupt => {
                    let interrupt = RealtimeInterrupt { force_response_cancel: true, ..Default::default() };
                    protocol.command(RealtimeModelCommand::Interrupt(interrupt), Duration::ZERO).unwrap()
                }
                Step::Lose => {
                    watch.check(protocol.disconnected())?;
                    watch.is_asked = false;
                    protocol.open().unwrap()
                }
            };
            watch.check(output)?;
            let stored = serde_json::to_string(&protocol).unwrap();
            prop_assert!(serde_json::from_str::<RealtimeProtocol>(&stored).is_ok());
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC*", strict in any::<bool>()) {
        let policy = if strict { RealtimeModelPolicy::reference() } else { RealtimeModelPolicy::production() };
        opened(policy).frame(&text, Duration::ZERO);
    }
}
