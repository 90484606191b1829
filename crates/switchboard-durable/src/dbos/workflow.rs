//! A run as a workflow.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use dbos::EngineOnly;
use switchboard_core::callback::BoxFuture;
use switchboard_core::conversation::now;

use crate::engine::{BeginWait, NewBatch, StepLog, is_empty_batch};
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::{Execution, Executor};
use crate::run_store::RunStore;
use crate::work::{Stage, StageWatch};

/// The topic of messages that wake a run.
pub(super) const TOPIC: &str = "wake";

/// The time after which a run that waits looks for messages by itself.
const LONG: Duration = Duration::from_secs(30 * 24 * 3600);

/// The parts that a workflow needs.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) runs: RunStore,
    pub(super) executor: Executor,
    pub(super) local: LocalRuns,
    pub(super) stage: StageWatch,
    /// The start of the identifiers of workflows, before the names of logs.
    pub(super) prefix: Arc<str>,
}

/// The workflows that this process executes. Clones share them.
#[derive(Clone, Default)]
pub(super) struct LocalRuns(Arc<Mutex<HashSet<String>>>);

impl LocalRuns {
    fn runs(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.runs().contains(id)
    }
}

/// Removes a run from the local ones when it is dropped.
struct LocalRun<'a>(&'a LocalRuns, &'a str);

impl Drop for LocalRun<'_> {
    fn drop(&mut self) {
        self.0.runs().remove(self.1);
    }
}

/// Executes a run until it ends.
pub(super) async fn execute(parts: Parts, id: String) -> dbos::Result<()> {
    let workflow = dbos::workflow_id().unwrap_or_else(|| id.clone());
    if !parts.local.runs().insert(workflow.clone()) {
        tracing::debug!(run = id, "an earlier execution has the run");
        return Err(interrupted(&id));
    }
    let _local = LocalRun(&parts.local, &workflow);
    let mut log = WorkflowLog {
        id: &id,
        stage: parts.stage.clone(),
    };
    let log_name = workflow.strip_prefix(&*parts.prefix).unwrap_or(&workflow);
    let executed = parts.executor.execute(&parts.runs, &id, log_name, &mut log);
    let reason = match executed.await {
        Ok(Execution::Ended | Execution::Stopped { .. } | Execution::Superseded) => return Ok(()),
        Ok(Execution::Draining) => "this process shuts down".to_owned(),
        Ok(Execution::Taken) => "another process has it".to_owned(),
        Ok(Execution::Active) => "an earlier execution is about to end".to_owned(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(run = id, reason, "a run does not go on here");
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
    stage: StageWatch,
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
                }
            }
        })
    }
}
