//! Where a conversation is kept: in memory, or with `--session NAME` in the user's data folder.

use switchboard_core::{Item, Items, MemorySession, SessionHandle};

use crate::data_folder;
use crate::failure::{Exit, Failure};

/// Where a conversation is kept, with the agent that has it.
pub(crate) struct Kept {
    session: SessionHandle,
}

impl Kept {
    /// In memory, as long as the program runs.
    pub(crate) fn in_memory() -> Self {
        Self {
            session: SessionHandle::new(MemorySession::new()),
        }
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
        // SESSIONS: SqliteSessions::open(folder.join("sessions.db")).await?.session(name)
        data_folder::open()?;
        Err(Failure::Said {
            exit: Exit::Failed,
            message: "sessions cannot be kept yet".to_owned(),
            help: Some("leave --session out".to_owned()),
        })
    }

    /// The session, for a run.
    pub(crate) fn handle(&self) -> SessionHandle {
        self.session.clone()
    }

    /// Who had the conversation when it was last kept.
    pub(crate) async fn agent(&self) -> Result<Option<String>, Failure> {
        // SESSIONS: session.agent().await
        Ok(None)
    }

    /// Notes who has the conversation.
    pub(crate) async fn set_agent(&self, _agent: &str) -> Result<(), Failure> {
        // SESSIONS: session.set_agent(agent).await
        Ok(())
    }

    /// What was said.
    pub(crate) async fn items(&self) -> Result<Items, Failure> {
        self.session.load(None).await.map_err(failure)
    }

    /// Adds to what was said.
    pub(crate) async fn append(&self, items: &[Item]) -> Result<(), Failure> {
        self.session.append(items).await.map_err(failure)
    }

    /// Forgets all of it.
    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        self.session.clear().await.map_err(failure)
    }
}

fn failure(error: switchboard_core::BoxError) -> Failure {
    Failure::Said {
        exit: Exit::Failed,
        message: format!("the session cannot be used: {error}"),
        help: Some("check the disk, or go on without --session".to_owned()),
    }
}
