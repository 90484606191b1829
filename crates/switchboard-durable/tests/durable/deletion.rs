//! Deleting runs.

use std::time::{Duration, SystemTime};

use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Tool, tool};
use switchboard_durable::{
    DeletedRuns, DurableErrorKind, DurableRunner, Embedded, RunStatus, RunStore,
};

use crate::world::{echo, questions};

/// A runner that executes nothing.
async fn sender(store: &Conversations) -> DurableRunner {
    let sender = DurableRunner::new(Embedded::new(store.clone()), &echo());
    assert!(sender.drain(Duration::from_secs(1)).await);
    sender
}

async fn ids(runs: &RunStore) -> Vec<String> {
    let listed = runs.list(None).await.unwrap();
    let mut ids: Vec<String> = listed.into_iter().map(|run| run.id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_run_is_deleted_when_it_has_ended_and_its_key_is_free() {
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), &echo());
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    assert!(run.wait().await.unwrap().is_ended());
    let runs = RunStore::new(store.clone());
    runs.delete(run.id(), DeletedRuns::Ended).await.unwrap();
    let missing = runs.delete(run.id(), DeletedRuns::Ended).await.unwrap_err();
    assert_eq!(missing.kind(), DurableErrorKind::NotFound);
    assert_eq!(questions(&store).await, ["Hi"]);

    let again = durable.start("talk", "m1", "Hi again").await.unwrap();
    let ended = again.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("re: Hi again"));
}

#[tokio::test]
async fn a_run_that_has_not_ended_is_deleted_only_if_all_may_be_and_holds_nobody_up() {
    let store = Conversations::in_memory();
    let pay: Tool = tool("pay").needs_approval().run(|_ctx, (): ()| "paid");
    let model = ScriptedModel::new().call("pay", "{}").say("Not paid.");
    let agent: Agent = Agent::new("Support").model(model).tool(pay);
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let run = durable.start("talk", "m1", "Pay").await.unwrap();
    let waiting = run.wait().await.unwrap();
    assert!(matches!(waiting.status, RunStatus::Waiting { .. }));
    let runs = RunStore::new(store.clone());
    let refused = runs.delete(run.id(), DeletedRuns::Ended).await.unwrap_err();
    assert_eq!(refused.kind(), DurableErrorKind::NotWaiting);
    let refused = run.delete().await.unwrap_err();
    assert_eq!(refused.kind(), DurableErrorKind::NotWaiting);
    assert_eq!(run.record().await.unwrap(), waiting);

    runs.delete(run.id(), DeletedRuns::All).await.unwrap();
    assert_eq!(ids(&runs).await, [""; 0]);
    let next = durable.start("talk", "m2", "Hi").await.unwrap();
    let ended = next.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Not paid."));
}

#[tokio::test]
async fn runs_that_ended_before_a_time_are_pruned_and_others_stay() {
    let store = Conversations::in_memory();
    let sender = sender(&store).await;
    let runs = RunStore::new(store.clone());
    let before = SystemTime::now() - Duration::from_secs(1);
    // More than are listed at once, of which many changed at the same time.
    for number in 0..1_100 {
        let key = format!("m{number}");
        let run = sender.start("talk", &key, "Hi").await.unwrap();
        if number % 100 > 0 {
            runs.cancel(run.id()).await.unwrap();
        }
    }
    let ended = DeletedRuns::Ended;
    assert_eq!(runs.prune(before, ended).await.unwrap(), 0);
    let after = SystemTime::now() + Duration::from_secs(1);
    assert_eq!(runs.prune(after, ended).await.unwrap(), 1_089);
    assert_eq!(ids(&runs).await.len(), 11);
    assert_eq!(runs.prune(after, DeletedRuns::All).await.unwrap(), 11);
    assert_eq!(ids(&runs).await, [""; 0]);
}

#[tokio::test]
async fn the_runs_of_a_conversation_are_deleted_without_those_of_others() {
    let store = Conversations::in_memory();
    let sender = sender(&store).await;
    let runs = RunStore::new(store.clone());
    for conversation in ["a", "a/b", "a/b/c", "b"] {
        let run = sender.start(conversation, "x/y", "Hi").await.unwrap();
        runs.cancel(run.id()).await.unwrap();
    }
    sender.start("a/b", "open", "Hi").await.unwrap();
    let deleted = runs.delete_of_conversation("a/b", DeletedRuns::Ended).await;
    assert_eq!(deleted.unwrap(), 1);
    let left = ["a%2Fb%2Fc/x%2Fy", "a%2Fb/open", "a/x%2Fy", "b/x%2Fy"];
    assert_eq!(ids(&runs).await, left);
}
