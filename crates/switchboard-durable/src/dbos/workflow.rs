//! A run as a workflow.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use dbos::EngineOnly;
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::now;

use super::DbosEngine;
use super::local_runs::LocalRuns;
use crate::drain::{Stage, StageWatch};
use crate::engine::{BeginWait, NewBatch, StepLog, is_empty_batch};
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::{Execution, Executor};
use crate::run_store::RunStore;

/// The topic of messages that wake a run.
pub(super) const TOPIC: &str = "wake";

/// The time after which a run that waits looks for messages by itself.
const LONG: Duration = Duration::from_secs(30 * 24 * 3600);

/// The time after which a run that waits, and finds no room to do so in memory, is suspended. A message that lies there
/// already is received before.
const SUSPEND_AFTER: Duration = Duration::from_secs(1);

/// The parts that a workflow needs.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) engine: Weak<DbosEngine>,
    pub(super) runs: RunStore,
    pub(super) executor: Executor,
    pub(super) local: LocalRuns,
    pub(super) stage: StageWatch,
    /// The start of the identifiers of workflows, before the names of logs.
    pub(super) prefix: Arc<str>,
}

impl Parts {
    /// Takes note that a run is settled: the next message of its conversation follows.
    async fn settled(&self, id: &str) {
        if let Some(engine) = self.engine.upgrade() {
            engine.submit_next(id).await;
        }
    }
}

/// Executes a run until it ends.
pub(super) async fn execute(parts: Parts, id: String) -> dbos::Result<()> {
    let workflow = dbos::workflow_id().unwrap_or_else(|| id.clone());
    let Some(executed_here) = parts.local.execute(&workflow) else {
        tracing::debug!(run = id, "an earlier execution has the run");
        return Err(interrupted(&id));
    };
    let mut log = WorkflowLog {
        id: &id,
        parts: &parts,
        stage: parts.stage.clone(),
        is_suspended: false,
    };
    let log_name = workflow.strip_prefix(&*parts.prefix).unwrap_or(&workflow);
    let executed = parts.executor.execute(&parts.runs, &id, log_name, &mut log);
    let reason = match executed.await {
        Ok(Execution::Ended | Execution::Stopped { .. } | Execution::Superseded) => {
            executed_here.end();
            parts.settled(&id).await;
            return Ok(());
        }
        Ok(Execution::OtherEngine) => "it is one of another team".to_owned(),
        Ok(Execution::Draining) => "this process shuts down".to_owned(),
        Ok(Execution::Taken) => "another process has it".to_owned(),
        Ok(Execution::Active) => "an earlier execution is about to end".to_owned(),
        Err(error) => error.to_string(),
    };
    if log.is_suspended {
        executed_here.suspend();
        tracing::debug!(
            run = id,
            "a run that waits leaves the memory of this process"
        );
    } else {
        tracing::warn!(run = id, reason, "a run does not go on here");
    }
    // Nothing is recorded: the workflow is executed again, here or in another process.
    Err(interrupted(&id))
}

fn interrupted(id: &str) -> dbos::Error<EngineOnly> {
    dbos::Error::Interrupted {
        workflow_id: id.to_owned(),
    }
}

/// The steps of a workflow, as the log of a run.
struct WorkflowLog<'a> {
    id: &'a str,
    parts: &'a Parts,
    stage: StageWatch,
    /// Set once the run has left the memory of this process, until it is woken.
    is_suspended: bool,
}

impl WorkflowLog<'_> {
    /// Carries out a step, unless its outcome is recorded.
    async fn step(
        &self,
        name: &str,
        work: BoxFuture<'static, Result<String, DurableError>>,
    ) -> Result<String, DurableError> {
        let failure: Arc<Mutex<Option<DurableError>>> = Arc::default();
        let mut work = Some(work);
        let step = dbos::step::<String, EngineOnly, _, _>(name, || {
            let (work, failure) = (work.take(), failure.clone());
            async move {
                let Some(work) = work else {
                    return Err(interrupted(self.id));
                };
                work.await.map_err(|error| {
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    *failure = Some(error);
                    interrupted(self.id)
                })
            }
        });
        step.await.map_err(|error| {
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.take().unwrap_or_else(|| super::failed(&error))
        })
    }
}

impl StepLog for WorkflowLog<'_> {
    fn next<'a>(&'a mut self, batch: NewBatch) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            // Made only if it is awaited.
            let work = Box::pin(async move { batch().await });
            self.step("step", work).await
        })
    }

    /// Messages of the conversation are submitted one after the other.
    fn is_ordered(&self) -> bool {
        true
    }

    fn wait<'a>(
        &'a mut self,
        begin: BeginWait,
        until: Option<SystemTime>,
    ) -> BoxFuture<'a, Result<String, DurableError>> {
        Box::pin(async move {
            loop {
                let begin = begin.clone();
                let work = Box::pin(async move { begin(None).await });
                let batch = self.step("wait", work).await?;
                if !is_empty_batch(&batch) {
                    return Ok(batch);
                }
                if until.is_none() {
                    self.parts.settled(self.id).await;
                }
                let in_memory = self.parts.local.wait();
                let suspended = async {
                    match &in_memory {
                        Some(_) => std::future::pending().await,
                        None => tokio::time::sleep(SUSPEND_AFTER).await,
                    }
                };
                let left = until.map(|time| time.duration_since(now()).unwrap_or_default());
                let left = left.unwrap_or(LONG).min(LONG);
                let woken = dbos::recv::<(), EngineOnly>(Some(TOPIC), left);
                tokio::select! {
                    woken = woken => {
                        woken.map_err(|error| super::failed(&error))?;
                    }
                    () = self.stage.begun(Stage::Draining) => {
                        let message = format!("the run \"{}\" waits; this process shuts down", self.id);
                        return Err(DurableError::new(DurableErrorKind::Closed, message));
                    }
                    () = suspended => {
                        self.is_suspended = true;
                        let message = format!("the run \"{}\" waits", self.id);
                        return Err(DurableError::new(DurableErrorKind::Closed, message));
                    }
                }
            }
        })
    }
}
