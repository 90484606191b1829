//! Where a conversation is kept: in memory, or with `--session NAME` in the user's data folder.

use switchboard_core::{BoxError, Item, Items, MemorySession, SessionHandle};
use switchboard_sessions::{SqliteSession, SqliteSessions};

use crate::data_folder;
use crate::failure::{Exit, Failure};

/// Where a conversation is kept, with the agent that has it.
pub(crate) enum Kept {
    /// In memory, as long as the program runs; the conversation itself knows its agent.
    InMemory(MemorySession),
    /// Under a name in a file of the user's.
    InFile {
        /// The file.
        file: SqliteSessions,
        /// The conversation.
        session: SqliteSession,
    },
}

impl Kept {
    /// In memory.
    pub(crate) fn in_memory() -> Self {
        Self::InMemory(MemorySession::new())
    }

    /// Under this name in the user's data folder; in memory where there is no name.
    pub(crate) async fn named(name: Option<&str>) -> Result<Self, Failure> {
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
        let file = SqliteSessions::open(path).await.map_err(failure)?;
        let session = file.session(name);
        Ok(Self::InFile { file, session })
    }

    /// The session, for a run.
    pub(crate) fn handle(&self) -> SessionHandle {
        match self {
            Self::InMemory(session) => session.into(),
            Self::InFile { session, .. } => session.into(),
        }
    }

    /// Who had the conversation when it was last kept.
    pub(crate) async fn agent(&self) -> Result<Option<String>, Failure> {
        match self {
            Self::InMemory(_) => Ok(None),
            Self::InFile { session, .. } => session.agent().await.map_err(failure),
        }
    }

    /// Notes who has the conversation.
    pub(crate) async fn set_agent(&self, agent: &str) -> Result<(), Failure> {
        match self {
            Self::InMemory(_) => Ok(()),
            Self::InFile { session, .. } => session.set_agent(agent).await.map_err(failure),
        }
    }

    /// What was said.
    pub(crate) async fn items(&self) -> Result<Items, Failure> {
        self.handle().load(None).await.map_err(failure)
    }

    /// Adds to what was said.
    pub(crate) async fn append(&self, items: &[Item]) -> Result<(), Failure> {
        self.handle().append(items).await.map_err(failure)
    }

    /// Forgets all of it.
    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        self.handle().clear().await.map_err(failure)
    }

    /// Closes the file.
    pub(crate) async fn close(&self) {
        if let Self::InFile { file, .. } = self {
            file.close().await;
        }
    }
}

fn failure(error: impl Into<BoxError>) -> Failure {
    let error = error.into();
    Failure::Said {
        exit: Exit::Failed,
        message: format!("the session cannot be used: {error}"),
        help: Some(
            "mend what the message says, or go on without --session; SWITCHBOARD_DATA names \
                    another folder"
                .to_owned(),
        ),
    }
}
