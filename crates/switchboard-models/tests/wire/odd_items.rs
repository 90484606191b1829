//! Items in forms that the server would reject.

use fake_provider::Reply;
use serde_json::{Value, json};
use switchboard_core::{Agent, Item, ModelRequest, Runner};
use switchboard_models::{ModelError, ModelErrorKind};

use crate::{BOTH, Protocol, Script, ask};

/// The items or messages sent for a conversation, which the provider has validated.
async fn sent(protocol: Protocol, items: &[Value]) -> Vec<Value> {
    let items: Vec<String> = items.iter().map(Value::to_string).collect();
    let items: Vec<&str> = items.iter().map(|item| &**item).collect();
    sent_json(protocol, &items).await
}

async fn sent_json(protocol: Protocol, items: &[&str]) -> Vec<Value> {
    let script = Script::new([Reply::text("Hi.")]);
    let parsed = items.iter().map(|item| Item::from_json(*item).unwrap());
    let request = ModelRequest::new(parsed.collect::<Vec<_>>());
    let answer = ask(&script.model(protocol), request, false).await;
    answer.unwrap_or_else(|error| panic!("{items:?}: {error}"));
    let field = match protocol {
        Protocol::Responses => "input",
        Protocol::Chat => "messages",
    };
    script.bodies()[0][field].as_array().unwrap().clone()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": format!("out {id}")})
}

/// Messages in short: role, text and calls.
fn short(messages: &[Value]) -> Vec<String> {
    let short = |message: &Value| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
        let role = message["role"].as_str().unwrap();
        let content = message["content"].as_str().unwrap_or_default();
        format!("{role}:{}:{}", content.replace('\n', "+"), calls.join("+"))
    };
    messages.iter().map(short).collect()
}

#[tokio::test]
async fn over_chat_every_call_is_followed_by_its_output() {
    for (items, expected) in [
        (
            vec![
                assistant("a"),
                call("1"),
                assistant("b"),
                output("1"),
                assistant("c"),
            ],
            vec!["assistant:a+b:1", "tool:out 1:", "assistant:c:"],
        ),
        (
            vec![
                assistant("a"),
                call("1"),
                assistant("b"),
                call("2"),
                output("2"),
                output("1"),
            ],
            vec!["assistant:a+b:1+2", "tool:out 1:", "tool:out 2:"],
        ),
        (
            vec![
                call("1"),
                call("2"),
                output("1"),
                assistant("b"),
                output("2"),
            ],
            vec![
                "assistant::1+2",
                "tool:out 1:",
                "tool:out 2:",
                "assistant:b:",
            ],
        ),
        (
            vec![call("1"), user("x"), output("1")],
            vec!["assistant::1", "tool:out 1:", "user:x:"],
        ),
        (
            vec![output("1"), call("1"), user("x")],
            vec!["assistant::1", "tool:out 1:", "user:x:"],
        ),
        (
            vec![call("1"), output("1"), call("2"), output("2")],
            vec!["assistant::1", "tool:out 1:", "assistant::2", "tool:out 2:"],
        ),
        // The same identifier for another call.
        (
            vec![call("1"), output("1"), call("1"), output("1")],
            vec!["assistant::1", "tool:out 1:", "assistant::1", "tool:out 1:"],
        ),
        // Orphaned calls and outputs.
        (
            vec![
                call("1"),
                call("2"),
                output("1"),
                output("3"),
                assistant("a"),
                user("x"),
            ],
            vec!["assistant::1", "tool:out 1:", "assistant:a:", "user:x:"],
        ),
        (
            vec![
                assistant("a"),
                call("1"),
                assistant("b"),
                json!({"role": "tool", "content": "x"}),
            ],
            vec!["assistant:a:", "assistant:b:"],
        ),
        (
            vec![
                call("1"),
                json!({"role": "tool", "tool_call_id": "1", "content": "x"}),
            ],
            vec!["assistant::1", "tool:x:"],
        ),
    ] {
        assert_eq!(short(&sent(Protocol::Chat, &items).await), expected);
    }
}

#[tokio::test]
async fn a_conversation_after_a_handoff_continues_over_the_other_protocol() {
    let transfer = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1",
        "name": "transfer_to_billing", "arguments": "{}", "status": "completed"});
    let mut last = assistant("Passing you on.");
    last["id"] = json!("msg_2");
    let one = Script::new([Reply::items([assistant("Let me see."), transfer, last])]);
    let two = Script::new([Reply::text("Done.")]);
    let billing: Agent = Agent::new("Billing").model(two.model(Protocol::Chat));
    let triage = Agent::new("Triage")
        .model(one.model(Protocol::Responses))
        .handoff(billing);
    let result = Runner::new(&triage).run("Hello").await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    let messages = two.bodies()[0]["messages"].clone();
    assert_eq!(messages[1]["content"], "Let me see.\nPassing you on.");
    assert_eq!(messages[2]["role"], "tool");
}

