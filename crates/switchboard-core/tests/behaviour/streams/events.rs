//! All events of a run, in order.

use std::time::Duration;

use futures_util::stream::{self, Stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{
    HandoffGuardrail, HandoffRequest, HandoffVerdict, InputGuardrail, OutputGuardrail,
    ToolGuardrail, ToolVerdict,
};
use switchboard_core::model::{ModelEvent, ModelRetry, RawEvent};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, EventKind, Item, Model, ModelRequest, ModelResponse, Runner, filters, handoff, tool,
};

use super::{collect, response, to_json};

#[derive(Deserialize, JsonSchema)]
struct Order {
    id: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Escalation {
    reason: String,
}

/// A run with a tool call, a handoff with a payload and a filter, and an answer.
pub(super) fn tool_handoff_and_answer() -> Runner {
    let billing: Agent = Agent::new("Billing");
    let lookup =
        tool("lookup").run(|_ctx, order: Order| json!({"order": order.id, "shipped": true}));
    let to_billing = handoff(&billing)
        .payload::<Escalation>()
        .on_handoff(|_ctx, escalation| assert_eq!(escalation.reason, "a refund"))
        .filter(filters::remove_all_tools());
    let triage = Agent::new("Triage").tool(lookup).handoff(to_billing);
    let call = Item::function_call("call_1", "lookup", r#"{"id":42}"#);
    let transfer = Item::function_call("call_2", "transfer_to_billing", r#"{"reason":"a refund"}"#);
    let model = ScriptedModel::new()
        .respond_with(response([call]))
        .respond_with(response([transfer]))
        .respond_with(response([Item::output_message("msg_1", "On its way.")]));
    Runner::new(&triage).model(model)
}

/// The usage of this many responses.
pub(super) fn usage(responses: u64) -> Value {
    json!({
        "requests": responses, "input_tokens": 10 * responses, "cached_tokens": 0,
        "output_tokens": 2 * responses, "reasoning_tokens": 0,
    })
}

#[tokio::test]
async fn a_run_with_a_tool_call_and_a_handoff_has_these_events() {
    let mut stream = tool_handoff_and_answer().stream("Where is my refund?");
    let events = to_json(&collect(&mut stream).await);
    let call = json!({
        "type": "function_call", "call_id": "call_1", "name": "lookup", "arguments": "{\"id\":42}",
    });
    let output = json!({
        "call_id": "call_1", "output": "{\"order\":42,\"shipped\":true}",
        "type": "function_call_output",
    });
    let transfer = json!({
        "type": "function_call", "call_id": "call_2", "name": "transfer_to_billing",
        "arguments": "{\"reason\":\"a refund\"}",
    });
    let message = json!({
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "On its way.", "annotations": []}],
    });
    let expected = json!([
        {
            "type": "run_started", "agent": "Triage", "turn": 0,
            "version": 1, "agents": ["Triage", "Billing"], "input": "Where is my refund?",
        },
        {"type": "agent_updated", "agent": "Triage", "turn": 0, "model": "scripted"},
        {"type": "turn_started", "agent": "Triage", "turn": 1},
        {
            "type": "usage", "agent": "Triage", "turn": 1,
            "response": usage(1), "run": usage(1),
        },
        {
            "type": "item", "agent": "Triage", "turn": 1, "name": "tool_called",
            "item": {
                "type": "tool_call_item", "raw_item": call, "agent": {"name": "Triage"},
                "tool_name": "lookup", "tool_origin": {"type": "function"},
            },
        },
        {
            "type": "tool_started", "agent": "Triage", "turn": 1,
            "call_id": "call_1", "tool": "lookup", "arguments": {"id": 42},
        },
        {
            "type": "tool_ended", "agent": "Triage", "turn": 1,
            "call_id": "call_1", "tool": "lookup", "arguments": {"id": 42},
            "output": {"order": 42, "shipped": true}, "failed": false,
        },
        {
            "type": "item", "agent": "Triage", "turn": 1, "name": "tool_output",
            "item": {
                "type": "tool_call_output_item", "raw_item": output, "agent": {"name": "Triage"},
                "output": {"order": 42, "shipped": true},
            },
        },
        {"type": "turn_started", "agent": "Triage", "turn": 2},
        {
            "type": "usage", "agent": "Triage", "turn": 2,
            "response": usage(1), "run": usage(2),
        },
        {
            "type": "item", "agent": "Triage", "turn": 2, "name": "handoff_requested",
            "item": {
                "type": "handoff_call_item", "raw_item": transfer, "agent": {"name": "Triage"},
            },
        },
        // The filter has removed the item of the handoff, which the reference does not report then.
        {
            "type": "handoff", "agent": "Triage", "turn": 2,
            "from": "Triage", "to": "Billing", "tool": "transfer_to_billing", "call_id": "call_2",
            "payload": {"reason": "a refund"}, "status": "taken",
            "carried_items": 1, "of_items": 5,
        },
        {"type": "agent_updated", "agent": "Billing", "turn": 2, "model": "scripted"},
        {"type": "turn_started", "agent": "Billing", "turn": 3},
        {"type": "text_delta", "agent": "Billing", "turn": 3, "item": "msg_1", "text": "On "},
        {"type": "text_delta", "agent": "Billing", "turn": 3, "item": "msg_1", "text": "its "},
        {"type": "text_delta", "agent": "Billing", "turn": 3, "item": "msg_1", "text": "way."},
        {
            "type": "usage", "agent": "Billing", "turn": 3,
            "response": usage(1), "run": usage(3),
        },
        {
            "type": "item", "agent": "Billing", "turn": 3, "name": "message_output_created",
            "text": "On its way.",
            "item": {
                "type": "message_output_item", "raw_item": message, "agent": {"name": "Billing"},
            },
        },
        {
            "type": "run_finished", "agent": "Billing", "turn": 3,
            "output": "On its way.", "turns": 3, "usage": usage(3),
        },
    ]);
    assert_eq!(&events, expected.as_array().unwrap());
}

/// A model that implements `respond` only.
struct NotStreaming;

impl Model for NotStreaming {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(response([Item::output_message("msg_1", "All at once.")]))
    }
}

