//! Servers that are killed: nothing that was acknowledged is lost.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_server::{ServedTeam, Server, Service};
use tokio::sync::Mutex;

use crate::support::{Client, RuleModel, team};

const STORE: &str = "SWITCHBOARD_TEST_SERVE";

/// The server of the tests below. On its own it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_a_process_of_its_own() {
    let Ok(store) = std::env::var(STORE) else {
        return;
    };
    let conversations = switchboard_sessions::open(&store).await.unwrap();
    let served = ServedTeam::new("support", team(&RuleModel::new()), ());
    let service = Service::builder()
        .team(served)
        .conversations(conversations)
        .build()
        .unwrap();
    let server = Server::bind(service, "127.0.0.1:0").await.unwrap();
    println!("\nlistening on http://{}", server.address());
    std::io::stdout().flush().unwrap();
    let _running = server.start();
    std::future::pending::<()>().await;
}

struct Process {
    child: Child,
    client: Client,
}

impl Process {
    fn start(store: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "durability::a_server_in_a_process_of_its_own",
                "--exact",
                "--nocapture",
            ])
            .env(STORE, format!("sqlite:{}", store.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("the server has ended").unwrap();
            if let Some(url) = line.strip_prefix("listening on ") {
                break url.to_owned();
            }
        };
        Self {
            child,
            client: Client::new(&url, None),
        }
    }

    /// Kills the process, as with `kill -9`.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends messages to a conversation until the server is gone. Returns those that were answered.
async fn talk(client: Client, id: usize, round: usize, answered: Arc<Mutex<Vec<String>>>) {
    for number in 0.. {
        let message = format!("bill {id}-{round}-{number}");
        let path = format!("/api/conversations/c{id}/messages");
        let request =
            crate::support::with_json(client.request("POST", &path), &json!({"input": message}));
        let Ok(response) = request.send().await else {
            return;
        };
        let Ok(text) = response.text().await else {
            return;
        };
        let run: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            run["output"],
            format!("Billing: you said {message}"),
            "{run}"
        );
        answered.lock().await.push(message);
    }
}

#[tokio::test]
async fn nothing_that_was_answered_is_lost_when_the_server_is_killed_under_load() {
    const CONVERSATIONS: usize = 6;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("conversations.db");
    let answered: Vec<Arc<Mutex<Vec<String>>>> =
        (0..CONVERSATIONS).map(|_| Arc::default()).collect();
    for round in 0..3 {
        let mut process = Process::start(&store);
        let before = total(&answered).await;
        let talks = answered.iter().enumerate().map(|(id, answered)| {
            tokio::spawn(talk(process.client.clone(), id, round, answered.clone()))
        });
        let talks: Vec<_> = talks.collect();
        crate::support::until(|| async { total(&answered).await >= before + 20 }).await;
        process.kill();
        for talk in talks {
            talk.await.unwrap();
        }
    }
    let process = Process::start(&store);
    for (id, answered) in answered.iter().enumerate() {
        let shown = process
            .client
            .get(&format!("/api/conversations/c{id}?limit=1000"))
            .await
            .ok();
        let items = shown["items"].as_array().unwrap();
        let stored: Vec<&str> = items
            .iter()
            .filter_map(|entry| entry["content"]["content"].as_str())
            .collect();
        let mut stored = stored.into_iter();
        for message in answered.lock().await.iter() {
            assert!(
                stored.any(|known| known == message),
                "{message} is lost, or not in order"
            );
        }
    }
}

async fn total(answered: &[Arc<Mutex<Vec<String>>>]) -> usize {
    let mut total = 0;
    for answered in answered {
        total += answered.lock().await.len();
    }
    total
}

#[tokio::test]
async fn responses_and_waiting_calls_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("conversations.db");
    let mut process = Process::start(&store);
    let weather =
        json!({"type": "function", "name": "get_weather", "parameters": {"type": "object"}});
    let body = json!({"model": "support", "input": "weather for my bill", "tools": [weather]});
    let first = process.client.post("/v1/responses", body).await.ok();
    let waiting = process
        .client
        .post(
            "/api/conversations/c1/messages",
            json!({"input": "refund my bill"}),
        )
        .await
        .ok();
    process.kill();

    let process = Process::start(&store);
    let id = first["id"].as_str().unwrap();
    assert_eq!(
        process
            .client
            .get(&format!("/v1/responses/{id}"))
            .await
            .ok(),
        first
    );
    let call = first["output"].as_array().unwrap().last().unwrap();
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "rain"});
    let body = json!({"model": "support", "input": [output], "previous_response_id": id});
    let second = process.client.post("/v1/responses", body).await.ok();
    assert_eq!(
        second["output"][0]["content"][0]["text"],
        "Billing: I got rain."
    );
    let body =
        json!({"decisions": [{"call_id": waiting["waiting"][0]["call_id"], "approve": true}]});
    let done = process
        .client
        .post("/api/conversations/c1/decisions", body)
        .await
        .ok();
    assert_eq!(done["status"], "completed");
}
