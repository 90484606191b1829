//! Requests and answers in each protocol.

use fake_provider::{ErrorForm, Quirk, Reply};
use futures_util::StreamExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::agent::Knowledge;
use switchboard_core::model::{ModelEvent, Reasoning, ToolChoice};
use switchboard_core::run::ServerHistory;
use switchboard_core::{Agent, Item, ModelResponse, ModelSettings, Runner, handoff, tool};
use switchboard_models::ModelErrorKind;

use crate::{BOTH, Protocol, Script, ask, failure, hello, model, text_of};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "read by serde and schemars only")]
struct Escalation {
    reason: String,
    priority: u8,
}

fn triage() -> Agent {
    let billing: Agent = Agent::new("Billing").handoff_description("Bills.");
    Agent::new("Triage")
        .instructions("Route.")
        .knowledge(Knowledge::new("Opening hours", "9 to 5"))
        .tool(
            tool("lookup")
                .description("Looks up.")
                .run(|_ctx, (): ()| "42"),
        )
        .handoff(
            handoff(&billing)
                .payload::<Escalation>()
                .on_handoff(|_ctx, _payload| ()),
        )
}

#[tokio::test]
async fn tools_handoffs_settings_and_the_output_schema_are_sent() {
    let settings = ModelSettings {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_tokens: Some(100),
        parallel_tool_calls: Some(false),
        tool_choice: Some(ToolChoice::Named("lookup".into())),
        reasoning: Some(Reasoning {
            effort: Some("low".into()),
            summary: Some("auto".into()),
        }),
        verbosity: Some("low".into()),
        store: Some(false),
        top_logprobs: Some(2),
        metadata: [("team".to_owned(), "blue".to_owned())].into(),
        ..Default::default()
    };
    for protocol in BOTH {
        let script = Script::new([Reply::text(r#"{"response":[1,2]}"#)]);
        let agent = triage()
            .output::<Vec<u32>>()
            .model_settings(settings.clone());
        let result = Runner::new(&agent)
            .model(script.model(protocol))
            .run("Hi")
            .await;
        let numbers: Vec<u32> = result.unwrap().final_output_as().unwrap();
        assert_eq!(numbers, [1, 2]);
        let body = &script.bodies()[0];
        assert_eq!(body["parallel_tool_calls"], false);
        let (names, strict, format, system) = match protocol {
            Protocol::Responses => {
                assert_eq!(body["max_output_tokens"], 100);
                assert_eq!(
                    body["reasoning"],
                    json!({"effort": "low", "summary": "auto"})
                );
                assert_eq!(
                    body["tool_choice"],
                    json!({"type": "function", "name": "lookup"})
                );
                assert_eq!(body["text"]["verbosity"], "low");
                assert!(
                    body["include"]
                        .to_string()
                        .contains("reasoning.encrypted_content")
                );
                let text = &body["text"]["format"];
                (
                    "/name",
                    "/strict",
                    text["schema"].clone(),
                    body["instructions"].clone(),
                )
            }
            Protocol::Chat => {
                assert_eq!(body["max_tokens"], 100);
                assert_eq!(body["reasoning_effort"], "low");
                let choice = json!({"type": "function", "function": {"name": "lookup"}});
                assert_eq!(body["tool_choice"], choice);
                let format = &body["response_format"]["json_schema"];
                let system = body["messages"][0]["content"].clone();
                (
                    "/function/name",
                    "/function/strict",
                    format["schema"].clone(),
                    system,
                )
            }
        };
        let tools = body["tools"].as_array().unwrap();
        let sent: Vec<_> = tools
            .iter()
            .map(|tool| tool.pointer(names).unwrap())
            .collect();
        assert_eq!(sent, ["lookup", "transfer_to_billing"]);
        assert!(
            tools
                .iter()
                .all(|tool| tool.pointer(strict) == Some(&json!(true)))
        );
        assert_eq!(format["additionalProperties"], false);
        let system = system.as_str().unwrap();
        assert!(
            system.starts_with("Route.") && system.contains("9 to 5"),
            "{system}"
        );
    }
}

#[tokio::test]
async fn chunk_boundaries_of_a_stream_do_not_matter() {
    let items = [
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm, 想一想"}]}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Grüße, 世界 🎉!", "annotations": []}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup",
               "arguments": "{\"x\":\"é\\n\"}", "status": "completed"}),
        json!({"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "lookup",
               "arguments": "{}", "status": "completed"}),
    ];
    for protocol in BOTH {
        let script = Script::new([Reply::items(items.clone())]);
        let plain = ask(&script.model(protocol), hello(), false).await.unwrap();
        for bytes in [1, 2, 3, 7, 64, 100_000] {
            let script = Script::new([Reply::items(items.clone()).pieces(2).frames(bytes)]);
            let streamed = ask(&script.model(protocol), hello(), true).await.unwrap();
            assert_eq!(
                without_provider_data(&streamed),
                without_provider_data(&plain),
                "{protocol:?} {bytes}"
            );
        }
    }
}

