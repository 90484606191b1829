//! The storage of a conversation: in memory, or with `--session NAME` in a store.

use std::io;
use std::path::Path;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Conversation, ConversationError, ConversationErrorKind, Conversations, Entry,
};
use switchboard_core::items::Items;
use switchboard_core::{Run, Session as _};
use switchboard_sessions::{Access, EncryptedStore, Keys, StoreError};

use crate::data_folder;
use crate::failure::{Exit, Failure};
use crate::screen::wrap::one_line;
use crate::store_keys;

/// The database in the data folder.
const DATABASE: &str = "sessions.db";

/// Stores a conversation, and the agent that has it.
#[derive(Clone)]
pub(crate) struct ConversationStore {
    conversation: Conversation,
}

impl ConversationStore {
    /// Stores the conversation that is given.
    pub(crate) fn of(conversation: Conversation) -> Self {
        Self { conversation }
    }

    /// Creates a conversation in memory.
    pub(crate) fn in_memory() -> Self {
        Self::of(Conversations::in_memory().get("conversation"))
    }

    /// Opens the session of this name. The store is that of `address`, or else the database of the
    /// data folder. It is encrypted if the environment has a key.
    pub(crate) async fn open(
        name: &str,
        address: Option<&str>,
        access: Access,
    ) -> Result<Self, Failure> {
        if name.trim().is_empty() {
            return Err(Failure::usage(
                "the session's name is empty",
                "give it one, as in --session tuesday",
            ));
        }
        let conversations = match access {
            Access::Create => open_encrypted(address, access, failure).await?,
            access => open_existing(address, access).await?,
        };
        Ok(Self::of(conversations.get(name)))
    }

    /// Goes on with a copy of the conversation under another name.
    pub(crate) async fn fork(&mut self, name: &str) -> Result<(), Failure> {
        let forked = self.conversation.fork(name, None).await;
        self.conversation = forked.map_err(|error| creation_failure(error, name))?;
        Ok(())
    }

    /// Takes back what was stored at `position` and after it, where that is nothing but marks of what was refused.
    pub(crate) async fn take_back_marks(&self, position: u64) -> Result<(), Failure> {
        // Going back would end the wait.
        if self.end().await? <= position || self.waiting_run().await?.is_some() {
            return Ok(());
        }
        let record = self.record().await?;
        let mut later = record.iter().filter(|entry| entry.position >= position);
        if later.any(|entry| entry.content.item().is_some()) {
            return Ok(());
        }
        self.conversation.rewind(position).await.map_err(failure)
    }

    /// Takes back the last message. Returns `false` if there is none.
    pub(crate) async fn undo(&self) -> Result<bool, Failure> {
        self.conversation.undo().await.map_err(failure)
    }

    /// Loads the record: everything that was said, and marks of what was refused.
    pub(crate) async fn record(&self) -> Result<Vec<Entry>, Failure> {
        self.conversation.record(None).await.map_err(failure)
    }

    /// The conversation, for a run.
    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The name of the agent that has the conversation, if a run was stored.
    pub(crate) async fn agent(&self) -> Result<Option<String>, Failure> {
        let agent = self.conversation.agent().await.map_err(failure)?;
        Ok(agent.map(|agent| agent.to_string()))
    }

    /// Gives the conversation to an agent.
    pub(crate) async fn set_agent(&self, agent: &str) -> Result<(), Failure> {
        let set = self.conversation.set_agent(Some(agent)).await;
        set.map_err(failure)
    }

    /// Loads the items of the conversation.
    pub(crate) async fn items(&self) -> Result<Items, Failure> {
        self.conversation.load(None).await.map_err(failure)
    }

    /// The position after the last entry.
    pub(crate) async fn end(&self) -> Result<u64, Failure> {
        let head = self.conversation.head().await.map_err(failure)?;
        Ok(head.map_or(0, |head| head.revision.next))
    }

    /// Loads the run that waits for decisions, if one does.
    pub(crate) async fn waiting_run(&self) -> Result<Option<Run>, Failure> {
        self.conversation.waiting_run().await.map_err(failure)
    }

    /// Deletes the items of the conversation.
    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        self.conversation.clear().await.map_err(failure)
    }

    /// Closes the store.
    pub(crate) async fn close(&self) {
        self.conversation.conversations().close().await;
    }
}

/// Opens the store at `address`, or else the database of the data folder. It is encrypted if the
/// environment has a key.
pub(crate) async fn open_all(address: Option<&str>) -> Result<Conversations, Failure> {
    open_encrypted(address, Access::Create, unusable).await
}

