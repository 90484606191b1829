//! Handing traces and spans to an exporter, in batches and on a thread of its own.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Span, TraceInfo, Tracer, TracerKey};
use crate::callback::{BoxError, catch_panic_sync};
use crate::lock::lock;

/// A trace that has begun, or a span that has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TraceRecord {
    /// A trace that has begun.
    Trace(TraceInfo),
    /// A span that has ended.
    Span(Box<Span>),
}

/// Sends traces and spans to where they are kept: a file, a collector, a service.
///
/// [`BatchTracer`] calls it on a thread of its own, so it may block. A batch that it fails to export,
/// or at which it panics, is dropped; it retries itself where that can help.
///
/// ```
/// use std::error::Error;
/// use switchboard_core::trace::{TraceExporter, TraceRecord};
///
/// struct Counter(usize);
///
/// impl TraceExporter for Counter {
///     fn export(&mut self, batch: Vec<TraceRecord>) -> Result<(), Box<dyn Error + Send + Sync>> {
///         self.0 += batch.len();
///         Ok(())
///     }
/// }
/// ```
pub trait TraceExporter: Send + 'static {
    /// Exports a batch, in the order in which traces began and spans ended.
    ///
    /// # Errors
    /// An error if the batch could not be exported. It is logged.
    fn export(&mut self, batch: Vec<TraceRecord>) -> Result<(), BoxError>;
}

/// The limits of a [`BatchTracer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSettings {
    /// The number of traces and spans that may wait; what comes beyond is dropped.
    pub max_queue: NonZeroUsize,
    /// The number of traces and spans in a batch.
    pub max_batch: NonZeroUsize,
    /// The time that a trace or span may wait until a batch is full.
    pub delay: Duration,
}

impl Default for BatchSettings {
    /// The limits of the reference: 8192 waiting, 128 in a batch, 5 seconds.
    fn default() -> Self {
        let number = |number| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
        Self {
            max_queue: number(8192),
            max_batch: number(128),
            delay: Duration::from_secs(5),
        }
    }
}

/// A tracer that hands traces and spans to an exporter in batches, on a thread of its own. Clones
/// share it.
///
/// Runs never wait for it: if the exporter is too slow, what exceeds the queue is dropped and
/// counted. Before the program ends, call [`shutdown`](Self::shutdown); what waits then would
/// otherwise be lost.
///
/// ```
/// use std::time::Duration;
/// use switchboard_core::trace::{BatchSettings, BatchTracer, JsonExporter};
///
/// let settings = BatchSettings { delay: Duration::from_secs(1), ..BatchSettings::default() };
/// let tracer = BatchTracer::with_settings(JsonExporter::new(std::io::stderr()), settings);
/// // Runner::new(&agent).tracer(tracer.clone()) ...
/// tracer.shutdown(Duration::from_secs(5))?;
/// # Ok::<(), switchboard_core::trace::ExportTimeout>(())
/// ```
#[derive(Clone)]
pub struct BatchTracer(Arc<Owner>);

/// Closes the queue when the last tracer is dropped.
struct Owner(Arc<Shared>);

struct Shared {
    identity: TracerKey,
    settings: BatchSettings,
    queue: Mutex<Queue>,
    /// Notified when the worker has something to do.
    work: Condvar,
    /// Notified when a batch was exported, and when the worker has stopped.
    progress: Condvar,
}

struct Queue {
    waiting: VecDeque<TraceRecord>,
    /// The exporter, until the worker takes it.
    exporter: Option<Box<dyn TraceExporter>>,
    worker: Worker,
    is_closed: bool,
    /// The number of records that were taken into the queue.
    accepted: u64,
    /// The number of those that are not in the queue or with the exporter any more.
    settled: u64,
    /// Records up to this number are exported without delay.
    urgent: u64,
    /// The number of records that were not exported.
    dropped: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Worker {
    /// Started with the first record.
    NotStarted,
    Running,
    Stopped,
}

/// The time for exporting is over, and not everything was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportTimeout {
    /// The number of traces and spans that are left.
    pub left: u64,
}

