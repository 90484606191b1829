//! Runs that lose their process at each of their writes, in one process: everything after the crash never returns.

use std::sync::{Arc, Mutex};

use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRunner, Embedded};

use crate::fault_store::{FaultStore, Moment};
use crate::world::{LEASE, Note, check_effects, decide_until_ended, outcome, runner, undisturbed};

/// Runs a conversation whose process ends at a write, and goes on in another one. Returns the outcome and the side effects.
async fn interrupted(seed: u64, write: usize, moment: Moment) -> (Vec<String>, Vec<String>) {
    let store = Conversations::in_memory();
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let faults = FaultStore::new(store.clone(), Some((write, moment)), None);
    let note: Note = {
        let (notes, faults) = (notes.clone(), faults.clone());
        Arc::new(move |effect: &str| {
            if !faults.is_gone() {
                notes.lock().unwrap().push(effect.to_owned());
            }
        })
    };
    let engine = Embedded::new(Conversations::new(faults.clone())).lease(LEASE);
    let first = DurableRunner::new(engine, runner(seed, &note));
    let ended = async {
        let run = first.start("talk", "m1", "Hello").await.unwrap();
        decide_until_ended(&run).await
    };
    let gone = async {
        while !faults.is_gone() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = gone => {}
        _ = ended => {}
    }
    let note: Note = {
        let notes = notes.clone();
        Arc::new(move |effect: &str| notes.lock().unwrap().push(effect.to_owned()))
    };
    let engine = Embedded::new(store.clone()).lease(LEASE);
    let second = DurableRunner::new(engine, runner(seed, &note));
    let work = second.work();
    let run = second.start("talk", "m1", "Hello").await.unwrap();
    let record = tokio::select! {
        () = work => unreachable!("nobody drains the runner"),
        record = decide_until_ended(&run) => record,
    };
    let lines = outcome(&store, &record).await;
    let notes = notes.lock().unwrap().clone();
    (lines, notes)
}

#[tokio::test]
async fn a_run_that_loses_its_process_at_any_write_ends_as_one_that_does_not() {
    for seed in [0, 2] {
        let (expected, writes) = undisturbed(seed).await;
        for write in 1..=writes {
            for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
                let (lines, notes) = interrupted(seed, write, moment).await;
                assert_eq!(lines, expected, "seed {seed}, write {write}, {moment:?}");
                check_effects(&notes);
            }
        }
    }
}
