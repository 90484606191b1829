//! Conversations that outlast their runs: the record, the view, and the agent that has it.
//!
//! - The **record** holds all that was said and done, and only grows. Each [`Entry`] has the run, the
//!   turn, the agent and the time.
//! - The **view** is what the model of the current agent is shown: positions in the record, and what
//!   filters, notes, nested history and summaries put in place of others. It is stored, so that the
//!   next message goes on with the view as the last handoff left it.
//! - The **agent** that has the conversation gets the next message.
//!
//! A run with a [`Conversation`] as its session loads the view and the agent when it begins, and
//! commits each turn as a whole: the items, the view and the agent in one transaction. The user's
//! message is committed with the first whole turn, so that a run that fails can be tried again.
//!
//! ```
//! use switchboard_core::conversation::Conversations;
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner, filters, handoff};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let model = ScriptedModel::new()
//!     .call("transfer_to_billing", "{}")
//!     .say("Which bill?")
//!     .say("Done.");
//! let billing: Agent = Agent::new("Billing");
//! let triage = Agent::new("Triage").handoff(handoff(&billing).filter(filters::redact_pii()));
//!
//! let session = Conversations::in_memory().get("customer-42");
//! let runner = Runner::new(&triage).model(model.clone()).session(&session);
//! runner.run("My card is 4111 1111 1111 1111").await?;
//! // The same runner: the message goes to Billing, whose model never gets the number.
//! let result = runner.run("The one of May").await?;
//! assert_eq!(result.last_agent().name(), "Billing");
//! let seen = &model.requests()[2].input;
//! assert!(!seen.iter().any(|item| item.as_json().contains("4111")));
//! # Ok::<(), switchboard_core::Error>(())
//! # }).unwrap().unwrap();
//! ```

mod entry;
mod error;
mod export;
mod memory;
mod open;
mod reader;
mod store;
mod view;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

pub use entry::{
    Commit, Committed, Entry, EntryContent, Expected, Head, InvalidEntry, Revision, from_millis,
    now, to_millis,
};
pub use error::{ConversationError, ConversationErrorKind};
pub use export::Exported;
pub use memory::MemoryStore;
pub(crate) use open::{OpenConversation, Refusal, TurnCommit, TurnCommitted};
pub use store::{
    ConversationStore, Conversations, Found, JOURNAL_PREFIX, ListQuery, Listed, SearchQuery,
    folder_of,
};

use self::store::DynStore;
use self::view::State;
use crate::callback::BoxError;
use crate::items::{Item, Items};
use crate::run::Run;
use crate::run::conversation::Details;
use crate::session::Session;

/// The number of times that a time of expiry is set beside other writers.
const EXPIRY_ATTEMPTS: usize = 64;

/// The least number of entries that are looked through at once.
const REFUSALS: u64 = 64;

/// A handle to one conversation of a store, for [`Runner::session`](crate::Runner::session). It is
/// cheap to clone, and all handles with one name are the same conversation.
#[derive(Clone)]
pub struct Conversation {
    conversations: Conversations,
    id: Arc<str>,
}

impl Conversation {
    pub(super) fn new(conversations: Conversations, id: Arc<str>) -> Self {
        Self { conversations, id }
    }

    /// The name of the conversation in its store.
    pub fn name(&self) -> &str {
        &self.id
    }

    /// The conversations of the same store.
    pub fn conversations(&self) -> &Conversations {
        &self.conversations
    }

    /// Returns the state of the conversation; `None` if nothing is stored.
    ///
    /// # Errors
    /// The store's error.
    pub async fn head(&self) -> Result<Option<Head>, BoxError> {
        self.store().head_dyn(&self.id).await
    }

    /// Returns the name of the agent that has the conversation.
    ///
    /// # Errors
    /// The store's error.
    pub async fn agent(&self) -> Result<Option<Arc<str>>, BoxError> {
        Ok(self.head().await?.and_then(|head| head.agent))
    }