/// The items without `provider_data`, which differs between the answers.
fn without_provider_data(answer: &ModelResponse) -> Vec<Item> {
    let items = answer.output.iter();
    items
        .map(|item| item.without_fields(&["provider_data"]))
        .collect()
}

#[tokio::test]
async fn deviations_of_compatible_servers_are_accepted() {
    let items = [
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "One moment.", "annotations": []}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup",
               "arguments": "{\"id\":1}", "status": "completed"}),
        json!({"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "find",
               "arguments": "{\"id\":2}", "status": "completed"}),
    ];
    let of_all = [
        Quirk::CrLf,
        Quirk::Comments,
        Quirk::NoSpace,
        Quirk::ByteOrderMark,
        Quirk::NoLastBlank,
        Quirk::NoUsage,
    ];
    let of_chat = [
        Quirk::NoDone,
        Quirk::NoToolIndex,
        Quirk::ZeroToolIndex,
        Quirk::NoCallId,
        Quirk::WholeCalls,
        Quirk::ObjectArguments,
        Quirk::NullContent,
        Quirk::FinishStop,
        Quirk::NoFinish,
        Quirk::FinishWithLast,
        Quirk::NoRole,
    ];
    let of_responses = [
        Quirk::NoEventNames,
        Quirk::NoSequenceNumbers,
        Quirk::EmptyFinalOutput,
        Quirk::Done,
        Quirk::UnknownEvents,
    ];
    for protocol in BOTH {
        let own = match protocol {
            Protocol::Chat => &of_chat[..],
            Protocol::Responses => &of_responses,
        };
        for quirk in of_all.iter().chain(own) {
            for streamed in [false, true] {
                let script = Script::new([Reply::items(items.clone()).quirk(*quirk)]);
                let answer = ask(&script.model(protocol), hello(), streamed).await;
                let answer = answer
                    .unwrap_or_else(|error| panic!("{protocol:?} {quirk:?} {streamed}: {error}"));
                assert_eq!(text_of(&answer), "One moment.", "{quirk:?}");
                let calls: Vec<_> = answer.output[1..]
                    .iter()
                    .map(|call| (call.name().unwrap(), call.arguments().unwrap()))
                    .collect();
                let expected = [("lookup", "{\"id\":1}"), ("find", "{\"id\":2}")];
                let expected = expected.map(|(name, arguments)| (name.into(), arguments.into()));
                assert_eq!(calls, expected, "{protocol:?} {quirk:?} {streamed}");
                let ids: Vec<_> = answer.output[1..]
                    .iter()
                    .map(|call| call.call_id())
                    .collect();
                assert_ne!(ids[0], ids[1], "{quirk:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_failure_in_the_middle_of_an_answer_is_an_error() {
    let partial = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Well, ", "annotations": []}]});
    for protocol in BOTH {
        for reply in [
            Reply::failed("server_error", "It broke."),
            Reply::error_event(ErrorForm::Nested, "server_error", "It broke."),
            Reply::error_event(ErrorForm::Flat, "server_error", "It broke."),
        ] {
            let script = Script::new([reply.after([partial.clone()])]);
            let error = failure(&script.model(protocol), true).await;
            assert_eq!(
                error.kind(),
                ModelErrorKind::Server,
                "{protocol:?}: {error}"
            );
            let shown = error.to_string();
            assert!(shown.contains("It broke. (server_error)"), "{shown}");
        }
    }
    for streamed in [false, true] {
        for (reason, code) in [
            ("max_output_tokens", "max_output_tokens"),
            ("content_filter", "content_filter"),
        ] {
            let script = Script::new([Reply::incomplete(reason).after([partial.clone()])]);
            let error = failure(&script.model(Protocol::Responses), streamed).await;
            assert_eq!(error.kind(), ModelErrorKind::Incomplete, "{error}");
            assert_eq!(error.code(), Some(code));
        }
    }
}

#[tokio::test]
async fn a_refusal_is_kept_as_a_refusal() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([Reply::refusal("I would rather not.")]);
            let answer = ask(&script.model(protocol), hello(), streamed)
                .await
                .unwrap();
            let refusal = answer.output[0].refusal();
            assert_eq!(
                refusal.as_deref(),
                Some("I would rather not."),
                "{protocol:?}"
            );
        }
    }
}

