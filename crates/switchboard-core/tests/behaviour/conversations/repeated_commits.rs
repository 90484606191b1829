//! Commits whose answer was lost, runs that are resumed twice, and conversations that change meanwhile.

use std::time::Duration;

use futures_util::FutureExt as _;
use switchboard_core::conversation::{Conversation, ConversationErrorKind, Conversations};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Runner, Session, Team, filters, handoff};

use super::observed_store::ObservedStore;
use super::{cause, record, shown};
use crate::stored;

fn team() -> Team {
    Team::new()
        .agent(Agent::new("Triage").handoff(handoff("Billing").filter(filters::redact_pii())))
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()
        .unwrap()
}

fn session(store: &ObservedStore) -> Conversation {
    Conversations::new(store.clone()).get("c")
}

#[tokio::test]
async fn a_turn_whose_answer_was_lost_is_stored_once_and_the_conversation_stays_whole() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?")
        .call("transfer_to_triage", "{}")
        .say("Back.")
        .say("Bye.");
    let store = ObservedStore::default();
    let (team, session) = (team(), session(&store));
    let runner = Runner::new(&team["Triage"])
        .model(model.clone())
        .session(&session);
    store.lose_next_answer();
    let error = runner
        .run("My card is 4111 1111 1111 1111")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    let run = stored(&error.into_run().unwrap());
    runner.resume(run).await.unwrap();
    runner.run("Back, please").await.unwrap();
    runner.run("Thanks").await.unwrap();
    let redacted = shown(&model)[4]
        .iter()
        .filter(|item| item.contains("[CARD]"))
        .count();
    assert_eq!(redacted, 1, "{:?}", shown(&model)[4]);
    assert_eq!(record(&session).await.len(), 10);
    for left in [2, 1, 0] {
        assert!(session.undo().await.unwrap());
        let entries = session.record(None).await.unwrap();
        assert_eq!(
            entries.iter().filter(|entry| entry.agent.is_none()).count(),
            left
        );
    }
}

#[tokio::test]
async fn a_run_whose_turn_was_stored_does_not_go_on_if_another_run_was_stored_since() {
    let store = ObservedStore::default();
    let (team, session) = (team(), session(&store));
    let runner = Runner::new(&team["Triage"]).session(&session);
    let first = runner.clone().model(
        ScriptedModel::new()
            .call("transfer_to_billing", "{}")
            .say("For A."),
    );
    store.lose_next_answer();
    let error = first.run("A").await.unwrap_err();
    let second = runner.model(ScriptedModel::new().say("For B."));
    second.run("B").await.unwrap();
    let error = first.resume(error.into_run().unwrap()).await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
    assert_eq!(
        record(&session).await.last().unwrap(),
        "1 Billing assistant: For B."
    );
}

#[tokio::test]
async fn a_run_that_is_resumed_twice_is_stored_once_and_the_second_is_told() {
    let session = session(&ObservedStore::default());
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent).session(&session);
    let failing = runner.clone().model(ScriptedModel::new().fail("no route"));
    let error = failing.run("Hi").await.unwrap_err();
    let run = error.into_run().unwrap();
    let answered = |text: &str| runner.clone().model(ScriptedModel::new().say(text));
    answered("First.").resume(stored(&run)).await.unwrap();
    let error = answered("Second.").resume(stored(&run)).await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
    // The very same answer changes nothing.
    answered("First.").resume(run).await.unwrap();
    assert_eq!(
        record(&session).await,
        ["0 - user: Hi", "1 A assistant: First."]
    );
}

#[tokio::test]
async fn a_run_does_not_commit_to_a_conversation_that_was_cleared_meanwhile() {
    let session = session(&ObservedStore::default());
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent).session(&session);
    let first = runner.clone().model(ScriptedModel::new().say("One."));
    first.run("1").await.unwrap();
    let slow = ScriptedModel::new()
        .delay(Duration::from_millis(20))
        .say("Two.");
    let mut slow = Box::pin(runner.model(slow).run("2"));
    assert!((&mut slow).now_or_never().is_none());
    session.clear().await.unwrap();
    let error = slow.await.unwrap_err();
    assert_eq!(cause(&error), Some(ConversationErrorKind::Conflict));
    assert_eq!(record(&session).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_run_that_gets_a_conversation_late_is_added_to_it() {
    let session = session(&ObservedStore::default());
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent);
    let with_session = runner.clone().session(&session);
    let model = ScriptedModel::new().say("Hello Ann.").say("Again.");
    with_session
        .clone()
        .model(model.clone())
        .run("I am Ann")
        .await
        .unwrap();
    let failing = ScriptedModel::new()
        .calls([("nothing", "{}")])
        .fail("no route");
    let failing = runner
        .model(failing)
        .unknown_tool(switchboard_core::run::UnknownTool::TellModel);
    let error = failing.run("Later").await.unwrap_err();
    let later = with_session.model(model.clone());
    later.resume(error.into_run().unwrap()).await.unwrap();
    let view = session.view().await.unwrap();
    assert_eq!(view.len(), 6);
    assert_eq!(view[0].text().as_deref(), Some("I am Ann"));
    assert_eq!(session.load(None).await.unwrap().len(), 6);
}
