//! Conversations that are encrypted before a store gets them.

mod error;
pub(crate) mod keys;
mod stored;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Expected, Found, Head, ListQuery, SearchQuery,
};

use self::stored::{OpenedHead, StoredHead};

pub use self::error::{EncryptionError, EncryptionErrorKind};
pub use self::keys::{Key, Keys};

/// The number of times that a commit, a read or a rotation is tried while others change the conversation.
const ATTEMPTS: usize = 64;

/// A store that encrypts what another store gets. Clones share it.
///
/// Each conversation has a random key of its own, which is stored with it, encrypted with the current
/// key of [`Keys`]. The cipher is XChaCha20-Poly1305.
///
/// ```
/// use switchboard_core::conversation::{Conversations, MemoryStore};
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Runner};
/// use switchboard_sessions::{EncryptedStore, Key, Keys};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// // From where secrets are kept; never from the place where the store is.
/// let key: Key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=".parse()?;
/// let store = MemoryStore::default();
/// let encrypted = EncryptedStore::new(store.clone(), Keys::new("2026-05", key));
/// let session = Conversations::new(encrypted).get("customer-42");
///
/// let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello Ann!"));
/// Runner::new(&agent).session(&session).run("I am Ann").await?;
/// assert_eq!(session.view().await?.len(), 2);
///
/// let stored = Conversations::new(store).get("customer-42").entries(0..100).await?;
/// assert!(!stored.iter().any(|entry| entry.content.as_json().contains("Ann")));
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// ```
///
/// Any store can be within it, also the [`Conversations`] that are open already.
///
/// [`Conversations`]: switchboard_core::conversation::Conversations
///
/// # What the store can read
///
/// | readable | encrypted |
/// | --- | --- |
/// | names of conversations, of agents and of keys | items: messages, tool calls, outputs, reasoning |
/// | the kind, run, turn, commit, time and length of each entry | what filters, notes and summaries put in place of others |
/// | how many entries there are, and which is the latest state | views, and what guardrails refused |
/// | when a conversation was created, changed and expires; leases | details: the team, and what the application stores there |
///
/// Do not put secrets into the names of conversations.
///
/// # What is detected
///
/// Without the key nobody can change a conversation unnoticed: entries that were changed, exchanged,
/// moved, removed or copied from another conversation, another kind, run, turn, agent or time of an
/// entry, and another agent, state or length of the conversation are
/// [`EncryptionErrorKind::Tampered`] when they are read. Not detected are a conversation that was deleted,
/// cleared (also up to its last commit) or put back as a whole to what it was earlier, and another time of
/// creation, change or expiry.
///
/// # Changing keys
///
/// 1. Give the new key to all programs that use the store, as [`Keys::and_older`].
/// 2. Make it the current one, with the key of before as [`Keys::and_older`]. From then on each commit
///    encrypts the conversation's key with it.
/// 3. Call [`EncryptedStore::rotate_all`], which does so for all other conversations. No entry is written
///    again.
/// 4. Remove the old key.
///
/// A key that somebody else has learned may have opened the keys of conversations. To encrypt their
/// entries with new ones, [export](switchboard_core::conversation::Conversation::export) each, delete it
/// and import it.
///
/// # Differences from the store within
///
/// - It cannot be searched.
/// - Each read and each commit reads the head first.
/// - [Exported](switchboard_core::conversation::Conversation::export) conversations are not encrypted.
/// - Lists have no details for conversations that cannot be decrypted; these can still be deleted, also
///   when they have expired.
pub struct EncryptedStore<S> {
    inner: Arc<Inner<S>>,
    allow_plain: bool,
}

struct Inner<S> {
    store: S,
    keys: Keys,
}

/// The result of [`EncryptedStore::rotate_all`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Rotation {
    /// The number of conversations whose key was encrypted anew; the others were current already.
    pub rotated: usize,
    /// The conversations that still need an older key, or cannot be read, and why.
    pub failed: Vec<(Arc<str>, BoxError)>,
}

impl<S: ConversationStore> EncryptedStore<S> {
    /// Creates a store that encrypts what `store` gets.
    pub fn new(store: S, keys: Keys) -> Self {
        Self {
            inner: Arc::new(Inner { store, keys }),
            allow_plain: false,
        }
    }

    /// Allows conversations that were stored without encryption. What is added to them is encrypted;
    /// what they have stays readable in the store.
    ///
    /// Use it only until all of them are encrypted: somebody who can write to the store can put a
    /// conversation of their own in the place of an encrypted one. To encrypt one as a whole,
    /// [export](switchboard_core::conversation::Conversation::export) it, delete it and import it.
    #[must_use]
    pub fn allow_plain(mut self) -> Self {
        self.allow_plain = true;
        self
    }