#[tokio::test]
async fn text_comes_as_deltas_and_events_as_raw_events() {
    for protocol in BOTH {
        let script = Script::new([Reply::text("Grüße, 世界!").pieces(2)]);
        let model = script.model(protocol);
        let events: Vec<_> = model.stream(hello()).collect().await;
        let events: Vec<ModelEvent> = events.into_iter().map(Result::unwrap).collect();
        let text: String = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::TextDelta { text, .. } => Some(&**text),
                _ => None,
            })
            .collect();
        assert_eq!(text, "Grüße, 世界!");
        let raw = events
            .iter()
            .filter(|event| matches!(event, ModelEvent::Raw(_)));
        assert!(raw.count() > 4);
        assert!(matches!(events.last(), Some(ModelEvent::Completed(_))));
    }
}

#[tokio::test]
async fn only_new_items_are_sent_to_a_server_that_keeps_the_conversation() {
    let replies = || {
        [
            Reply::call("call_1", "lookup", "{}"),
            Reply::call(
                "call_2",
                "transfer_to_billing",
                r#"{"reason":"r","priority":1}"#,
            ),
            Reply::text("Done."),
        ]
    };
    for streamed in [false, true] {
        let script = Script::new(replies());
        let runner = Runner::new(&triage())
            .model(script.model(Protocol::Responses))
            .server_history(ServerHistory::Responses { previous: None });
        let result = if streamed {
            runner.stream("Hi").finish().await.unwrap()
        } else {
            runner.run("Hi").await.unwrap()
        };
        assert_eq!(result.last_agent().name(), "Billing");
        let bodies = script.bodies();
        let sent: Vec<usize> = bodies
            .iter()
            .map(|b| b["input"].as_array().unwrap().len())
            .collect();
        assert_eq!(sent, [1, 1, 1]);
        let follows: Vec<bool> = bodies
            .iter()
            .map(|b| b["previous_response_id"].is_string())
            .collect();
        assert_eq!(follows, [false, true, true]);
        assert_ne!(
            bodies[1]["previous_response_id"],
            bodies[2]["previous_response_id"]
        );
    }
    let script = Script::new(replies());
    let runner = Runner::new(&triage())
        .model(script.model(Protocol::Responses))
        .conversation("conv_1");
    runner.run("Hi").await.unwrap();
    for body in script.bodies() {
        assert_eq!(body["conversation"], "conv_1");
        assert_eq!(body["previous_response_id"], Value::Null);
    }
    // Chat Completions has no conversations.
    let script = Script::new(replies());
    let runner = Runner::new(&triage())
        .model(script.model(Protocol::Chat))
        .conversation("conv_1");
    let error = runner.run("Hi").await.unwrap_err();
    assert!(error.to_string().contains("ResponsesModel"), "{error}");
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn many_runs_share_one_client() {
    let replies = (0..200).map(|_| Reply::text("Hi.").frames(9));
    let script = Script::new(replies);
    let model = model(&script.endpoint(), Protocol::Responses);
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..200 {
        let model = model.clone();
        runs.spawn(async move {
            ask(&model, hello(), number % 2 == 0)
                .await
                .map_err(|e| e.to_string())
        });
    }
    while let Some(answer) = runs.join_next().await {
        assert_eq!(text_of(&answer.unwrap().unwrap()), "Hi.");
    }
}
