//! The parts of the service that the studio uses: turns, sending again, what waits, the page, files of teams.

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

#[cfg(feature = "studio")]
mod page {
    use super::*;
    use crate::support::{Answer, answer, with_json};

    async fn studio() -> (TestServer, Client) {
        let (studio, token) = Studio::with_token().unwrap();
        let server =
            TestServer::with(|builder| builder.studio(studio).hosts(["127.0.0.1", "localhost"]))
                .await;
        let client = server.client_with(&token);
        (server, client)
    }

    #[tokio::test]
    async fn the_page_is_served_with_a_policy_that_lets_nothing_else_run() {
        let (server, _) = studio().await;
        let page = server.client.get("/").await;
        assert_eq!(page.status, 200);
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        for part in [
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["x-frame-options"], "DENY");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        assert!(page.headers.get("access-control-allow-origin").is_none());
        assert!(page.headers.get("set-cookie").is_none());
        let tag = page.headers["etag"].clone();
        let request = server
            .client
            .request("GET", "/")
            .header("if-none-match", tag);
        assert_eq!(answer(request).await.status, 304);
        let script = server.client.get("/assets/studio.js").await;
        assert_eq!(
            script.headers["content-type"],
            "text/javascript; charset=utf-8"
        );
        for path in [
            "/assets/..%2F..%2FCargo.toml",
            "/assets/.env",
            "/assets/none.js",
            "/index.html",
        ] {
            assert!(
                [401, 404].contains(&server.client.get(path).await.status),
                "{path}"
            );
        }
    }

    #[tokio::test]
    async fn the_api_of_a_studio_needs_its_token() {
        let (server, client) = studio().await;
        for path in [
            "/api/studio",
            "/api/teams",
            "/api/conversations",
            "/v1/models",
            "/metrics",
        ] {
            assert_eq!(
                server.client.get(path).await.error_code(),
                (401, "unauthorized".to_owned()),
                "{path}"
            );
            assert_eq!(
                server.client_with("wrong").get(path).await.status,
                401,
                "{path}"
            );
            assert_eq!(client.get(path).await.status, 200, "{path}");
        }
        // Not in the address, where it would be in logs.
        assert_eq!(server.client.get("/api/studio?token=x").await.status, 401);
    }

    #[tokio::test]
    async fn a_name_or_a_page_of_another_site_does_not_reach_the_studio() {
        let (_server, client) = studio().await;
        let body = json!({"input": "hello"});
        let refused = async |request: reqwest::RequestBuilder| -> Answer { answer(request).await };
        for path in ["/", "/assets/studio.js", "/api/studio"] {
            let request = client.request("GET", path).header("host", "evil.example");
            assert_eq!(refused(request).await.status, 403, "{path}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:1"] {
            let request = client.request("POST", "/api/conversations/c/messages");
            let request = with_json(request, &body).header("origin", origin);
            assert_eq!(refused(request).await.status, 403, "{origin}");
        }
        assert_eq!(client.get("/api/conversations/c").await.status, 404);
    }
}

#[cfg(feature = "studio")]
mod files {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use switchboard_server::{
        Completions, Keys, ServedTeam, ServiceError, SourceProblem, TeamFileSource, TeamSource,
        make_key,
    };
    use switchboard_teamfile::TeamFile;

    use super::*;
    use crate::support::{Answer, answer, until, with_json};

    const TEAM: &str = "[context]\ntier = \"basic\"\n\n[agents.Desk]\ninstructions = \"Answer.\"\nhandoffs = [\"Bills\"]\n\n\
        [agents.Bills]\ndescription = \"Bills.\"\nknowledge = [{ title = \"Charged twice\", text = \"It is reversed.\" }]\n";

    fn open(file: &TeamFile) -> Result<ServedTeam, Vec<SourceProblem>> {
        let open = file
            .open()
            .map_err(|found| found.iter().map(SourceProblem::from).collect::<Vec<_>>())?;
        Ok(ServedTeam::of_team_file(
            "filed",
            &open,
            open.config().clone(),
        ))
    }

    async fn with_file(path: &Path, is_editable: bool) -> TestServer {
        std::fs::write(path, TEAM).unwrap();
        let served = open(&TeamFile::read(path).unwrap()).unwrap();
        let source = TeamFileSource::new(path, open);
        let source = if is_editable {
            source.editable()
        } else {
            source
        };
        let served = source.attach_to(served);
        TestServer::with(|builder| builder.team(served).studio(Studio::new())).await
    }

    async fn put(client: &Client, body: &Value) -> Answer {
        answer(with_json(
            client.request("PUT", "/api/teams/filed/file"),
            body,
        ))
        .await
    }

    #[tokio::test]
    async fn a_team_file_is_checked_changed_and_used_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("team.toml");
        let server = with_file(&path, true).await;
        let client = &server.client;
        let file = client.get("/api/teams/filed/file").await.ok();
        assert_eq!(
            (&file["text"], &file["name"], &file["editable"]),
            (&json!(TEAM), &json!("team.toml"), &json!(true))
        );

