//! Many messages to one conversation, and many runs of others. The clock of the pauses is paused, and goes on when everybody waits: it
//! says how long they have waited.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, Runner};
use switchboard_durable::{DurableRunner, Embedded};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::counting_store::CountingStore;
use crate::logged::engine::Logged;
use crate::world::{echo, questions};

/// The shortest pause of a run that waits for another one.
const PAUSE: Duration = Duration::from_millis(200);

/// A model that answers once it may.
struct Held(Arc<Notify>);

impl Model for Held {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.0.notified().await;
        Ok(ModelResponse::new([Item::output_message("m", "Yes.")]))
    }
}

/// Stores messages as a process that ends before it executes one of them.
async fn store_messages(store: &Conversations, messages: &[(&str, &str)]) {
    let gone = DurableRunner::new(Embedded::new(store.clone()), &echo());
    assert!(gone.drain(Duration::from_secs(1)).await);
    for (conversation, key) in messages {
        gone.start(conversation, key, *key).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_message_does_not_ask_for_its_conversation_before_it_is_free() {
    let store = Conversations::in_memory();
    let counted = CountingStore::new(&store);
    let engine = Embedded::new(Conversations::new(counted.clone()));
    let durable = DurableRunner::new(engine, &echo());
    let begun = Instant::now();
    let mut runs = Vec::new();
    for number in 0..8 {
        let key = format!("m{number}");
        runs.push(durable.start("talk", &key, &*key).await.unwrap());
    }
    for run in runs {
        assert!(run.wait().await.unwrap().is_ended());
    }
    assert_eq!(counted.refused(), 0);
    assert!(begun.elapsed() < PAUSE, "{:?}", begun.elapsed());
}

/// On an engine with logs, every message is executed and waits for its turn.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_refused_its_conversation_gets_it_as_soon_as_it_is_free() {
    let store = Conversations::in_memory();
    let counted = CountingStore::new(&store);
    let settings = Logged::new(&Conversations::new(counted.clone()), None);
    let durable = DurableRunner::new(settings, &echo());
    let begun = Instant::now();
    let mut runs = Vec::new();
    for number in 0..4 {
        let key = format!("m{number}");
        runs.push(durable.start("talk", &key, &*key).await.unwrap());
    }
    for run in runs {
        assert!(run.wait().await.unwrap().is_ended());
    }
    // The model takes 2 ms, and no run has waited for longer.
    assert!(counted.refused() > 0);
    assert!(begun.elapsed() < PAUSE, "{:?}", begun.elapsed());
    assert_eq!(questions(&store).await, ["m0", "m1", "m2", "m3"]);
}

#[tokio::test(start_paused = true)]
async fn messages_that_wait_for_an_earlier_one_do_not_ask_the_store() {
    let store = Conversations::in_memory();
    let counted = CountingStore::new(&store);
    let engine = Embedded::new(Conversations::new(counted.clone()));
    let may_answer: Arc<Notify> = Arc::default();
    let agent: Agent = Agent::new("Support");
    let runner = Runner::new(&agent).model(Held(may_answer.clone()));
    let durable = DurableRunner::new(engine, runner);
    let mut runs = Vec::new();
    for number in 0..40 {
        let key = format!("m{number}");
        runs.push(durable.start("talk", &key, "Hi").await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(counted.lists(), 1, "of the first");
    for run in &runs {
        may_answer.notify_one();
        assert!(run.wait().await.unwrap().is_ended());
    }
    assert_eq!(counted.lists(), runs.len(), "one for each");
}

#[tokio::test(start_paused = true)]
async fn many_messages_to_one_conversation_do_not_hold_up_other_conversations() {
    let store = Conversations::in_memory();
    let keys: Vec<String> = (0..20).map(|number| format!("m{number:02}")).collect();
    let mut messages: Vec<(&str, &str)> = keys.iter().map(|key| ("talk", &**key)).collect();
    messages.extend([("one", "m"), ("two", "m")]);
    store_messages(&store, &messages).await;
    let engine = Embedded::new(store.clone()).at_once(3);
    let may_answer: Arc<Notify> = Arc::default();
    let agent: Agent = Agent::new("Support");
    let runner = Runner::new(&agent).model(Held(may_answer.clone()));
    let durable = DurableRunner::new(engine, runner);
    assert_eq!(durable.recover().await.unwrap(), 3);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let listed = durable.list(None).await.unwrap();
    let executed = listed.into_iter().filter(|run| run.is_executed());
    let mut executed: Vec<String> = executed.map(|run| run.id).collect();
    executed.sort();
    assert_eq!(executed, ["one/m", "talk/m00", "two/m"]);
    for (conversation, key) in messages.iter().rev() {
        let run = durable.attach(&format!("{conversation}/{key}")).await;
        let run = run.unwrap();
        while !run.record().await.unwrap().is_ended() {
            may_answer.notify_one();
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(questions(&store).await, keys);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_taken_up_before_an_earlier_one_lets_it_go_first() {
    let store = Conversations::in_memory();
    store_messages(&store, &[("talk", "first"), ("talk", "second")]).await;
    let durable = DurableRunner::new(Embedded::new(store.clone()), &echo());
    let begun = Instant::now();
    for key in ["second", "first"] {
        let run = durable.attach(&format!("talk/{key}")).await.unwrap();
        let record = run.record().await.unwrap();
        durable.engine().submit(&record).await.unwrap();
        // The later one waits for the earlier one by now.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for key in ["first", "second"] {
        let run = durable.attach(&format!("talk/{key}")).await.unwrap();
        assert!(run.wait().await.unwrap().is_ended());
    }
    assert_eq!(questions(&store).await, ["first", "second"]);
    // Nobody has waited to see whether another process executes it.
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn the_messages_after_a_run_that_was_taken_over_follow_it() {
    let store = Conversations::in_memory();
    let lease = Duration::from_millis(30);
    let agent: Agent = Agent::new("Support");
    let gone = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let stored = store.clone();
    let of_gone = tokio::task::spawn_blocking(move || {
        gone.block_on(async {
            let runner = Runner::new(&agent).model(Held(Arc::default()));
            let durable = DurableRunner::new(Embedded::new(stored).lease(lease), runner);
            for key in ["m0", "m1", "m2"] {
                durable.start("talk", key, key).await.unwrap();
            }
            let first = durable.attach("talk/m0").await.unwrap();
            while !first.record().await.unwrap().is_executed() {
                tokio::task::yield_now().await;
            }
        });
        gone.shutdown_background();
    });
    of_gone.await.unwrap();
    std::thread::sleep(lease * 2);
    let durable = DurableRunner::new(Embedded::new(store.clone()).lease(lease), &echo());
    let first = durable.attach("talk/m0").await.unwrap();
    durable.recover().await.unwrap();
    assert!(first.wait().await.unwrap().is_ended());
    for key in ["m1", "m2"] {
        let run = durable.attach(&format!("talk/{key}")).await.unwrap();
        assert!(run.wait().await.unwrap().is_ended());
    }
    assert_eq!(questions(&store).await, ["m0", "m1", "m2"]);
}

#[tokio::test(start_paused = true)]
async fn due_runs_of_another_team_are_not_read_again_at_each_look() {
    const FOREIGN: usize = 600;
    let store = Conversations::in_memory();
    let lease = Duration::from_millis(30);
    let named = |name: &str| Runner::new(&echo()).team_name(name);
    let of = |store: &Conversations, name: &str| {
        let engine = Embedded::new(store.clone()).lease(lease);
        DurableRunner::new(engine, named(name))
    };
    let foreign = of(&store, "foreign");
    assert!(foreign.drain(Duration::from_secs(1)).await);
    for number in 0..FOREIGN {
        let conversation = format!("talk {number}");
        foreign.start(&conversation, "m", "Hi").await.unwrap();
    }
    let sender = of(&store, "own");
    assert!(sender.drain(Duration::from_secs(1)).await);
    // Longer ago than a run may be late.
    std::thread::sleep(lease * 2);
    let counted = CountingStore::new(&store);
    let durable = of(&Conversations::new(counted.clone()), "own");
    let worker = durable.clone();
    let worker = tokio::spawn(async move { worker.work().await });
    tokio::time::sleep(Duration::from_secs(60)).await;
    // 120 looks, of which 6 read all.
    let (listed, longest) = counted.listed();
    assert!(counted.lists() > 100, "{}", counted.lists());
    assert!(listed < 10 * FOREIGN, "{listed}");
    assert!(longest < FOREIGN / 2, "{longest}");

    sender.start("own", "m", "Hi").await.unwrap();
    let run = durable.attach("own/m").await.unwrap();
    assert!(run.wait().await.unwrap().is_ended());
    assert!(durable.drain(Duration::from_secs(5)).await);
    worker.await.unwrap();
}
