//! OpenAI's protocols.

#[cfg(feature = "http-models")]
mod incomplete;
mod lost;
mod repeated;
mod temporary;

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;

use crate::support::{SseEvent, TestServer, answer, with_json};

fn weather() -> Value {
    json!({"type": "function", "name": "get_weather", "description": "The weather of a city.",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}})
}

fn chat_weather() -> Value {
    let mut function = weather();
    function.as_object_mut().unwrap().remove("type");
    json!({"type": "function", "function": function})
}

fn types(events: &[SseEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| event.json()["type"].as_str().unwrap().to_owned())
        .collect()
}

fn output_text(response: &Value) -> String {
    let items = response["output"].as_array().unwrap().iter();
    items
        .filter_map(|item| item["content"][0]["text"].as_str())
        .collect()
}

#[tokio::test]
async fn each_team_and_each_agent_is_a_model() {
    let server = TestServer::start().await;
    let models = server.client.get("/v1/models").await.ok();
    let names: Vec<&str> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "support",
            "support/Triage",
            "support/Billing",
            "support/Ann"
        ]
    );
    assert_eq!(
        server.client.get("/v1/models/support/Billing").await.ok()["id"],
        "support/Billing"
    );
    assert_eq!(
        server.client.get("/v1/models/support%2FBilling").await.ok()["id"],
        "support/Billing"
    );
    assert_eq!(
        server.client.get("/v1/models/gpt-5").await.error_code(),
        (404, "not_found".to_owned())
    );
}

#[tokio::test]
async fn a_streamed_response_has_one_beginning_and_one_end_over_a_handoff() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "my bill", "stream": true});
    let events = server.client.events("/v1/responses", body).await;
    let types = types(&events);
    for once in [
        "response.created",
        "response.in_progress",
        "response.completed",
    ] {
        assert_eq!(
            types.iter().filter(|kind| *kind == once).count(),
            1,
            "{once}"
        );
    }
    assert_eq!(types.last().unwrap(), "response.completed");
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event.json()["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let deltas = events
        .iter()
        .filter(|event| event.name.as_deref() == Some("response.output_text.delta"));
    let text: String = deltas
        .map(|event| event.json()["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(text, "Billing: you said my bill");
    let response = &events.last().unwrap().json()["response"];
    assert_eq!(output_text(response), text);
    assert_eq!(response["output"][0]["agent"], "Billing");
    assert_eq!(
        response["switchboard"]["handoffs"],
        json!([{"from": "Triage", "to": "Billing", "status": "taken"}])
    );
    assert_eq!(response["usage"]["output_tokens"], 5);
    let stored = server
        .client
        .get(&format!(
            "/v1/responses/{}",
            response["id"].as_str().unwrap()
        ))
        .await
        .ok();
    assert_eq!(stored, *response);
}

#[tokio::test]
async fn a_response_goes_on_from_another_and_branches_where_it_must() {
    let server = TestServer::start().await;
    let create = |body: Value| async { server.client.post("/v1/responses", body).await.ok() };
    let first = create(json!({"model": "support", "input": "my bill"})).await;
    let second =
        create(json!({"model": "support", "input": "two", "previous_response_id": first["id"]}))
            .await;
    assert_eq!(output_text(&second), "Billing: you said two");
    assert_eq!(second["conversation"], first["conversation"]);
    let branch =
        create(json!({"model": "support", "input": "other", "previous_response_id": first["id"]}))
            .await;
    assert_eq!(output_text(&branch), "Billing: you said other");
    assert_ne!(branch["conversation"], first["conversation"]);
    let id = branch["conversation"]["id"].as_str().unwrap();
    let shown = server
        .client
        .get(&format!("/api/conversations/{id}"))
        .await
        .ok();
    assert!(!shown.to_string().contains("you said two"));

    let id = second["id"].as_str().unwrap();
    let items = server
        .client
        .get(&format!("/v1/responses/{id}/input_items"))
        .await
        .ok();
    assert_eq!(items["data"][0]["content"][0]["text"], "two");
    assert_eq!(
        server
            .client
            .delete(&format!("/v1/responses/{id}"))
            .await
            .ok()["deleted"],
        true
    );
    assert_eq!(
        server
            .client
            .get(&format!("/v1/responses/{id}"))
            .await
            .status,
        404
    );
    let body = json!({"model": "support", "input": "x", "previous_response_id": id});
    assert_eq!(server.client.post("/v1/responses", body).await.status, 404);
}

#[tokio::test]
async fn a_named_conversation_goes_on_in_every_protocol() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "my bill", "conversation": "tuesday"});
    server.client.post("/v1/responses", body).await.ok();
    let body = json!({"model": "support", "input": "two", "conversation": {"id": "tuesday"}});
    let second = server.client.post("/v1/responses", body).await.ok();
    assert_eq!(output_text(&second), "Billing: you said two");
    let third = server
        .client
        .post(
            "/api/conversations/tuesday/messages",
            json!({"input": "three"}),
        )
        .await
        .ok();
    assert_eq!(third["output"], "Billing: you said three");
}