        let wrong = TEAM.replace("\"Bills\"]", "\"Bils\"]");
        let checked = client
            .post("/api/teams/filed/file/check", json!({"text": wrong}))
            .await
            .ok();
        assert_eq!(checked["ok"], false);
        let problem = &checked["problems"][0];
        let place = [
            &problem["line"],
            &problem["column"],
            &problem["end_line"],
            &problem["end_column"],
        ];
        assert_eq!(place, [&json!(6), &json!(13), &json!(6), &json!(19)]);
        let refused = put(client, &json!({"text": wrong, "version": file["version"]})).await;
        assert_eq!(
            (refused.status, &refused.json()["problems"][0]["code"]),
            (400, &json!("unknown-agent"))
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEAM);

        let body = json!({"input": "I was charged twice", "team": "filed"});
        let run = client
            .post("/api/conversations/c/messages", body)
            .await
            .ok();
        assert_eq!(run["output"], "It is reversed.");
        let better = TEAM.replace("It is reversed.", "It is reversed at once.");
        let saved = put(client, &json!({"text": better, "version": file["version"]}))
            .await
            .ok();
        assert_ne!(saved["version"], file["version"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), better);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // The conversation goes on with the new team.
        let run = client
            .post(
                "/api/conversations/c/messages",
                json!({"input": "I was charged twice"}),
            )
            .await
            .ok();
        assert_eq!(
            (&run["output"], &run["agent"]),
            (&json!("It is reversed at once."), &json!("Bills"))
        );

        let late = put(client, &json!({"text": TEAM, "version": file["version"]})).await;
        assert_eq!(late.error_code(), (409, "conflict".to_owned()));
        std::fs::write(&path, TEAM).unwrap();
        assert_eq!(
            client.get("/api/teams/filed/file").await.ok()["changed_on_disk"],
            true
        );
        let reloaded = answer(client.request("POST", "/api/teams/filed/reload"))
            .await
            .ok();
        assert_eq!(reloaded["team"]["name"], "filed");
        assert_eq!(
            client.get("/api/teams/filed/file").await.ok()["changed_on_disk"],
            false
        );
        let place = json!({"text": "[agents.X]\nhan", "line": 2, "column": 4});
        let completed = client
            .post("/api/teams/filed/file/completions", place)
            .await
            .ok();
        assert_eq!(
            (&completed["start_column"], &completed["items"][0]["label"]),
            (&json!(1), &json!("handoffs"))
        );
    }

    #[tokio::test]
    async fn only_a_key_that_may_edit_teams_changes_team_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("team.toml");
        std::fs::write(&path, TEAM).unwrap();
        let served = open(&TeamFile::read(&path).unwrap()).unwrap();
        let served = TeamFileSource::new(&path, open)
            .editable()
            .attach_to(served);
        let (reader, reads) = make_key("acme").unwrap();
        let (editor, mut edits) = make_key("acme").unwrap();
        edits.edit_teams = true;
        let keys = Keys::from_entries([reads, edits]).unwrap();
        let server =
            TestServer::with(|builder| builder.team(served).keys(keys).studio(Studio::new())).await;

