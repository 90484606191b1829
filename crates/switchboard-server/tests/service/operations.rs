//! Keys, limits, health, metrics, TLS, and the end of a server.

use std::time::Duration;

use serde_json::json;
use switchboard_core::conversation::Conversations;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::model::{Backoff, RetryDecision, RetryPolicy, RetrySettings};
use switchboard_core::run::Price;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ModelSettings, Team, handoff};
use switchboard_server::{Keys, Limits, ServedTeam, Server, Service, Tls, make_key};

use crate::support::{
    Client, RuleModel, TestServer, answer, install_crypto, team, until, with_json,
};

const MESSAGES: &str = "/api/conversations/c1/messages";

#[tokio::test]
async fn without_a_valid_key_nothing_is_answered() {
    let (key, entry) = make_key("acme").unwrap();
    let keys = Keys::from_entries([entry]).unwrap();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    for path in [
        "/api/teams",
        "/api/conversations",
        "/v1/models",
        "/metrics",
        "/api/openapi.json",
        "/nothing",
    ] {
        let refused = server.client.get(path).await;
        assert_eq!(
            refused.error_code(),
            (401, "unauthorized".to_owned()),
            "{path}"
        );
        assert_eq!(refused.headers["www-authenticate"], "Bearer");
        let wrong = server.client_with("sb_00000000_00").get(path).await;
        assert_eq!(wrong.status, 401);
    }
    assert_eq!(server.client_with(&key).get("/api/teams").await.status, 200);
    let twice = server.client.request("GET", "/api/teams");
    let twice = twice
        .header("authorization", format!("Bearer {key}"))
        .header("authorization", "Bearer x");
    assert_eq!(answer(twice).await.status, 401);
    let basic = server
        .client
        .request("GET", "/api/teams")
        .header("authorization", format!("Basic {key}"));
    assert_eq!(answer(basic).await.status, 401);
    // Health needs none.
    assert_eq!(server.client.get("/health/live").await.status, 200);
    assert_eq!(server.client.get("/health/ready").await.status, 200);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_keys() {
    let server = TestServer::start().await;
    let error = Server::bind(server.service.clone(), "0.0.0.0:0")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("needs keys"), "{error}");
    let empty = TestServer::with(|builder| builder.keys(Keys::from_entries([]).unwrap())).await;
    Server::bind(empty.service.clone(), "0.0.0.0:0")
        .await
        .unwrap_err();
}

