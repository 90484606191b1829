//! The work of a process on an engine with logs, and its end: steps in progress end before connections are closed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::executor::Executor;

/// The time that connections have to close after the last step, and runs to be given to others.
const CLOSING: Duration = Duration::from_secs(5);

/// The stage of a process's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Runs are executed.
    Open,
    /// No run is taken, those that wait leave, and steps in progress end.
    Draining,
    /// No step goes on.
    Over,
}

/// The work of a process.
pub(crate) struct Work {
    stage: watch::Sender<Stage>,
    /// The calls of [`Engine::work`](crate::Engine::work) in progress.
    workers: InProgress,
}

/// The number of calls in progress. Clones share it.
#[derive(Clone)]
pub(crate) struct InProgress(Arc<watch::Sender<usize>>);

/// A call in progress. Dropping it ends that.
pub(crate) struct Call(Arc<watch::Sender<usize>>);

/// Watches the stage of the work. Clones watch for themselves.
#[derive(Clone)]
pub(crate) struct StageWatch(watch::Receiver<Stage>);

impl Work {
    pub(crate) fn new() -> Self {
        Self {
            stage: watch::channel(Stage::Open).0,
            workers: InProgress::new(),
        }
    }

    pub(crate) fn begin(&self) -> Call {
        self.workers.begin()
    }

    pub(crate) fn watch(&self) -> StageWatch {
        StageWatch(self.stage.subscribe())
    }

    /// Lets steps in progress end, and then the work. Returns `false` if some have not ended after `time`.
    pub(crate) async fn drain(&self, executor: &Executor, time: Duration) -> bool {
        executor.drain();
        self.stage.send_replace(Stage::Draining);
        let is_empty = executor.emptied(time).await;
        self.stage.send_replace(Stage::Over);
        let _ = tokio::time::timeout(CLOSING, self.workers.ended()).await;
        is_empty
    }
}

impl InProgress {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }

    /// Counts a call, until what is returned is dropped.
    pub(crate) fn begin(&self) -> Call {
        self.0.send_modify(|number| *number += 1);
        Call(self.0.clone())
    }

    /// Waits until there is none.
    pub(crate) async fn ended(&self) {
        let mut number = self.0.subscribe();
        // There is a sender.
        let _ = number.wait_for(|number| *number == 0).await;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.send_modify(|number| *number -= 1);
    }
}

impl StageWatch {
    /// Waits until a stage has begun.
    pub(crate) async fn begun(&mut self, stage: Stage) {
        // An error means that the engine is gone.
        let _ = self.0.wait_for(|current| *current >= stage).await;
    }
}
