//! Writes that are made, and whose answers are lost: they are repeated when others have written too.

use std::sync::{Arc, Mutex};

use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRunner, Embedded, RunStatus, RunStore};

use crate::fault_store::{FaultStore, Meanwhile};
use crate::world::{LEASE, Note, check_effects, decide_until_ended, outcome, runner, undisturbed};

#[tokio::test]
async fn a_run_that_is_cancelled_while_the_answer_to_a_write_is_lost_is_cancelled() {
    let mut cancelled = 0;
    for at in 1.. {
        let store = Conversations::in_memory();
        let accepted: Arc<Mutex<bool>> = Arc::default();
        let meanwhile: Meanwhile = {
            let (store, accepted) = (store.clone(), accepted.clone());
            Box::new(move || {
                let (store, accepted) = (store.clone(), accepted.clone());
                Box::pin(async move {
                    let is_accepted = RunStore::new(store).cancel("talk/m1").await.is_ok();
                    *accepted.lock().unwrap() = is_accepted;
                })
            })
        };
        let faulty = FaultStore::losing_an_answer(store.clone(), at, meanwhile);
        let engine = Embedded::new(Conversations::new(faulty.clone())).lease(LEASE);
        let note: Note = Arc::new(|_| {});
        let durable = DurableRunner::new(engine, runner(0, &note));
        let run = durable.start("talk", "m1", "Hello").await.unwrap();
        let record = decide_until_ended(&run).await;
        let is_accepted = *accepted.lock().unwrap();
        cancelled += usize::from(is_accepted);
        // The last write is that of the end.
        assert_eq!(
            record.status == RunStatus::Cancelled,
            is_accepted,
            "write {at}: {record:?}"
        );
        if faulty.writes() < at {
            break;
        }
    }
    assert!(cancelled > 4, "{cancelled}");
}

/// Another process takes the run and ends it while the first one waits for the answer.
#[tokio::test]
async fn a_run_that_was_taken_while_the_answer_to_a_write_is_lost_is_done_once() {
    let (expected, writes) = undisturbed(2).await;
    for at in 2..=writes {
        let store = Conversations::in_memory();
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let note: Note = {
            let notes = notes.clone();
            Arc::new(move |effect: &str| notes.lock().unwrap().push(effect.to_owned()))
        };
        let other = || {
            let engine = Embedded::new(store.clone()).lease(LEASE);
            DurableRunner::new(engine, runner(2, &note))
        };
        let second = other();
        let meanwhile: Meanwhile = Box::new(move || {
            let second = second.clone();
            Box::pin(async move {
                let Ok(run) = second.attach("talk/m1").await else {
                    return;
                };
                let work = second.work();
                tokio::select! {
                    () = work => unreachable!("nobody drains the runner"),
                    _ = decide_until_ended(&run) => {}
                }
            })
        });
        let faulty = FaultStore::losing_an_answer(store.clone(), at, meanwhile);
        let engine = Embedded::new(Conversations::new(faulty)).lease(LEASE);
        let first = DurableRunner::new(engine, runner(2, &note));
        let run = first.start("talk", "m1", "Hello").await.unwrap();
        let record = decide_until_ended(&run).await;
        assert!(first.drain(std::time::Duration::from_secs(5)).await);
        assert_eq!(run.record().await.unwrap(), record, "write {at}");
        assert_eq!(outcome(&store, &record).await, expected, "write {at}");
        check_effects(&notes.lock().unwrap());
    }
}