/// Opens the store as [`open_all`] does, and creates none. Without an address, a database that does not exist has no
/// sessions.
pub(crate) async fn open_existing(
    address: Option<&str>,
    access: Access,
) -> Result<Conversations, Failure> {
    if address.is_none() && has_no_database(&data_folder::find()?) {
        let keys = store_keys::of_environment()?;
        return Ok(encrypted(Conversations::in_memory(), keys));
    }
    open_encrypted(address, access, unusable).await
}

/// Returns `true` if there is no database in the data folder, or an empty file, which the first session makes one. One that
/// may not be looked for may be there, and a link that leads nowhere is to lead to one.
fn has_no_database(folder: &Path) -> bool {
    let is_absent = |path: &Path| {
        let found = path.symlink_metadata();
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let is_empty = |path: &Path| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && found.len() == 0)
    };
    let database = folder.join(DATABASE);
    is_absent(folder) || folder.is_dir() && (is_absent(&database) || is_empty(&database))
}

/// Opens the store of a service as [`open_all`] does.
pub(crate) async fn open_for_service(address: Option<&str>) -> Result<Conversations, Failure> {
    let usage = |error: StoreError| {
        Failure::usage(format!("the store cannot be used: {error}"), STORE_HELP)
    };
    open_encrypted(address, Access::Create, usage).await
}

async fn open_encrypted(
    address: Option<&str>,
    access: Access,
    failure: impl FnOnce(StoreError) -> Failure,
) -> Result<Conversations, Failure> {
    // A key that is wrong is told before a store is created.
    let keys = store_keys::of_environment()?;
    let address = match (address, access) {
        (Some(address), _) => address.to_owned(),
        (None, access) => {
            let folder = match access {
                Access::Create => data_folder::open()?,
                _ => data_folder::find()?,
            };
            format!("sqlite:{}", folder.join(DATABASE).display())
        }
    };
    let conversations = switchboard_sessions::open_with(&address, access).await;
    Ok(encrypted(conversations.map_err(failure)?, keys))
}

/// Encrypts conversations if there are keys.
fn encrypted(conversations: Conversations, keys: Option<Keys>) -> Conversations {
    match keys {
        Some(keys) => Conversations::new(EncryptedStore::new(conversations, keys)),
        None => conversations,
    }
}

/// Advice on a store that cannot be used.
const STORE_HELP: &str =
    "mend what the message says; --store names another store, SWITCHBOARD_DATA another folder";

/// The failure of opening a store.
fn unusable(error: StoreError) -> Failure {
    Failure::Message {
        exit: Exit::Failed,
        message: format!("the store cannot be used: {error}"),
        help: Some(STORE_HELP.to_owned()),
    }
}

/// The failure of a command on stored sessions, which cannot do without them.
pub(crate) fn stored_failure(error: impl Into<BoxError>) -> Failure {
    failure_with_help(error.into(), STORE_HELP)
}

/// The failure of storing a session under a new name.
pub(crate) fn creation_failure(error: BoxError, name: &str) -> Failure {
    let kind = error
        .downcast_ref::<ConversationError>()
        .map(ConversationError::kind);
    let name = one_line(name);
    match kind {
        Some(ConversationErrorKind::Exists) => Failure::usage(
            format!("there is a session \"{name}\" already"),
            "choose another name, or delete that one first",
        ),
        Some(ConversationErrorKind::WithinTurn | ConversationErrorKind::NoSuchPosition) => {
            Failure::usage(
                error.to_string(),
                "`switchboard sessions show NAME --json` shows the positions; take that of a message of \
             the user",
            )
        }
        Some(ConversationErrorKind::Damaged) => {
            Failure::usage(error.to_string(), "export the session again")
        }
        _ => stored_failure(error),
    }
}

/// The failure of a run for an error of its session's store.
pub(crate) fn failure(error: impl Into<BoxError>) -> Failure {
    failure_with_help(
        error.into(),
        "mend what the message says, or go on without --session; --store names another store, \
         SWITCHBOARD_DATA another folder",
    )
}

fn failure_with_help(error: BoxError, help: &str) -> Failure {
    let help = store_keys::help(&*error).unwrap_or(help);
    Failure::Message {
        exit: Exit::Failed,
        message: format!("the session cannot be used: {error}"),
        help: Some(help.to_owned()),
    }
}
