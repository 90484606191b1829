//! A conversation that goes from the OpenAI Agents SDK for Python to Switchboard and back.
//!
//! `./test` installs the Python package and runs this; without it the test is ignored.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard::handoff::HandoffInputData;
use switchboard::items::{Items, RunItems};
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Item, Runner, Team, handoff};

/// Runs one turn in Python.
fn run_in_python(task: &Value) -> Value {
    let python = std::env::var("SWITCHBOARD_PYTHON").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/converse.py");
    let mut child = Command::new(python)
        .arg(script)
        .env("OPENAI_AGENTS_DISABLE_TRACING", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(task.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn call(id: &str, to: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
           "name": format!("transfer_to_{to}"), "arguments": "{}"})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn items(list: &Value) -> Items {
    let list = list.as_array().unwrap().iter();
    list.map(|item| Item::from_value(item).unwrap()).collect()
}

fn values(items: &Items) -> Value {
    items.iter().map(|item| item.to_value().unwrap()).collect()
}

#[tokio::test]
#[ignore = "needs the Python package openai-agents; ./test installs it and sets SWITCHBOARD_PYTHON"]
async fn a_conversation_goes_from_python_to_switchboard_and_back() {
    // In Python: from triage to billing.
    let first = run_in_python(&json!({
        "start": "Triage agent", "items": [], "say": "My bill is wrong",
        "script": [[call("1", "billing_agent")], [message("1", "It is fixed.")]],
    }));
    assert_eq!(first["last_agent"], "Billing agent");

    // In Switchboard: from billing to triage and back to billing, with the same items.
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = seen.clone();
    let record = move |data: HandoffInputData| {
        let run_items = |items: &RunItems| -> Value {
            items
                .iter()
                .map(|item| item.to_input_item().to_value().unwrap())
                .collect()
        };
        log.lock().unwrap().push(json!({
            "input_history": values(&data.history_items()),
            "pre_handoff_items": run_items(data.pre_handoff_items()),
            "new_items": run_items(data.new_items()),
        }));
        data
    };
    let team: Team = Team::new()
        .agent(Agent::new("Triage agent").handoff(handoff("Billing agent").filter(record.clone())))
        .agent(Agent::new("Billing agent").handoff(handoff("Triage agent").filter(record)))
        .build()
        .unwrap();
    let history = items(&first["items"]);
    let mut input: Vec<Item> = history.clone().into_iter().collect();
    input.push(Item::user("And my phone is broken"));
    let answers = json!([
        [call("2", "triage_agent")],
        [message("2", "I can help with that.")]
    ]);
    let mut model = ScriptedModel::new();
    for answer in answers.as_array().unwrap() {
        model = model.reply(items(answer));
    }
    let runner = Runner::new(&team["Billing agent"]).model(model.clone());
    let second = runner.run(input.clone()).await.unwrap();
    assert_eq!(second.last_agent().name(), "Triage agent");
    let first_request = &model.requests()[0];
    assert_eq!(
        values(&first_request.input),
        values(&input.clone().into()),
        "Python's items are passed on unchanged"
    );

    // The same turn in Python gives the same items, the same requests and the same handoff data.
    let mirrored = run_in_python(&json!({
        "start": "Billing agent", "items": first["items"], "say": "And my phone is broken",
        "script": answers,
    }));
    let ours = second.to_input_list();
    assert_eq!(values(&ours), mirrored["items"]);
    assert_eq!(values(&model.requests()[1].input), mirrored["seen"][1]);
    assert_eq!(
        Value::from(seen.lock().unwrap().clone()),
        mirrored["handoff_data"]
    );

    // Back in Python: the conversation continues from Switchboard's items.
    let third = run_in_python(&json!({
        "start": "Triage agent", "items": values(&ours), "say": "Thanks",
        "script": [[message("3", "You are welcome.")]],
    }));
    let all = third["items"].as_array().unwrap();
    assert_eq!(Value::from(all[..ours.len()].to_vec()), values(&ours));
    assert_eq!(all.len(), ours.len() + 2);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
#[ignore = "needs the Python package openai-agents; ./test installs it and sets SWITCHBOARD_PYTHON"]
async fn a_session_file_goes_from_python_to_switchboard_and_back() {
    use switchboard::Session as _;
    use switchboard::conversation::Conversations;
    use switchboard::sessions::{SqliteStore, python};

    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("sessions.db");
    let session = |id: &str, path: &std::path::Path| json!({"id": id, "path": path});

    // In Python: two sessions of one file.
    let first = run_in_python(&json!({
        "start": "Triage agent", "say": "My bill is wrong \u{1F600}", "session": session("user_1", &theirs),
        "script": [[call("1", "billing_agent")], [message("1", "It is fixed.")]],
    }));
    assert_eq!(first["last_agent"], "Billing agent");
    run_in_python(&json!({
        "start": "Triage agent", "say": "Hello", "session": session("user_2", &theirs),
        "script": [[message("2", "Hello!")]],
    }));

    // In Switchboard: the same conversations, and another turn of one.
    let store = SqliteStore::open(folder.path().join("conversations.db"));
    let conversations = Conversations::new(store.await.unwrap());
    let names = python::import(&theirs, &conversations).await.unwrap();
    assert_eq!(names, ["user_1", "user_2"]);
    let conversation = conversations.get("user_1");
    let imported = conversation.load(None).await.unwrap();
    assert_eq!(values(&imported), first["stored"]);
    assert_eq!(imported.len(), 4);
    let again = python::import(&theirs, &conversations).await.unwrap_err();
    assert!(
        again
            .to_string()
            .contains("\"user_1\": the store has a conversation of this name")
    );

    let agent: Agent = Agent::new("Billing agent")
        .model(ScriptedModel::new().reply(items(&json!([message("3", "Gladly.")]))));
    let runner = Runner::new(&agent).session(&conversation);
    runner.run("Send me a copy").await.unwrap();

    // Back in Python: the turn is there, and the next one sees it.
    let again = python::export(&conversation, &theirs).await.unwrap_err();
    assert!(
        again
            .to_string()
            .contains("\"user_1\": the file has a session of this name")
    );
    let ours = folder.path().join("exported.db");
    for name in names {
        python::export(&conversations.get(name), &ours)
            .await
            .unwrap();
    }
    let next = run_in_python(&json!({
        "start": "Billing agent", "say": "Thanks", "session": session("user_1", &ours),
        "script": [[message("4", "You are welcome.")]],
    }));
    let exported = values(&conversation.load(None).await.unwrap());
    let exported = exported.as_array().unwrap();
    let stored = next["stored"].as_array().unwrap();
    assert_eq!((exported.len(), stored.len()), (6, 8));
    assert_eq!(&stored[..6], exported);
    assert_eq!(next["seen"][0].as_array().unwrap().len(), 7);
    conversations.close().await;
}