    /// Gives the conversation to another agent; with `None`, the next message begins with the agent of
    /// the runner. What the model is shown stays as it is.
    ///
    /// The agent may be one of a team that has changed: afterwards, the conversation goes on with any team
    /// that has the agent and the same name, or no name.
    ///
    /// # Errors
    /// The store's error, or a conflict with another writer.
    pub async fn set_agent(&self, agent: Option<&str>) -> Result<(), BoxError> {
        let agent: Option<Arc<str>> = agent.map(Arc::from);
        let Some((head, mut state)) = self.current_state().await? else {
            let state = State {
                agent: agent.clone(),
                ..State::default()
            };
            let entry = Entry::new(state_content(&state)?);
            let mut commit = Commit::new(Expected::New, vec![entry]);
            commit.agent = Some(agent);
            return self.commit(commit).await;
        };
        state.agent = agent;
        state.way_back.clear();
        state.received = None;
        let mut commit = self.state_commit(&head, &state)?;
        if let Some(json) = &head.details {
            let mut details: Details = serde_json::from_str(json)
                .map_err(|error| ConversationError::damaged(&self.id, error))?;
            if details.forget_agents() {
                commit.details = Some(serde_json::to_string(&details)?.into());
            }
        }
        self.commit(commit).await
    }

    /// Returns what the model of the current agent is shown.
    ///
    /// # Errors
    /// The store's error.
    pub async fn view(&self) -> Result<Items, BoxError> {
        Ok(self.open(None).await?.view)
    }

    /// Returns the run that waits for a person's decision or answer, to be decided and resumed with
    /// [`Runner::resume`](crate::Runner::resume) and this conversation as its session; `None` if none
    /// waits. See [`approval`](crate::approval) and [`people`](crate::people).
    ///
    /// A run that is interrupted is stored with its turn. A message that is sent instead of a decision
    /// ends the wait: the model is told that the calls were not carried out. A message to a person that has
    /// not answered waits with those before it.
    ///
    /// # Errors
    /// The store's error, or an error if the stored run cannot be read.
    pub async fn waiting_run(&self) -> Result<Option<Run>, BoxError> {
        let Some(head) = self.head().await? else {
            return Ok(None);
        };
        let (state, at) = self.state_at(&head, head.revision.next).await?;
        let (Some(waiting), Some(at)) = (state.waiting, at) else {
            return Ok(None);
        };
        let entries = self.entries(waiting..waiting + 1).await?;
        let Some(EntryContent::Waiting(json)) = entries.first().map(|entry| &entry.content) else {
            let problem = "the run that waits is missing";
            return Err(ConversationError::damaged(&self.id, problem).into());
        };
        let read = serde_json::from_str::<Run>(json);
        let mut run = read.map_err(|error| ConversationError::damaged(&self.id, error))?;
        let seen = Revision::new(head.revision.epoch, at + 1);
        let is_last = self
            .has_only_refusals(seen.next..head.revision.next)
            .await?;
        let revision = if is_last { head.revision } else { seen };
        let waits_at = Revision::new(head.revision.epoch, waiting);
        let wait = format!("{}/{}.{waiting}", self.id, revision.epoch);
        run.waits_in_conversation(revision, waits_at, wait.into());
        Ok(Some(run))
    }

    /// Returns `true` if the entries at these positions are all marks of what was refused.
    async fn has_only_refusals(&self, positions: std::ops::Range<u64>) -> Result<bool, BoxError> {
        let is_refusal = |entry: &Entry| matches!(entry.content, EntryContent::Refused(_));
        let mut start = positions.start;
        while start < positions.end {
            // There may be a long conversation.
            let end = positions.end.min(start + REFUSALS);
            if !self.entries(start..end).await?.iter().all(is_refusal) {
                return Ok(false);
            }
            start = end;
        }
        Ok(start == positions.end)
    }

