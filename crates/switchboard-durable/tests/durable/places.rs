//! Runs of other engines, applications and teams in the same store, and journals that cannot be read.

use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore as _, Conversations, Entry, EntryContent, Expected,
    JOURNAL_PREFIX, Revision,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Tool, tool};
use switchboard_durable::{
    DurableErrorKind, DurableRunner, Embedded, Execution, RunStatus, RunStore,
};

use crate::logged::engine::Logged;
use crate::world::echo;

/// Stores a message in a process that executes nothing.
async fn store_message(durable: DurableRunner) {
    assert!(durable.drain(Duration::from_secs(1)).await);
    durable.start("talk", "m1", "Hi").await.unwrap();
}

#[tokio::test]
async fn a_run_of_another_application_is_left_alone() {
    let store = Conversations::in_memory();
    let engine = || Embedded::new(store.clone());
    store_message(DurableRunner::new(engine().application("shop"), &echo())).await;
    for other in [engine(), engine().application("bank")] {
        let other = DurableRunner::new(other, &echo());
        assert_eq!(other.recover().await.unwrap(), 0);
        let error = other.start("talk", "m1", "Hi").await.unwrap_err();
        assert_eq!(error.kind(), DurableErrorKind::OtherEngine);
        assert!(error.to_string().contains("embedded/shop"), "{error}");
        let run = other.attach("talk/m1").await.unwrap();
        let error = run.resume().await.unwrap_err();
        assert_eq!(error.kind(), DurableErrorKind::OtherEngine);
    }
    let shop = DurableRunner::new(engine().application("shop"), &echo());
    assert_eq!(shop.recover().await.unwrap(), 1);
    let run = shop.attach("talk/m1").await.unwrap();
    assert_eq!(run.wait().await.unwrap().text().as_deref(), Some("re: Hi"));
    assert_eq!(
        run.record().await.unwrap().engine.as_deref(),
        Some("embedded/shop")
    );
}

#[tokio::test]
async fn a_run_of_a_team_of_another_name_is_left_alone() {
    let store = Conversations::in_memory();
    let named = |name: &str| {
        let runner = Runner::new(&echo()).team_name(name);
        DurableRunner::new(Embedded::new(store.clone()), runner)
    };
    store_message(named("shop")).await;
    assert_eq!(named("bank").recover().await.unwrap(), 0);
    let shop = named("shop");
    assert_eq!(shop.recover().await.unwrap(), 1);
    let run = shop.attach("talk/m1").await.unwrap();
    assert_eq!(run.wait().await.unwrap().text().as_deref(), Some("re: Hi"));
}

#[tokio::test]
async fn the_log_of_a_run_of_another_team_is_not_ended() {
    let store = Conversations::in_memory();
    let named = |name: &str| {
        let settings = Logged::new(&store, None);
        let runner = Runner::new(&echo()).team_name(name);
        (settings.clone(), DurableRunner::new(settings, runner))
    };
    let (shop, durable) = named("shop");
    store_message(durable.clone()).await;
    let log_name = durable.attach("talk/m1").await.unwrap();
    let log_name = log_name.record().await.unwrap().log_name();

    let (bank, _bank) = named("bank");
    assert_eq!(
        bank.execute("talk/m1", &log_name).await,
        Execution::OtherEngine
    );
    assert_eq!(
        bank.execute("talk/m1", "talk/m1#0.0").await,
        Execution::Superseded
    );
    assert_eq!(
        shop.execute("talk/m1", &log_name).await,
        Execution::Draining
    );
    let (shop, _shop) = named("shop");
    assert_eq!(shop.execute("talk/m1", &log_name).await, Execution::Ended);
    let record = RunStore::new(store).record("talk/m1").await.unwrap();
    assert_eq!(record.text().as_deref(), Some("re: Hi"));
}

