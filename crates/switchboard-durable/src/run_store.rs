//! The runs of a store: their states, their streams, and the messages to them.

mod deletion;
mod messages;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Expected, Head, JOURNAL_PREFIX,
    ListQuery, Listed, folder_of, now,
};

use crate::active_runs::ActiveRuns;
use crate::entry::JournalEntry;
use crate::error::{DurableError, DurableErrorKind};
use crate::events::RunEvents;
use crate::record::{RunRecord, RunStatus, StoredRecord};

pub use self::deletion::DeletedRuns;

/// The number of entries that are read at once.
const PAGE: u64 = 512;

/// Longer than any pause of a run.
const AGES: Duration = Duration::from_secs(1_000 * 365 * 24 * 3_600);

/// The runs in a store of conversations. Each has a record that only grows, with its start, its events and the
/// messages to it; the embedded engine keeps the steps there too. Clones share it.
#[derive(Debug, Clone)]
pub struct RunStore(Conversations);

/// A run that is to be stored.
pub(crate) struct NewRun<'a> {
    pub(crate) id: &'a str,
    pub(crate) conversation: &'a str,
    pub(crate) key: &'a str,
    pub(crate) engine: &'a str,
    pub(crate) team: Option<&'a str>,
    pub(crate) version: Option<&'a str>,
    pub(crate) start: Box<RawValue>,
    pub(crate) lease_owner: String,
}

/// The journal of a run as this process has just stored it, or has read its head. It is not read again to take the run: if
/// somebody has written since, that is refused.
pub(crate) struct KnownJournal {
    pub(crate) head: Head,
    pub(crate) record: StoredRecord,
    /// The only entry of one that was just stored.
    pub(crate) start: Option<Box<RawValue>>,
}

/// Runs that are due, in the order in which they became due.
pub(crate) struct DuePage {
    pub(crate) runs: Vec<RunRecord>,
    /// The time from which the next page is; `None` after the last one.
    pub(crate) next: Option<SystemTime>,
}

impl RunStore {
    /// Creates a handle to the runs in a store.
    pub fn new(conversations: Conversations) -> Self {
        Self(conversations)
    }

    /// The store, with the conversations of the runs.
    pub fn conversations(&self) -> &Conversations {
        &self.0
    }

    /// The state of a run.
    ///
    /// # Errors
    /// An error if there is no such run, or the store cannot be read.
    pub async fn record(&self, id: &str) -> Result<RunRecord, DurableError> {
        let (head, record) = self.head(id).await?;
        Ok(to_record(id, &head, record))
    }

