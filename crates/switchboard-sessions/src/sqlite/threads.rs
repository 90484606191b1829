//! The threads of a store: one that writes, and a few that read.
//!
//! A call is one hop: it is put into a queue, a thread runs it, and its future is woken. The thread that
//! writes takes everything that is queued into one transaction, so that many writers share the cost of
//! one commit (the disk has to confirm each).

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;
use rusqlite::Connection;

use super::file::Opener;
use super::statements::Failure;
use crate::error::{StoreError, StoreErrorKind};

const READERS: usize = 4;

/// The number of calls in one transaction. More would keep other processes waiting for too long.
const MAX_GROUP: usize = 1_000;

/// The queues of a store. Dropping them ends its threads, once they have done what is queued.
pub(super) struct Threads {
    path: Arc<Path>,
    queues: Mutex<Option<Queues>>,
    /// The conversations that calls in the queue of the writer change.
    pending: Arc<Mutex<Pending>>,
    closed: Shared<oneshot::Receiver<()>>,
}

struct Queues {
    writer: Sender<Queued>,
    readers: Sender<Box<dyn Job>>,
}

enum Queued {
    Write(Box<dyn Job>),
    /// A read that must see the writes before it.
    Read(Box<dyn Job>),
}

/// The number of queued writes of each conversation.
#[derive(Default)]
struct Pending(HashMap<Arc<str>, usize>);

/// The writes that a read waits for.
pub(super) enum After<'a> {
    /// Those of one conversation.
    WritesTo(&'a str),
    /// All.
    AllWrites,
}

impl Threads {
    /// Opens the file in a thread, which becomes the one that writes.
    pub(super) async fn start(opener: Opener) -> Result<Self, StoreError> {
        let path = opener.path.clone();
        let pending: Arc<Mutex<Pending>> = Arc::default();
        let (writer, queue) = channel();
        let (readers, reader_queue) = channel();
        let (opened, when_opened) = oneshot::channel();
        let (close, closed) = oneshot::channel();

        let thread = WriterThread {
            opener,
            pending: pending.clone(),
            readers: readers.clone(),
        };
        let run = move || thread.run(&queue, reader_queue, opened, close);
        spawn(&path, "switchboard-sqlite-writer", run)?;
        when_opened.await.map_err(|_| ended(&path))??;
        Ok(Self {
            path,
            queues: Mutex::new(Some(Queues { writer, readers })),
            pending,
            closed: closed.shared(),
        })
    }

    /// Runs a call that writes. It is in the queue when the future has been polled once; from then on it
    /// is run, also if the future is dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        conversation: Option<&str>,
        run: impl FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (call, answer) = Call::new(&self.path, conversation, run);
        if let Some(queues) = &*lock(&self.queues) {
            // Before it is sent: the thread that writes may be faster than this one.
            lock(&self.pending).add(call.conversation.clone());
            let sent = queues.writer.send(Queued::Write(Box::new(call)));
            sent.map_err(|_| ended(&self.path))?;
        } else {
            return Err(closed(&self.path, conversation));
        }
        answer.await.map_err(|_| ended(&self.path))?
    }

    /// Runs a call that reads, after the writes that were queued before it.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        after: After<'_>,
        run: impl FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let conversation = match after {
            After::WritesTo(conversation) => Some(conversation),
            After::AllWrites => None,
        };
        let (call, answer) = Call::new(&self.path, conversation, run);
        if let Some(queues) = &*lock(&self.queues) {
            let is_sent = if lock(&self.pending).has(conversation) {
                queues.writer.send(Queued::Read(Box::new(call))).is_ok()
            } else {
                queues.readers.send(Box::new(call)).is_ok()
            };
            if !is_sent {
                return Err(ended(&self.path));
            }
        } else {
            return Err(closed(&self.path, conversation));
        }
        answer.await.map_err(|_| ended(&self.path))?
    }

    /// Ends the threads, and waits until they have done what is queued and closed the file.
    pub(super) async fn close(&self) {
        drop(lock(&self.queues).take());
        let closed = self.closed.clone();
        // The thread never sends: it drops its end when it is done.
        let _ = closed.await;
    }
}

impl Pending {
    fn add(&mut self, conversation: Option<Arc<str>>) {
        if let Some(conversation) = conversation {
            *self.0.entry(conversation).or_default() += 1;
        }
    }

