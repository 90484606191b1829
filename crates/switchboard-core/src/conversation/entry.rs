//! The entries of a record, and the commits that append them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::items::{InvalidItem, Item};

/// The beginning of the details of an encrypted conversation.
const ENCRYPTED_DETAILS: &str = "{\"switchboard_encrypted\":";

/// Returns `true` for the details of an encrypted conversation.
pub(super) fn is_encrypted(details: Option<&str>) -> bool {
    details.is_some_and(|details| details.starts_with(ENCRYPTED_DETAILS))
}

/// One entry of a conversation's record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its place in the record. Places are never used twice, also not after the conversation was
    /// cleared.
    pub position: u64,
    /// The content.
    pub content: EntryContent,
    /// The run that made it; empty for what the application has added itself.
    pub run: Arc<str>,
    /// The turn of the run that made it; 0 for the input of a run.
    pub turn: u32,
    /// The number of its commit among those of the run.
    pub commit: u32,
    /// The agent that made it; `None` for input.
    pub agent: Option<Arc<str>>,
    /// The time when it was committed, in whole milliseconds.
    pub time: SystemTime,
}

/// The content of an [`Entry`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EntryContent {
    /// An item of the conversation: what was said and done.
    Item(Item),
    /// An item that a filter, a note, nested history or a summary put in place of others. It is part
    /// of views only.
    Replacement(Item),
    /// The view and the agent from here on, as JSON.
    State(Arc<str>),
    /// Input or output that a guardrail refused, as JSON: the guardrail, and the words only if the
    /// application asked to keep them.
    Refused(Arc<str>),
    /// A run that waits for a person's decision, as JSON; see
    /// [`Conversation::waiting_run`](super::Conversation::waiting_run).
    Waiting(Arc<str>),
    /// A step of a durable run, as JSON. Only journals have these; see [`Listed::Journals`](super::Listed).
    Step(Arc<str>),
}

impl EntryContent {
    /// The name of the kind of content, as stores write it: `item`, `replacement`, `state`, `refused`,
    /// `waiting`, `step`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Item(_) => "item",
            Self::Replacement(_) => "replacement",
            Self::State(_) => "state",
            Self::Refused(_) => "refused",
            Self::Waiting(_) => "waiting",
            Self::Step(_) => "step",
        }
    }

    /// The content as JSON, as stores write it.
    pub fn as_json(&self) -> &str {
        match self {
            Self::Item(item) | Self::Replacement(item) => item.as_json(),
            Self::State(json) | Self::Refused(json) | Self::Waiting(json) | Self::Step(json) => {
                json
            }
        }
    }

    /// Reads a content that a store has written.
    ///
    /// # Errors
    /// Returns an error if the kind is unknown, or if the text is not an item where it should be one.
    pub fn from_stored(kind: &str, json: impl Into<String>) -> Result<Self, InvalidEntry> {
        let json = json.into();
        match kind {
            "item" => Ok(Self::Item(Item::from_json(json)?)),
            "replacement" => Ok(Self::Replacement(Item::from_json(json)?)),
            "state" => Ok(Self::State(json.into())),
            "refused" => Ok(Self::Refused(json.into())),
            "waiting" => Ok(Self::Waiting(json.into())),
            "step" => Ok(Self::Step(json.into())),
            _ => Err(InvalidEntry(format!("there is no entry of kind {kind:?}"))),
        }
    }

    /// The item, where the entry is part of the record or of a view.
    pub fn item(&self) -> Option<&Item> {
        match self {
            Self::Item(item) | Self::Replacement(item) => Some(item),
            Self::State(_) | Self::Refused(_) | Self::Waiting(_) | Self::Step(_) => None,
        }
    }

    /// Returns `true` for what was said and done, and for marks of what was refused.
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, Self::Item(_) | Self::Refused(_))
    }

    /// The text that a search looks through: the words of a message, or a tool's arguments or output.
    pub fn searchable_text(&self) -> Option<String> {
        let Self::Item(item) = self else {
            return None;
        };
        let text = item.text().or_else(|| item.output_text());
        let text = text.or_else(|| item.arguments())?;
        (!text.is_empty()).then(|| text.into_owned())
    }
}

impl Entry {
    /// Creates an entry of the application: of no run and no agent, at the current time.
    pub fn new(content: EntryContent) -> Self {
        Self {
            position: 0,
            content,
            run: Arc::default(),
            turn: 0,
            commit: 0,
            agent: None,
            time: now(),
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, position: u64) -> Self {
        self.position = position;
        self
    }

    /// Sets the run and the turn that made it, and the number of its commit.
    #[must_use]
    pub fn made_in(mut self, run: impl Into<Arc<str>>, turn: u32, commit: u32) -> Self {
        self.run = run.into();
        self.turn = turn;
        self.commit = commit;
        self
    }

    /// Sets the agent that made it.
    #[must_use]
    pub fn made_by(mut self, agent: Option<Arc<str>>) -> Self {
        self.agent = agent;
        self
    }

    /// Sets the time when it was committed.
    #[must_use]
    pub fn committed_at(mut self, time: SystemTime) -> Self {
        self.time = time;
        self
    }
}

/// A stored entry that cannot be read.
#[derive(Debug)]
pub struct InvalidEntry(String);

impl_error!(InvalidEntry, |this| "{}", this.0);

impl From<InvalidItem> for InvalidEntry {
    fn from(error: InvalidItem) -> Self {
        Self(error.to_string())
    }
}

/// The length of a record at one time. Two runs that have read the same revision cannot both commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Revision {
    /// A number that differs between conversations of the same name: one that was deleted or cleared, and
    /// the one that began afterwards. It is below 2^53.
    pub epoch: u64,
    /// The position of the next entry.
    pub next: u64,
}

