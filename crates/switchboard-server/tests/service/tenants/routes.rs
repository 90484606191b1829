//! Every route of the protocols, as the sources of the service have them. Those of `/api` are tried by its document.

use serde_json::{Value, json};

use super::{Tenants, tenants};
use crate::support::{Answer, Client, answer, with_json};

/// The sources with routes of protocols. `api.rs` is compared with its document by a test of its own.
const SOURCES: [&str; 4] = [
    include_str!("../../../src/a2a.rs"),
    include_str!("../../../src/agui.rs"),
    include_str!("../../../src/openai.rs"),
    include_str!("../../../src/router.rs"),
];

/// The groups of routes that the router is put together from.
const GROUPS: [&str; 7] = [
    "a2a::routes()",
    "admitted",
    "agui::routes()",
    "api::routes()",
    "cards",
    "openai::routes()",
    "sockets",
];

/// What is the same for everybody, with and without a key.
const PUBLIC: [&str; 7] = [
    "/",
    "/.well-known/agent-card.json",
    "/a2a/{team}/.well-known/agent-card.json",
    "/assets/{file}",
    "/health/live",
    "/health/ready",
    "/icon.svg",
];

/// Words that are in what Alice has, and in nothing that Bob sends.
const SECRETS: [&str; 4] = ["refund", "hidden", "classified", "alice"];

/// The first string after each call of a method in a source.
fn arguments<'a>(source: &'a str, call: &str) -> Vec<&'a str> {
    let calls = source.split(call).skip(1);
    calls.map(|rest| rest.split('"').nth(1).unwrap()).collect()
}

fn routes() -> Vec<&'static str> {
    let mut groups: Vec<&str> = SOURCES[3]
        .split(".merge(")
        .skip(1)
        .map(|rest| rest.split(")\n").next().unwrap())
        .collect();
    groups.sort_unstable();
    assert_eq!(groups, GROUPS, "a new group of routes has to be read here");
    let routes = SOURCES
        .iter()
        .flat_map(|source| arguments(source, ".route("));
    let routes: Vec<&str> = routes.filter(|route| !PUBLIC.contains(route)).collect();
    assert!(routes.len() > 18, "{routes:?}");
    routes
}

/// What Alice has beside that of [`Tenants`].
struct Named {
    response: String,
    task: Value,
    interrupt: Value,
}

