//! The stored form of encrypted conversations.
//!
//! The details of a head are `{"switchboard_encrypted":{"version":1,"key":..,"data_key":..,"head":..}}`: the
//! name of a master key, the conversation's data key encrypted with it, and a [`HeadSeal`] encrypted with
//! the data key. The content of an entry is `{"switchboard_encrypted":{"version":1,"content":..}}`,
//! encrypted with the data key. Each is bound to its place by a [`Context`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Entry, EntryContent, Expected, Head, Revision, to_millis,
};

use super::error::EncryptionError;
use super::keys::{Context, Key, Keys};

/// The version of the stored form. The contexts contain it too.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    switchboard_encrypted: T,
}

// A later version may lack a field; then its number is what to report.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredEntry {
    version: u32,
    content: String,
}

/// The stored details of an encrypted conversation.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredHead {
    version: u32,
    /// The name of the master key.
    key: String,
    /// The data key, encrypted with the master key.
    data_key: String,
    /// A [`HeadSeal`], encrypted with the data key.
    head: String,
}

/// The head as the last commit left it, by which a head that was changed otherwise is detected.
#[derive(Serialize, Deserialize)]
struct HeadSeal {
    first: u64,
    /// The position of the first entry of the commit.
    start: u64,
    next: u64,
    state: Option<u64>,
    agent: Option<Arc<str>>,
    /// The entries before this position were stored without encryption.
    plain_before: u64,
    /// The details that the application and the runs see.
    details: Option<Arc<str>>,
}

/// The facts about a conversation that its head gives.
#[derive(Default)]
pub(super) struct OpenedHead {
    /// `None` before the first entry is encrypted.
    data_key: Option<Key>,
    /// The entries before this position were stored without encryption.
    plain_before: u64,
    /// The details that the application and the runs see.
    pub(super) details: Option<Arc<str>>,
}

impl StoredHead {
    /// Reads the details of a head; `None` if they are not those of an encrypted conversation.
    pub(super) fn read(head: &Head) -> Option<Self> {
        let envelope: Envelope<Self> = serde_json::from_str(head.details.as_deref()?).ok()?;
        Some(envelope.switchboard_encrypted)
    }

    /// Returns `true` if the data key is encrypted with the current key.
    pub(super) fn is_current(&self, keys: &Keys) -> bool {
        self.key == keys.current_id()
    }

    /// Encrypts the data key with the current key. All else stays as it is.
    pub(super) fn rewrapped(mut self, id: &str, keys: &Keys) -> Result<Arc<str>, BoxError> {
        let data_key = self.data_key(id, keys)?;
        keys.current_id().clone_into(&mut self.key);
        self.data_key = data_key.wrap(keys.current(), &data_key_context(id, &self.key))?;
        self.write()
    }

    fn data_key(&self, id: &str, keys: &Keys) -> Result<Key, EncryptionError> {
        check_version(id, self.version, || {
            EncryptionError::tampered_head(id, "has no version")
        })?;
        let Some(key) = keys.get(&self.key) else {
            return Err(EncryptionError::missing_key(id, &self.key));
        };
        key.unwrap_key(&data_key_context(id, &self.key), &self.data_key)
            .ok_or_else(|| EncryptionError::wrong_key(id, &self.key))
    }

    fn write(self) -> Result<Arc<str>, BoxError> {
        let envelope = Envelope {
            switchboard_encrypted: self,
        };
        Ok(serde_json::to_string(&envelope)?.into())
    }
}

impl OpenedHead {
    /// Decrypts and checks a head.
    pub(super) fn open(
        head: &Head,
        keys: &Keys,
        allow_plain: bool,
    ) -> Result<Self, EncryptionError> {
        let id = &head.id;
        let stored = StoredHead::read(head);
        let is_plain = stored.is_none() && head.details.is_some();
        if head.entries() == 0 && !is_plain {
            // Cleared: there is nothing to decrypt, and the next commit has a new data key.
            return Ok(Self::default());
        }
        let Some(stored) = stored else {
            if !allow_plain {
                return Err(EncryptionError::not_encrypted(id));
            }
            return Ok(Self {
                data_key: None,
                plain_before: head.revision.next,
                details: head.details.clone(),
            });
        };
        let data_key = stored.data_key(id, keys)?;
        let seal = data_key.decrypt(&head_context(id), &stored.head);
        let seal = seal.and_then(|json| serde_json::from_slice::<HeadSeal>(&json).ok());
        let Some(seal) = seal.filter(|seal| seal.fits(head)) else {
            return Err(EncryptionError::tampered_head(
                id,
                "is not as it was stored",
            ));
        };
        Ok(Self {
            data_key: Some(data_key),
            plain_before: seal.plain_before,
            details: seal.details,
        })
    }