impl Revision {
    /// Creates a revision, as a store has read it.
    pub fn new(epoch: u64, next: u64) -> Self {
        Self { epoch, next }
    }

    /// The revision of a new conversation.
    pub fn of_new_conversation() -> Self {
        Self::new(fastrand::u64(1..1 << 53), 0)
    }

    /// The revision of a conversation that was cleared at this one.
    #[must_use]
    pub fn cleared(self) -> Self {
        Self::new(Self::of_new_conversation().epoch, self.next)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.next)
    }
}

/// The state of a conversation, without its entries.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Head {
    /// The name of the conversation in its store.
    pub id: Arc<str>,
    /// The length of its record.
    pub revision: Revision,
    /// The position of the first entry; later than 0 once the conversation was cleared.
    pub first: u64,
    /// The position of the latest [`EntryContent::State`].
    pub state: Option<u64>,
    /// The agent that has the conversation.
    pub agent: Option<Arc<str>>,
    /// Further data as a JSON object: the team, where the conversation was forked from.
    pub details: Option<Arc<str>>,
    /// The time when it was created.
    pub created: SystemTime,
    /// The time of the last change.
    pub changed: SystemTime,
    /// The time after which it may be removed.
    pub expires: Option<SystemTime>,
}

impl Head {
    /// The state of a conversation that is created at `time`.
    pub fn new(id: impl Into<Arc<str>>, revision: Revision, time: SystemTime) -> Self {
        Self {
            id: id.into(),
            first: 0,
            revision,
            state: None,
            agent: None,
            details: None,
            created: time,
            changed: time,
            expires: None,
        }
    }

    /// Applies a commit whose entries begin at the current revision.
    pub fn apply(&mut self, commit: &Commit) {
        if let Some(index) = commit.state_index() {
            self.state = Some(self.revision.next + index as u64);
        }
        self.revision.next += commit.entries.len() as u64;
        if let Some(agent) = &commit.agent {
            self.agent = agent.clone();
        }
        if let Some(details) = &commit.details {
            self.details = Some(details.clone());
        }
        if let Some(expires) = commit.expires {
            self.expires = expires;
        }
        self.changed = commit.time;
    }

    /// Returns `true` if the details say that the conversation is encrypted. A store that decrypts it
    /// replaces them. Entries that are encrypted are valid items, which no model must be shown.
    pub(crate) fn is_encrypted(&self) -> bool {
        is_encrypted(self.details.as_deref())
    }

    /// The number of entries.
    pub fn entries(&self) -> u64 {
        self.revision.next.saturating_sub(self.first)
    }
}

/// Entries that are appended together, with the changes of the [`Head`] that go with them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Commit {
    /// The revision that the writer has seen.
    pub expected: Expected,
    /// The writer: a run, or the application.
    pub run: Arc<str>,
    /// The number of the commit among those of its run. With `run`, it tells a commit that is made a
    /// second time. 0 is never the same commit.
    pub number: u32,
    /// The entries. Their positions count from the revision. A commit without entries changes the
    /// head alone, and its revision stays as it is.
    pub entries: Vec<Entry>,
    /// The new agent, if it changes.
    pub agent: Option<Option<Arc<str>>>,
    /// The new details, if they change.
    pub details: Option<Arc<str>>,
    /// The new time of expiry, if it changes.
    pub expires: Option<Option<SystemTime>>,
    /// The time of the commit.
    pub time: SystemTime,
}

/// The revision that a commit expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// Whatever there is; a conversation that does not exist is created.
    Any,
    /// The conversation does not exist yet.
    New,
    /// The conversation is at this revision.
    At(Revision),
}

impl Commit {
    /// Creates a commit of the application.
    pub fn new(expected: Expected, entries: Vec<Entry>) -> Self {
        Self {
            expected,
            run: Arc::default(),
            number: 0,
            entries,
            agent: None,
            details: None,
            expires: None,
            time: now(),
        }
    }

    /// The index of the last state among the entries.
    pub fn state_index(&self) -> Option<usize> {
        let is_state = |entry: &Entry| matches!(entry.content, EntryContent::State(_));
        self.entries.iter().rposition(is_state)
    }

    /// Returns `true` if the entry was stored by this same commit.
    ///
    /// Stores ask this for the entries after the expected revision, if the conversation is past it.
    pub fn has_stored(&self, entry: &Entry) -> bool {
        self.number != 0 && self.number == entry.commit && self.run == entry.run
    }
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Committed {
    /// The conversation is at this revision now, by this commit or by the same one made before.
    At(Revision),
    /// The conversation is not at the expected revision. Nothing was stored.
    Conflict,
}

/// The current time in whole milliseconds, as stores keep it.
pub fn now() -> SystemTime {
    from_millis(to_millis(SystemTime::now()))
}

/// A time as milliseconds since 1970.
pub fn to_millis(time: SystemTime) -> i64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// The time of milliseconds since 1970.
pub fn from_millis(millis: i64) -> SystemTime {
    let since_epoch = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
    UNIX_EPOCH.checked_add(since_epoch).unwrap_or(UNIX_EPOCH)
}