#[tokio::test]
async fn over_chat_odd_items_are_repaired() {
    for content in [json!([]), Value::Null] {
        let message = json!({"role": "user", "content": content});
        assert_eq!(sent(Protocol::Chat, &[message]).await[0]["content"], "");
    }
    let picture = json!({"type": "input_image", "image_url": "u"});
    let system = json!({"role": "system", "content": [picture]});
    let items_sent = sent(Protocol::Chat, &[system]).await;
    assert_eq!(
        items_sent[0]["content"][0]["text"],
        "[a picture was left out]"
    );

    for (arguments, expected) in [
        (json!({"a": 1}), r#"{"a":1}"#),
        (Value::Null, "{}"),
        (json!(""), "{}"),
    ] {
        let mut called = call("1");
        called["arguments"] = arguments;
        let items_sent = sent(Protocol::Chat, &[called, output("1")]).await;
        let function = &items_sent[0]["tool_calls"][0]["function"];
        assert_eq!(function["arguments"], expected);
    }
    // Calls and outputs without identifiers are paired in order.
    let mut items = [call(""), output(""), call(""), output("")];
    for item in &mut items {
        item["call_id"] = Value::Null;
    }
    items[3]["output"] = json!("second");
    let items_sent = sent(Protocol::Chat, &items).await;
    assert_eq!(items_sent[3]["content"], "second");
    assert_ne!(items_sent[1]["tool_call_id"], items_sent[3]["tool_call_id"]);
}

#[tokio::test]
async fn over_chat_no_output_is_lost() {
    for (value, expected) in [
        (
            json!([{"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "u"}]),
            "t\n[a picture was left out]",
        ),
        (
            json!([{"stdout": "files", "stderr": ""}]),
            r#"{"stdout":"files","stderr":""}"#,
        ),
        (json!({"a": 1}), r#"{"a":1}"#),
        (
            json!({"type": "computer_screenshot", "image_url": "data:"}),
            "[a picture was left out]",
        ),
        (Value::Null, ""),
    ] {
        let mut answer = output("1");
        answer["output"] = value;
        let items_sent = sent(Protocol::Chat, &[call("1"), answer]).await;
        assert_eq!(items_sent[1]["content"], expected);
    }
}

#[tokio::test]
async fn over_chat_lone_surrogates_are_replaced() {
    let call = call("1").to_string();
    let items = [
        r#"{"role":"user","content":"a\ud800b"}"#,
        r#"{"role":"user","content":[{"type":"input_text","text":"a\ud800b"}]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud800b"}]}"#,
        &call,
        r#"{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"a\ud800b"}]}"#,
    ];
    let items_sent = sent_json(Protocol::Chat, &items).await;
    let part = json!([{"type": "text", "text": "a\u{fffd}b"}]);
    let contents: Vec<&Value> = items_sent
        .iter()
        .map(|message| &message["content"])
        .collect();
    let text = &json!("a\u{fffd}b");
    assert_eq!(contents, [text, &part, text, text]);
}

#[tokio::test]
async fn over_chat_an_item_that_cannot_be_repaired_is_an_error() {
    let mut nameless = call("1");
    nameless["name"] = Value::Null;
    for items in [
        vec![json!({"type": "reasoning", "id": "rs_1", "summary": []})],
        vec![json!({"role": "tool", "content": "x"})],
        vec![json!({"role": null, "content": "x"})],
        vec![nameless, output("1")],
        vec![],
    ] {
        let script = Script::new([Reply::text("Hi.")]);
        let parsed = items.iter().map(|item| Item::from_value(item).unwrap());
        let request = ModelRequest::new(parsed.collect::<Vec<_>>());
        let error = ask(&script.model(Protocol::Chat), request, false).await;
        let error: Box<ModelError> = error.unwrap_err().downcast().unwrap();
        assert_eq!(error.kind(), ModelErrorKind::Unsupported, "{items:?}");
        assert!(script.requests().is_empty());
    }
}

#[tokio::test]
async fn over_responses_odd_items_are_repaired() {
    let text = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    for (item, expected) in [
        (
            json!({"type": "message", "id": null, "status": null, "role": "assistant",
                   "content": [{"type": "output_text", "text": "t", "annotations": null}]}),
            json!({"type": "message", "role": "assistant", "content": [text("t")],
                   "status": "completed"}),
        ),
        (
            json!({"type": "message", "role": "assistant", "status": "completed",
                   "content": [text("a"), {"type": "output_text", "text": "b"}]}),
            json!({"type": "message", "role": "assistant", "status": "completed",
                   "content": [text("a"), text("b")]}),
        ),
        (
            json!({"type": "message", "id": format!("msg_{}", "a".repeat(90)),
                   "role": "assistant", "status": "completed", "content": [text("a")]}),
            json!({"type": "message", "role": "assistant", "status": "completed",
                   "content": [text("a")]}),
        ),
        (
            json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                   "content": "t"}),
            json!({"type": "message", "role": "assistant", "content": "t"}),
        ),
        (
            json!({"role": "user", "id": "msg_1", "content": null}),
            json!({"role": "user", "content": ""}),
        ),
        (
            json!({"role": "user",
                   "content": [{"type": "input_image", "image_url": "u", "detail": null}]}),
            json!({"role": "user",
                   "content": [{"type": "input_image", "image_url": "u", "detail": "auto"}]}),
        ),
        (
            json!({"type": "web_search_call", "id": "ws_1", "status": null,
                   "action": {"type": "search", "query": "q"}}),
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
                   "action": {"type": "search", "query": "q"}}),
        ),
        (
            json!({"type": "local_shell_call_output", "call_id": "c", "output": "x"}),
            json!({"type": "local_shell_call_output", "id": "c", "output": "x"}),
        ),
    ] {
        let items_sent = sent(Protocol::Responses, std::slice::from_ref(&item)).await;
        assert_eq!(items_sent, [expected], "{item}");
    }
    for (value, expected) in [
        (json!({"a": 1}), json!(r#"{"a":1}"#)),
        (json!([1, 2]), json!("[1,2]")),
        (Value::Null, json!("")),
        (
            json!([{"type": "input_text", "text": "t"}]),
            json!([{"type": "input_text", "text": "t"}]),
        ),
    ] {
        let (mut called, mut answer) = (call("1"), output("1"));
        called["arguments"] = json!({});
        answer["output"] = value;
        let items_sent = sent(Protocol::Responses, &[called, answer]).await;
        assert_eq!(items_sent[0]["arguments"], "{}");
        assert_eq!(items_sent[1]["output"], expected);
    }
}

#[tokio::test]
async fn items_after_omitted_reasoning_lose_their_identifier_or_are_omitted() {
    let items = [
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
               "action": {"type": "search", "query": "q"}}),
        json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "n", "input": "x"}),
        json!({"type": "computer_call", "id": "cu_1", "call_id": "d", "status": "completed",
               "pending_safety_checks": [], "action": {"type": "screenshot"}}),
        assistant("a"),
        json!({"type": "custom_tool_call_output", "call_id": "c", "output": "y"}),
        json!({"type": "computer_call_output", "call_id": "d",
               "output": {"type": "computer_screenshot", "image_url": "u"}}),
        // Another answer, without reasoning.
        json!({"type": "web_search_call", "id": "ws_2", "status": "completed",
               "action": {"type": "search", "query": "q"}}),
    ];
    let items_sent = sent(Protocol::Responses, &items).await;
    let kinds: Vec<_> = items_sent
        .iter()
        .map(|item| item["type"].as_str())
        .collect();
    let expected = [
        "custom_tool_call",
        "message",
        "custom_tool_call_output",
        "web_search_call",
    ];
    assert_eq!(kinds, expected.map(Some));
    assert!(items_sent[..3].iter().all(|item| item.get("id").is_none()));
    assert_eq!(items_sent[3]["id"], "ws_2");
}