#[tokio::test]
async fn a_key_has_limits_of_rate_runs_tokens_and_cost() {
    let keyed = |change: fn(&mut switchboard_server::KeyEntry)| async move {
        let (key, mut entry) = make_key("acme").unwrap();
        change(&mut entry);
        let keys = Keys::from_entries([entry]).unwrap();
        let price = Price::per_million(0.0, 1_000_000.0);
        let server = TestServer::with(|builder| builder.keys(keys).price("rules", price)).await;
        let client = server.client_with(&key);
        (server, client)
    };
    let hello = || json!({"input": "hello"});

    let (_server, client) = keyed(|entry| entry.requests_per_minute = Some(2)).await;
    client.get("/api/teams").await.ok();
    client.get("/api/teams").await.ok();
    let refused = client.get("/api/teams").await;
    assert_eq!(refused.error_code(), (429, "rate_limited".to_owned()));
    let wait: u64 = refused.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=30).contains(&wait), "{wait}");

    let (server, client) = keyed(|entry| entry.concurrent_runs = Some(1)).await;
    let body = json!({"input": "slow please", "stream": true});
    let first = client
        .open(with_json(client.request("POST", MESSAGES), &body))
        .await;
    let refused = client.post("/api/conversations/c2/messages", hello()).await;
    assert_eq!(refused.error_code().0, 429);
    server.model.gate.add_permits(1);
    first.rest().await;
    until(|| async {
        client
            .post("/api/conversations/c2/messages", hello())
            .await
            .status
            == 200
    })
    .await;

    // Each answer has 15 tokens, and costs 5.
    let (_server, client) = keyed(|entry| entry.tokens_per_day = Some(30)).await;
    client.post(MESSAGES, hello()).await.ok();
    client.post(MESSAGES, hello()).await.ok();
    let refused = client.post(MESSAGES, hello()).await;
    assert_eq!(refused.error_code().0, 429);
    assert!(refused.text.contains("tokens per day"), "{}", refused.text);
    client.get("/api/conversations/c1").await.ok();

    let (_server, client) = keyed(|entry| entry.cost_per_day = Some(5.0)).await;
    client.post(MESSAGES, hello()).await.ok();
    let refused = client.post(MESSAGES, hello()).await;
    assert!(
        refused.text.contains("cost of 5 per day"),
        "{}",
        refused.text
    );
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn a_key_is_bound_to_its_teams() {
    let (key, mut entry) = make_key("acme").unwrap();
    entry.teams = Some(vec!["other".to_owned()]);
    let keys = Keys::from_entries([entry]).unwrap();
    let other = ServedTeam::new("other", team(&RuleModel::new()), ());
    let server = TestServer::with(|builder| builder.keys(keys).team(other)).await;
    let client = server.client_with(&key);
    let teams = client.get("/api/teams").await.ok();
    assert_eq!(teams["teams"][0]["name"], "other");
    assert_eq!(teams["teams"].as_array().unwrap().len(), 1);
    assert_eq!(client.get("/api/teams/support").await.status, 404);
    let message = json!({"input": "x", "team": "support"});
    assert_eq!(client.post(MESSAGES, message).await.status, 404);
    let body = json!({"model": "support", "input": "x"});
    assert_eq!(client.post("/v1/responses", body).await.status, 404);
    let input = json!({"threadId": "c", "runId": "r", "protocolVersion": "1.0", "messages": [],
                       "tools": [], "context": [], "state": {}, "forwardedProps": {}});
    for (path, body) in [
        ("/agui/support", input),
        ("/a2a/support/message:send", json!({})),
        ("/api/teams/support/realtime/tickets", json!({})),
        ("/api/teams/support/reload", json!({})),
        ("/api/teams/support/file/check", json!({"text": ""})),
    ] {
        let refused = client.post(path, body).await;
        assert_eq!(refused.status, 404, "{path}: {}", refused.text);
    }
    for path in [
        "/api/teams/support/graph",
        "/api/teams/support/check",
        "/api/teams/support/file",
        "/api/teams/support/agents/Triage",
        "/a2a/support/extendedAgentCard",
    ] {
        assert_eq!(client.get(path).await.status, 404, "{path}");
    }
    // Nor is it told of changes of the team.
    let mut changes = client.open(client.request("GET", "/api/events")).await;
    assert_eq!(changes.next().await.unwrap().name.as_deref(), Some("hello"));
    let again = |name: &str| {
        let team = team(&RuleModel::new());
        server.service.replace_team(ServedTeam::new(name, team, ()))
    };
    assert!(again("support"));
    assert!(again("other"));
    let change = changes.next().await.unwrap();
    assert_eq!(change.json()["name"], "other", "{change:?}");
}

#[tokio::test]
async fn keys_are_rotated_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    let old = switchboard_server::add_key(&path, "acme").unwrap();
    let keys = Keys::read(&path).unwrap();
    let shared = keys.clone();
    let server = TestServer::with(|builder| builder.keys(keys)).await;
    server
        .client_with(&old)
        .post(MESSAGES, json!({"input": "hello"}))
        .await
        .ok();
    let new = switchboard_server::add_key(&path, "acme").unwrap();
    shared.reload().unwrap();
    for key in [&old, &new] {
        server
            .client_with(key)
            .get("/api/conversations/c1")
            .await
            .ok();
    }
    let client = server.client_with(&old);
    let mut changes = client.open(client.request("GET", "/api/events")).await;
    assert_eq!(changes.next().await.unwrap().name.as_deref(), Some("hello"));
    let text = std::fs::read_to_string(&path).unwrap();
    let second = text.rfind("[[keys]]").unwrap();
    std::fs::write(&path, &text[second..]).unwrap();
    shared.reload().unwrap();
    assert_eq!(server.client_with(&old).get("/api/teams").await.status, 401);
    // What it has opened ends.
    let end = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
    assert_eq!(end, Ok(None));
    server
        .client_with(&new)
        .get("/api/conversations/c1")
        .await
        .ok();
}

