//! The storage of a conversation: in memory, or with `--session NAME` in the user's data folder.

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::items::Items;
use switchboard_core::session::SessionHandle;
use switchboard_core::{Item, MemorySession};
use switchboard_sessions::SqliteStore;

use crate::data_folder;
use crate::failure::{Exit, Failure};

/// Stores a conversation, and the agent that has it.
pub(crate) enum ConversationStore {
    /// As long as the program runs. The agent is not stored.
    Memory(MemorySession),
    /// In the database of the data folder.
    Database(Conversation),
}

impl ConversationStore {
    /// Creates a conversation store in memory.
    pub(crate) fn in_memory() -> Self {
        Self::Memory(MemorySession::new())
    }

    /// Opens the session of this name; without a name, the store is in memory.
    pub(crate) async fn open(name: Option<&str>) -> Result<Self, Failure> {
        let Some(name) = name else {
            return Ok(Self::in_memory());
        };
        if name.trim().is_empty() {
            return Err(Failure::usage(
                "the session's name is empty",
                "give it one, as in --session tuesday",
            ));
        }
        let path = data_folder::open()?.join("sessions.db");
        let store = SqliteStore::open(path).await.map_err(failure)?;
        Ok(Self::Database(Conversations::new(store).get(name)))
    }

    /// The session for a run.
    pub(crate) fn handle(&self) -> SessionHandle {
        match self {
            Self::Memory(session) => session.clone().into(),
            Self::Database(conversation) => conversation.clone().into(),
        }
    }

    /// The name of the agent that was stored last.
    pub(crate) async fn agent(&self) -> Result<Option<String>, Failure> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Database(conversation) => {
                let agent = conversation.agent().await.map_err(failure)?;
                Ok(agent.map(|agent| agent.to_string()))
            }
        }
    }

    /// Stores the name of the agent that has the conversation.
    pub(crate) async fn set_agent(&self, agent: &str) -> Result<(), Failure> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Database(conversation) => {
                let set = conversation.set_agent(Some(agent)).await;
                set.map_err(failure)
            }
        }
    }

    /// Loads the items of the conversation.
    pub(crate) async fn items(&self) -> Result<Items, Failure> {
        self.handle().load(None).await.map_err(failure)
    }

    /// Adds an item to the conversation.
    pub(crate) async fn append(&self, item: Item) -> Result<(), Failure> {
        self.handle().append(&[item]).await.map_err(failure)
    }

    /// Deletes the items of the conversation.
    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        self.handle().clear().await.map_err(failure)
    }

    /// Closes the database, if the conversation is in one.
    pub(crate) async fn close(&self) {
        if let Self::Database(conversation) = self {
            conversation.conversations().close().await;
        }
    }
}

fn failure(error: impl Into<BoxError>) -> Failure {
    let error = error.into();
    Failure::Message {
        exit: Exit::Failed,
        message: format!("the session cannot be used: {error}"),
        help: Some(
            "mend what the message says, or go on without --session; SWITCHBOARD_DATA names \
             another folder"
                .to_owned(),
        ),
    }
}
