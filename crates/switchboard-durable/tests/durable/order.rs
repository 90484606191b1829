//! Several messages to one conversation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, Item, Model, ModelRequest, ModelResponse, Session as _, Tool, tool,
};
use switchboard_durable::{DurableErrorKind, DurableRunner, Embedded, RunStatus};

/// A model that answers with the last message, after a while.
struct Echo;

impl Model for Echo {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let last = request
            .input
            .last()
            .and_then(|item| Some(item.text()?.into_owned()));
        let text = format!("re: {}", last.unwrap_or_default());
        Ok(ModelResponse::new([Item::output_message("m", &text)]))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_answered_in_the_order_in_which_they_were_sent() {
    let agent: Agent = Agent::new("Support").model(Echo);
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let mut runs = Vec::new();
    for number in 0..8 {
        let (key, text) = (format!("m{number}"), format!("message {number}"));
        runs.push(durable.start("talk", &key, &*text).await.unwrap());
    }
    let ended = join_all(runs.iter().map(|run| run.wait())).await;
    for (number, record) in ended.into_iter().enumerate() {
        let expected = format!("re: message {number}");
        assert_eq!(record.unwrap().text(), Some(expected.into()));
    }
    let items = store.get("talk").load(None).await.unwrap();
    let sent: Vec<String> = items
        .iter()
        .filter(|item| item.role().as_deref() == Some("user"))
        .filter_map(|item| Some(item.text()?.into_owned()))
        .collect();
    let expected: Vec<String> = (0..8).map(|number| format!("message {number}")).collect();
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn messages_that_were_stored_before_a_crash_are_answered_in_their_order_after_it() {
    let store = Conversations::in_memory();
    let agent: Agent = Agent::new("Support").model(Echo);
    // A process that ends before it executes anything.
    let gone = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert!(gone.drain(Duration::from_secs(1)).await);
    for number in (0..6).rev() {
        let text = format!("message {number}");
        gone.start("talk", &text, &*text).await.unwrap();
    }
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert_eq!(durable.recover().await.unwrap(), 6);
    for number in 0..6 {
        let run = durable.attach(&format!("talk/message {number}")).await;
        assert!(run.unwrap().wait().await.unwrap().is_ended());
    }
    let items = store.get("talk").load(None).await.unwrap();
    let sent = items
        .iter()
        .filter(|item| item.role().as_deref() == Some("user"));
    let sent: Vec<String> = sent
        .filter_map(|item| Some(item.text()?.into_owned()))
        .collect();
    let expected: Vec<String> = (0..6)
        .rev()
        .map(|number| format!("message {number}"))
        .collect();
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_message_sent_instead_of_a_decision_answers_the_call_and_the_run_before_says_so() {
    let model = ScriptedModel::new()
        .call("send", "{}")
        .say("I have not sent it.");
    let sent: Arc<Mutex<u32>> = Arc::default();
    let send: Tool = tool("send").needs_approval().run({
        let sent = sent.clone();
        move |_ctx, (): ()| {
            *sent.lock().unwrap() += 1;
            "sent"
        }
    });
    let agent: Agent = Agent::new("Support").model(model.clone()).tool(send);
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let first = durable.start("talk", "m1", "Send it").await.unwrap();
    let RunStatus::Waiting { interruptions } = first.wait().await.unwrap().status else {
        panic!("the call waits");
    };
    let second = durable.start("talk", "m2", "Don't").await.unwrap();
    let ended = second.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("I have not sent it."));

    // A decision that comes too late runs nothing.
    first
        .decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    let ended = loop {
        let record = first.wait().await.unwrap();
        if record.is_ended() {
            break record;
        }
    };
    let RunStatus::Failed { kind, message } = &ended.status else {
        panic!("{ended:?}");
    };
    assert_eq!(*kind, ErrorKind::Session);
    assert!(message.contains("another message came first"), "{message}");
    assert_eq!((*sent.lock().unwrap(), model.requests().len()), (0, 2));
    let again = first.decide(&interruptions[0], Decision::approve()).await;
    assert_eq!(again.unwrap_err().kind(), DurableErrorKind::NotWaiting);
}