impl_error!(
    ExportTimeout,
    |timeout| "{} traces and spans were not exported in time; give it more time, or look at what \
               keeps the exporter",
    timeout.left
);

impl BatchTracer {
    /// Creates a tracer with the default limits.
    pub fn new(exporter: impl TraceExporter) -> Self {
        Self::with_settings(exporter, BatchSettings::default())
    }

    /// Creates a tracer. Its thread starts with the first trace.
    pub fn with_settings(exporter: impl TraceExporter, settings: BatchSettings) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            exporter: Some(Box::new(exporter)),
            worker: Worker::NotStarted,
            is_closed: false,
            accepted: 0,
            settled: 0,
            urgent: 0,
            dropped: 0,
        };
        Self(Arc::new(Owner(Arc::new(Shared {
            identity: TracerKey::generate(),
            settings,
            queue: Mutex::new(queue),
            work: Condvar::new(),
            progress: Condvar::new(),
        }))))
    }

    /// The number of traces and spans that were not exported: the queue was full or shut down, or the
    /// exporter failed.
    pub fn dropped(&self) -> u64 {
        lock(&self.shared().queue).dropped
    }

    /// Exports what has come so far, and blocks until that is done.
    ///
    /// # Errors
    /// An error if it takes longer than `timeout`. The export goes on.
    pub fn flush(&self, timeout: Duration) -> Result<(), ExportTimeout> {
        let shared = self.shared();
        let mut queue = lock(&shared.queue);
        let target = queue.accepted;
        queue.urgent = target;
        shared.work.notify_one();
        let queue = shared.wait(queue, timeout, |queue| queue.settled < target);
        match target.saturating_sub(queue.settled) {
            0 => Ok(()),
            left => Err(ExportTimeout { left }),
        }
    }

    /// Takes no more traces and spans, exports what has come so far, and blocks until the exporter is
    /// dropped.
    ///
    /// # Errors
    /// An error if it takes longer than `timeout`. What waits for the exporter then is dropped.
    pub fn shutdown(&self, timeout: Duration) -> Result<(), ExportTimeout> {
        let shared = self.shared();
        shared.close();
        let queue = lock(&shared.queue);
        let mut queue = shared.wait(queue, timeout, |queue| queue.worker == Worker::Running);
        if queue.worker != Worker::Running {
            return Ok(());
        }
        let left = queue.accepted - queue.settled;
        let waiting = std::mem::take(&mut queue.waiting);
        queue.settle(waiting.len(), Exported::No);
        drop(queue);
        // Records are dropped without the lock.
        drop(waiting);
        Err(ExportTimeout { left })
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    fn add(&self, record: TraceRecord) {
        let shared = self.shared();
        let mut queue = lock(&shared.queue);
        let max_queue = shared.settings.max_queue.get();
        if queue.is_closed || queue.waiting.len() >= max_queue {
            queue.dropped += 1;
            let is_first = queue.dropped == 1;
            drop(queue);
            if is_first {
                tracing::warn!(
                    max_queue,
                    "a trace or span was dropped: the exporter is too slow, or shut down"
                );
            }
            return;
        }
        queue.waiting.push_back(record);
        queue.accepted += 1;
        let starts = queue.worker == Worker::NotStarted;
        if starts {
            queue.worker = Worker::Running;
        }
        let waiting = queue.waiting.len();
        drop(queue);
        if starts {
            shared.start_worker();
        } else if waiting == 1 || waiting >= shared.settings.max_batch.get() {
            shared.work.notify_one();
        }
    }
}

impl Tracer for BatchTracer {
    fn identity(&self) -> Option<TracerKey> {
        Some(self.0.0.identity)
    }