    /// Encrypts a commit to the conversation, whose head is this one; `None` if it does not exist.
    pub(super) fn encrypt(
        self,
        id: &str,
        head: Option<Head>,
        mut commit: Commit,
        keys: &Keys,
    ) -> Result<Commit, BoxError> {
        if commit.expected == Expected::Any {
            // The entries are bound to their positions.
            let at = |head: &Head| Expected::At(head.revision);
            commit.expected = head.as_ref().map_or(Expected::New, at);
        }
        let data_key = self.data_key.map_or_else(Key::random, Ok)?;
        let mut head = head.unwrap_or_else(|| Head::new(id, Revision::new(0, 0), commit.time));
        let start = head.revision.next;
        head.apply(&commit);

        for (position, entry) in (start..).zip(&mut commit.entries) {
            entry.content = encrypted_content(id, position, entry, &data_key)?;
        }
        let seal = HeadSeal {
            first: head.first,
            start,
            next: head.revision.next,
            state: head.state,
            agent: head.agent,
            plain_before: self.plain_before,
            details: commit.details.or(self.details),
        };
        let key = keys.current_id();
        // Stored by each commit, also if the details do not change: another writer may clear the
        // conversation at this moment, and the entries would be left without their data key.
        let stored = StoredHead {
            version: VERSION,
            key: key.to_owned(),
            data_key: data_key.wrap(keys.current(), &data_key_context(id, key))?,
            head: data_key.encrypt(&head_context(id), &serde_json::to_vec(&seal)?)?,
        };
        commit.details = Some(stored.write()?);
        Ok(commit)
    }

    /// Decrypts entries that were read from these positions, and checks that none is missing.
    pub(super) fn decrypt(
        &self,
        head: &Head,
        positions: &std::ops::Range<u64>,
        mut entries: Vec<Entry>,
        allow_plain: bool,
    ) -> Result<Vec<Entry>, EncryptionError> {
        let id = &head.id;
        let missing = |position| EncryptionError::tampered_entry(id, position, "is missing");
        let mut next = positions.start.max(head.first);
        for entry in &mut entries {
            if entry.position != next {
                return Err(missing(next));
            }
            entry.content = self.decrypted_content(id, entry, allow_plain)?;
            next += 1;
        }
        if next < positions.end.min(head.revision.next) {
            return Err(missing(next));
        }
        Ok(entries)
    }

    fn decrypted_content(
        &self,
        id: &str,
        entry: &Entry,
        allow_plain: bool,
    ) -> Result<EntryContent, EncryptionError> {
        let tampered = |problem| EncryptionError::tampered_entry(id, entry.position, problem);
        let envelope: Option<Envelope<StoredEntry>> =
            serde_json::from_str(entry.content.as_json()).ok();
        if entry.position < self.plain_before {
            return match envelope {
                Some(_) => Err(tampered(
                    "is encrypted, and the key of the conversation is gone",
                )),
                None if allow_plain => Ok(entry.content.clone()),
                None => Err(EncryptionError::not_encrypted(id)),
            };
        }
        let Some(Envelope {
            switchboard_encrypted: stored,
        }) = envelope
        else {
            return Err(tampered("is not encrypted, and those around it are"));
        };
        check_version(id, stored.version, || tampered("has no version"))?;
        let data_key = self.data_key.as_ref();
        let data_key = data_key.ok_or_else(|| tampered("is encrypted without a key"))?;
        let mut json = data_key
            .decrypt(&entry_context(id, entry.position, entry), &stored.content)
            .ok_or_else(|| tampered("was changed, moved, or copied from another conversation"))?;
        String::from_utf8(std::mem::take(&mut *json))
            .ok()
            .and_then(|json| EntryContent::from_stored(entry.content.kind(), json).ok())
            .ok_or_else(|| tampered("holds something that is no entry"))
    }
}

impl HeadSeal {
    fn fits(&self, head: &Head) -> bool {
        // A conversation that is cleared while a commit is under way begins with that commit.
        let is_cleared = self.first != head.first && self.start == head.first;
        let state = self.state.filter(|state| *state >= head.first);
        self.next == head.revision.next
            && (self.first == head.first || is_cleared)
            && state == head.state
            && (self.agent == head.agent || is_cleared && head.agent.is_none())
    }
}

fn encrypted_content(
    id: &str,
    position: u64,
    entry: &Entry,
    data_key: &Key,
) -> Result<EntryContent, BoxError> {
    let json = entry.content.as_json().as_bytes();
    let stored = Envelope {
        switchboard_encrypted: StoredEntry {
            version: VERSION,
            content: data_key.encrypt(&entry_context(id, position, entry), json)?,
        },
    };
    let kind = entry.content.kind();
    Ok(EntryContent::from_stored(
        kind,
        serde_json::to_string(&stored)?,
    )?)
}

fn check_version(
    id: &str,
    version: u32,
    missing: impl Fn() -> EncryptionError,
) -> Result<(), EncryptionError> {
    match version {
        VERSION => Ok(()),
        0 => Err(missing()),
        _ => Err(EncryptionError::newer_version(id, version, VERSION)),
    }
}

fn data_key_context(id: &str, key: &str) -> Context {
    Context::new("switchboard data key 1").text(id).text(key)
}

fn head_context(id: &str) -> Context {
    Context::new("switchboard head 1").text(id)
}

fn entry_context(id: &str, position: u64, entry: &Entry) -> Context {
    Context::new("switchboard entry 1")
        .text(id)
        .number(position)
        .text(entry.content.kind())
        .text(&entry.run)
        .number(u64::from(entry.turn))
        .number(u64::from(entry.commit))
        .optional_text(entry.agent.as_deref())
        .number(to_millis(entry.time).unsigned_abs())
}