#[tokio::test]
async fn the_call_of_a_clients_tool_ends_the_response_and_its_output_goes_on_with_the_agent() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "weather for my bill", "tools": [weather()]});
    let first = server.client.post("/v1/responses", body).await.ok();
    assert_eq!(first["status"], "completed");
    let call = first["output"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&call["type"], &call["name"], &call["agent"]),
        (
            &json!("function_call"),
            &json!("get_weather"),
            &json!("Billing")
        )
    );
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "rain"});

    // With the response before it, and without the tools.
    let body = json!({"model": "support", "input": [output], "previous_response_id": first["id"]});
    let second = server.client.post("/v1/responses", body).await.ok();
    assert_eq!(output_text(&second), "Billing: I got rain.");
    let body = json!({"model": "support", "input": [output], "previous_response_id": second["id"]});
    assert_eq!(server.client.post("/v1/responses", body).await.status, 400);
}

#[tokio::test]
async fn a_client_that_keeps_its_conversation_goes_on_with_the_agent_that_called() {
    let server = TestServer::start().await;
    for store in [true, false] {
        let question = json!({"role": "user", "content": "weather for my bill"});
        let body =
            json!({"model": "support", "input": [question], "tools": [weather()], "store": store});
        let first = server.client.post("/v1/responses", body).await.ok();
        let mut call = first["output"].as_array().unwrap().last().unwrap().clone();
        call.as_object_mut().unwrap().remove("agent");
        let output =
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": "rain"});
        let body = json!({"model": "support", "input": [question, call, output], "tools": [weather()], "store": store});
        let second = server.client.post("/v1/responses", body.clone()).await.ok();
        assert_eq!(output_text(&second), "Billing: I got rain.");
        let id = second["id"].as_str().unwrap();
        assert_eq!(
            server
                .client
                .get(&format!("/v1/responses/{id}"))
                .await
                .status,
            if store { 200 } else { 404 }
        );
        // The wait is over; the client's record is all that there is.
        let third = server.client.post("/v1/responses", body).await.ok();
        assert_eq!(third["status"], "completed");
    }
    let left = server.client.get("/api/conversations").await.ok();
    let left = left["conversations"].as_array().unwrap();
    assert!(
        left.iter()
            .all(|one| !one["id"].as_str().unwrap().starts_with("temp_")),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_clients_tool_is_called_though_another_agent_has_one_of_its_name() {
    let server = TestServer::start().await;
    let refund = json!({"type": "function", "name": "refund", "parameters": {"type": "object"}});
    let body = json!({"model": "support", "input": "refund please", "tools": [refund]});
    let first = server.client.post("/v1/responses", body).await.ok();
    let call = &first["output"][0];
    assert_eq!(
        (&call["type"], &call["name"], &call["agent"]),
        (&json!("function_call"), &json!("refund"), &json!("Triage")),
        "{first}"
    );
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "done"});
    let body = json!({"model": "support", "input": [output], "previous_response_id": first["id"]});
    let second = server.client.post("/v1/responses", body).await.ok();
    assert_eq!(output_text(&second), "Triage: I got done.");

    // The tool of the agent that has one waits for its approval.
    let body = json!({"model": "support", "input": "refund my bill", "tools": [refund]});
    let third = server.client.post("/v1/responses", body).await.ok();
    assert_eq!(third["incomplete_details"]["reason"], "waiting");
    let call = &third["switchboard"]["waiting"][0]["call_id"];
    let output = json!({"type": "function_call_output", "call_id": call, "output": "done"});
    let body = json!({"model": "support", "input": [output], "previous_response_id": third["id"]});
    assert_eq!(server.client.post("/v1/responses", body).await.status, 400);
}

#[tokio::test]
async fn a_failing_run_is_a_failed_response_in_a_stream_that_has_begun() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "fail", "stream": true});
    let events = server.client.events("/v1/responses", body).await;
    let last = events.last().unwrap().json();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["error"]["code"], "server_error");
    let plain = server
        .client
        .post(
            "/v1/responses",
            json!({"model": "support", "input": "fail"}),
        )
        .await
        .ok();
    assert_eq!(plain["status"], "failed");
}