    fn remove(&mut self, conversation: Option<&str>) {
        let Some(conversation) = conversation else {
            return;
        };
        if let Some(count) = self.0.get_mut(conversation) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(conversation);
            }
        }
    }

    fn has(&self, conversation: Option<&str>) -> bool {
        match conversation {
            Some(conversation) => self.0.contains_key(conversation),
            None => !self.0.is_empty(),
        }
    }
}

/// A call in a queue.
trait Job: Send {
    /// Runs the call and keeps the outcome. Returns `false` if it failed.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Makes a failure the outcome.
    fn fail(&mut self, failure: Failure);
    /// Returns `true` if nobody waits for the answer.
    fn is_abandoned(&self) -> bool;
    /// The conversation that it reads or changes.
    fn conversation(&self) -> Option<&str>;
    /// Passes the outcome to the caller.
    fn answer(self: Box<Self>);
}

struct Call<T, F> {
    run: F,
    path: Arc<Path>,
    conversation: Option<Arc<str>>,
    outcome: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

impl<T, F> Call<T, F> {
    fn new(path: &Arc<Path>, conversation: Option<&str>, run: F) -> (Self, Answer<T>) {
        let (answer, receiver) = oneshot::channel();
        let call = Self {
            run,
            path: path.clone(),
            conversation: conversation.map(Arc::from),
            outcome: None,
            answer,
        };
        (call, receiver)
    }
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Failure> + Send> Job for Call<T, F> {
    fn run(&mut self, connection: &Connection) -> bool {
        match (self.run)(connection) {
            Ok(value) => {
                self.outcome = Some(Ok(value));
                true
            }
            Err(failure) => {
                self.fail(failure);
                false
            }
        }
    }

    fn fail(&mut self, failure: Failure) {
        let error = failure.describe(&self.path);
        let error = match &self.conversation {
            Some(conversation) => error.in_conversation(conversation),
            None => error,
        };
        self.outcome = Some(Err(error));
    }

    fn is_abandoned(&self) -> bool {
        self.answer.is_canceled()
    }

    fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    fn answer(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            // The caller may be gone.
            let _ = self.answer.send(outcome);
        }
    }
}

struct WriterThread {
    opener: Opener,
    pending: Arc<Mutex<Pending>>,
    readers: Sender<Box<dyn Job>>,
}

impl WriterThread {
    fn run(
        mut self,
        queue: &Receiver<Queued>,
        reader_queue: Receiver<Box<dyn Job>>,
        opened: oneshot::Sender<Result<(), StoreError>>,
        // Dropped when everything is closed.
        _closed: oneshot::Sender<()>,
    ) {
        let connection = self.opener.open();
        // After the file is opened, which decides how the readers connect to it.
        let readers = ReaderThreads::new(&self.opener, reader_queue);
        let (connection, readers) = match (connection, readers) {
            (Ok(connection), Ok(readers)) => (connection, readers),
            (Err(error), _) | (_, Err(error)) => {
                let _ = opened.send(Err(error));
                return;
            }
        };
        let mut connection = Some(connection);
        if opened.send(Ok(())).is_ok() {
            while let Ok(first) = queue.recv() {
                self.run_group(&mut connection, queue, first);
            }
        }
        // The last connection moves the log into the file, and must be able to write for that.
        drop(self.readers);
        readers.join();
        drop(connection);
    }

    /// Runs all that is queued in one transaction.
    fn run_group(
        &self,
        connection: &mut Option<Connection>,
        queue: &Receiver<Queued>,
        first: Queued,
    ) {
        let mut group = Vec::new();
        let mut reads = Vec::new();
        let mut next = Some(first);
        while let Some(queued) = next {
            match queued {
                Queued::Write(job) => group.push(job),
                Queued::Read(job) => reads.push(job),
            }
            let is_full = group.len() + reads.len() >= MAX_GROUP;
            next = if is_full { None } else { queue.try_recv().ok() };
        }
        self.write_group(connection, &mut group);
        let mut pending = lock(&self.pending);
        for job in &group {
            pending.remove(job.conversation());
        }
        drop(pending);
        for job in group {
            job.answer();
        }
        for job in reads {
            // The readers end after this thread.
            let _ = self.readers.send(job);
        }
    }

