//! Several runs with one conversation at the same time.

use std::time::Duration;

use futures_util::FutureExt as _;
use switchboard_core::conversation::{ConversationErrorKind, Conversations, now};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, Session as _, filters, handoff, tool};

use super::observed_store::ObservedStore;
use super::{cause, record, refuses, shown};

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
    assert_eq!(
        error.to_string(),
        "agent \"A\": the session cannot be used; send the message again in a new run: the \
         conversation \"c\" was changed by another writer since it was loaded, so nothing of this \
         change was stored; `exclusive` lets runs wait for each other"
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
async fn the_loser_of_two_writers_is_told_which_of_its_turns_are_stored() {
    let agent: Agent = Agent::new("A").tool(tool("look").run(|_ctx, (): ()| "ok"));
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).session(&session);
    let model = ScriptedModel::new().call("look", "{}");
    let model = model.delay(Duration::from_millis(20)).say("Second.");
    let mut slow = Box::pin(runner.clone().model(model).run("2"));
    assert!((&mut slow).now_or_never().is_none());
    assert_eq!(record(&session).await.len(), 3);
    let fast = runner.model(ScriptedModel::new().say("First."));
    fast.run("1").await.unwrap();
    let error = slow.await.unwrap_err().to_string();
    assert!(
        error.contains("the message and the turns before this one are stored, go on in a new run"),
        "{error}"
    );
    assert_eq!(record(&session).await.len(), 5);
}

#[tokio::test]
async fn a_store_that_fails_is_another_error_than_a_conflict() {
    let store = ObservedStore::default();
    let session = Conversations::new(store.clone()).get("c");
    let agent: Agent = Agent::new("A").model(ScriptedModel::new().say("Hello."));
    let runner = Runner::new(&agent).session(&session);
    store.lose_next_answer();
    let error = runner.run("Hi").await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("resume the run once the session works again"),
        "{error}"
    );
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(record(&session).await.len(), 2);
}

#[tokio::test]
async fn a_time_of_expiry_is_set_beside_a_run_that_is_under_way() {
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    session.append(&[Item::user("Hello")]).await.unwrap();
    let runner = Runner::new(&agent).session(&session).model(slow("Done."));
    let mut run = Box::pin(runner.run("Hi"));
    assert!((&mut run).now_or_never().is_none());
    let time = now() + Duration::from_secs(1_000);
    session.expire_at(time).await.unwrap();
    run.await.unwrap();
    let head = session.head().await.unwrap().unwrap();
    assert_eq!((head.expires, head.entries()), (Some(time), 4));
    session.expire_at(None).await.unwrap();
    let later = session.head().await.unwrap().unwrap();
    assert_eq!((later.expires, later.revision), (None, head.revision));
}

#[tokio::test]
async fn a_conversation_whose_time_is_extended_during_a_sweep_is_kept() {
    let store = ObservedStore::default();
    let conversations = Conversations::new(store.clone());
    for name in ["kept", "expired"] {
        let session = conversations.get(name);
        session.append(&[Item::user("Hello")]).await.unwrap();
        session.expire_at(now()).await.unwrap();
    }
    let kept = conversations.get("kept");
    let extended = kept.clone();
    store.after_next_list(async move {
        let later = now() + Duration::from_secs(1_000);
        extended.expire_at(later).await.unwrap();
    });
    assert_eq!(conversations.delete_expired().await.unwrap(), 1);
    assert_eq!(record(&kept).await, ["0 - user: Hello"]);
    assert_eq!(conversations.list(None).await.unwrap().len(), 1);
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
async fn a_lease_is_extended_when_time_has_passed_and_not_before_each_step() {
    let store = ObservedStore::default();
    let session = Conversations::new(store.clone()).get("c");
    let look = tool::<()>("look").run(|_ctx, (): ()| "There are 7.");
    let agent = Agent::new("A").tool(look);
    let model = ScriptedModel::new()
        .call("look", "{}")
        .call("look", "{}")
        .say("There are 7 of them.");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.exclusive(Duration::ZERO).run("Count").await.unwrap();
    assert_eq!(store.leases(), 1);
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

#[tokio::test]
async fn a_message_that_is_refused_meanwhile_does_not_make_another_one_fail() {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage")
        .handoff(handoff(&billing).filter(filters::redact_pii()))
        .input_guardrail(refuses("no_secrets", "password"));
    // A conversation that exists, and one that begins with the mark.
    for answers in [1, 0] {
        let session = Conversations::in_memory().get("c");
        let runner = Runner::new(&triage).session(&session);
        let model = (0..answers).fold(ScriptedModel::new(), |model, _| model.say("Hello."));
        for _ in 0..answers {
            runner.clone().model(model.clone()).run("Hi").await.unwrap();
        }
        let model = ScriptedModel::new()
            .delay(Duration::from_millis(20))
            .call("transfer_to_billing", "{}")
            .say("Which bill?")
            .say("Paid.");
        let slow = runner.clone().model(model.clone());
        let mut run = Box::pin(slow.run("My card is 4111 1111 1111 1111"));
        assert!((&mut run).now_or_never().is_none());
        for _ in 0..2 {
            let refused = slow.run("my password is hunter2").await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InputGuardrail);
        }
        run.await.unwrap();
        slow.run("The one of May").await.unwrap();
        let first = 2 * answers;
        assert_eq!(
            shown(&model)[2][first..],
            [
                "user: My card is [CARD]",
                "call transfer_to_billing",
                "output of call_1: {\"assistant\": \"Billing\"}",
                "assistant: Which bill?",
                "user: The one of May"
            ]
        );
        let marks = session.record(None).await.unwrap();
        let marks = marks
            .iter()
            .filter(|entry| entry.content.kind() == "refused");
        assert_eq!(marks.count(), 2);
    }
}
