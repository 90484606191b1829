//! Several runs with one conversation at the same time.

use std::time::Duration;

use futures_util::FutureExt as _;
use switchboard_core::conversation::{ConversationErrorKind, Conversations};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner};

use super::{cause, record};

fn slow(answer: &str) -> ScriptedModel {
    ScriptedModel::new()
        .delay(Duration::from_millis(20))
        .say(answer)
}

#[tokio::test]
async fn of_two_runs_at_once_the_later_one_fails_and_nothing_is_interleaved() {
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).session(&session);
    let fast = runner.clone().model(ScriptedModel::new().say("First."));
    let slow = runner.clone().model(slow("Second."));
    let mut slow = Box::pin(slow.run("2"));
    // It has loaded the conversation, and waits for its model.
    assert!((&mut slow).now_or_never().is_none());
    fast.run("1").await.unwrap();
    let error = slow.await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
    assert!(
        error.to_string().contains("Send the message again"),
        "{error}"
    );
    assert_eq!(
        record(&session).await,
        ["0 - user: 1", "1 A assistant: First."]
    );
    // The run still holds its turn, but another one was stored in its place.
    let again = runner.model(ScriptedModel::new());
    let error = again.resume(error.into_run().unwrap()).await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
}

#[tokio::test]
async fn runs_wait_for_each_other_if_asked_to() {
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent)
        .session(&session)
        .exclusive(Duration::from_secs(30));
    let runs = (0..4).map(|number| {
        let model = slow(&format!("Answer {number}."));
        runner.clone().model(model).run(format!("{number}"))
    });
    for result in futures_util::future::join_all(runs).await {
        result.unwrap();
    }
    let record = record(&session).await;
    assert_eq!(record.len(), 8);
    for pair in record.chunks(2) {
        let number = pair[0].strip_prefix("0 - user: ").unwrap();
        assert_eq!(pair[1], format!("1 A assistant: Answer {number}."));
    }
}

#[tokio::test]
async fn a_run_gives_up_waiting_and_the_lease_of_a_failed_run_is_ended() {
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).session(&session);
    let first = runner.clone().exclusive(Duration::ZERO).model(
        ScriptedModel::new()
            .delay(Duration::from_millis(50))
            .fail("no route"),
    );
    let second = runner
        .clone()
        .exclusive(Duration::from_millis(10))
        .model(ScriptedModel::new().say("Hello."));
    let (first, waited) = futures_util::future::join(first.run("1"), second.run("2")).await;
    first.unwrap_err();
    let error = waited.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Leased));
    second.run("2").await.unwrap();
}

#[tokio::test]
async fn a_commit_that_is_made_again_changes_nothing() {
    use switchboard_core::conversation::{
        Commit, Committed, ConversationStore, Entry, EntryContent, Expected, MemoryStore,
    };
    let store = MemoryStore::default();
    let entry = |text: &str, commit| {
        let item = switchboard_core::Item::user(text);
        Entry::new(EntryContent::Item(item)).made_in("run", 1, commit)
    };
    let commit = |expected, text, number| {
        let mut commit = Commit::new(expected, vec![entry(text, number)]);
        commit.run = "run".into();
        commit.number = number;
        commit
    };
    let first = commit(Expected::New, "1", 1);
    let Committed::At(one) = store.commit("c", first.clone()).await.unwrap() else {
        panic!("stored");
    };
    assert_eq!(
        store.commit("c", first.clone()).await.unwrap(),
        Committed::At(one)
    );
    let second = commit(Expected::At(one), "2", 2);
    let Committed::At(two) = store.commit("c", second.clone()).await.unwrap() else {
        panic!("stored");
    };
    // Also if others were stored since.
    assert_eq!(store.commit("c", first).await.unwrap(), Committed::At(two));
    assert_eq!(store.commit("c", second).await.unwrap(), Committed::At(two));
    let other = commit(Expected::At(one), "3", 3);
    assert_eq!(store.commit("c", other).await.unwrap(), Committed::Conflict);
    assert_eq!(store.read("c", 0..10).await.unwrap().len(), 2);
}