#[tokio::test]
async fn an_approval_makes_a_response_incomplete_and_is_decided_elsewhere() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "refund my bill", "conversation": "c1"});
    let response = server.client.post("/v1/responses", body).await.ok();
    assert_eq!(response["status"], "incomplete");
    assert_eq!(response["incomplete_details"]["reason"], "waiting");
    let waiting = &response["switchboard"]["waiting"][0];
    assert_eq!(waiting["tool"], "refund");
    let body = json!({"decisions": [{"call_id": waiting["call_id"], "approve": true}]});
    let done = server
        .client
        .post("/api/conversations/c1/decisions", body)
        .await
        .ok();
    assert_eq!(done["status"], "completed");
}

#[tokio::test]
async fn instructions_of_the_client_reach_the_model_and_are_not_stored() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "hello", "conversation": "c1", "instructions": "Be brief."});
    server.client.post("/v1/responses", body).await.ok();
    let shown = server.client.get("/api/conversations/c1").await;
    assert!(!shown.text.contains("Be brief."));
}

#[tokio::test]
async fn a_response_is_cancelled() {
    let server = TestServer::start().await;
    let body = json!({"model": "support", "input": "slow please", "stream": true});
    let request = with_json(server.client.request("POST", "/v1/responses"), &body);
    let mut stream = server.client.open(request).await;
    let created = stream.next().await.unwrap().json();
    let id = created["response"]["id"].as_str().unwrap().to_owned();
    while stream.next().await.unwrap().name.as_deref() != Some("response.output_text.delta") {}
    let cancelled = server
        .client
        .post(&format!("/v1/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    assert_eq!(cancelled["status"], "incomplete");
    assert_eq!(cancelled["incomplete_details"]["reason"], "cancelled");
    let rest = stream.rest().await;
    assert_eq!(types(&rest).last().unwrap(), "response.incomplete");
}

#[tokio::test]
async fn a_response_of_another_process_is_in_progress_until_it_has_ended_or_is_cancelled() {
    let store = Conversations::in_memory();
    let one = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let other = TestServer::with(|builder| builder.conversations(store)).await;
    let begin = async || {
        let body = json!({"model": "support", "input": "slow please", "stream": true});
        let request = with_json(one.client.request("POST", "/v1/responses"), &body);
        let mut stream = one.client.open(request).await;
        let created = stream.next().await.unwrap().json();
        let id = created["response"]["id"].as_str().unwrap().to_owned();
        while stream.next().await.unwrap().name.as_deref() != Some("response.output_text.delta") {}
        (stream, format!("/v1/responses/{id}"))
    };
    let (stream, path) = begin().await;
    assert_eq!(other.client.get(&path).await.ok()["status"], "in_progress");
    one.model.gate.add_permits(1);
    stream.rest().await;
    assert_eq!(other.client.get(&path).await.ok()["status"], "completed");

    let (stream, path) = begin().await;
    let cancel = format!("{path}/cancel");
    let cancelled = other.client.post(&cancel, json!({})).await.ok();
    assert_eq!(cancelled["status"], "incomplete");
    let rest = stream.rest().await;
    assert_eq!(types(&rest).last().unwrap(), "response.incomplete");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_and_not_ignored() {
    let server = TestServer::start().await;
    for (path, body) in [
        ("/v1/responses", json!({"model": "support"})),
        ("/v1/responses", json!({"model": "support", "input": ""})),
        (
            "/v1/responses",
            json!({"model": "support", "input": "x", "background": true}),
        ),
        (
            "/v1/responses",
            json!({"model": "support", "input": "x", "tools": [{"type": "web_search"}]}),
        ),
        (
            "/v1/responses",
            json!({"model": "support", "input": "x", "temperature": 9}),
        ),
        (
            "/v1/responses",
            json!({"model": "support", "input": "x", "text": {"format": {"type": "json_object"}}}),
        ),
        (
            "/v1/responses",
            json!({"model": "support", "input": "x", "conversation": "../x"}),
        ),
        (
            "/v1/responses",
            json!({"model": "support", "input": [{"type": "item_reference", "id": "m"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "support", "messages": []}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "support", "messages": [{"role": "user", "content": "x"}], "n": 2}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "support", "messages": [{"role": "ghost", "content": "x"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": "x"}]}),
        ),
    ] {
        let answer = server.client.post(path, body.clone()).await;
        assert_eq!(
            answer.error_code(),
            (400, "invalid_request".to_owned()),
            "{body}"
        );
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
}

fn chat(messages: Value) -> Value {
    json!({"model": "support", "messages": messages})
}

#[tokio::test]
async fn a_chat_completion_answers_over_a_handoff() {
    let server = TestServer::start().await;
    let body = chat(
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "my bill"}]),
    );
    let completion = server.client.post("/v1/chat/completions", body).await.ok();
    assert_eq!(completion["object"], "chat.completion");
    assert_eq!(
        completion["choices"][0]["message"]["content"],
        "Billing: you said my bill"
    );
    assert_eq!(completion["choices"][0]["finish_reason"], "stop");
    assert_eq!(completion["usage"]["total_tokens"], 15);
    assert_eq!(completion["switchboard"]["agent"], "Billing");
    let left = server.client.get("/api/conversations").await.ok();
    assert_eq!(left["conversations"], json!([]));
}

#[tokio::test]
async fn a_chat_is_streamed_with_its_usage() {
    let server = TestServer::start().await;
    let mut body = chat(json!([{"role": "user", "content": "my bill"}]));
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let events = server.client.events("/v1/chat/completions", body).await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let chunks: Vec<Value> = events[..events.len() - 1]
        .iter()
        .map(SseEvent::json)
        .collect();
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "Billing: you said my bill");
    let reasons: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["finish_reason"])
        .filter(|reason| !reason.is_null())
        .collect();
    assert_eq!(reasons, [&json!("stop")]);
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens"], 5);
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
}

#[tokio::test]
async fn a_chat_calls_the_clients_tools_and_goes_on_with_the_agent() {
    let server = TestServer::start().await;
    let question = json!({"role": "user", "content": "weather for my bill"});
    let mut body = chat(json!([question]));
    body["tools"] = json!([chat_weather()]);
    let first = server
        .client
        .post("/v1/chat/completions", body.clone())
        .await
        .ok();
    assert_eq!(first["choices"][0]["finish_reason"], "tool_calls");
    let message = first["choices"][0]["message"].clone();
    let output =
        json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "rain"});
    body["messages"] = json!([question, message, output]);
    let second = server.client.post("/v1/chat/completions", body).await.ok();
    assert_eq!(
        second["choices"][0]["message"]["content"],
        "Billing: I got rain."
    );
}

#[tokio::test]
async fn the_chat_of_open_webui_is_the_conversation_and_its_titles_do_not_touch_it() {
    let server = TestServer::start().await;
    let send = |messages: Value| {
        let request = server.client.request("POST", "/v1/chat/completions");
        let request = request.header("X-OpenWebUI-Chat-Id", "chat-7");
        answer(with_json(request, &chat(messages)))
    };
    let text = |answer: &Value| {
        answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = send(json!([{"role": "user", "content": "my bill"}]))
        .await
        .ok();
    let history = json!([
        {"role": "user", "content": "my bill"},
        {"role": "assistant", "content": text(&first)},
        {"role": "user", "content": "two"},
    ]);
    assert_eq!(
        text(&send(history.clone()).await.ok()),
        "Billing: you said two"
    );

    let title = "### Task:\nGenerate a concise title.\n### Chat History:\nmy bill";
    let title = send(json!([{"role": "user", "content": title}])).await.ok();
    assert!(text(&title).starts_with("Triage: you said ### Task"));
    let stored = || async { server.client.get("/api/conversations/chat-7").await.text };
    assert!(!stored().await.contains("### Task"));

    // Another answer to the same message, and then the message edited.
    assert_eq!(
        text(&send(history.clone()).await.ok()),
        "Billing: you said two"
    );
    let mut edited = history;
    edited[2]["content"] = "three".into();
    assert_eq!(text(&send(edited).await.ok()), "Billing: you said three");
    let stored = stored().await;
    assert!(
        stored.contains("you said three") && !stored.contains("you said two"),
        "{stored}"
    );
}

#[tokio::test]
async fn a_chat_that_fails_tells_clients_not_to_try_again() {
    let server = TestServer::start().await;
    let failed = server
        .client
        .post(
            "/v1/chat/completions",
            chat(json!([{"role": "user", "content": "fail"}])),
        )
        .await;
    assert_eq!(failed.status, 500);
    assert_eq!(failed.headers["x-should-retry"], "false");
    let mut body = chat(json!([{"role": "user", "content": "fail"}]));
    body["stream"] = true.into();
    let events = server.client.events("/v1/chat/completions", body).await;
    assert!(
        events.last().unwrap().json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("provider is down")
    );
}

#[tokio::test]
async fn a_chat_that_waits_for_a_person_says_so() {
    let server = TestServer::start().await;
    let answer = server
        .client
        .post(
            "/v1/chat/completions",
            chat(json!([{"role": "user", "content": "a person"}])),
        )
        .await
        .ok();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "(Waiting for a person: Ann.)"
    );
    // It is kept, so that the person can answer.
    let left = server.client.get("/api/conversations").await.ok();
    assert_eq!(left["conversations"].as_array().unwrap().len(), 1);
}