#[tokio::test]
async fn a_full_house_answers_503_with_retry_after() {
    let mut limits = Limits::default();
    limits.runs = 1;
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let body = json!({"input": "slow please", "stream": true});
    let first = server
        .client
        .open(with_json(server.client.request("POST", MESSAGES), &body))
        .await;
    let refused = server
        .client
        .post("/api/conversations/c2/messages", json!({"input": "x"}))
        .await;
    assert_eq!(refused.error_code(), (503, "unavailable".to_owned()));
    assert_eq!(refused.headers["retry-after"], "1");
    server.client.get("/api/conversations").await.ok();
    server.model.gate.add_permits(1);
    first.rest().await;
}

#[tokio::test]
async fn runs_that_have_ended_are_kept_within_their_number_and_time() {
    // The last one has ended since their number was looked at; their time is over though no run follows.
    for (number, seconds, kept) in [(1, 300, 2), (100, 0, 0)] {
        let mut limits = Limits::default();
        limits.ended_runs = number;
        limits.keep_ended = Duration::from_secs(seconds);
        let server = TestServer::with(|builder| builder.limits(limits)).await;
        let client = &server.client;
        let mut runs = Vec::new();
        for _ in 0..3 {
            let run = client.post(MESSAGES, json!({"input": "hello"})).await.ok();
            runs.push(run["id"].clone());
        }
        let known = client.get("/api/runs").await.ok();
        let known = known["runs"].as_array().unwrap().iter().rev();
        let known: Vec<_> = known.map(|run| run["id"].clone()).collect();
        assert_eq!(known, runs[3 - kept..]);
        let forgotten = format!("/api/runs/{}/events", runs[0].as_str().unwrap());
        assert_eq!(client.get(&forgotten).await.status, 404);
    }
}