#[tokio::test]
async fn a_run_that_a_process_with_other_agents_took_stops_and_goes_on_with_its_own() {
    let store = Conversations::in_memory();
    let engine = || Embedded::new(store.clone());
    store_message(DurableRunner::new(engine(), &echo())).await;
    let sales: Agent = Agent::new("Sales").model(ScriptedModel::new().say("Buy!"));
    let other = DurableRunner::new(engine(), &sales);
    assert_eq!(other.recover().await.unwrap(), 1);
    let run = other.attach("talk/m1").await.unwrap();
    let RunStatus::Stopped { reason } = run.wait().await.unwrap().status else {
        panic!("{:?}", run.record().await);
    };
    assert!(reason.contains("Support"), "{reason}");

    let own = DurableRunner::new(engine(), &echo());
    let run = own.attach("talk/m1").await.unwrap();
    run.resume().await.unwrap();
    assert_eq!(run.wait().await.unwrap().text().as_deref(), Some("re: Hi"));
}

#[tokio::test]
async fn a_run_whose_journal_cannot_be_read_stops_and_holds_nobody_up() {
    let store = Conversations::in_memory();
    let engine = || Embedded::new(store.clone());
    store_message(DurableRunner::new(engine(), &echo())).await;
    let name = format!("{JOURNAL_PREFIX}talk/m1");
    let head = store.head(&name).await.unwrap().unwrap();
    let entry = Entry::new(EntryContent::Step(r#"{"of_a_later_version":1}"#.into()));
    let commit = Commit::new(Expected::At(head.revision), vec![entry]);
    let committed = store.commit(&name, commit).await.unwrap();
    assert!(matches!(committed, Committed::At(_)));

    let durable = DurableRunner::new(engine(), &echo());
    let next = durable.start("talk", "m2", "Hello").await.unwrap();
    let answered = next.wait().await.unwrap();
    assert_eq!(answered.text().as_deref(), Some("re: Hello"));
    let runs = RunStore::new(store.clone());
    let RunStatus::Stopped { reason } = runs.record("talk/m1").await.unwrap().status else {
        panic!("{:?}", runs.record("talk/m1").await);
    };
    assert!(reason.contains("damaged"), "{reason}");
    // The state is a new revision: a message that was sent while a process had the run is refused, as nobody would read it.
    let taken = Revision::new(head.revision.epoch, head.revision.next + 2);
    let cancel = Entry::new(EntryContent::Step(r#"{"signal":"cancel"}"#.into()));
    let commit = Commit::new(Expected::At(taken), vec![cancel]);
    let refused = store.commit(&name, commit).await.unwrap();
    assert_eq!(refused, Committed::Conflict);
    assert_eq!(durable.recover().await.unwrap(), 0);
    runs.cancel("talk/m1").await.unwrap();
    let record = runs.record("talk/m1").await.unwrap();
    assert_eq!(record.status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_decision_for_a_run_of_another_engine_is_refused_and_not_stored() {
    let store = Conversations::in_memory();
    let pay: Tool = tool("pay").needs_approval().run(|_ctx, (): ()| "paid");
    let model = ScriptedModel::new().call("pay", "{}").say("Paid.");
    let agent: Agent = Agent::new("Support").model(model).tool(pay);
    let shop = Embedded::new(store.clone()).application("shop");
    let shop = DurableRunner::new(shop, &agent);
    let run = shop.start("talk", "m1", "Pay").await.unwrap();
    let waiting = run.wait().await.unwrap();
    let RunStatus::Waiting { interruptions } = &waiting.status else {
        panic!("{waiting:?}");
    };
    let other = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let same = other.attach("talk/m1").await.unwrap();
    let refused = same.decide(&interruptions[0], Decision::approve()).await;
    assert_eq!(refused.unwrap_err().kind(), DurableErrorKind::OtherEngine);
    assert_eq!(run.record().await.unwrap(), waiting);
    run.decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    while !run.record().await.unwrap().is_ended() {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.wait().await.unwrap().text().as_deref(), Some("Paid."));
}
