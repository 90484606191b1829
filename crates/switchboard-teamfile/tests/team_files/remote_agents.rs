//! Agents of other servers.

use serde_json::json;
use switchboard_teamfile::{Severity, TeamFile};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn codes(text: &str) -> Vec<(String, Severity)> {
    let problems = match TeamFile::parse(text, "team.toml") {
        Ok(file) => file.check(),
        Err(problems) => problems,
    };
    let problems = problems.iter();
    problems
        .map(|problem| (problem.code.to_owned(), problem.severity))
        .collect()
}

fn team(travel: &str) -> String {
    format!(
        r#"
        [agents.Triage]
        handoffs = ["Travel"]
        [agents.Travel]
        description = "Flights."
        handoffs = [{{ return = "previous" }}]
        {travel}
        "#
    )
}

/// A server with one agent, which answers every message with a task. Returns its address.
async fn remote_agent() -> String {
    remote_agent_at(None).await
}

/// A server whose card names this address, or its own.
async fn remote_agent_at(endpoint: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let url = endpoint.unwrap_or(&address);
    let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let card = json!({"name": "Travel", "supportedInterfaces": [interface]});
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
                      "artifacts": [{"artifactId": "a", "parts": [{"text": "Booked."}]}]});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task}});
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 16 << 10];
            let read = stream.read(&mut request).await.unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let has_key = request.contains("authorization: Bearer s3cret");
            let (status, body) = match (has_key, request.starts_with("GET ")) {
                (false, _) => ("401 Unauthorized", json!({})),
                (true, true) => ("200 OK", card.clone()),
                (true, false) => ("200 OK", answer.clone()),
            };
            let body = body.to_string();
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

#[test]
fn fields_that_have_no_effect_and_addresses_that_are_none_are_reported() {
    assert_eq!(codes(&team("a2a = \"https://travel.example\"")), []);
    let table =
        "a2a = { url = \"https://travel.example\", key = { env = \"KEY\" }, timeout_seconds = 5 }";
    assert_eq!(codes(&team(table)), []);
    let ignored = "a2a = \"https://travel.example\"\ninstructions = \"Book.\"\nmodel = \"offline\"";
    let warning = ("ignored-by-remote".to_owned(), Severity::Warning);
    assert_eq!(codes(&team(ignored)), [warning.clone(), warning]);
    for wrong in [
        "a2a = \"travel.example\"",
        "a2a = \"ftp://travel.example\"",
        "a2a = \"https://\"",
        "a2a = \"https://user:hunter2@travel.example\"",
        "a2a = { url = \"travel\" }",
        "a2a = { url = \"https://travel.example\", endpoints = [\"rpc.travel.example\"] }",
    ] {
        let found = codes(&team(wrong));
        assert_eq!(
            found,
            [("bad-address".to_owned(), Severity::Error)],
            "{wrong}"
        );
    }
    let unknown = codes(&team("a2a = { url = \"https://travel.example\", ky = 1 }"));
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    let with_budget = format!(
        "[run]\nbudget = {{ cost = 1 }}\n{}",
        team("a2a = \"https://travel.example\"")
    );
    assert!(codes(&with_budget).contains(&("no-price".to_owned(), Severity::Error)));
}

#[tokio::test]
async fn a_handoff_leads_to_the_agent_of_another_server_with_the_key_of_the_environment() {
    let address = remote_agent().await;
    let text = team(&format!(
        "a2a = {{ url = \"{address}\", key = {{ env = \"TRAVEL_KEY\" }} }}"
    ));
    let file = TeamFile::parse(&text, "team.toml").unwrap();
    let missing = file.open_options().vars(|_| None).open().unwrap_err();
    assert!(missing.to_string().contains("TRAVEL_KEY"), "{missing}");
    let vars = |name: &str| (name == "TRAVEL_KEY").then(|| "s3cret".to_owned());
    let open = file.open_options().vars(vars).open().unwrap();
    assert_eq!(open.model_name("Travel"), Some("a2a"));
    // The other agent's model is the offline one, which hands over by the description.
    let result = open.runner().run("I want to book flights").await.unwrap();
    assert_eq!(result.final_text(), "Booked.");
    assert_eq!(result.last_agent().name(), "Travel");
}

#[tokio::test]
async fn a_card_leads_to_another_server_only_if_the_team_file_allows_that_one() {
    let answering = remote_agent().await;
    let card = remote_agent_at(Some(&answering)).await;
    let vars = |name: &str| (name == "TRAVEL_KEY").then(|| "s3cret".to_owned());
    let answered = async |endpoints: &str| {
        let text = team(&format!(
            "a2a = {{ url = \"{card}\", key = {{ env = \"TRAVEL_KEY\" }}, endpoints = [{endpoints}] }}"
        ));
        let file = TeamFile::parse(&text, "team.toml").unwrap();
        let open = file.open_options().vars(vars).open().unwrap();
        open.runner().run("I want to book flights").await
    };
    for not_that in ["", "\"http://127.0.0.1:1\""] {
        let refused = answered(not_that).await.unwrap_err().to_string();
        let named = format!("names another server, {answering}");
        assert!(refused.contains(&named), "{refused}");
        assert!(refused.contains("endpoints of a2a"), "{refused}");
    }
    let allowed = answered(&format!("\"{answering}\"")).await.unwrap();
    assert_eq!(allowed.final_text(), "Booked.");
}