/// The events of one type.
fn of_type(events: Vec<Value>, kind: &str) -> Vec<Value> {
    let events = events.into_iter();
    events.filter(|event| event["type"] == kind).collect()
}

#[tokio::test]
async fn a_model_that_does_not_stream_gives_its_text_as_one_delta() {
    let agent: Agent = Agent::new("A").model(NotStreaming);
    let mut stream = Runner::new(&agent).stream("Hi");
    let events = to_json(&collect(&mut stream).await);
    assert_eq!(
        of_type(events, "text_delta"),
        [json!({
            "type": "text_delta", "agent": "A", "turn": 1,
            "item": "msg_1", "text": "All at once.",
        })]
    );
}

/// A model that streams pieces of every kind.
pub(super) struct Pieces;

impl Model for Pieces {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Err("it only streams".into())
    }

    fn stream(
        &self,
        _request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let retry = ModelRetry::new(2, Duration::from_millis(1500), "overloaded");
        let raw = r#"{"type":"response.created","n":1.0,"s":"\ud800"}"#;
        stream::iter([
            Ok(ModelEvent::Retry(retry)),
            Ok(ModelEvent::Raw(RawEvent::from_json(raw.into()).unwrap())),
            Ok(ModelEvent::ReasoningDelta {
                item: "rs_1".into(),
                text: "Hm, ".into(),
            }),
            Ok(ModelEvent::ArgumentsDelta {
                item: "fc_1".into(),
                call_id: "call_1".into(),
                tool: "t".into(),
                text: "{\"a".into(),
            }),
            Ok(ModelEvent::text_delta("msg_1", "Hello ")),
            Ok(ModelEvent::Completed(response([Item::output_message(
                "msg_1", "Hello !",
            )]))),
        ])
    }
}

#[tokio::test]
async fn the_pieces_of_a_response_are_events_in_their_order() {
    let agent: Agent = Agent::new("A").model(Pieces);
    let mut stream = Runner::new(&agent).stream("Hi");
    let events = collect(&mut stream).await;
    let texts: Vec<String> = events
        .iter()
        .skip_while(|event| !matches!(event.kind, EventKind::TurnStarted { .. }))
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    assert_eq!(
        texts[..6],
        [
            r#"{"type":"turn_started","agent":"A","turn":1}"#,
            r#"{"type":"model_retry","agent":"A","turn":1,"attempt":2,"delay_seconds":1.5,"reason":"overloaded"}"#,
            r#"{"type":"raw","agent":"A","turn":1,"event":{"type":"response.created","n":1.0,"s":"\ud800"}}"#,
            r#"{"type":"reasoning_delta","agent":"A","turn":1,"item":"rs_1","text":"Hm, "}"#,
            r#"{"type":"arguments_delta","agent":"A","turn":1,"item":"fc_1","call_id":"call_1","tool":"t","text":"{\"a"}"#,
            r#"{"type":"text_delta","agent":"A","turn":1,"item":"msg_1","text":"Hello "}"#,
        ]
    );
}

/// A run in which a guardrail of each kind decides, and the one on the handoff refuses.
pub(super) fn guarded() -> Runner {
    let boss: Agent = Agent::new("Boss");
    let masked = InputGuardrail::replacing("masked", |_ctx, _agent, _input| Some("My card: ****"));
    let closed = HandoffGuardrail::new("closed", |_request: HandoffRequest| {
        HandoffVerdict::refuse("Closed today.")
    });
    let hidden =
        ToolGuardrail::<()>::on_output("hidden", |_ctx, _output| ToolVerdict::replace("[hidden]"));
    let clerk = Agent::new("Clerk")
        .input_guardrail(masked)
        .tool(tool("read").guardrail(hidden).run(|_ctx, (): ()| "secret"))
        .handoff(handoff(&boss).guardrail(closed))
        .output_guardrail(OutputGuardrail::new("fine", |_ctx, _agent, _output| ()));
    let model = ScriptedModel::new()
        .call("read", "{}")
        .call("transfer_to_boss", "{}")
        .say("Sorry.");
    Runner::new(&clerk).model(model)
}

#[tokio::test]
async fn each_guardrail_gives_an_event_with_its_result() {
    let mut stream = guarded().stream("My card: 4242");
    let events = to_json(&collect(&mut stream).await);
    assert_eq!(
        of_type(events, "guardrail"),
        [
            json!({
                "type": "guardrail", "agent": "Clerk", "turn": 1, "on": "input",
                "result": {
                    "guardrail": "masked", "agent": "Clerk", "outcome": "replaced", "info": null,
                    "replaced_by": "My card: ****",
                },
            }),
            json!({
                "type": "guardrail", "agent": "Clerk", "turn": 1, "on": "tool",
                "result": {
                    "guardrail": "hidden", "agent": "Clerk", "outcome": "replaced", "info": null,
                    "replaced_by": "[hidden]",
                },
            }),
            json!({
                "type": "guardrail", "agent": "Clerk", "turn": 2, "on": "handoff",
                "result": {
                    "guardrail": "closed", "agent": "Clerk", "outcome": "refused",
                    "info": "Closed today.",
                },
            }),
            json!({
                "type": "guardrail", "agent": "Clerk", "turn": 3, "on": "output",
                "result": {
                    "guardrail": "fine", "agent": "Clerk", "outcome": "allowed", "info": null,
                },
            }),
        ]
    );
}