    fn trace_start(&self, trace: &TraceInfo) {
        self.add(TraceRecord::Trace(trace.clone()));
    }

    fn start(&self, _span: &Span) {}

    fn end(&self, span: Span) {
        self.add(TraceRecord::Span(Box::new(span)));
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The outcome of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exported {
    Yes,
    No,
}

impl Queue {
    fn settle(&mut self, records: usize, exported: Exported) {
        let records = u64::try_from(records).unwrap_or(u64::MAX);
        self.settled += records;
        if exported == Exported::No {
            self.dropped += records;
        }
    }
}

impl Shared {
    /// Takes no more records. The worker exports what waits, and stops.
    fn close(&self) {
        let mut queue = lock(&self.queue);
        queue.is_closed = true;
        if queue.worker == Worker::NotStarted {
            queue.worker = Worker::Stopped;
            // There are some only if no thread could be started.
            let waiting = std::mem::take(&mut queue.waiting);
            queue.settle(waiting.len(), Exported::No);
            let exporter = queue.exporter.take();
            drop(queue);
            drop((waiting, exporter));
            return;
        }
        drop(queue);
        self.work.notify_one();
    }

    /// Waits for progress while a condition holds, for a limited time.
    fn wait<'a>(
        &self,
        queue: MutexGuard<'a, Queue>,
        timeout: Duration,
        is_waiting: impl FnMut(&mut Queue) -> bool,
    ) -> MutexGuard<'a, Queue> {
        let waited = self.progress.wait_timeout_while(queue, timeout, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn start_worker(self: &Arc<Self>) {
        let shared = self.clone();
        let worker = thread::Builder::new().name("switchboard-trace".to_owned());
        if let Err(error) = worker.spawn(move || shared.work()) {
            tracing::warn!(%error, "there is no thread to export traces; tried again with the next");
            let mut queue = lock(&self.queue);
            queue.worker = Worker::NotStarted;
            let is_closed = queue.is_closed;
            drop(queue);
            if is_closed {
                // Nobody will try again: what waits is dropped and counted.
                self.close();
            }
            self.progress.notify_all();
        }
    }

    /// Exports batches until the queue is closed and empty.
    fn work(&self) {
        let Some(mut exporter) = lock(&self.queue).exporter.take() else {
            return;
        };
        while let Some(batch) = self.next_batch() {
            let records = batch.len();
            let exported = catch_panic_sync(|| exporter.export(batch)).flatten();
            let outcome = match &exported {
                Ok(()) => Exported::Yes,
                Err(_) => Exported::No,
            };
            lock(&self.queue).settle(records, outcome);
            self.progress.notify_all();
            if let Err(error) = exported {
                tracing::warn!(%error, records, "traces and spans could not be exported");
            }
        }
        // Its destructor may write and panic as well.
        if let Err(error) = catch_panic_sync(|| drop(exporter)) {
            tracing::warn!(%error, "the exporter of traces panicked when it was dropped");
        }
        lock(&self.queue).worker = Worker::Stopped;
        self.progress.notify_all();
    }

    /// Waits until a batch is full, is urgent or has waited long enough. Returns `None` once the
    /// queue is closed and empty.
    fn next_batch(&self) -> Option<Vec<TraceRecord>> {
        let BatchSettings {
            max_batch, delay, ..
        } = self.settings;
        let queue = lock(&self.queue);
        let is_idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_closed;
        let queue = self.work.wait_while(queue, is_idle);
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        let fills_up = |queue: &mut Queue| {
            let is_urgent = queue.urgent > queue.settled || queue.is_closed;
            queue.waiting.len() < max_batch.get() && !is_urgent
        };
        let waited = self.work.wait_timeout_while(queue, delay, fills_up);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        let records = queue.waiting.len().min(max_batch.get());
        if records == 0 {
            return None;
        }
        Some(queue.waiting.drain(..records).collect())
    }
}

impl_debug!(BatchTracer);
