//! Several messages to one conversation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use switchboard_core::approval::Decision;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Expected, JOURNAL_PREFIX,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Tool, tool};
use switchboard_durable::{DurableErrorKind, DurableRunner, Embedded, RunStatus};

use crate::fault_store::{FaultStore, Moment};
use crate::world::{echo, questions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_answered_in_the_order_in_which_they_were_sent() {
    let agent = echo();
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
    let expected: Vec<String> = (0..8).map(|number| format!("message {number}")).collect();
    assert_eq!(questions(&store).await, expected);
}

#[tokio::test]
async fn messages_that_were_stored_before_a_crash_are_answered_in_their_order_after_it() {
    let store = Conversations::in_memory();
    let agent = echo();
    // A process that ends before it executes anything.
    let gone = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert!(gone.drain(Duration::from_secs(1)).await);
    for number in (0..6).rev() {
        let text = format!("message {number}");
        gone.start("talk", &text, &*text).await.unwrap();
    }
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    // The others follow it.
    assert_eq!(durable.recover().await.unwrap(), 1);
    for number in 0..6 {
        let run = durable.attach(&format!("talk/message {number}")).await;
        assert!(run.unwrap().wait().await.unwrap().is_ended());
    }
    let expected: Vec<String> = (0..6)
        .rev()
        .map(|number| format!("message {number}"))
        .collect();
    assert_eq!(questions(&store).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_different_processes_have_are_answered_in_the_order_in_which_they_were_sent()
{
    let agent = echo();
    let store = Conversations::in_memory();
    let process = || DurableRunner::new(Embedded::new(store.clone()), &agent);
    let processes = [process(), process(), process()];
    let mut runs = Vec::new();
    for number in 0..9 {
        let text = format!("message {number}");
        let process = &processes[number % 3];
        runs.push(process.start("talk", &text, &*text).await.unwrap());
    }
    for run in runs {
        let record = run.wait().await.unwrap();
        assert!(
            matches!(record.status, RunStatus::Done { .. }),
            "{record:?}"
        );
    }
    let expected: Vec<String> = (0..9).map(|number| format!("message {number}")).collect();
    assert_eq!(questions(&store).await, expected);
}

/// A process is gone at each of its writes, the last of which is that of the run's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_after_a_crash_is_answered_after_the_one_that_was_interrupted() {
    let agent = echo();
    for at in 1.. {
        let mut writes = 0;
        for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
            let store = Conversations::in_memory();
            let faulty = FaultStore::new(store.clone(), Some((at, moment)), None);
            let process = |store: &Conversations| {
                let engine = Embedded::new(store.clone()).lease(Duration::from_millis(50));
                DurableRunner::new(engine, &agent)
            };
            let gone = process(&Conversations::new(faulty.clone()));
            let first = async {
                let run = gone.start("talk", "m1", "first").await.unwrap();
                run.wait().await.unwrap();
            };
            tokio::select! {
                () = first => {}
                () = faulty.gone() => {}
            }
            writes = faulty.writes();
            let is_stored = RunStores::of(&store).free_conversation("m1").await;
            // A process that does not call `recover`.
            let next = process(&store);
            let second = next.start("talk", "m2", "second").await.unwrap();
            let answered = second.wait().await.unwrap();
            assert_eq!(answered.text().as_deref(), Some("re: second"), "write {at}");
            let expected = ["first", "second"];
            let expected = &expected[usize::from(!is_stored)..];
            assert_eq!(questions(&store).await, expected, "write {at}, {moment:?}");
            if is_stored {
                let first = next.attach("talk/m1").await.unwrap().wait().await.unwrap();
                assert_eq!(first.text().as_deref(), Some("re: first"));
            }
        }
        if writes < at {
            assert!(at > 5, "{at}");
            break;
        }
    }
}

#[tokio::test]
async fn a_run_that_has_begun_goes_on_before_one_that_was_stored_earlier_and_has_not() {
    let agent = echo();
    let store = Conversations::in_memory();
    // Its process is gone after it has read the conversation.
    let faulty = FaultStore::new(store.clone(), Some((4, Moment::BeforeWrite)), None);
    let lease = Duration::from_millis(1);
    let engine = Embedded::new(Conversations::new(faulty.clone())).lease(lease);
    let gone = DurableRunner::new(engine, &agent);
    gone.start("talk", "begun", "begun").await.unwrap();
    faulty.gone().await;
    let stores = RunStores::of(&store);
    stores.free_conversation("begun").await;
    // The clock of another process is slow.
    let slow = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert!(slow.drain(Duration::from_secs(1)).await);
    slow.start("talk", "earlier", "earlier").await.unwrap();
    stores.set("earlier", "order", 1).await;

    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    tokio::time::sleep(lease * 2).await;
    let earlier = durable.start("talk", "earlier", "earlier").await.unwrap();
    let begun = durable.attach("talk/begun").await.unwrap();
    for (run, key) in [(begun, "begun"), (earlier, "earlier")] {
        let record = run.wait().await.unwrap();
        assert_eq!(
            record.text(),
            Some(format!("re: {key}").into()),
            "{record:?}"
        );
    }
    assert_eq!(questions(&store).await, ["begun", "earlier"]);
}

#[tokio::test]
async fn a_run_whose_state_cannot_be_read_holds_no_other_up() {
    let agent = echo();
    let store = Conversations::in_memory();
    let gone = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert!(gone.drain(Duration::from_secs(1)).await);
    for key in ["damaged", "whole"] {
        gone.start("talk", key, key).await.unwrap();
    }
    RunStores::of(&store)
        .set("damaged", "status", "nonsense")
        .await;
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert_eq!(durable.recover().await.unwrap(), 1);
    let whole = durable.attach("talk/whole").await.unwrap();
    assert_eq!(
        whole.wait().await.unwrap().text().as_deref(),
        Some("re: whole")
    );
    let damaged = durable.attach("talk/damaged").await.unwrap_err();
    assert_eq!(damaged.kind(), DurableErrorKind::Damaged);
}

#[tokio::test]
async fn a_process_takes_up_no_more_runs_of_others_than_it_is_to_have_at_once() {
    let agent = echo();
    let store = Conversations::in_memory();
    let gone = DurableRunner::new(Embedded::new(store.clone()), &agent);
    assert!(gone.drain(Duration::from_secs(1)).await);
    for number in 0..7 {
        let conversation = format!("talk {number}");
        gone.start(&conversation, "m", "Hi").await.unwrap();
    }
    let engine = Embedded::new(store.clone()).at_once(3);
    let durable = DurableRunner::new(engine, &agent);
    assert_eq!(durable.recover().await.unwrap(), 3);
    assert_eq!(durable.recover().await.unwrap(), 0);
    let worker = durable.clone();
    let worker = tokio::spawn(async move { worker.work().await });
    for number in 0..7 {
        let run = durable.attach(&format!("talk {number}/m")).await.unwrap();
        assert!(run.wait().await.unwrap().is_ended());
    }
    assert!(durable.drain(Duration::from_secs(5)).await);
    worker.await.unwrap();
}

#[tokio::test]
async fn a_process_that_shuts_down_begins_no_run_that_waits_for_its_conversation() {
    let store = Conversations::in_memory();
    let is_taken = store
        .lease("talk", "somebody", Duration::from_secs(60))
        .await;
    assert!(is_taken.unwrap());
    let durable = DurableRunner::new(Embedded::new(store.clone()), &echo());
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    // Long enough for it to wait for the conversation.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let drained = durable.drain(Duration::from_secs(5));
    let freed = store.release("talk", "somebody");
    let (is_drained, freed) = tokio::join!(drained, freed);
    freed.unwrap();
    assert!(is_drained);
    let record = run.record().await.unwrap();
    assert_eq!(record.status, RunStatus::Pending { reason: None });
    let next = DurableRunner::new(Embedded::new(store), &echo());
    assert_eq!(next.recover().await.unwrap(), 1);
    let run = next.attach(run.id()).await.unwrap();
    assert_eq!(run.wait().await.unwrap().text().as_deref(), Some("re: Hi"));
}

/// The states of the runs of the conversation `talk`, as they are stored.
struct RunStores<'a>(&'a Conversations);