        let better = TEAM.replace("It is reversed.", "It is reversed at once.");
        let client = server.client_with(&reader);
        let file = client.get("/api/teams/filed/file").await.ok();
        assert_eq!(file["editable"], false);
        let body = json!({"text": better, "version": file["version"]});
        let refused = put(&client, &body).await;
        assert_eq!(refused.error_code(), (403, "forbidden".to_owned()));
        assert!(refused.text.contains("edit_teams"), "{}", refused.text);
        let refused = answer(client.request("POST", "/api/teams/filed/reload")).await;
        assert_eq!(refused.status, 403);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEAM);

        let client = server.client_with(&editor);
        let file = client.get("/api/teams/filed/file").await.ok();
        assert_eq!(file["editable"], true);
        put(&client, &body).await.ok();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), better);
        answer(client.request("POST", "/api/teams/filed/reload"))
            .await
            .ok();
    }

    #[tokio::test]
    async fn a_run_under_way_goes_on_with_the_team_it_began_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("team.toml");
        let server = with_file(&path, true).await;
        let client = server.client.clone();
        let slow = json!({"input": "slow", "team": "support", "stream": true});
        let request = with_json(
            client.request("POST", "/api/conversations/s/messages"),
            &slow,
        );
        let mut stream = client.open(request).await;
        stream.next().await.unwrap();
        let service = server.service.clone();
        assert!(service.reload_team("filed").is_ok());
        assert!(service.reload_team("support").is_err());
        server.model.gate.add_permits(1);
        let last = stream.rest().await.pop().unwrap();
        assert_eq!(last.json()["output"], "Triage: you said slow");
        std::fs::write(&path, "nonsense =").unwrap();
        assert!(service.reload_team("filed").is_err());
        until(|| async { client.get("/api/teams/filed").await.status == 200 }).await;
    }

    /// A source whose first text is read slowly.
    struct SlowSource {
        text: Mutex<String>,
        is_read: AtomicBool,
        is_written: AtomicBool,
    }

    impl TeamSource for SlowSource {
        fn name(&self) -> String {
            "slow".to_owned()
        }

        fn format(&self) -> &'static str {
            "toml"
        }

        fn is_editable(&self) -> bool {
            true
        }

        fn read(&self) -> Result<String, ServiceError> {
            let text = self.text.lock().unwrap().clone();
            if !self.is_read.swap(true, Ordering::SeqCst) {
                // Long enough for somebody who saves meanwhile.
                let end = Instant::now() + Duration::from_secs(2);
                while !self.is_written.load(Ordering::SeqCst) && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(5));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(text)
        }

        fn write(&self, text: &str) -> Result<(), ServiceError> {
            text.clone_into(&mut self.text.lock().unwrap());
            self.is_written.store(true, Ordering::SeqCst);
            Ok(())
        }

        fn check(&self, _text: &str) -> Vec<SourceProblem> {
            Vec::new()
        }

        /// The text is the description of the team.
        fn open(&self, text: &str) -> Result<ServedTeam, Vec<SourceProblem>> {
            let team = crate::support::team(&crate::support::RuleModel::new());
            Ok(ServedTeam::new("slow", team, ()).description(text))
        }

        fn complete(&self, _text: &str, _line: usize, column: usize) -> Completions {
            Completions {
                start_column: column,
                items: Vec::new(),
            }
        }
    }

    #[tokio::test]
    async fn a_text_that_is_saved_while_the_team_is_read_again_is_the_one_that_counts() {
        let source = Arc::new(SlowSource {
            text: Mutex::new("first".to_owned()),
            is_read: AtomicBool::new(false),
            is_written: AtomicBool::new(false),
        });
        let served = source.open("first").unwrap().source(source.clone());
        let server = TestServer::with(|builder| builder.team(served).studio(Studio::new())).await;
        let client = &server.client;
        let service = server.service.clone();
        let reloaded = tokio::task::spawn_blocking(move || service.reload_team("slow"));
        until(|| async { source.is_read.load(Ordering::SeqCst) }).await;
        let file = client.get("/api/teams/slow/file").await.ok();
        let body = json!({"text": "second", "version": file["version"]});
        let request = with_json(client.request("PUT", "/api/teams/slow/file"), &body);
        answer(request).await.ok();
        reloaded.await.unwrap().unwrap();
        let shown = client.get("/api/teams/slow").await.ok();
        assert_eq!(shown["description"], "second");
    }

    #[tokio::test]
    async fn a_file_is_changed_only_where_that_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("team.toml");
        let server = with_file(&path, false).await;
        let client = &server.client;
        let file = client.get("/api/teams/filed/file").await.ok();
        assert_eq!(file["editable"], false);
        let body = json!({"text": TEAM, "version": file["version"]});
        assert_eq!(
            put(client, &body).await.error_code(),
            (403, "forbidden".to_owned())
        );
        let request = with_json(client.request("PUT", "/api/teams/filed/file"), &body);
        let request = request.header("origin", "http://evil.example");
        assert_eq!(answer(request).await.status, 403);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEAM);
    }

    #[tokio::test]
    async fn a_conversation_keeps_the_context_it_began_with() {
        let folder = tempfile::tempdir().unwrap();
        let server = with_file(&folder.path().join("team.toml"), false).await;
        let client = &server.client;
        let team = client.get("/api/teams/filed").await.ok();
        assert_eq!(team["context"], json!([{"path": "tier", "value": "basic"}]));
        let body = json!({"input": "hello", "team": "filed", "context": {"tier": "premium"}});
        client
            .post("/api/conversations/c/messages", body)
            .await
            .ok();
        let shown = client.get("/api/conversations/c").await.ok();
        assert_eq!(shown["context"], json!({"tier": "premium"}));
        client
            .post("/api/conversations/c/messages", json!({"input": "hello"}))
            .await
            .ok();
        for (context, status) in [
            (json!({"tier": "gold"}), 409),
            (json!({"tier": 7}), 409),
            (json!({"nope": "x"}), 409),
        ] {
            let body = json!({"input": "hello", "context": context});
            assert_eq!(
                client
                    .post("/api/conversations/c/messages", body)
                    .await
                    .status,
                status
            );
        }
        let case = client.get("/api/conversations/c/export?format=case").await;
        assert_eq!(case.status, 200);
        assert!(
            case.text.contains("context = { \"tier\" = \"premium\" }"),
            "{}",
            case.text
        );
        assert!(
            case.text.contains("messages = [\"hello\", \"hello\"]"),
            "{}",
            case.text
        );
        assert!(case.text.contains("expect = \"Desk\""), "{}", case.text);
    }
}
