//! An engine with logs in memory.

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::{Conversations, now};
use switchboard_durable::{
    BeginWait, DurableError, DurableErrorKind, Engine, Execution, Executor, IntoEngine, NewBatch,
    RunRecord, RunStatus, RunStore, StepLog, is_empty_batch,
};
use tokio::sync::{Notify, watch};

use crate::fault_store::Moment;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Next,
    Wait,
}

/// The log of a run, which outlives executions.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) batches: Mutex<Vec<(Call, String)>>,
    /// The number of times that the run was woken.
    wakes: watch::Sender<usize>,
    /// The number of these that a recorded wait has looked for messages after.
    noticed: AtomicUsize,
}

/// The settings of the engine, with the logs of all runs.
#[derive(Clone)]
pub(crate) struct Logged {
    runs: RunStore,
    logs: Arc<Mutex<HashMap<String, Arc<Log>>>>,
    /// The batch at which the process is gone, counted from 1.
    crash: Option<(usize, Moment)>,
    pub(crate) crashed: Arc<Notify>,
    /// The batch that the log cannot record, counted from 1; it says so once it is notified.
    pub(crate) breaks: Option<(usize, Arc<Notify>)>,
    /// The number of recorded batches that each execution has left unread.
    unread: Arc<Mutex<Vec<usize>>>,
}

struct LoggedEngine {
    settings: Logged,
    executor: Executor,
}

impl Logged {
    pub(crate) fn new(store: &Conversations, crash: Option<(usize, Moment)>) -> Self {
        Self {
            runs: RunStore::new(store.clone()),
            logs: Arc::default(),
            crash,
            crashed: Arc::default(),
            breaks: None,
            unread: Arc::default(),
        }
    }

    /// The same engine, in a process that goes on.
    pub(crate) fn after_crash(&self) -> Self {
        Self {
            crash: None,
            breaks: None,
            ..self.clone()
        }
    }

    /// Waits until this number of executions have ended. Returns the number of batches that each has left unread.
    pub(crate) async fn ended(&self, executions: usize) -> Vec<usize> {
        loop {
            let unread = self.unread.lock().unwrap().clone();
            if unread.len() >= executions {
                return unread;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn log(&self, id: &str) -> Arc<Log> {
        let mut logs = self.logs.lock().unwrap();
        logs.entry(id.to_owned()).or_default().clone()
    }
}

impl IntoEngine for Logged {
    fn name(&self) -> String {
        "logged".to_owned()
    }

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

    fn submit<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        let (settings, executor, run) = (self.settings.clone(), self.executor.clone(), run.clone());
        drop(tokio::spawn(async move {
            let mut log = LogOfExecution {
                log: settings.log(&run.log_name()),
                settings: settings.clone(),
                at: 0,
                is_broken: false,
            };
            let executed = executor
                .execute(&settings.runs, &run.id, &run.log_name(), &mut log)
                .await;
            let executed = executed.unwrap();
            let has_stopped = matches!(executed, Execution::Stopped { .. });
            let is_broken = log.is_broken && executed == Execution::Taken;
            let is_drained = executor.is_draining() && executed == Execution::Draining;
            let is_fine = has_stopped || is_broken || is_drained || executed == Execution::Ended;
            assert!(is_fine, "{executed:?}");
            let batches = log.log.batches.lock().unwrap().len();
            settings.unread.lock().unwrap().push(batches - log.at);
        }));
        Box::pin(async { Ok(()) })
    }

    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async {
            if let RunStatus::Stopped { .. } = run.status {
                return self
                    .submit(&self.settings.runs.record(&run.id).await?)
                    .await;
            }
            self.executor.wake(&run.id);
            let log = self.settings.log(&run.log_name());
            log.wakes.send_modify(|wakes| *wakes += 1);
            Ok(())
        })
    }

    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(async { Ok(0) })
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    fn drain(&self, time: Duration) -> BoxFuture<'_, bool> {
        self.executor.drain();
        Box::pin(self.executor.emptied(time))
    }
}

/// The log, as one execution has it.
struct LogOfExecution {
    settings: Logged,
    log: Arc<Log>,
    at: usize,
    is_broken: bool,
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

    async fn record(&mut self, call: Call, batch: String) -> Result<String, DurableError> {
        // An engine takes its time, in which the run goes on.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        if let Some((at, breaks)) = &self.settings.breaks
            && *at == self.at + 1
        {
            self.settings.crashed.notify_one();
            breaks.notified().await;
            self.is_broken = true;
            let message = "the log cannot be written".to_owned();
            return Err(DurableError::new(DurableErrorKind::Engine, message));
        }
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
        Ok(batch)
    }
}

impl StepLog for LogOfExecution {
    fn next<'a>(&'a mut self, batch: NewBatch) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            match self.recorded(Call::Next) {
                Some(batch) => Ok(batch),
                None => {
                    let batch = batch().await?;
                    self.record(Call::Next, batch).await
                }
            }
        })
    }

    fn wait<'a>(
        &'a mut self,
        begin: BeginWait,
        until: Option<SystemTime>,
    ) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            loop {
                let batch = match self.recorded(Call::Wait) {
                    Some(batch) => batch,
                    None => {
                        let before = *self.log.wakes.borrow();
                        let batch = begin(Some("wake".to_owned())).await?;
                        let batch = self.record(Call::Wait, batch).await?;
                        self.log.noticed.store(before, Ordering::SeqCst);
                        batch
                    }
                };
                if !is_empty_batch(&batch) {
                    return Ok(batch);
                }
                // A wait that is followed by another batch is over.
                if self.log.batches.lock().unwrap().len() > self.at {
                    continue;
                }
                let noticed = self.log.noticed.load(Ordering::SeqCst);
                let mut wakes = self.log.wakes.subscribe();
                let woken = wakes.wait_for(|wakes| *wakes > noticed);
                match until {
                    None => drop(woken.await),
                    Some(until) => {
                        let left = until.duration_since(now()).unwrap_or_default();
                        let _ = tokio::time::timeout(left, woken).await;
                    }
                }
            }
        })
    }

    fn is_compared(&self) -> bool {
        true
    }
}
