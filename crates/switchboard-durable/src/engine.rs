//! The boundary to engines: what carries runs through the ends of processes.
//!
//! All engines share the machine, its driver, the replay of steps, the states of runs, their streams and the messages to
//! them. An engine decides which process executes a run, and where the outcomes of steps are kept: the
//! [embedded](crate::Embedded) one in the store of the conversations, others in a [`StepLog`] of their own.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxFuture;

use crate::error::DurableError;
use crate::executor::Executor;
use crate::record::RunRecord;
use crate::run_store::RunStore;

/// An engine that is ready to execute runs.
pub trait Engine: Send + Sync + 'static {
    /// The states, streams and messages of the runs.
    fn runs(&self) -> &RunStore;

    /// Has a stored run executed, in this process or another. For a run that is executed already, or has ended, it does
    /// nothing.
    fn submit<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>>;

    /// Wakes a run for which a message was stored: a decision, an answer, or the wish to cancel it. `run` is its state
    /// before; [`RunRecord::wake`] is the name that [`StepLog::wait`] has published. One that had stopped goes on, with a
    /// new log.
    fn wake<'a>(&'a self, run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>>;

    /// Sees to the runs that are due and that nobody executes. Returns how many there were.
    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>>;

    /// Executes runs in this process, until [`drain`](Self::drain) is called.
    fn work(&self) -> BoxFuture<'_, ()>;

    /// Takes no more runs in this process, and waits until those that it has have let their steps end, while
    /// [`work`](Self::work) goes on. Returns `false` if some have not after `time`.
    fn drain(&self, time: Duration) -> BoxFuture<'_, bool>;
}

/// The settings of an engine, from which a [`DurableRunner`](crate::DurableRunner) makes one.
pub trait IntoEngine {
    /// The name of the engine, with that of its application if it has one. Runs are stored with it, so that no other engine
    /// executes them.
    fn name(&self) -> String;

    /// Creates the engine. `executor` executes the runs that this process gets.
    fn into_engine(self, executor: Executor) -> Arc<dyn Engine>;
}

/// The log of an execution on an engine with a journal of its own: batches of entries, in order.
///
/// An execution asks for one batch after the other. As long as there are recorded ones, it gets these, and the run is
/// made again from them; then it gets to the end of the log, and each further batch is recorded. The order and
/// number of calls is the same whenever the run is made again, so that engines that compare the calls of an execution
/// with their journal find no difference. Steps that run concurrently share batches.
pub trait StepLog: Send {
    /// Returns the next batch if it is recorded; otherwise waits for `batch`, records what it returns, and returns that.
    ///
    /// The future may be dropped and a new execution begin at any time; `batch` must not be awaited for a batch that is
    /// recorded.
    ///
    /// # Errors
    /// An error if the log cannot be used. The execution ends.
    fn next<'a>(&'a mut self, batch: NewBatch) -> BoxFuture<'a, Result<String, DurableError>>;

    /// Waits for a message to the run, or for a time where there is one, and returns a batch, which is recorded.
    ///
    /// An engine calls `begin` for a batch, and records it. While the batch [is empty](is_empty_batch), it waits until
    /// [`Engine::wake`] is called for the run or the time has come, and calls `begin` again. `begin` publishes a name by
    /// which the run is woken ([`RunRecord::wake`]), for engines that make one for each wait; it must be made before.
    ///
    /// # Errors
    /// An error if the log cannot be used. The execution ends.
    fn wait<'a>(
        &'a mut self,
        begin: BeginWait,
        until: Option<SystemTime>,
    ) -> BoxFuture<'a, Result<String, DurableError>>;

    /// Returns `true` if the engine executes the runs of a conversation one after the other, as they were submitted. By default,
    /// an execution waits for the runs that were stored before.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Returns `true` if an execution has to make all calls of the one before, also if the run has ended meanwhile. By
    /// default, it may end without them.
    fn is_compared(&self) -> bool {
        false
    }
}

/// Waits for the next batch of a log.
pub type NewBatch =
    Box<dyn FnOnce() -> BoxFuture<'static, Result<String, DurableError>> + Send + 'static>;

/// Makes a run wait, unless a message has come. Gets the name by which the run is woken.
pub type BeginWait = Arc<
    dyn Fn(Option<String>) -> BoxFuture<'static, Result<String, DurableError>>
        + Send
        + Sync
        + 'static,
>;

/// Returns `true` for a batch without entries.
pub fn is_empty_batch(batch: &str) -> bool {
    batch == EMPTY_BATCH
}

pub(crate) const EMPTY_BATCH: &str = "[]";