    fn write_group(&self, open: &mut Option<Connection>, group: &mut [Box<dyn Job>]) {
        let connection = match open.take().map_or_else(|| self.opener.connect(), Ok) {
            Ok(connection) => connection,
            Err(error) => return fail_all(group, error),
        };
        match transaction(&connection, group) {
            Ok(()) => {}
            Err(Unfinished::NotBegun(error)) => fail_all(group, error),
            Err(Unfinished::RolledBack(_)) if group.len() > 1 => {
                // One call may have been the cause for all.
                for job in &mut *group {
                    let job = std::slice::from_mut(job);
                    if let Err(error) = transaction(&connection, job) {
                        error.fail(job);
                    }
                }
            }
            Err(error) => error.fail(group),
        }
        // A connection that cannot leave its transaction is replaced by a new one.
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
            *open = Some(connection);
        }
    }
}

/// A transaction of which nothing was stored.
enum Unfinished {
    NotBegun(rusqlite::Error),
    /// The calls may have failed with errors of their own.
    RolledBack(Option<rusqlite::Error>),
}

impl Unfinished {
    fn fail(self, group: &mut [Box<dyn Job>]) {
        if let Self::NotBegun(error) | Self::RolledBack(Some(error)) = self {
            fail_all(group, error);
        }
    }
}

fn fail_all(group: &mut [Box<dyn Job>], error: rusqlite::Error) {
    let error = Arc::new(error);
    for job in group {
        job.fail(Failure::Sqlite(error.clone()));
    }
}

/// Runs calls in one transaction, each in a savepoint.
fn transaction(connection: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), Unfinished> {
    if group.is_empty() {
        return Ok(());
    }
    // A deferred transaction could fail later because of another process.
    execute(connection, "BEGIN IMMEDIATE").map_err(Unfinished::NotBegun)?;
    let undone = |error| {
        if !connection.is_autocommit() {
            // If it fails, the connection is closed.
            let _ = execute(connection, "ROLLBACK");
        }
        Unfinished::RolledBack(error)
    };
    for job in group {
        execute(connection, "SAVEPOINT call").map_err(|error| undone(Some(error)))?;
        if !job.run(connection) {
            // After some errors (a full disk), SQLite has rolled back everything by itself.
            if connection.is_autocommit() {
                return Err(Unfinished::RolledBack(None));
            }
            execute(connection, "ROLLBACK TO call").map_err(|error| undone(Some(error)))?;
        }
        execute(connection, "RELEASE call").map_err(|error| undone(Some(error)))?;
    }
    execute(connection, "COMMIT").map_err(|error| undone(Some(error)))
}

fn execute(connection: &Connection, sql: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

struct ReaderThreads(Vec<thread::JoinHandle<()>>);

impl ReaderThreads {
    fn new(opener: &Opener, queue: Receiver<Box<dyn Job>>) -> Result<Self, StoreError> {
        let queue = Arc::new(Mutex::new(queue));
        let start = |_| {
            let (path, opener, queue) = (&opener.path, opener.clone(), queue.clone());
            let run = move || read_from(&opener, &queue);
            spawn(path, "switchboard-sqlite-reader", run)
        };
        (0..READERS).map(start).collect::<Result<_, _>>().map(Self)
    }

    fn join(self) {
        for thread in self.0 {
            // One that has panicked is closed as well.
            let _ = thread.join();
        }
    }
}

fn read_from(opener: &Opener, queue: &Mutex<Receiver<Box<dyn Job>>>) {
    let mut open: Option<Connection> = None;
    loop {
        let next = lock(queue).recv();
        let Ok(mut job) = next else {
            return;
        };
        if job.is_abandoned() {
            continue;
        }
        if open.is_none() {
            match opener.connect_reader() {
                Ok(connection) => open = Some(connection),
                Err(error) => job.fail(error.into()),
            }
        }
        if let Some(connection) = &open {
            job.run(connection);
        }
        job.answer();
    }
}

fn spawn(
    path: &Path,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>, StoreError> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| {
        let message = format!("no thread could be started ({error})");
        StoreError::new(StoreErrorKind::Storage, path, message).caused_by(error)
    })
}

fn closed(path: &Path, conversation: Option<&str>) -> StoreError {
    let error = StoreError::new(StoreErrorKind::Closed, path, "the store was closed");
    match conversation {
        Some(conversation) => error.in_conversation(conversation),
        None => error,
    }
}

fn ended(path: &Path) -> StoreError {
    let message = "the store's thread has ended; open the store again";
    StoreError::new(StoreErrorKind::Storage, path, message)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