impl Named {
    async fn of(tenants: &Tenants) -> Self {
        let alice = &tenants.alice;
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "refund my classified bill"}]});
        let body = json!({"message": message});
        let sent = post(alice, "/a2a/support/message:send", &body).await.ok();
        let body = input(
            "thread",
            json!([{"id": "1", "role": "user", "content": "refund my bill"}]),
        );
        let events = alice.events("/agui/support", body).await;
        let last = events.last().unwrap().json();
        Self {
            response: tenants.response.clone(),
            task: sent["task"].clone(),
            interrupt: last["outcome"]["interrupts"][0]["id"].clone(),
        }
    }

    /// The paths of a route, with what is Alice's in the place of its parameters.
    fn paths(&self, route: &str) -> Vec<String> {
        let task = self.task["id"].as_str().unwrap();
        let path = route
            .replace("{team}", "support")
            .replace("{agent}", "Billing")
            .replace("{*model}", "support")
            .replace("{response}", &self.response)
            .replace("{config}", "c");
        let verbs: &[&str] = if path.ends_with("{task}") {
            &["", ":cancel", ":subscribe"]
        } else {
            &[""]
        };
        let paths = verbs.iter().map(|verb| path.replace("{task}", task) + verb);
        let paths: Vec<String> = paths.collect();
        assert!(
            !paths[0].contains('{'),
            "no value for the parameters of {route}"
        );
        paths
    }

    /// The bodies of a route that name what is Alice's, with the status and a part of the answer.
    fn bodies(&self, route: &str) -> Vec<(Value, u16, &'static str)> {
        let task = &self.task["id"];
        let message = |field: &str, value: &Value| json!({"messageId": "b", "role": "ROLE_USER", "parts": [{"text": "approve"}], field: value});
        let (of_task, of_context) = (
            json!({"message": message("taskId", task)}),
            json!({"message": message("contextId", &self.task["contextId"])}),
        );
        let own = "you said approve";
        match route {
            "/v1/chat/completions" => {
                let messages = json!([{"role": "user", "content": "hello"}]);
                vec![(
                    json!({"model": "support", "messages": messages}),
                    200,
                    "you said hello",
                )]
            }
            "/v1/responses" => {
                let body = |field: &str, value: &str| json!({"model": "support", "input": "hello", field: value});
                vec![
                    (body("previous_response_id", &self.response), 404, ""),
                    (body("conversation", "secret"), 200, "you said hello"),
                ]
            }
            "/v1/responses/{response}/cancel" => vec![(json!({}), 404, "")],
            "/agui/{team}" | "/agui/{team}/{agent}" => {
                let mut resumed = input("thread", json!([]));
                let payload = json!({"approved": true});
                resumed["resume"] = json!([{"interruptId": self.interrupt, "status": "resolved", "payload": payload}]);
                let stray = input(
                    "secret",
                    json!([{"id": "2", "role": "user", "content": "hello"}]),
                );
                vec![(resumed, 200, "RUN_ERROR"), (stray, 200, "you")]
            }
            "/a2a/{team}" | "/a2a/{team}/" => {
                let call = |method: &str, params: &Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                let id = json!({"id": task});
                vec![
                    (call("GetTask", &id), 200, "-32001"),
                    (call("CancelTask", &id), 200, "-32001"),
                    (call("SubscribeToTask", &id), 200, "-32001"),
                    (call("SendMessage", &of_task), 200, "-32001"),
                    (call("SendStreamingMessage", &of_task), 200, "-32001"),
                    (call("SendMessage", &of_context), 200, own),
                ]
            }
            "/a2a/{team}/message:send" | "/a2a/{team}/message:stream" => {
                vec![(of_task, 404, ""), (of_context, 200, "approve")]
            }
            "/a2a/{team}/tasks/{task}" => vec![(json!({}), 404, "")],
            "/a2a/{team}/tasks/{task}/pushNotificationConfigs" => vec![(json!({}), 400, "")],
            other => panic!("no body for {other}"),
        }
    }

    /// Everything that Alice has.
    async fn shown(&self, alice: &Client) -> Vec<Value> {
        let task = format!("/a2a/support/tasks/{}", self.task["id"].as_str().unwrap());
        let response = format!("/v1/responses/{}", self.response);
        let context = self.task["contextId"].as_str().unwrap();
        let context = format!("/api/conversations/{context}");
        let mut shown = Vec::new();
        for path in [
            "/api/waiting",
            "/api/conversations",
            "/api/conversations/secret",
            "/api/conversations/thread",
            &context,
            &response,
            &task,
        ] {
            shown.push(answer(request(alice, "GET", path)).await.ok());
        }
        shown
    }
}

/// A run of AG-UI.
fn input(thread: &str, messages: Value) -> Value {
    json!({"threadId": thread, "runId": "r", "protocolVersion": "1.0", "messages": messages, "tools": [],
           "context": [], "state": {}, "forwardedProps": {}})
}

/// A request with what the protocols ask for, and with the name of Alice's conversation where a header may have it.
fn request(client: &Client, method: &str, path: &str) -> reqwest::RequestBuilder {
    let request = client.request(method, path).header("A2A-Version", "1.0");
    request.header("X-Conversation-Id", "secret")
}

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    answer(with_json(request(client, "POST", path), body)).await
}

#[tokio::test]
async fn no_route_of_a_protocol_shows_or_changes_what_is_another_tenants() {
    let tenants = tenants().await;
    let (alice, bob) = (&tenants.alice, &tenants.bob);
    let named = Named::of(&tenants).await;
    let before = named.shown(alice).await;
    for route in routes() {
        let names_alices = route.contains("{task}") || route.contains("{response}");
        for path in named.paths(route) {
            for method in ["GET", "PUT", "DELETE"] {
                let answer = answer(request(bob, method, &path)).await;
                let what = format!("{method} {path}: {} {}", answer.status, answer.text);
                assert!(
                    !names_alices || [400, 404, 405].contains(&answer.status),
                    "{what}"
                );
                assert!(
                    !SECRETS.iter().any(|word| answer.text.contains(word)),
                    "{what}"
                );
            }
            if post(bob, &path, &json!({})).await.status == 405 {
                continue;
            }
            for (body, status, part) in named.bodies(route) {
                let answer = post(bob, &path, &body).await;
                let what = format!("POST {path} {body}: {} {}", answer.status, answer.text);
                assert_eq!(answer.status, status, "{what}");
                assert!(answer.text.contains(part), "{what}");
                assert!(
                    !SECRETS.iter().any(|word| answer.text.contains(word)),
                    "{what}"
                );
            }
        }
    }
    assert_eq!(named.shown(alice).await, before);
}
