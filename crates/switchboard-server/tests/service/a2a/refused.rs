//! Requests that are refused, and other tenants.

use serde_json::json;
use switchboard_server::{Keys, make_key};

use super::{AGENT, call, error_code, message, reply, request, result, send, texts};
use crate::support::{TestServer, with_json};

#[tokio::test]
async fn nothing_of_another_tenants_tasks_is_seen_or_changed() {
    let (alice, first) = make_key("alice").unwrap();
    let (bob, second) = make_key("bob").unwrap();
    let keys = Keys::from_entries([first, second]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    let (alice, bob) = (server.client_with(&alice), server.client_with(&bob));
    let task = send(&alice, message("refund my bill")).await;
    let id = task["id"].as_str().unwrap();
    for (method, params) in [
        ("GetTask", json!({"id": id})),
        ("CancelTask", json!({"id": id})),
        ("SubscribeToTask", json!({"id": id})),
        ("SendMessage", json!({"message": reply(&task, "approve")})),
        (
            "SendStreamingMessage",
            json!({"message": reply(&task, "approve")}),
        ),
    ] {
        let answer = call(&bob, method, params).await;
        assert_eq!(
            answer.json()["error"]["code"],
            -32001,
            "{method}: {}",
            answer.text
        );
        assert!(!answer.text.contains("alice"), "{}", answer.text);
    }
    let push = |config: &str| format!("{AGENT}/tasks/{id}/pushNotificationConfigs{config}");
    for (method, path, status) in [
        ("GET", format!("{AGENT}/tasks/{id}"), 404),
        ("POST", format!("{AGENT}/tasks/{id}:cancel"), 404),
        ("POST", format!("{AGENT}/tasks/{id}:subscribe"), 404),
        ("GET", push(""), 400),
        ("GET", push("/c"), 400),
        ("DELETE", push("/c"), 400),
    ] {
        let answer = crate::support::answer(request(&bob, method, &path)).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        assert!(!answer.text.contains("refund"), "{}", answer.text);
    }
    assert_eq!(result(&bob, "ListTasks", json!({})).await["totalSize"], 0);
    let filtered = json!({"contextId": task["contextId"]});
    assert_eq!(
        result(&bob, "ListTasks", filtered).await["tasks"],
        json!([])
    );
    // The same context of another tenant is another conversation.
    let mut stray = message("what was said?");
    stray["contextId"] = task["contextId"].clone();
    let own = send(&bob, stray).await;
    assert_eq!(texts(&own), ["Triage: you said what was said?"]);
    for path in [
        format!("{AGENT}/tasks/..%2fbob%2f{id}"),
        format!("{AGENT}/tasks/%7Etask%7E{id}"),
    ] {
        assert_eq!(
            crate::support::answer(request(&bob, "GET", &path))
                .await
                .status,
            404,
            "{path}"
        );
    }
    let kept = result(&alice, "GetTask", json!({"id": id})).await;
    assert_eq!(kept, task);
    // A key for other teams does not see this one.
    let (carol, mut entry) = make_key("alice").unwrap();
    entry.teams = Some(vec!["other".to_owned()]);
    let keys = Keys::from_entries([entry]).unwrap();
    let other = TestServer::with(|builder| builder.keys(keys)).await;
    let refused = call(&other.client_with(&carol), "ListTasks", json!({})).await;
    assert_eq!(
        refused.json()["error"],
        json!({"code": -32600, "message": "there is no team \"support\""})
    );
}

#[tokio::test]
async fn requests_that_are_none_get_the_errors_of_json_rpc() {
    let server = TestServer::start().await;
    let raw = |body: &str| {
        let request = request(&server.client, "POST", AGENT);
        request
            .header("content-type", "application/json")
            .body(body.to_owned())
    };
    let deep = "[".repeat(100_000);
    for (body, code) in [
        ("{", -32700),
        (deep.as_str(), -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ListTasks"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ListTasks"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"message/send"}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":[]}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":7}}"#,
            -32602,
        ),
    ] {
        let answer = crate::support::answer(raw(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(
            answer.json()["error"]["code"],
            code,
            "{}: {}",
            &body[..body.len().min(80)],
            answer.text
        );
    }
    for (field, value) in [
        ("parts", json!([])),
        ("parts", json!([{}])),
        ("parts", json!([{"text": "a", "url": "https://b.example"}])),
        ("parts", json!([{"raw": "a b", "mediaType": "image/png"}])),
        (
            "parts",
            json!([{"url": "file:///etc/passwd", "mediaType": "image/png"}]),
        ),
        ("role", json!("ROLE_AGENT")),
        ("messageId", json!("")),
        ("contextId", json!("a/b")),
        ("contextId", json!("~task~x")),
    ] {
        let mut wrong = message("hello");
        wrong[field] = value.clone();
        let answer = call(&server.client, "SendMessage", json!({"message": wrong}))
            .await
            .ok();
        assert_eq!(answer["error"]["code"], -32602, "{field} {value}: {answer}");
        let violations = &answer["error"]["data"][0]["fieldViolations"];
        assert!(
            violations[0]["field"]
                .as_str()
                .unwrap()
                .starts_with("message"),
            "{answer}"
        );
    }
    let mut file = message("x");
    file["parts"] = json!([{"raw": "AAAA", "mediaType": "application/x-unknown"}]);
    assert_eq!(
        error_code(&server.client, "SendMessage", json!({"message": file})).await,
        -32005
    );
    let mut lost = message("x");
    lost["taskId"] = json!("task_00000000000000000000000000000000");
    assert_eq!(
        error_code(&server.client, "SendMessage", json!({"message": lost})).await,
        -32001
    );
    let task = send(&server.client, message("refund my bill")).await;
    let mut stray = reply(&task, "approve");
    stray["contextId"] = json!("another");
    assert_eq!(
        error_code(&server.client, "SendMessage", json!({"message": stray})).await,
        -32602
    );
    let push = json!({"message": message("x"), "configuration": {"taskPushNotificationConfig": {"url": "https://a.example"}}});
    assert_eq!(
        error_code(&server.client, "SendMessage", push).await,
        -32003
    );
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        assert_eq!(
            error_code(&server.client, &method, json!({})).await,
            -32003,
            "{method}"
        );
    }
    assert_eq!(
        error_code(&server.client, "ListTaskPushNotificationConfigs", json!({})).await,
        -32003
    );
}

