//! Lists of tasks.

use serde_json::{Value, json};
use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, ConversationStore, Conversations, Entry, EntryContent, Expected,
};

use super::{
    AGENT, approve, begin, error_code, listed, message, reply, request, result, send, state, texts,
};
use crate::support::{TestServer, until};
use crate::watched_store::WatchedStore;

#[tokio::test]
async fn tasks_are_listed_newest_first_with_a_cursor_and_filters() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut ids = Vec::new();
    for text in ["one", "two", "refund my bill", "four"] {
        ids.push(
            send(client, message(text)).await["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        // The order is by milliseconds.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let listed = |answer: &Value| -> Vec<String> {
        let tasks = answer["tasks"].as_array().unwrap();
        tasks
            .iter()
            .map(|task| task["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    let all = result(client, "ListTasks", json!({})).await;
    assert_eq!(listed(&all), newest);
    assert_eq!(
        (&all["totalSize"], &all["pageSize"], &all["nextPageToken"]),
        (&json!(4), &json!(50), &json!(""))
    );
    assert!(all["tasks"][0]["artifacts"].is_null());
    let first = result(client, "ListTasks", json!({"pageSize": 3})).await;
    let token = first["nextPageToken"].as_str().unwrap();
    let path = format!("{AGENT}/tasks?pageSize=3&pageToken={token}&includeArtifacts=true");
    let second = crate::support::answer(request(client, "GET", &path))
        .await
        .ok();
    assert_eq!([listed(&first), listed(&second)].concat(), newest);
    assert_eq!(
        (&second["totalSize"], &second["nextPageToken"]),
        (&json!(4), &json!(""))
    );
    assert_eq!(texts(&second["tasks"][0]), ["Triage: you said one"]);
    let waiting = result(
        client,
        "ListTasks",
        json!({"status": "TASK_STATE_INPUT_REQUIRED"}),
    )
    .await;
    assert_eq!(
        (listed(&waiting), &waiting["totalSize"]),
        (vec![ids[2].clone()], &json!(1))
    );
    let task = result(client, "GetTask", json!({"id": ids[1]})).await;
    let in_context = result(client, "ListTasks", json!({"contextId": task["contextId"]})).await;
    assert_eq!(listed(&in_context), [ids[1].clone()]);
    let since =
        result(client, "GetTask", json!({"id": ids[2]})).await["status"]["timestamp"].clone();
    let later = result(client, "ListTasks", json!({"statusTimestampAfter": since})).await;
    assert_eq!(listed(&later), newest[..2]);
    for wrong in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"historyLength": -1}),
        json!({"status": "TASK_STATE_RUNNING"}),
        json!({"pageToken": "nonsense"}),
        json!({"statusTimestampAfter": "yesterday"}),
    ] {
        assert_eq!(
            error_code(client, "ListTasks", wrong.clone()).await,
            -32602,
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_list_of_tasks_has_them_as_they_are_now() {
    let server = TestServer::start().await;
    let client = &server.client;
    let waits = send(client, message("refund my bill")).await;
    let slow = begin(client, "slow").await;
    assert_eq!(
        listed(client, json!({})).await,
        ["WORKING", "INPUT_REQUIRED"]
    );
    let context = waits["contextId"].as_str().unwrap();
    let shown = client.get(&format!("/api/conversations/{context}")).await;
    let call = &shown.ok()["waiting"][0]["call_id"];
    let decisions = json!({"decisions": [{"call_id": call, "approve": true}]});
    let path = format!("/api/conversations/{context}/decisions");
    client.post(&path, decisions).await.ok();
    // Nobody has asked for the task itself.
    for (filter, expected) in [
        ("TASK_STATE_COMPLETED", &["COMPLETED"] as &[_]),
        ("TASK_STATE_INPUT_REQUIRED", &[]),
        ("TASK_STATE_WORKING", &["WORKING"]),
    ] {
        let found = listed(client, json!({"status": filter})).await;
        assert_eq!(found, expected, "{filter}");
    }
    server.model.gate.add_permits(1);
    until(|| async { state(client, &slow).await == "COMPLETED" }).await;
    assert_eq!(listed(client, json!({})).await, ["COMPLETED", "COMPLETED"]);
}

#[tokio::test]
async fn a_list_reads_the_tasks_of_its_page_alone() {
    let store = WatchedStore::new(&Conversations::in_memory());
    let conversations = Conversations::new(store.clone());
    let server = TestServer::with(|builder| builder.conversations(conversations)).await;
    let client = &server.client;
    for _ in 0..8 {
        send(client, message("refund my bill")).await;
    }
    store.take_reads();
    let page = result(client, "ListTasks", json!({"pageSize": 2})).await;
    assert_eq!(page["totalSize"], 8);
    assert_eq!(store.take_reads(), 2);
    // A task that waits may have ended, but one that has ended does not wait.
    send(client, message("hello")).await;
    store.take_reads();
    let waiting = json!({"pageSize": 2, "status": "TASK_STATE_INPUT_REQUIRED"});
    let page = result(client, "ListTasks", waiting).await;
    assert_eq!(page["totalSize"], 8);
    assert_eq!(store.take_reads(), 8 + 2);
}

#[tokio::test]
async fn a_task_that_cannot_be_read_does_not_hide_the_others() {
    let store = Conversations::in_memory();
    let server = TestServer::with(|builder| builder.conversations(store.clone())).await;
    let client = &server.client;
    send(client, message("refund my bill")).await;
    let broken = send(client, message("refund my bill")).await;
    send(client, message("hello")).await;
    // The stored task becomes something else.
    let item = Item::from_json(r#"{"no": "task"}"#).unwrap();
    let commit = Commit::new(Expected::Any, vec![Entry::new(EntryContent::Item(item))]);
    let name = format!("~task/{}", broken["id"].as_str().unwrap());
    ConversationStore::commit(&store, &name, commit)
        .await
        .unwrap();
    let states = async |parameters: Value| -> Vec<String> {
        let listed = result(client, "ListTasks", parameters).await;
        let tasks = listed["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| task["status"]["state"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        states(json!({})).await,
        ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"]
    );
    let waiting = json!({"status": "TASK_STATE_INPUT_REQUIRED"});
    assert_eq!(states(waiting).await, ["TASK_STATE_INPUT_REQUIRED"]);
}

#[tokio::test]
async fn no_task_is_listed_twice_if_the_last_one_of_a_page_changes() {
    let server = TestServer::start().await;
    let client = &server.client;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let task = send(client, message("refund my bill")).await;
        ids.insert(0, task["id"].clone());
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let page = async |token: &Value| {
        let parameters = json!({"pageSize": 2, "pageToken": token});
        let listed = result(client, "ListTasks", parameters).await;
        let tasks = listed["tasks"].as_array().unwrap().iter();
        let ids: Vec<Value> = tasks.map(|task| task["id"].clone()).collect();
        (ids, listed["nextPageToken"].clone())
    };
    let (first, token) = page(&json!("")).await;
    assert_eq!(first, ids[..2]);
    send(client, reply(&json!({"id": ids[1]}), "approve")).await;
    assert_eq!(page(&token).await, (ids[2..].to_vec(), json!("")));
}

#[tokio::test]
async fn a_list_since_a_time_has_a_task_that_was_decided_since() {
    let server = TestServer::start().await;
    let client = &server.client;
    let task = send(client, message("refund my bill")).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let later = send(client, message("hello")).await;
    let since = json!({"statusTimestampAfter": later["status"]["timestamp"]});
    assert_eq!(listed(client, since.clone()).await, ["COMPLETED"]);
    approve(client, &task).await.ok();
    assert_eq!(listed(client, since).await, ["COMPLETED", "COMPLETED"]);
}
