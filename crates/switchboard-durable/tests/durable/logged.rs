//! Runs on an engine with a log of its own, which compares the calls of an execution with those of the one before.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::Conversations;
use switchboard_durable::{
    BeginWait, DurableError, DurableRunner, Engine, Execution, Executor, IntoEngine, NewBatch,
    RunRecord, RunStore, StepLog, is_empty_batch,
};
use tokio::sync::{Notify, watch};

use crate::fault_store::Moment;
use crate::world::{Note, check_effects, decide_until_ended, outcome, runner, undisturbed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Next,
    Wait,
}

/// The log of a run, which outlives executions.
#[derive(Default)]
struct Log {
    batches: Mutex<Vec<(Call, String)>>,
    /// The number of times that the run was woken.
    wakes: watch::Sender<usize>,
}

/// The settings of the engine, with the logs of all runs.
#[derive(Clone)]
struct Logged {
    runs: RunStore,
    logs: Arc<Mutex<HashMap<String, Arc<Log>>>>,
    /// The batch at which the process is gone, counted from 1.
    crash: Option<(usize, Moment)>,
    crashed: Arc<Notify>,
}

struct LoggedEngine {
    settings: Logged,
    executor: Executor,
}

impl Logged {
    fn log(&self, id: &str) -> Arc<Log> {
        let mut logs = self.logs.lock().unwrap();
        logs.entry(id.to_owned()).or_default().clone()
    }
}

impl IntoEngine for Logged {
    fn into_engine(self, executor: Executor) -> Arc<dyn Engine> {
        Arc::new(LoggedEngine {
            settings: self,
            executor,
        })
    }
}

impl Engine for LoggedEngine {
    fn runs(&self) -> &RunStore {
        &self.settings.runs
    }

    fn submit<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), DurableError>> {
        let (settings, executor, id) =
            (self.settings.clone(), self.executor.clone(), id.to_owned());
        drop(tokio::spawn(async move {
            let mut log = LogOfExecution {
                log: settings.log(&id),
                settings: settings.clone(),
                at: 0,
                waits: 0,
            };
            let executed = executor.execute(&settings.runs, &id, &mut log).await;
            assert_eq!(executed.unwrap(), Execution::Ended);
        }));
        Box::pin(async { Ok(()) })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        self.executor.wake(&run.id);
        self.settings
            .log(&run.id)
            .wakes
            .send_modify(|wakes| *wakes += 1);
        Box::pin(async { Ok(()) })
    }

    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(async { Ok(0) })
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    fn drain(&self, _time: Duration) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }
}

/// The log, as one execution has it.
struct LogOfExecution {
    settings: Logged,
    log: Arc<Log>,
    at: usize,
    /// The number of wakes that were waited for.
    waits: usize,
}

impl LogOfExecution {
    /// The next batch, if it is recorded.
    fn recorded(&mut self, call: Call) -> Option<String> {
        let batches = self.log.batches.lock().unwrap();
        let (recorded_call, batch) = batches.get(self.at)?;
        assert_eq!(call, *recorded_call, "the calls are those of before");
        self.at += 1;
        Some(batch.clone())
    }

    async fn record(&mut self, call: Call, batch: String) -> String {
        self.at += 1;
        let crash = self.settings.crash.filter(|(at, _)| *at == self.at);
        if let Some((_, Moment::BeforeWrite)) = crash {
            self.settings.crashed.notify_one();
            pending::<()>().await;
        }
        let recorded = (call, batch.clone());
        self.log.batches.lock().unwrap().push(recorded);
        if crash.is_some() {
            self.settings.crashed.notify_one();
            pending::<()>().await;
        }
        batch
    }
}

impl StepLog for LogOfExecution {
    fn next<'a>(&'a mut self, batch: NewBatch) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            match self.recorded(Call::Next) {
                Some(batch) => Ok(batch),
                None => {
                    let batch = batch().await?;
                    Ok(self.record(Call::Next, batch).await)
                }
            }
        })
    }

    fn wait<'a>(&'a mut self, begin: BeginWait) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            loop {
                let batch = match self.recorded(Call::Wait) {
                    Some(batch) => batch,
                    None => {
                        let batch = begin(None).await?;
                        self.record(Call::Wait, batch).await
                    }
                };
                if !is_empty_batch(&batch) {
                    return Ok(batch);
                }
                let waits = self.waits;
                let mut wakes = self.log.wakes.subscribe();
                let _ = wakes.wait_for(|wakes| *wakes > waits).await;
                drop(wakes);
                self.waits += 1;
            }
        })
    }
}

/// Runs a conversation whose process is gone at a batch, and goes on in another one. Returns the outcome, the side
/// effects and the number of batches.
async fn interrupted(
    seed: u64,
    crash: Option<(usize, Moment)>,
) -> (Vec<String>, Vec<String>, usize) {
    let store = Conversations::in_memory();
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let note: Note = {
        let notes = notes.clone();
        Arc::new(move |effect: &str| notes.lock().unwrap().push(effect.to_owned()))
    };
    let mut settings = Logged {
        runs: RunStore::new(store.clone()),
        logs: Arc::default(),
        crash,
        crashed: Arc::default(),
    };
    let first = DurableRunner::new(settings.clone(), runner(seed, &note));
    let run = first.start("talk", "m1", "Hello").await.unwrap();
    tokio::select! {
        _ = decide_until_ended(&run) => {}
        () = settings.crashed.notified() => {}
    }
    settings.crash = None;
    let second = DurableRunner::new(settings.clone(), runner(seed, &note));
    let run = second.start("talk", "m1", "Hello").await.unwrap();
    let record = decide_until_ended(&run).await;
    let lines = outcome(&store, &record).await;
    let batches = settings.log(run.id()).batches.lock().unwrap().len();
    let notes = notes.lock().unwrap().clone();
    (lines, notes, batches)
}

#[tokio::test]
async fn a_run_with_a_log_that_loses_its_process_at_any_batch_ends_as_one_that_does_not() {
    for seed in [1, 4] {
        let (expected, _) = undisturbed(seed).await;
        let (lines, _, batches) = interrupted(seed, None).await;
        assert_eq!(lines, expected, "seed {seed}");
        for at in (1..=batches).step_by(2) {
            for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
                let (lines, notes, _) = interrupted(seed, Some((at, moment))).await;
                assert_eq!(lines, expected, "seed {seed}, batch {at}, {moment:?}");
                check_effects(&notes);
            }
        }
    }
}