#[tokio::test]
async fn responses_and_tasks_are_deleted_when_their_time_has_passed() {
    let store = Conversations::in_memory();
    let mut limits = Limits::default();
    limits.keep_responses = Duration::ZERO;
    let server = TestServer::with(|builder| builder.conversations(store.clone()).limits(limits));
    let client = &server.await.client;
    let body = json!({"model": "support", "input": "hello", "conversation": "kept"});
    let response = client.post("/v1/responses", body).await.ok();
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let sent = client.request("POST", "/a2a/support/message:send");
    let sent = with_json(sent, &json!({"message": message})).header("A2A-Version", "1.0");
    let task = answer(sent).await.ok();
    let response = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let task = format!(
        "/a2a/support/tasks/{}",
        task["task"]["id"].as_str().unwrap()
    );
    let get = async |path: &str| {
        let request = client.request("GET", path).header("A2A-Version", "1.0");
        answer(request).await.status
    };
    assert_eq!((get(&response).await, get(&task).await), (200, 200));
    store.delete_expired().await.unwrap();
    assert_eq!((get(&response).await, get(&task).await), (404, 404));
    assert_eq!(get("/api/conversations/kept").await, 200);
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_stopped() {
    let mut limits = Limits::default();
    limits.run_time = Duration::from_millis(50);
    limits.stop_time = Duration::from_millis(50);
    let server = TestServer::with(|builder| builder.limits(limits)).await;
    let body = json!({"input": "slow please", "stream": true});
    let stream = server
        .client
        .open(with_json(server.client.request("POST", MESSAGES), &body))
        .await;
    // Nobody lets the model go on.
    let events = stream.rest().await;
    assert_eq!(events.last().unwrap().name.as_deref(), Some("run_stopped"));
    let next = server
        .client
        .post(MESSAGES, json!({"input": "hello"}))
        .await
        .ok();
    assert_eq!(next["status"], "completed");
}

#[tokio::test]
async fn metrics_count_runs_handoffs_tokens_and_errors() {
    let server = TestServer::start().await;
    server
        .client
        .post(MESSAGES, json!({"input": "my bill"}))
        .await
        .ok();
    server
        .client
        .post(MESSAGES, json!({"input": "fail"}))
        .await
        .ok();
    let other = "/api/conversations/c2/messages";
    let looked_up = server.client.post(other, json!({"input": "lookup"}));
    assert_eq!(looked_up.await.ok()["status"], "completed");
    let metrics = server.client.get("/metrics").await;
    for line in [
        "switchboard_runs_total{team=\"support\",status=\"completed\"} 2",
        "switchboard_runs_total{team=\"support\",status=\"failed\"} 1",
        "switchboard_handoffs_total{team=\"support\",from=\"Triage\",to=\"Billing\",status=\"taken\"} 1",
        "switchboard_tokens_total{team=\"support\",kind=\"output\"} 10",
        "switchboard_turns_total{team=\"support\"} 5",
        "switchboard_tool_calls_total{team=\"support\",tool=\"lookup\",status=\"ok\"} 1",
        "switchboard_run_seconds_count{team=\"support\"} 3",
        "switchboard_tool_seconds_count{team=\"support\"} 1",
        "switchboard_run_errors_total{team=\"support\",kind=\"model\"} 1",
        "switchboard_runs_running 0",
    ] {
        assert!(
            metrics.text.contains(line),
            "{line} is not in\n{}",
            metrics.text
        );
    }
    let path = "route=\"/api/conversations/{conversation}/messages\"";
    assert!(metrics.text.contains(path), "{}", metrics.text);
    let latencies = format!("switchboard_http_request_seconds_count{{{path}}} 3");
    assert!(metrics.text.contains(&latencies), "{}", metrics.text);
    assert!(
        !metrics.text.contains("c1"),
        "names of conversations are no labels"
    );
}

#[tokio::test]
async fn metrics_count_retries_refused_handoffs_cost_and_refused_requests() {
    let again = RetryPolicy::new(|_failure| RetryDecision::retry());
    let pause = Backoff {
        initial_delay: Some(Duration::from_millis(1)),
        ..Backoff::default()
    };
    let settings = ModelSettings {
        retry: Some(RetrySettings::new(3).policy(again).backoff(pause)),
        ..ModelSettings::default()
    };
    let closed = HandoffGuardrail::new("closed", |_request| HandoffVerdict::refuse("Closed."));
    let model = ScriptedModel::new()
        .fail("busy")
        .fail("busy")
        .call("transfer_to_night", "{}")
        .say("Come back tomorrow.");
    let night: Agent = Agent::new("Night").handoff_description("The night.");
    let day = Agent::new("Day")
        .handoff(handoff(&night).guardrail(closed))
        .model_settings(settings)
        .model(model);
    let team: Team = Team::new().agent(day).agent(night).build().unwrap();
    let hotel = ServedTeam::new("hotel", team, ());
    let price = Price::per_million(0.0, 1_000_000.0);
    let mut limits = Limits::default();
    limits.runs = 1;
    let server = TestServer::with(|builder| {
        let builder = builder.team(hotel).limits(limits);
        builder.price("rules", price)
    });
    let server = server.await;
    let client = &server.client;
    let body = json!({"input": "a room", "team": "hotel"});
    assert_eq!(client.post(MESSAGES, body).await.ok()["agent"], "Day");
    // Each answer has 5 tokens, which cost 1 each.
    for _ in 0..2 {
        let body = json!({"input": "hello", "team": "support"});
        let path = "/api/conversations/c2/messages";
        client.post(path, body).await.ok();
    }
    let body = json!({"input": "slow please", "team": "support", "stream": true});
    let path = "/api/conversations/c3/messages";
    let slow = with_json(client.request("POST", path), &body);
    let slow = client.open(slow).await;
    let body = json!({"input": "hello", "team": "support"});
    let refused = client.post("/api/conversations/c4/messages", body).await;
    assert_eq!(refused.status, 503);
    let metrics = client.get("/metrics").await.text;
    for line in [
        "switchboard_model_retries_total{team=\"hotel\"} 2",
        "switchboard_handoffs_total{team=\"hotel\",from=\"Day\",to=\"Night\",status=\"refused\"} 1",
        "switchboard_cost_total 10.0",
        "switchboard_runs_running 1",
        "switchboard_refused_total{reason=\"runs\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    server.model.gate.add_permits(1);
    slow.rest().await;
}

#[tokio::test]
async fn every_response_has_a_request_id_and_safe_headers() {
    let server = TestServer::start().await;
    let own = server.client.get("/api/teams").await;
    assert!(
        own.headers["x-request-id"]
            .to_str()
            .unwrap()
            .starts_with("req_")
    );
    let given = server
        .client
        .request("GET", "/nothing")
        .header("x-request-id", "abc-1");
    let given = answer(given).await;
    assert_eq!(given.headers["x-request-id"], "abc-1");
    let odd = server
        .client
        .request("GET", "/nothing")
        .header("x-request-id", "a b\"c");
    assert!(
        answer(odd).await.headers["x-request-id"]
            .to_str()
            .unwrap()
            .starts_with("req_")
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ] {
        assert_eq!(given.headers[name], value);
    }
    assert!(!given.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_server_that_shuts_down_lets_runs_end_and_takes_no_new_ones() {
    let server = TestServer::start().await;
    let body = json!({"input": "slow please", "stream": true});
    let mut stream = server
        .client
        .open(with_json(server.client.request("POST", MESSAGES), &body))
        .await;
    while stream.next().await.unwrap().name.as_deref() != Some("text_delta") {}
    let TestServer {
        running,
        client,
        service,
        model,
    } = server;
    let shutting_down = tokio::spawn(running.shut_down());
    until(|| async { service.is_draining() }).await;
    let refused = client
        .post("/api/conversations/c2/messages", json!({"input": "x"}))
        .await;
    assert_eq!(refused.error_code(), (503, "unavailable".to_owned()));
    assert_eq!(client.get("/health/ready").await.status, 503);
    assert_eq!(client.get("/health/live").await.status, 200);
    model.gate.add_permits(1);
    let events = stream.rest().await;
    assert_eq!(events.last().unwrap().name.as_deref(), Some("run_finished"));
    shutting_down.await.unwrap();
    assert!(client.request("GET", "/health/live").send().await.is_err());
}

#[tokio::test]
async fn a_run_that_does_not_end_in_time_is_stopped_and_told_so() {
    let server = TestServer::start().await;
    let body = json!({"input": "slow please", "stream": true});
    let mut stream = server
        .client
        .open(with_json(server.client.request("POST", MESSAGES), &body))
        .await;
    while stream.next().await.unwrap().name.as_deref() != Some("text_delta") {}
    let service = server.service.clone();
    let draining = tokio::spawn(async move { service.drain(Duration::from_millis(20)).await });
    let events = stream.rest().await;
    assert_eq!(events.last().unwrap().name.as_deref(), Some("run_stopped"));
    draining.await.unwrap();
    let shown = server.client.get("/api/conversations/c1").await;
    assert!(
        shown.text.contains("slow please"),
        "the message is stored: {}",
        shown.text
    );
}

#[tokio::test]
async fn tls_is_served_where_it_is_asked_for() {
    install_crypto();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::from_pem_files(&cert, &key).unwrap();
    let error = Tls::from_pem_files(&key, &cert).unwrap_err().to_string();
    assert!(error.contains("key.pem"), "{error}");

    let plain = TestServer::start().await;
    let service: Service = plain.service.clone();
    let server = Server::bind(service, "127.0.0.1:0").await.unwrap().tls(tls);
    let port = server.address().port();
    let _running = server.start();
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([trusted])
        .build()
        .unwrap();
    let answer = client
        .get(format!("https://localhost:{port}/health/live"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    // A client that does not speak TLS is not answered, and does no harm.
    let plain = Client::new(&format!("http://127.0.0.1:{port}"), None);
    assert!(plain.request("GET", "/health/live").send().await.is_err());
}

#[tokio::test]
async fn the_use_of_a_key_outlives_the_server() {
    let (key, mut entry) = make_key("acme").unwrap();
    entry.tokens_per_day = Some(20);
    let store = Conversations::in_memory();
    let start = async || {
        let keys = Keys::from_entries([entry.clone()]).unwrap();
        let store = store.clone();
        TestServer::with(|builder| builder.keys(keys).conversations(store)).await
    };
    let body = json!({"input": "hello"});
    let path = "/api/conversations/c/messages";
    let first = start().await;
    first.client_with(&key).post(path, body.clone()).await.ok();
    first.running.shut_down().await;
    // 15 of the 20 tokens are used.
    let second = start().await;
    second.client_with(&key).post(path, body.clone()).await.ok();
    second.running.shut_down().await;
    let third = start().await;
    let refused = third.client_with(&key).post(path, body).await;
    assert_eq!(refused.error_code(), (429, "rate_limited".to_owned()));
    assert!(
        refused.text.contains("20 tokens per day"),
        "{}",
        refused.text
    );
    // The records are no conversations.
    let listed = third.client_with(&key).get("/api/conversations").await.ok();
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1);
}