    /// Returns the latest entries of the record, oldest first: items, and marks of what was refused.
    /// Turns that were undone are not among them.
    ///
    /// # Errors
    /// The store's error.
    pub async fn record(&self, limit: impl Into<Option<usize>>) -> Result<Vec<Entry>, BoxError> {
        self.record_before(u64::MAX, limit).await
    }

    /// Returns the latest entries of the record before a position, as [`Conversation::record`] does: the page
    /// before one that begins there.
    ///
    /// # Errors
    /// The store's error.
    pub async fn record_before(
        &self,
        position: u64,
        limit: impl Into<Option<usize>>,
    ) -> Result<Vec<Entry>, BoxError> {
        let Some((_, current)) = self.current_state().await? else {
            return Ok(Vec::new());
        };
        let ranges = current.record.until(position);
        self.read_ranges(&ranges, limit.into(), EntryContent::is_recorded)
            .await
    }

    /// Returns the earliest entries of the record from a position on, oldest first, as [`Conversation::record`] does.
    ///
    /// # Errors
    /// The store's error.
    pub async fn record_from(&self, position: u64, limit: usize) -> Result<Vec<Entry>, BoxError> {
        let Some((_, current)) = self.current_state().await? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for range in current.record.since(position).iter() {
            let mut start = range.start;
            while start < range.end && found.len() < limit {
                let missing = u64::try_from(limit - found.len()).unwrap_or(u64::MAX);
                let end = range.end.min(start.saturating_add(missing.max(REFUSALS)));
                let entries = self.entries(start..end).await?.into_iter();
                found.extend(entries.filter(|entry| entry.content.is_recorded()));
                start = end;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the entries at these positions, of all branches and kinds.
    ///
    /// # Errors
    /// The store's error.
    pub async fn entries(&self, positions: std::ops::Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.store().read_dyn(&self.id, positions).await
    }

    /// Takes back the last message: the run that it began, with all turns and tool calls, and what the
    /// application has added to that. Returns `false` if there is nothing to take back.
    ///
    /// The record keeps what was taken back; [`Conversation::rewind`] leads there again.
    ///
    /// # Errors
    /// The store's error, or a conflict with another writer.
    pub async fn undo(&self) -> Result<bool, BoxError> {
        let mut limit = 64;
        loop {
            let mut entries = self.record(limit).await?;
            let is_whole = entries.len() < limit;
            // A refused message is no part of the conversation.
            entries.retain(|entry| matches!(entry.content, EntryContent::Item(_)));
            let first = last_message(&entries);
            // The run may have begun before the entries that were read.
            if first == 0 && !is_whole {
                limit *= 2;
                continue;
            }
            let Some(first) = entries.get(first) else {
                return Ok(false);
            };
            self.rewind(first.position).await?;
            return Ok(true);
        }
    }

    /// Goes back to what the conversation was before the entry at `position`: its items, its view and
    /// its agent. The next message then begins a new branch; the old one stays in the record.
    ///
    /// To edit a message and send it again, rewind to its position and run the new text.
    ///
    /// # Errors
    /// An error if `position` lies within a turn: only whole turns can be kept. The store's error, or a
    /// conflict with another writer.
    pub async fn rewind(&self, position: u64) -> Result<(), BoxError> {
        let Some(head) = self.head().await? else {
            return Err(ConversationError::not_found(&self.id).into());
        };
        let mut rewound = self.state_before(&head, position).await?;
        rewound.previous = head.state;
        self.commit_state(&head, rewound).await
    }

    /// Copies the conversation to a new one of the same store, which goes on by itself, also with another
    /// team. With a position, the copy has only the entries before it, those that were taken back among them.
    ///
    /// # Errors
    /// An error if there is a conversation of that name, or if `before` lies within a turn. The
    /// store's error.
    pub async fn fork(
        &self,
        id: impl Into<Arc<str>>,
        before: impl Into<Option<u64>>,
    ) -> Result<Self, BoxError> {
        let before = before.into();
        let Some(head) = self.head().await? else {
            return Err(ConversationError::not_found(&self.id).into());
        };
        let state = match before {
            Some(before) => Some((before, self.state_before(&head, before).await?)),
            None => None,
        };
        let mut exported = self.export().await?;
        if exported.is_encrypted() {
            return Err(ConversationError::encrypted(&self.id).into());
        }
        exported.details = Some(self.details_of_fork(exported.details.as_deref(), before)?);
        if let Some((before, state)) = state {
            exported.entries.retain(|entry| entry.position < before);
            exported
                .entries
                .push(Entry::new(state_content(&state)?).at(before));
            exported.agent = state.agent;
        }
        let fork = self.conversations.get(id);
        fork.import(&exported).await?;
        Ok(fork)
    }

    /// The state that the conversation had before `position`, as it is stored there.
    async fn state_before(&self, head: &Head, position: u64) -> Result<State, BoxError> {
        let known = head.first..head.revision.next;
        if position < known.start || position > known.end {
            return Err(ConversationError::no_such_position(&self.id, position, known).into());
        }
        let around = self
            .entries(position.saturating_sub(1)..position.saturating_add(1))
            .await?;
        // A mark of what was refused is committed by itself.
        let is_mark = |entry: &Entry| matches!(entry.content, EntryContent::Refused(_));
        if let [before, after] = &*around
            && !is_mark(before)
            && !is_mark(after)
            && before.run == after.run
            && !before.run.is_empty()
            && (before.turn == after.turn || after.turn <= 1)
        {
            return Err(ConversationError::within_turn(&self.id, position).into());
        }
        let (state, at) = self.state_at(head, position).await?;
        Ok(state.extended(at, head.first, position).listed())
    }

    /// The details of a copy: where it is from, and no team, so that any may go on with it.
    fn details_of_fork(
        &self,
        details: Option<&str>,
        before: Option<u64>,
    ) -> Result<Arc<str>, BoxError> {
        let mut details: Map<String, Value> = serde_json::from_str(details.unwrap_or("{}"))?;
        details.remove("team");
        let origin = json!({"conversation": &*self.id, "before": before});
        details.insert("forked_from".to_owned(), origin);
        Ok(serde_json::to_string(&details)?.into())
    }

    /// Sets the time after which [`Conversations::delete_expired`] deletes the conversation; `None` is
    /// never. Runs that are under way go on.
    ///
    /// # Errors
    /// The store's error, or a conflict with another writer.
    pub async fn expire_at(&self, time: impl Into<Option<SystemTime>>) -> Result<(), BoxError> {
        let time = time.into();
        for _ in 0..EXPIRY_ATTEMPTS {
            let Some(head) = self.head().await? else {
                return Err(ConversationError::not_found(&self.id).into());
            };
            // Without entries, so that a run that is under way can commit its turn.
            let mut commit = Commit::new(Expected::At(head.revision), Vec::new());
            commit.expires = Some(time);
            if let Committed::At(_) = self.store().commit_dyn(&self.id, commit).await? {
                return Ok(());
            }
        }
        Err(ConversationError::conflict(&self.id).into())
    }

    /// Takes or extends the lease of the conversation.
    pub(crate) async fn lease(&self, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.store().lease_dyn(&self.id, owner, time).await
    }

    /// Ends the lease of the conversation.
    pub(crate) async fn release(&self, owner: &str) -> Result<(), BoxError> {
        self.store().release_dyn(&self.id, owner).await
    }

    fn store(&self) -> &dyn DynStore {
        self.conversations.store()
    }

    /// The head, and the state with everything that follows it.
    async fn current_state(&self) -> Result<Option<(Head, State)>, BoxError> {
        let Some(head) = self.head().await? else {
            return Ok(None);
        };
        let (state, at) = self.state_at(&head, head.revision.next).await?;
        let current = state.extended(at, head.first, head.revision.next);
        Ok(Some((head, current)))
    }

    async fn commit_state(&self, head: &Head, state: State) -> Result<(), BoxError> {
        let commit = self.state_commit(head, &state)?;
        self.commit(commit).await
    }

    fn state_commit(&self, head: &Head, state: &State) -> Result<Commit, BoxError> {
        let entry = Entry::new(state_content(state)?);
        let mut commit = Commit::new(Expected::At(head.revision), vec![entry]);
        commit.agent = Some(state.agent.clone());
        Ok(commit)
    }

    async fn commit(&self, commit: Commit) -> Result<(), BoxError> {
        match self.store().commit_dyn(&self.id, commit).await? {
            Committed::At(_) => Ok(()),
            Committed::Conflict => Err(ConversationError::conflict(&self.id).into()),
        }
    }

    /// Returns `true` if the view has something in place of entries up to `position`.
    async fn is_replaced(&self, state: &State, position: u64) -> Result<bool, BoxError> {
        let later = state.view.since(position);
        let is_replacement =
            |content: &EntryContent| matches!(content, EntryContent::Replacement(_));
        let found = self.read_ranges(&later, Some(1), is_replacement).await?;
        Ok(!found.is_empty())
    }

    /// The items of a state's record with their positions.
    async fn items(
        &self,
        current: &State,
        limit: Option<usize>,
    ) -> Result<Vec<(u64, Item)>, BoxError> {
        let is_item = |content: &EntryContent| matches!(content, EntryContent::Item(_));
        let entries = self.read_ranges(&current.record, limit, is_item).await?;
        let items = entries.into_iter().filter_map(|entry| {
            let item = entry.content.item().cloned()?;
            Some((entry.position, item))
        });
        Ok(items.collect())
    }
}

/// The index of the first entry of the last message: of the run that it began, or of what the application
/// has added after the message. 0 if it begins before the entries.
fn last_message(entries: &[Entry]) -> usize {
    let is_message = |entry: &Entry| {
        let role = entry.content.item().and_then(Item::role);
        role.as_deref() == Some("user")
    };
    let mut end = entries.len();
    while let Some(last) = entries[..end].last() {
        let before = entries[..end]
            .iter()
            .rposition(|entry| entry.run != last.run);
        let first = before.map_or(0, |index| index + 1);
        if !last.run.is_empty() {
            return first;
        }
        if let Some(message) = entries[first..end].iter().rposition(is_message) {
            return first + message;
        }
        // It continues what was said before.
        end = first;
    }
    0
}

fn state_content(state: &State) -> Result<EntryContent, BoxError> {
    let json = serde_json::to_string(&state.shortened())?;
    Ok(EntryContent::State(json.into()))
}

/// The record as a plain list of items, as runs with
/// [`HistoryPolicy::Reference`](crate::run::HistoryPolicy::Reference) use it.
impl Session for Conversation {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        let Some((_, current)) = self.current_state().await? else {
            return Ok(Items::new());
        };
        let items = self.items(&current, limit).await?;
        Ok(items.into_iter().map(|(_, item)| item).collect())
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        if items.is_empty() {
            return Ok(());
        }
        let entry = |item: &Item| Entry::new(EntryContent::Item(item.clone()));
        let commit = Commit::new(Expected::Any, items.iter().map(entry).collect());
        self.commit(commit).await
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        let Some((head, state)) = self.current_state().await? else {
            return Ok(None);
        };
        let Some((position, item)) = self.items(&state, Some(1)).await?.pop() else {
            return Ok(None);
        };
        let mut state = state.listed();
        state.record.remove(position);
        state.view.remove(position);
        if self.is_replaced(&state, position).await? {
            // As it was before the handoff or the summary.
            let (before, at) = self.state_at(&head, position).await?;
            state = before.extended(at, head.first, position).listed();
            state.previous = head.state;
        }
        self.commit_state(&head, state).await?;
        Ok(Some(item))
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.store().clear_dyn(&self.id).await
    }

    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn conversation(&self) -> Option<Conversation> {
        Some(self.clone())
    }
}

impl_debug!(Conversation, |this| this.id);