    /// The runs, the last changed first.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list(&self, limit: Option<usize>) -> Result<Vec<RunRecord>, DurableError> {
        let mut query = ListQuery::default();
        query.limit = limit;
        self.listed(query).await
    }

    /// The runs that are due at a time: those that no process has, and those whose process is gone.
    ///
    /// # Errors
    /// The store's error.
    pub async fn due(&self, time: SystemTime) -> Result<Vec<RunRecord>, DurableError> {
        let mut query = ListQuery::default();
        query.expired_before = Some(time);
        self.listed(query).await
    }

    /// A page of the runs that are due from a time until another, in the order in which they became due.
    pub(crate) async fn due_page(
        &self,
        from: SystemTime,
        until: SystemTime,
        mut limit: usize,
    ) -> Result<DuePage, DurableError> {
        loop {
            let mut query = ListQuery::default();
            query.expired_from = Some(from);
            query.expired_before = Some(until);
            query.limit = Some(limit);
            let heads = self.heads(query).await?;
            let next = heads.last().and_then(|last| last.expires);
            let next = next.filter(|_| heads.len() >= limit);
            // More than fit into a page became due at the same time.
            if next == Some(from) {
                limit = limit.saturating_mul(2);
                continue;
            }
            let runs = to_records(&heads).collect();
            return Ok(DuePage { runs, next });
        }
    }

    /// The runs of a run's conversation that are to go on, or have just become settled.
    pub(crate) async fn unsettled_beside(&self, id: &str) -> Result<Vec<RunRecord>, DurableError> {
        let mut query = ListQuery::default();
        query.folder = Some(folder_of(&journal_name(id)).into());
        query.expired_before = Some(now() + AGES);
        self.listed(query).await
    }

    /// The runs that were last changed after a time.
    pub(crate) async fn changed_after(
        &self,
        time: SystemTime,
    ) -> Result<Vec<RunRecord>, DurableError> {
        let mut limit = 1;
        loop {
            let mut runs = self.list(Some(limit)).await?;
            let is_all = runs.len() < limit;
            runs.retain(|run| run.changed > time);
            if is_all || runs.len() < limit {
                return Ok(runs);
            }
            limit *= 8;
        }
    }

    async fn listed(&self, query: ListQuery) -> Result<Vec<RunRecord>, DurableError> {
        Ok(to_records(&self.heads(query).await?).collect())
    }

    async fn heads(&self, mut query: ListQuery) -> Result<Vec<Head>, DurableError> {
        query.listed = Listed::Journals;
        let heads = ConversationStore::list(&self.0, &query).await;
        heads.map_err(|error| DurableError::store("", error))
    }

    /// Stores a run, unless there is one with this conversation and key. Returns the state of the one that there is, and
    /// the journal if it is new.
    pub(crate) async fn create(
        &self,
        run: NewRun<'_>,
    ) -> Result<(RunRecord, Option<KnownJournal>), DurableError> {
        let time = now();
        // Finer than `time`, which stores keep in milliseconds.
        let order = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let order = order.unwrap_or_default();
        let record = StoredRecord {
            conversation: run.conversation.to_owned(),
            key: run.key.to_owned(),
            engine: Some(run.engine.to_owned()),
            team: run.team.map(str::to_owned),
            version: run.version.map(str::to_owned),
            status: RunStatus::Pending { reason: None },
            failures: 0,
            owner: None,
            wake: None,
            lease_owner: run.lease_owner,
            order: u64::try_from(order.as_nanos()).unwrap_or(u64::MAX),
            log: 0,
            log_from: None,
        };
        let start = JournalEntry::Start(run.start.clone());
        let mut commit = Commit::new(Expected::New, vec![stored(run.id, &start)?]);
        commit.details = Some(details(run.id, &record)?);
        commit.expires = Some(Some(time));
        let Committed::At(revision) = self.commit(run.id, commit).await? else {
            return Ok((self.record(run.id).await?, None));
        };
        let mut head = Head::new(journal_name(run.id), revision, time);
        head.expires = Some(time);
        let known = KnownJournal {
            head,
            record,
            start: Some(run.start),
        };
        Ok((known.to_record(run.id), Some(known)))
    }

    /// Puts a run off that no process has taken.
    pub(crate) async fn put_off(&self, id: &str, until: SystemTime) -> Result<(), DurableError> {
        let (head, record) = self.head(id).await?;
        if matches!(record.status, RunStatus::Pending { .. }) {
            let mut commit = Commit::new(Expected::At(head.revision), Vec::new());
            commit.expires = Some(Some(until));
            // If somebody else has written, it is due as they have it.
            self.commit(id, commit).await?;
        }
        Ok(())
    }

    /// Takes the conversation of a run for it. Returns `false` if another run has it.
    pub(crate) async fn take_conversation(
        &self,
        run: &RunRecord,
        time: Duration,
    ) -> Result<bool, DurableError> {
        let taken = self.0.lease(&run.conversation, &run.lease_owner, time);
        taken.await.map_err(|error| DurableError::store("", error))
    }

    /// Keeps the conversation of a run for it, while it has paused. Without it, the next message would be answered in between.
    pub(crate) async fn keep_conversation(&self, record: &StoredRecord, time: Duration) {
        let kept = self
            .0
            .lease(&record.conversation, &record.lease_owner, time);
        if let Err(error) = kept.await {
            tracing::warn!(%error, "the conversation of a run that pauses is not kept for it");
        }
    }

    /// Lets other runs have the conversation of a run.
    pub(crate) async fn release_conversation(&self, record: &StoredRecord) {
        let released = self.0.release(&record.conversation, &record.lease_owner);
        if let Err(error) = released.await {
            tracing::warn!(%error, "the conversation of a run that has ended is not free yet");
        }
    }

    pub(crate) async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, DurableError> {
        let committed = self.0.commit(&journal_name(id), commit).await;
        committed.map_err(|error| DurableError::store(id, error))
    }

    /// A journal, with which it can be taken without being read.
    pub(crate) async fn known(&self, id: &str) -> Result<KnownJournal, DurableError> {
        let (head, record) = self.head(id).await?;
        Ok(KnownJournal {
            head,
            record,
            start: None,
        })
    }

    /// The head of a journal, and the state of the run.
    pub(crate) async fn head(&self, id: &str) -> Result<(Head, StoredRecord), DurableError> {
        let head = self.0.head(&journal_name(id)).await;
        let head = head.map_err(|error| DurableError::store(id, error))?;
        let head = head.ok_or_else(|| DurableError::not_found(id))?;
        let record = parse(id, &head)?;
        Ok((head, record))
    }

    /// The entries from a position on, up to another.
    pub(crate) async fn read(
        &self,
        id: &str,
        from: u64,
        to: u64,
    ) -> Result<Vec<(u64, JournalEntry)>, DurableError> {
        let name = journal_name(id);
        let mut entries = Vec::new();
        let mut next = from;
        while next < to {
            let end = to.min(next + PAGE);
            let page = self.0.read(&name, next..end).await;
            for entry in page.map_err(|error| DurableError::store(id, error))? {
                let read = JournalEntry::from_stored(&entry).map_err(|error| {
                    let at = entry.position;
                    let message =
                        format!("entry {at} of the journal of run \"{id}\" is damaged: {error}");
                    DurableError::new(DurableErrorKind::Damaged, message)
                })?;
                entries.push((entry.position, read));
            }
            next = end;
        }
        Ok(entries)
    }

    /// Reads the events of a run, from its start (`None`) or after one whose position is known.
    pub fn events(&self, id: &str, after: impl Into<Option<u64>>) -> RunEvents {
        RunEvents::new(
            self.clone(),
            ActiveRuns::default(),
            id.to_owned(),
            after.into(),
        )
    }
}