    /// Encrypts the key of a conversation with the current key, if it is encrypted with an older one.
    /// Returns `true` if it was.
    ///
    /// # Errors
    /// An error if the older key is missing, or the store's error. The conversation stays as it is.
    pub async fn rotate(&self, id: &str) -> Result<bool, BoxError> {
        let Inner { store, keys } = &*self.inner;
        for _ in 0..ATTEMPTS {
            let Some(head) = store.head(id).await? else {
                return Ok(false);
            };
            let Some(stored) = StoredHead::read(&head).filter(|stored| !stored.is_current(keys))
            else {
                return Ok(false);
            };
            let mut commit = Commit::new(Expected::At(head.revision), Vec::new());
            commit.details = Some(stored.rewrapped(id, keys)?);
            commit.time = head.changed;
            if let Committed::At(_) = store.commit(id, commit).await? {
                return Ok(true);
            }
        }
        Err(EncryptionError::busy(id).into())
    }

    /// Encrypts the keys of all conversations with the current key. It can be stopped at any time and
    /// called again: conversations that are done are skipped.
    ///
    /// # Errors
    /// The store's error, if it cannot list its conversations. Those of single conversations are in
    /// [`Rotation::failed`]; as long as there is one, keep the older keys.
    pub async fn rotate_all(&self) -> Result<Rotation, BoxError> {
        let mut rotation = Rotation {
            rotated: 0,
            failed: Vec::new(),
        };
        for head in self.inner.store.list(&ListQuery::default()).await? {
            match self.rotate(&head.id).await {
                Ok(is_rotated) => rotation.rotated += usize::from(is_rotated),
                Err(error) => rotation.failed.push((head.id, error)),
            }
        }
        Ok(rotation)
    }
}

impl<S> EncryptedStore<S> {
    fn open(&self, head: &Head) -> Result<OpenedHead, EncryptionError> {
        OpenedHead::open(head, &self.inner.keys, self.allow_plain)
    }
}

impl<S: ConversationStore> ConversationStore for EncryptedStore<S> {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        let Some(mut head) = self.inner.store.head(id).await? else {
            return Ok(None);
        };
        head.details = self.open(&head)?.details;
        Ok(Some(head))
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        let store = &self.inner.store;
        let mut attempts = 0;
        let mut head = store.head(id).await?;
        while let Some(current) = &head {
            let entries = store.read(id, positions.clone()).await?;
            let decrypted = self
                .open(current)
                .and_then(|opened| opened.decrypt(current, &positions, entries, self.allow_plain));
            let error = match decrypted {
                Ok(entries) => return Ok(entries),
                Err(error) => error,
            };
            // The conversation may have been cleared or deleted between the two calls.
            let later = store.head(id).await?;
            attempts += 1;
            if later == head || attempts == ATTEMPTS {
                return Err(error.into());
            }
            head = later;
        }
        Ok(Vec::new())
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        let Inner { store, keys } = &*self.inner;
        for _ in 0..ATTEMPTS {
            let head = match commit.expected {
                Expected::New => None,
                _ => store.head(id).await?,
            };
            let opened = match &head {
                Some(head) => self.open(head)?,
                None => OpenedHead::default(),
            };
            let encrypted = opened.encrypt(id, head, commit.clone(), keys)?;
            let committed = store.commit(id, encrypted).await?;
            if committed != Committed::Conflict || commit.expected != Expected::Any {
                return Ok(committed);
            }
        }
        Ok(Committed::Conflict)
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        self.inner.store.clear(id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.inner.store.delete(id).await
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        self.inner.store.delete_expired(id, time).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let mut heads = self.inner.store.list(query).await?;
        for head in &mut heads {
            // A conversation that cannot be decrypted must not hide the others.
            head.details = self.open(head).ok().and_then(|opened| opened.details);
        }
        Ok(heads)
    }

    async fn search(&self, _query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        Err(EncryptionError::no_search().into())
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.inner.store.lease(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.inner.store.release(id, owner).await
    }

    async fn close(&self) {
        self.inner.store.close().await;
    }
}

impl<S> Clone for EncryptedStore<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            allow_plain: self.allow_plain,
        }
    }
}

impl<S> fmt::Debug for EncryptedStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedStore")
            .field("keys", &self.inner.keys)
            .finish_non_exhaustive()
    }
}
