//! Conversations as files: everything that is stored of one, as JSON.

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entry::{
    Commit, Committed, Entry, EntryContent, Expected, from_millis, is_encrypted, to_millis,
};
use super::view::State;
use super::{Conversation, ConversationError, state_content};
use crate::callback::BoxError;
use crate::run::conversation::Details;

/// The version of the exported form.
const VERSION: u32 = 1;

/// The number of entries that are imported at once.
const BATCH: usize = 1_000;

/// A conversation as [`Conversation::export`] returns it. It serialises as one JSON object.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "ExportedFile", into = "ExportedFile")]
#[non_exhaustive]
pub struct Exported {
    /// The name that it had.
    pub id: Arc<str>,
    /// The agent that has it.
    pub agent: Option<Arc<str>>,
    /// Further data as a JSON object.
    pub details: Option<Arc<str>>,
    /// The time after which it may be removed.
    pub expires: Option<SystemTime>,
    /// All entries, of all branches.
    pub entries: Vec<Entry>,
}

impl Exported {
    /// Returns `true` if it was exported without the key of its store: what was said is encrypted, for the name
    /// that it had.
    pub fn is_encrypted(&self) -> bool {
        is_encrypted(self.details.as_deref())
    }
}

#[derive(Serialize, Deserialize)]
struct ExportedFile {
    switchboard_conversation: u32,
    id: Arc<str>,
    agent: Option<Arc<str>>,
    details: Option<Arc<str>>,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    entries: Vec<ExportedEntry>,
}

#[derive(Serialize, Deserialize)]
struct ExportedEntry {
    position: u64,
    kind: String,
    run: Arc<str>,
    turn: u32,
    commit: u32,
    agent: Option<Arc<str>>,
    /// Milliseconds since 1970.
    time: i64,
    content: Box<RawValue>,
}

impl From<Exported> for ExportedFile {
    fn from(exported: Exported) -> Self {
        let entry = |entry: Entry| ExportedEntry {
            position: entry.position,
            kind: entry.content.kind().to_owned(),
            // Items are JSON objects, and so is all other content.
            content: RawValue::from_string(entry.content.as_json().to_owned()).unwrap_or_default(),
            run: entry.run,
            turn: entry.turn,
            commit: entry.commit,
            agent: entry.agent,
            time: to_millis(entry.time),
        };
        Self {
            switchboard_conversation: VERSION,
            id: exported.id,
            agent: exported.agent,
            details: exported.details,
            expires: exported.expires.map(to_millis),
            entries: exported.entries.into_iter().map(entry).collect(),
        }
    }
}

impl TryFrom<ExportedFile> for Exported {
    type Error = String;

    fn try_from(file: ExportedFile) -> Result<Self, Self::Error> {
        if file.switchboard_conversation != VERSION {
            return Err(format!(
                "the conversation was exported in version {}, and this program reads version {VERSION}",
                file.switchboard_conversation
            ));
        }
        let mut next = None;
        let mut entries = Vec::with_capacity(file.entries.len());
        for stored in file.entries {
            if next.is_some_and(|next| next != stored.position) {
                return Err(format!(
                    "the entry before position {} is missing",
                    stored.position
                ));
            }
            let Some(after) = stored.position.checked_add(1) else {
                return Err(format!("there is no position {}", stored.position));
            };
            next = Some(after);
            let content = EntryContent::from_stored(&stored.kind, stored.content.get());
            let content = content.map_err(|error| {
                format!(
                    "the entry at position {} is invalid: {error}",
                    stored.position
                )
            })?;
            let entry = Entry::new(content)
                .at(stored.position)
                .made_in(stored.run, stored.turn, stored.commit)
                .made_by(stored.agent)
                .committed_at(from_millis(stored.time));
            entries.push(entry);
        }
        Ok(Self {
            id: file.id,
            agent: file.agent,
            details: file.details,
            expires: file.expires.map(from_millis),
            entries,
        })
    }
}

impl Exported {
    /// Checks that states refer to entries before them, and that the details are an object.
    fn check(&self, first: u64) -> Result<(), String> {
        for entry in &self.entries {
            let EntryContent::State(json) = &entry.content else {
                continue;
            };
            let at = entry.position;
            let problem = match serde_json::from_str::<State>(json) {
                Ok(state) if state.is_valid(first, at) => continue,
                Ok(_) => "it refers to entries that are not before it".to_owned(),
                Err(error) => error.to_string(),
            };
            return Err(format!("the state at position {at} is invalid ({problem})"));
        }
        let details = self.details.as_deref().unwrap_or("{}");
        serde_json::from_str::<Details>(details)
            .map(drop)
            .map_err(|error| format!("its details are invalid ({error})"))
    }
}

impl Conversation {
    /// Exports everything that is stored of the conversation: all branches, views and times, also the
    /// one of its expiry.
    ///
    /// # Errors
    /// An error if it does not exist, or the store's error.
    pub async fn export(&self) -> Result<Exported, BoxError> {
        let Some(head) = self.head().await? else {
            return Err(ConversationError::not_found(self.name()).into());
        };
        let entries = self.entries(head.first..head.revision.next).await?;
        Ok(Exported {
            id: head.id,
            agent: head.agent,
            details: head.details,
            expires: head.expires,
            entries,
        })
    }

    /// Imports an exported conversation under the name of this one. Positions begin at 0.
    ///
    /// # Errors
    /// An error if a conversation of this name exists, if the exported one is damaged, or the store's error;
    /// then nothing is left of what was imported. An import of more than 1,000 entries that is cancelled leaves a part: delete it.
    pub async fn import(&self, exported: &Exported) -> Result<(), BoxError> {
        if self.head().await?.is_some() {
            return Err(ConversationError::exists(self.name()).into());
        }
        let first = exported.entries.first().map_or(0, |entry| entry.position);
        exported
            .check(first)
            .map_err(|problem| ConversationError::damaged(&exported.id, problem))?;
        let mut expected = Expected::New;
        // A conversation that was cleared has no entries.
        let batches = exported.entries.len().div_ceil(BATCH).max(1);
        for index in 0..batches {
            let batch = exported.entries.iter().skip(index * BATCH).take(BATCH);
            let entries = batch.map(|entry| shifted(entry, first));
            let mut commit = Commit::new(expected, entries.collect::<Result<_, _>>()?);
            if index == 0 {
                commit.agent = Some(exported.agent.clone());
                commit.details = exported.details.clone();
                commit.expires = Some(exported.expires);
            }
            match self.store().commit_dyn(self.name(), commit).await {
                Ok(Committed::At(revision)) => expected = Expected::At(revision),
                Ok(Committed::Conflict) => {
                    if index > 0 {
                        let _ = self.store().delete_dyn(self.name()).await;
                    }
                    return Err(ConversationError::exists(self.name()).into());
                }
                Err(error) => {
                    if index > 0 {
                        // The import's error is the one to tell.
                        let _ = self.store().delete_dyn(self.name()).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// The entry with positions that count from `first`.
fn shifted(entry: &Entry, first: u64) -> Result<Entry, BoxError> {
    let mut shifted = entry.clone().at(entry.position.saturating_sub(first));
    if let EntryContent::State(json) = &entry.content
        && first > 0
    {
        let state: State = serde_json::from_str(json)?;
        shifted.content = state_content(&state.shifted(first))?;
    }
    Ok(shifted)
}
