//! Team files in the studio.

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
