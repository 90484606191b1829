//! What the service sends, held against its OpenAPI document.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_server::{RecordingLimits, ServedTeam};

use crate::support::{Events, RuleModel, SseEvent, TestServer, team};

/// The streams of events that the document describes by name.
struct DocumentedEvents {
    document: Value,
    path: &'static str,
}

impl DocumentedEvents {
    async fn of(server: &TestServer, path: &'static str) -> Self {
        let document = server.client.get("/api/openapi.json").await.ok();
        Self { document, path }
    }

    fn kinds(&self) -> &Vec<Value> {
        let responses = &self.document["paths"][self.path]["get"]["responses"];
        let schema = &responses["200"]["content"]["text/event-stream"]["schema"];
        schema["oneOf"].as_array().unwrap()
    }

    fn names(&self) -> BTreeSet<String> {
        let names = self.kinds().iter();
        let names = names.map(|kind| kind["properties"]["event"]["const"].as_str().unwrap());
        names.map(ToOwned::to_owned).collect()
    }

    /// Asserts that an event is one that the document describes, with all of its fields and no others.
    fn check(&self, event: &SseEvent) {
        let name = event.name.as_deref().unwrap();
        let mut kinds = self.kinds().iter();
        let kind = kinds.find(|kind| kind["properties"]["event"]["const"] == name);
        let kind = kind.unwrap_or_else(|| panic!("{name} is not in the document"));
        let data = &kind["properties"]["data"];
        assert_eq!(data["contentMediaType"], "application/json");
        let mut schema = data["contentSchema"].clone();
        let reference = schema["$ref"].as_str().unwrap_or_default().to_owned();
        schema["components"] = self.document["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let sent = event.json();
        let problem = validator.validate(&sent).err();
        assert!(problem.is_none(), "{problem:?}: {event:?}");
        let described = self.document.pointer(reference.trim_start_matches('#'));
        let described = described.map(|schema| keys(&schema["properties"]));
        assert_eq!(keys(&sent), described.unwrap_or_default(), "{event:?}");
    }

    /// Reads and checks events until those of all these names have come.
    async fn check_until(&self, events: &mut Events, mut names: BTreeSet<String>) {
        while !names.is_empty() {
            let event = events.next().await;
            let event = event.unwrap_or_else(|| panic!("the end before {names:?}"));
            self.check(&event);
            names.remove(event.name.as_deref().unwrap_or_default());
        }
    }
}

fn keys(object: &Value) -> BTreeSet<String> {
    let fields = object.as_object().into_iter().flatten();
    fields.map(|(name, _)| name.clone()).collect()
}

#[tokio::test]
async fn every_change_is_what_the_document_says() {
    let server = TestServer::start().await;
    let client = &server.client;
    let documented = DocumentedEvents::of(&server, "/api/events").await;
    let mut changes = client.open(client.request("GET", "/api/events")).await;
    let path = "/api/conversations/c";
    let body = json!({"input": "refund my bill"});
    let messages = format!("{path}/messages");
    let run = client.post(&messages, body).await.ok();
    assert_eq!(run["status"], "waiting");
    let fork = format!("{path}/fork");
    let copied = client.post(&fork, json!({"to": "copy"})).await;
    assert_eq!(copied.status, 201);
    assert_eq!(client.delete(path).await.status, 204);
    let replaced = ServedTeam::new("support", team(&RuleModel::new()), ());
    assert!(server.service.replace_team(replaced.clone()));
    let mut names = documented.names();
    let missed = names.take("missed").into_iter().collect();
    documented.check_until(&mut changes, names).await;
    // More than the service keeps for a client, before it can send one of them.
    for _ in 0..2_000 {
        server.service.replace_team(replaced.clone());
    }
    documented.check_until(&mut changes, missed).await;
}

#[tokio::test]
async fn every_row_of_a_recording_is_what_the_document_says() {
    let server = TestServer::with(|builder| builder.record(RecordingLimits::default())).await;
    let client = &server.client;
    let path = "/api/runs/{run}/recording/events";
    let documented = DocumentedEvents::of(&server, path).await;
    let body = json!({"input": "my bill"});
    let run = client.post("/api/conversations/c/messages", body).await;
    let path = path.replace("{run}", run.ok()["id"].as_str().unwrap());
    let mut rows = client.open(client.request("GET", &path)).await;
    documented.check_until(&mut rows, documented.names()).await;
}