impl<'a> RunStores<'a> {
    fn of(store: &'a Conversations) -> Self {
        Self(store)
    }

    /// Ends the lease that a run has of the conversation, as time does. Returns `false` if there is no such run.
    async fn free_conversation(&self, key: &str) -> bool {
        let name = format!("{JOURNAL_PREFIX}talk/{key}");
        let Some(head) = self.0.head(&name).await.unwrap() else {
            return false;
        };
        let state: serde_json::Value = serde_json::from_str(&head.details.unwrap()).unwrap();
        let owner = state["lease_owner"].as_str().unwrap();
        self.0.release("talk", owner).await.unwrap();
        true
    }

    /// Changes a field of the state of a run.
    async fn set(&self, key: &str, field: &str, value: impl Into<serde_json::Value>) {
        let name = format!("{JOURNAL_PREFIX}talk/{key}");
        let head = self.0.head(&name).await.unwrap().unwrap();
        let mut state: serde_json::Value = serde_json::from_str(&head.details.unwrap()).unwrap();
        state[field] = value.into();
        let mut commit = Commit::new(Expected::At(head.revision), Vec::new());
        commit.details = Some(state.to_string().into());
        let committed = self.0.commit(&name, commit).await.unwrap();
        assert!(matches!(committed, Committed::At(_)));
    }
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
