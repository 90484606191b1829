//! Runs with a log that wait until a step is tried again. The time is that of the test, which passes while nothing happens.

use std::time::Duration;

use switchboard_core::conversation::Conversations;
use switchboard_core::journal::Transient;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Tool, tool};
use switchboard_durable::{DurableRun, DurableRunner, RunStatus, RunStore};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::engine::Logged;

/// The number of attempts after which the pause is the longest.
const ATTEMPTS: usize = 8;

/// A run whose tool has failed so often that the next attempt is a minute away, with the number of attempts.
async fn failing(store: &Conversations) -> (DurableRunner, DurableRun, watch::Receiver<usize>) {
    let attempts = watch::channel(0).0;
    let tried = attempts.subscribe();
    let book: Tool = tool("book").run(move |_ctx, (): ()| {
        attempts.send_modify(|number| *number += 1);
        Err::<&str, _>(Transient::new("the database restarts"))
    });
    let model = ScriptedModel::new().call("book", "{}");
    let agent: Agent = Agent::new("Desk").model(model).tool(book);
    let durable = DurableRunner::new(Logged::new(store, None), &agent);
    let run = durable.start("talk", "m1", "Book it").await.unwrap();
    let mut waited = tried.clone();
    let waited = waited.wait_for(|number| *number == ATTEMPTS);
    assert_eq!(*waited.await.unwrap(), ATTEMPTS);
    // Until the pause has begun.
    sleep(Duration::from_secs(5)).await;
    (durable, run, tried)
}

/// The time until a run is cancelled.
async fn cancelled(run: &DurableRun) -> Duration {
    let begun = Instant::now();
    loop {
        let record = run.record().await.unwrap();
        if record.is_ended() {
            assert_eq!(record.status, RunStatus::Cancelled);
            return begun.elapsed();
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_log_that_pauses_before_a_retry_is_cancelled_at_once() {
    let (_durable, run, tried) = failing(&Conversations::in_memory()).await;
    run.cancel().await.unwrap();
    let time = cancelled(&run).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
    assert_eq!(*tried.borrow(), ATTEMPTS);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_log_that_pauses_before_a_retry_is_resumed_at_once() {
    let (_durable, run, mut tried) = failing(&Conversations::in_memory()).await;
    let begun = Instant::now();
    run.resume().await.unwrap();
    let again = tried.wait_for(|number| *number > ATTEMPTS).await;
    assert_eq!(*again.unwrap(), ATTEMPTS + 1);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_log_that_pauses_before_a_retry_extends_its_lease_and_notices_messages() {
    let store = Conversations::in_memory();
    let (_durable, run, tried) = failing(&store).await;
    // Another process stores the wish, and wakes nobody.
    RunStore::new(store).cancel(run.id()).await.unwrap();
    let time = cancelled(&run).await;
    // A third of the lease.
    assert!(time <= Duration::from_secs(11), "{time:?}");
    assert_eq!(*tried.borrow(), ATTEMPTS);
}

#[tokio::test(start_paused = true)]
async fn a_process_does_not_wait_for_the_retry_of_a_run_with_a_log_when_it_drains() {
    let (durable, run, tried) = failing(&Conversations::in_memory()).await;
    assert!(durable.drain(Duration::from_secs(1)).await);
    assert_eq!(*tried.borrow(), ATTEMPTS);
    assert!(!run.record().await.unwrap().is_ended());
}
