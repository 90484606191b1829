//! Conversations that move from one provider to another.

use fake_provider::Reply;
use serde_json::{Value, json};
use switchboard_core::{Agent, Input, Item, ModelRequest, Runner, handoff, tool};

use crate::{BOTH, Protocol, Script, ask};

fn items(values: &[Value]) -> Vec<Item> {
    values
        .iter()
        .map(|value| Item::from_value(value).unwrap())
        .collect()
}

/// A conversation with every kind of item in it.
fn everything() -> Vec<Value> {
    vec![
        json!({"role": "system", "content": "Be kind."}),
        json!({"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}),
        json!({"role": "user", "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
               "action": {"type": "search", "query": "x"}}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "A cat.", "annotations": []}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
               "arguments": "", "status": "completed"}),
        json!({"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "look",
               "arguments": "{\"at\":\"é\"}", "status": "completed"}),
        json!({"type": "function_call_output", "call_id": "call_1", "output": "one"}),
        json!({"type": "function_call_output", "call_id": "call_2",
               "output": [{"type": "input_text", "text": "two"}]}),
        json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_3", "name": "free",
               "input": "anything"}),
        json!({"type": "custom_tool_call_output", "call_id": "call_3", "output": "three"}),
        json!({"role": "assistant", "content": "So it is a cat."}),
        json!({"role": "user", "content": "Thanks"}),
    ]
}

#[tokio::test]
async fn every_kind_of_item_is_sent_so_that_the_server_accepts_it() {
    for protocol in BOTH {
        let script = Script::new([Reply::text("Bye.")]);
        let request = ModelRequest::new(items(&everything()));
        ask(&script.model(protocol), request, false).await.unwrap();
        let body = &script.bodies()[0];
        match protocol {
            Protocol::Responses => {
                let sent = body["input"].as_array().unwrap();
                // The reasoning came from OpenAI, and this is another server; the search needs the
                // reasoning.
                assert_eq!(sent.len(), everything().len() - 2);
                assert_eq!(sent[2]["content"][1]["detail"], "auto");
                for item in &sent[3..6] {
                    assert!(item.get("id").is_none(), "its reasoning stayed behind");
                }
            }
            Protocol::Chat => {
                let sent = body["messages"].as_array().unwrap();
                let roles: Vec<&str> = sent.iter().map(|m| m["role"].as_str().unwrap()).collect();
                assert_eq!(
                    roles,
                    [
                        "system",
                        "system",
                        "user",
                        "assistant",
                        "tool",
                        "tool",
                        "assistant",
                        "tool",
                        "assistant",
                        "user"
                    ]
                );
                assert_eq!(sent[3]["content"], "A cat.");
                let calls = sent[3]["tool_calls"].as_array().unwrap();
                assert_eq!(calls[0]["function"]["arguments"], "{}");
                assert_eq!(calls[1]["function"]["arguments"], "{\"at\":\"é\"}");
                assert_eq!(sent[5]["content"], "two");
                let free = &sent[6]["tool_calls"][0]["function"];
                assert_eq!(free["arguments"], r#"{"input":"anything"}"#);
            }
        }
    }
}

#[tokio::test]
async fn an_answer_of_one_protocol_is_sent_over_the_other() {
    let thought = json!({"type": "reasoning", "id": "rs_1",
                         "summary": [{"type": "summary_text", "text": "Hm."}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1",
                      "name": "transfer_to_second", "arguments": "{}", "status": "completed"});
    for first in BOTH {
        for second in BOTH {
            let one = Script::new([Reply::items([thought.clone(), call.clone()])]);
            let two = Script::new([Reply::call("call_2", "look", "{}"), Reply::text("Done.")]);
            let target: Agent = Agent::new("Second")
                .model(two.model(second))
                .tool(tool("look").run(|_ctx, (): ()| "seen"));
            let agent = Agent::new("First")
                .model(one.model(first))
                .handoff(handoff(&target));
            let result = Runner::new(&agent).run("Hi").await;
            let result = result.unwrap_or_else(|error| panic!("{first:?} to {second:?}: {error}"));
            assert_eq!(result.final_text(), "Done.");
            let sent = two.bodies();
            let messages = sent[1].to_string();
            assert!(
                !messages.contains("provider_data") && !messages.contains("__fake_id__"),
                "{messages}"
            );
            // The whole conversation is continued over the other protocol.
            let on = Script::new([Reply::text("On.")]);
            let agent: Agent = Agent::new("A").model(on.model(first));
            let input: Input = result.to_input_list().into();
            Runner::new(&agent).run(input).await.unwrap();
            assert_eq!(on.bodies().len(), 1);
        }
    }
}

#[tokio::test]
async fn reasoning_is_sent_only_to_its_origin() {
    let thought =
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz", "summary": []});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
                      "arguments": "{}", "status": "completed"});
    let script = Script::new([
        Reply::items([thought, call]),
        Reply::text("Seen."),
        Reply::text("Again."),
    ]);
    let agent: Agent = Agent::new("A").tool(tool("look").run(|_ctx, (): ()| "a cat"));
    let runner = Runner::new(&agent).model(script.model(Protocol::Responses));
    let result = runner.run("Look").await.unwrap();
    let back = &script.bodies()[1]["input"];
    assert_eq!(
        back[1],
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz", "summary": []})
    );
    assert_eq!(back[2]["id"], "fc_1");

    // The same conversation with another model of the same server.
    let other = script.endpoint().connect().unwrap();
    let other = switchboard_models::ResponsesModel::new(&other, "another");
    let input: Input = result.to_input_list().into();
    Runner::new(&agent).model(other).run(input).await.unwrap();
    let sent = &script.bodies()[2]["input"];
    assert_eq!(sent[1]["type"], "function_call");
    assert!(sent[1].get("id").is_none());
}

#[tokio::test]
async fn an_item_that_cannot_be_sent_is_an_error_before_the_request() {
    for item in [
        json!({"type": "item_reference", "id": "msg_1"}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}),
        json!({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}),
        json!({"role": "user", "content": [{"type": "input_file", "file_url": "u"}]}),
        json!({"role": "user", "content": [{"type": "hologram"}]}),
    ] {
        let script = Script::new([Reply::text("Hi.")]);
        let request = ModelRequest::new(items(std::slice::from_ref(&item)));
        let error = ask(&script.model(Protocol::Chat), request, false)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("Chat Completions cannot carry"),
            "{item}: {error}"
        );
        assert!(script.requests().is_empty());
    }
    // Unknown items are left out.
    let script = Script::new([Reply::text("Hi.")]);
    let request = ModelRequest::new(items(&[
        json!({"type": "hologram", "id": "h"}),
        json!({"role": "user", "content": "Hi"}),
    ]));
    ask(&script.model(Protocol::Chat), request, false)
        .await
        .unwrap();
    assert_eq!(script.bodies()[0]["messages"].as_array().unwrap().len(), 1);
}
