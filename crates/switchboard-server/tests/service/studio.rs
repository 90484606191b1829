//! The parts of the service that the studio uses: turns, sending again, what waits, the page, files of teams.

#[cfg(feature = "studio")]
mod files;
#[cfg(feature = "studio")]
mod page;

use serde_json::{Value, json};
use switchboard_core::conversation::{
    Commit, ConversationStore, Conversations, Entry, EntryContent, Expected,
};
use switchboard_server::{RecordingLimits, Studio};

use crate::support::{Client, TestServer};

async fn send(client: &Client, conversation: &str, text: &str) -> Value {
    let path = format!("/api/conversations/{conversation}/messages");
    client.post(&path, json!({"input": text})).await.ok()
}

fn turns(list: &Value) -> Vec<(String, Option<u64>, String)> {
    let turns = list["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| {
            let who = turn["agent"].as_str().unwrap_or("user").to_owned();
            let text = turn["text"].as_str().unwrap().to_owned();
            (who, turn["fork_before"].as_u64(), text)
        })
        .collect()
}

#[tokio::test]
async fn a_conversation_is_shown_as_turns_and_in_pages() {
    let server = TestServer::with(|builder| builder.record(RecordingLimits::default())).await;
    let client = &server.client;
    let run = send(client, "c", "my bill").await;
    send(client, "c", "and more").await;
    let list = client.get("/api/conversations/c/turns").await.ok();
    let expected = [
        ("user", Some(0), "my bill"),
        ("Triage", None, ""),
        ("Billing", Some(4), "Billing: you said my bill"),
        ("user", Some(5), "and more"),
        ("Billing", None, "Billing: you said and more"),
    ];
    let expected = expected.map(|(who, at, text)| (who.to_owned(), at, text.to_owned()));
    assert_eq!(turns(&list), expected);
    let handed = &list["turns"][1];
    assert_eq!(handed["handoff"], json!({"to": "Billing"}));
    assert_eq!(handed["calls"], json!(["transfer_to_billing"]));
    assert_eq!(handed["recording"], run["id"]);
    assert_eq!(list["turns"][2]["tokens"]["input"], 10);
    let page = client.get("/api/conversations/c/turns?limit=2").await.ok();
    assert_eq!(turns(&page), expected[..2]);
    let path = format!("/api/conversations/c/turns?after={}", page["next"]);
    assert_eq!(turns(&client.get(&path).await.ok()), expected[2..]);

    let latest = client.get("/api/conversations/c?limit=2").await.ok();
    assert_eq!(latest["more"], true);
    let first = latest["items"][0]["position"].as_u64().unwrap();
    let path = format!("/api/conversations/c?limit=100&before={first}");
    let earlier = client.get(&path).await.ok();
    assert_eq!(earlier["more"], false);
    let positions = earlier["items"].as_array().unwrap().iter();
    assert!(
        positions
            .clone()
            .all(|item| item["position"].as_u64().unwrap() < first)
    );
    assert_eq!(positions.count() + 2, 6);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_does_not_hide_the_others_that_wait() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    for id in ["a", "broken", "b"] {
        send(client, id, "refund my bill").await;
    }
    // The run that waits becomes something else.
    let mut entries = Vec::new();
    let stored = ConversationStore::read(&store, "broken", 0..u64::MAX);
    for entry in stored.await.unwrap() {
        let content = match entry.content {
            EntryContent::Waiting(_) => EntryContent::Waiting("{\"no\": \"run\"}".into()),
            content => content,
        };
        entries.push(Entry::new(content));
    }
    store.delete("broken").await.unwrap();
    let commit = Commit::new(Expected::New, entries);
    ConversationStore::commit(&store, "broken", commit)
        .await
        .unwrap();
    assert_eq!(client.get("/api/conversations/broken").await.status, 500);

    let list = client.get("/api/waiting").await.ok();
    let waiting = list["waiting"].as_array().unwrap().iter();
    let told: Vec<(&str, usize, Option<&str>)> = waiting
        .map(|entry| {
            let calls = entry["calls"].as_array().unwrap().len();
            let id = entry["conversation"].as_str().unwrap();
            (id, calls, entry["error"].as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("a", 1, None),
            ("broken", 0, Some("the conversation cannot be read")),
            ("b", 1, None),
        ]
    );
}

#[tokio::test]
async fn every_place_that_is_told_can_be_forked_at() {
    let server = TestServer::start().await;
    let client = &server.client;
    send(client, "c", "my bill").await;
    send(client, "c", "and more").await;
    let list = client.get("/api/conversations/c/turns").await.ok();
    for (at, (_, before, _)) in turns(&list).into_iter().enumerate() {
        let Some(before) = before else { continue };
        let body = json!({"to": format!("copy-{at}"), "before": before});
        let forked = client.post("/api/conversations/c/fork", body).await;
        assert_eq!(forked.status, 201, "{}", forked.text);
        let origin = json!({"conversation": "c", "before": before});
        assert_eq!(forked.json()["forked_from"], origin);
        let path = format!("/api/conversations/copy-{at}/turns");
        assert_eq!(turns(&client.get(&path).await.ok()).len(), at);
    }
}

#[tokio::test]
async fn a_message_is_sent_again_or_edited_in_a_copy_or_in_place() {
    let server = TestServer::start().await;
    let client = &server.client;
    send(client, "c", "hello").await;
    let body = json!({"position": 0, "input": "my bill", "to": "edited"});
    let edited = client.post("/api/conversations/c/resend", body).await;
    assert_eq!(edited.headers["x-conversation-id"], "edited");
    assert_eq!(edited.ok()["output"], "Billing: you said my bill");
    let shown = client.get("/api/conversations/edited").await.ok();
    assert_eq!(
        (&shown["title"], &shown["agent"]),
        (&json!("my bill"), &json!("Billing"))
    );

    let again = client
        .post("/api/conversations/c/resend", json!({"position": 0}))
        .await;
    let copy = again.headers["x-conversation-id"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(again.ok()["output"], "Triage: you said hello");
    assert_ne!(copy, "c");

    let body = json!({"position": 0, "input": "bye", "in_place": true});
    let replaced = client.post("/api/conversations/c/resend", body).await.ok();
    assert_eq!(replaced["conversation"], "c");
    let list = client.get("/api/conversations/c/turns").await.ok();
    let texts: Vec<String> = turns(&list).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["bye", "Triage: you said bye"]);
    for (body, status) in [
        (json!({"position": 1}), 409),
        (json!({"position": 99}), 409),
        (json!({"position": 0, "in_place": true, "to": "x"}), 400),
        (json!({"position": -1}), 400),
    ] {
        let refused = client.post("/api/conversations/c/resend", body).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
}

#[tokio::test]
async fn a_copy_goes_on_with_the_team_of_the_conversation_where_there_are_several() {
    let model = crate::support::RuleModel::new();
    let other = switchboard_server::ServedTeam::new("other", crate::support::team(&model), ());
    let server = TestServer::with(|builder| builder.team(other)).await;
    let client = &server.client;
    let body = json!({"input": "refund my bill", "team": "other"});
    let path = "/api/conversations/c/messages";
    let call = client.post(path, body).await.ok()["waiting"][0]["call_id"].clone();
    for (from, to) in [("c", "copy"), ("copy", "copy-of-copy")] {
        let path = format!("/api/conversations/{from}/fork");
        assert_eq!(client.post(&path, json!({"to": to})).await.status, 201);
    }
    let body = json!({"decisions": [{"call_id": call, "approve": true}]});
    let path = "/api/conversations/copy-of-copy/decisions";
    let decided = client.post(path, body).await.ok();
    assert_eq!(
        (&decided["status"], &decided["team"]),
        (&json!("completed"), &json!("other"))
    );
    let path = "/api/conversations/copy/messages";
    let run = client.post(path, json!({"input": "hello"})).await.ok();
    assert_eq!(run["team"], "other");
    let refused = client
        .post("/api/conversations/new/messages", json!({"input": "hello"}))
        .await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn a_message_that_is_sent_again_in_place_waits_for_the_run_under_way() {
    let server = TestServer::start().await;
    let client = &server.client;
    send(client, "c", "hello").await;
    let slow = json!({"input": "slow", "stream": true});
    let request = client.request("POST", "/api/conversations/c/messages");
    let mut stream = client.open(crate::support::with_json(request, &slow)).await;
    while stream.next().await.unwrap().name.as_deref() != Some("text_delta") {}
    let resent = {
        let client = client.clone();
        let body = json!({"position": 0, "input": "bye", "in_place": true});
        tokio::spawn(async move { client.post("/api/conversations/c/resend", body).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    server.model.gate.add_permits(1);
    let last = stream.rest().await.pop().unwrap();
    assert_eq!(last.json()["output"], "Triage: you said slow", "{last:?}");
    assert_eq!(resent.await.unwrap().ok()["output"], "Triage: you said bye");
    let list = client.get("/api/conversations/c/turns").await.ok();
    let texts: Vec<String> = turns(&list).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["bye", "Triage: you said bye"]);
}

#[tokio::test]
async fn what_waits_is_listed_over_all_conversations_until_it_is_decided() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut changes = client.open(client.request("GET", "/api/events")).await;
    assert_eq!(changes.next().await.unwrap().name.as_deref(), Some("hello"));
    send(client, "first", "refund my bill").await;
    send(client, "second", "a person").await;
    let waiting = client.get("/api/waiting").await.ok();
    let names = |list: &Value| -> Vec<String> {
        let list = list["waiting"].as_array().unwrap().iter();
        list.map(|one| one["conversation"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&waiting), ["first", "second"]);
    let call = &waiting["waiting"][0]["calls"][0];
    assert_eq!(
        (&call["kind"], &call["tool"]),
        (&json!("tool"), &json!("refund"))
    );
    assert_eq!(waiting["waiting"][0]["title"], "refund my bill");
    assert_eq!(waiting["waiting"][1]["calls"][0]["kind"], "person");
    let listed = client.get("/api/conversations").await.ok();
    assert!(
        listed["conversations"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["is_waiting"] == true)
    );

    let decision = json!({"decisions": [{"call_id": call["call_id"], "approve": true}]});
    client
        .post("/api/conversations/first/decisions", decision)
        .await
        .ok();
    assert_eq!(names(&client.get("/api/waiting").await.ok()), ["second"]);
    assert_eq!(client.delete("/api/conversations/second").await.status, 204);
    assert_eq!(names(&client.get("/api/waiting").await.ok()), [""; 0]);
    let mut told = Vec::new();
    while told.len() < 4 {
        let event = changes.next().await.unwrap();
        if event.name.as_deref() == Some("waiting") {
            told.push((
                event.json()["conversation"].clone(),
                event.json()["is_waiting"].clone(),
            ));
        }
    }
    assert_eq!(
        told,
        [
            ("first", true),
            ("second", true),
            ("first", false),
            ("second", false)
        ]
        .map(|(id, is)| (json!(id), json!(is)))
    );
}

#[tokio::test]
async fn what_waits_is_listed_after_a_message_whose_run_has_failed() {
    let server = TestServer::start().await;
    let client = &server.client;
    send(client, "c", "refund my bill").await;
    let run = send(client, "c", "fail").await;
    assert_eq!(run["status"], "failed");
    let waiting = client.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"][0]["conversation"], "c");
    let call = &waiting["waiting"][0]["calls"][0]["call_id"];
    let body = json!({"decisions": [{"call_id": call, "approve": true}]});
    let decided = client.post("/api/conversations/c/decisions", body).await;
    assert_eq!(decided.ok()["status"], "completed");
    let waiting = client.get("/api/waiting").await.ok();
    assert_eq!(waiting["waiting"], json!([]));
}

#[tokio::test]
async fn a_team_is_described_and_drawn_as_json() {
    let server = TestServer::with(|builder| builder.studio(Studio::new())).await;
    let client = &server.client;
    let graph = client
        .get("/api/teams/support/graph?format=json")
        .await
        .ok();
    let names: Vec<&Value> = graph["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["name"])
        .collect();
    assert_eq!(names, ["Triage", "Billing", "Ann"]);
    let edge = &graph["edges"][0];
    assert_eq!(
        (&edge["from"], &edge["to"], &edge["tool"]),
        (
            &json!("Triage"),
            &json!("Billing"),
            &json!("transfer_to_billing")
        )
    );
    assert!(edge["path"].as_str().unwrap().starts_with('M'));
    let agent = client.get("/api/teams/support/agents/Billing").await.ok();
    assert_eq!(agent["model"], "rules");
    assert_eq!(agent["tools"][0]["needs_approval"], "always");
    assert_eq!(agent["handoffs"][0]["to"], "Triage");
    assert_eq!(
        client.get("/api/teams/support/agents/Nobody").await.status,
        404
    );
    assert_eq!(client.get("/api/teams/support/file").await.status, 404);
    let svg = client.get("/api/teams/support/graph?format=svg").await;
    assert_eq!(svg.headers["content-type"], "image/svg+xml");
}

#[tokio::test]
async fn the_instructions_of_agents_are_shown_in_the_studio_only() {
    let server = TestServer::start().await;
    let path = "/api/teams/support/agents/Billing";
    let refused = server.client.get(path).await;
    assert_eq!(refused.error_code(), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn markup_and_terminal_codes_of_a_conversation_are_text_in_every_export() {
    let server = TestServer::start().await;
    let client = &server.client;
    let attack =
        "<script>alert(1)</script>\u{1b}[31m\u{9b}2J [x](javascript:alert(1))\n# heading\n```";
    send(client, "c", attack).await;
    let markdown = client
        .get("/api/conversations/c/export?format=markdown")
        .await;
    assert_eq!(markdown.status, 200);
    assert_eq!(
        markdown.headers["content-disposition"],
        "attachment; filename=\"c.md\""
    );
    assert_eq!(markdown.headers["x-content-type-options"], "nosniff");
    assert!(!markdown.text.contains("<script"), "{}", markdown.text);
    assert!(!markdown.text.contains(['\u{1b}', '\u{9b}']));
    assert!(!markdown.text.contains("[x]("));
    assert!(!markdown.text.lines().any(|line| line == "# heading"));
    let title = client.get("/api/conversations").await.ok()["conversations"][0]["title"].clone();
    assert!(!title.as_str().unwrap().contains(['\u{1b}', '\u{9b}', '\n']));
}