/// The identifier of a run: its conversation and its key, in which slashes are escaped. So the journals of a conversation
/// are a folder of their store.
pub(crate) fn run_id(conversation: &str, key: &str) -> String {
    let escaped = |name: &str| name.replace('%', "%25").replace('/', "%2F");
    format!("{}/{}", escaped(conversation), escaped(key))
}

fn journal_name(id: &str) -> Arc<str> {
    format!("{JOURNAL_PREFIX}{id}").into()
}

pub(crate) fn stored(id: &str, entry: &JournalEntry) -> Result<Entry, DurableError> {
    entry.to_stored().map_err(|error| {
        let message = format!("an entry of the journal of run \"{id}\" cannot be written: {error}");
        DurableError::new(DurableErrorKind::Store, message)
    })
}

pub(crate) fn details(id: &str, record: &StoredRecord) -> Result<Arc<str>, DurableError> {
    let json = serde_json::to_string(record).map_err(|error| {
        let message = format!("the state of run \"{id}\" cannot be written: {error}");
        DurableError::new(DurableErrorKind::Store, message)
    })?;
    Ok(json.into())
}

fn parse(id: &str, head: &Head) -> Result<StoredRecord, DurableError> {
    let details = head.details.as_deref().unwrap_or("null");
    serde_json::from_str(details).map_err(|error| {
        let message = format!("the state of run \"{id}\" cannot be read: {error}");
        DurableError::new(DurableErrorKind::Damaged, message)
    })
}

/// The runs of a list. One that cannot be read must not hide the others.
fn to_records(heads: &[Head]) -> impl Iterator<Item = RunRecord> {
    heads.iter().filter_map(|head| {
        let id = head.id.strip_prefix(JOURNAL_PREFIX).unwrap_or(&head.id);
        let stored = parse(id, head)
            .inspect_err(|error| tracing::warn!(%error, "a run is left out of a list"))
            .ok()?;
        Some(to_record(id, head, stored))
    })
}

pub(crate) fn to_record(id: &str, head: &Head, stored: StoredRecord) -> RunRecord {
    RunRecord {
        id: id.to_owned(),
        conversation: stored.conversation,
        key: stored.key,
        engine: stored.engine,
        team: stored.team,
        version: stored.version,
        status: stored.status,
        failures: stored.failures,
        created: head.created,
        changed: head.changed,
        due: head.expires,
        wake: stored.wake,
        log: stored.log,
        order: stored.order,
        has_begun: stored.owner.is_some(),
        lease_owner: stored.lease_owner,
    }
}

impl KnownJournal {
    pub(crate) fn to_record(&self, id: &str) -> RunRecord {
        to_record(id, &self.head, self.record.clone())
    }
}