#[tokio::test]
async fn the_version_is_checked_and_a_request_without_one_speaks_an_old_one() {
    let server = TestServer::start().await;
    let path = format!("{AGENT}/tasks");
    for (version, status) in [
        (Some("1.0"), 200),
        (Some("1.0.1"), 200),
        (Some("0.3"), 400),
        (Some("2.0"), 400),
        (Some("10.0"), 400),
        (None, 400),
    ] {
        let mut request = server.client.request("GET", &path);
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        let answer = crate::support::answer(request).await;
        assert_eq!(answer.status, status, "{version:?}");
        if status == 400 {
            let error = &answer.json()["error"];
            assert_eq!(error["status"], "FAILED_PRECONDITION");
            assert_eq!(
                error["details"],
                json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "VERSION_NOT_SUPPORTED", "domain": "a2a-protocol.org"}])
            );
        }
    }
    server
        .client
        .get(&format!("{path}?A2A-Version=1.0"))
        .await
        .ok();
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": "ListTasks"});
    let old = server.client.post(AGENT, body).await.ok();
    assert_eq!(
        (&old["id"], &old["error"]["code"]),
        (&json!("a"), &json!(-32009))
    );
}

#[tokio::test]
async fn huge_bodies_and_other_types_are_refused() {
    let server = TestServer::with(|builder| {
        let mut limits = switchboard_server::Limits::default();
        limits.body_bytes = 10_000;
        limits.runs = 1;
        builder.limits(limits)
    })
    .await;
    let huge = json!({"message": message(&"x".repeat(20_000))});
    let answer = call(&server.client, "SendMessage", huge.clone()).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (413, &json!(-32600))
    );
    let path = format!("{AGENT}/message:send");
    let answer =
        crate::support::answer(with_json(request(&server.client, "POST", &path), &huge)).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (413, &json!(413))
    );
    let typed = request(&server.client, "POST", &path)
        .header("content-type", "text/plain")
        .body("{}");
    let typed = crate::support::answer(typed).await;
    let reason = &typed.json()["error"]["details"][0]["reason"];
    assert_eq!(
        (typed.status, reason),
        (415, &json!("CONTENT_TYPE_NOT_SUPPORTED"))
    );
    // A path that is none has an error in the same form.
    let lost = crate::support::answer(request(&server.client, "GET", "/a2a/support/nothing")).await;
    assert_eq!(lost.json()["error"]["status"], "NOT_FOUND");
    // A full house says so, and when to come back.
    let body = json!({"message": message("slow"), "configuration": {"returnImmediately": true}});
    result(&server.client, "SendMessage", body).await;
    let full = call(
        &server.client,
        "SendMessage",
        json!({"message": message("hello")}),
    )
    .await;
    assert_eq!(
        (full.status, &full.headers["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    assert_eq!(full.json()["error"]["code"], -32603);
    // The task that was never begun is not there.
    assert_eq!(
        result(&server.client, "ListTasks", json!({})).await["totalSize"],
        1
    );
}