#[tokio::test]
async fn valid_items_are_sent_unchanged() {
    let items = [
        user("null \"id\" \"status\""),
        assistant("a \"annotations\" \"null\""),
    ];
    for protocol in BOTH {
        let items_sent = sent(protocol, &items).await;
        match protocol {
            Protocol::Responses => assert_eq!(items_sent, items),
            Protocol::Chat => assert_eq!(items_sent[0], items[0]),
        }
    }
}

#[tokio::test]
async fn over_responses_an_item_that_cannot_be_repaired_is_an_error() {
    for protocol in BOTH {
        for items in [
            vec![],
            vec![r#"{"type":"function_call","call_id":"c","name":null,"arguments":"{}"}"#],
        ] {
            let script = Script::new([Reply::text("Hi.")]);
            let items = items.iter().map(|item| Item::from_json(*item).unwrap());
            let request = ModelRequest::new(items.collect::<Vec<_>>());
            for streamed in [false, true] {
                let error = ask(&script.model(protocol), request.clone(), streamed).await;
                let error = error.unwrap_err();
                let error = error.downcast_ref::<ModelError>().unwrap();
                let kind = ModelErrorKind::Unsupported;
                assert_eq!(error.kind(), kind, "{protocol:?}: {error}");
            }
            assert!(script.requests().is_empty());
        }
    }
    let call = r#"{"type":"function_call","call_id":null,"name":"t","arguments":"{}"}"#;
    let script = Script::new([Reply::text("Hi.")]);
    let call = Item::from_json(call).unwrap();
    let request = ModelRequest::new(vec![call]);
    let asked = ask(&script.model(Protocol::Responses), request, false).await;
    assert!(asked.unwrap_err().to_string().contains("call_id"));
    assert!(script.requests().is_empty());
}
