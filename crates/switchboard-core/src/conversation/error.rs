//! Errors of conversations.

use std::fmt;

/// An error of a conversation, whatever its store: the cause of a run's error with
/// [`ErrorKind::Session`](crate::ErrorKind::Session), or of the error that a method returns.
///
/// ```
/// use switchboard_core::Error;
/// use switchboard_core::conversation::{ConversationError, ConversationErrorKind};
///
/// fn somebody_else_wrote(error: &Error) -> bool {
///     let cause = error.cause().and_then(|cause| cause.downcast_ref::<ConversationError>());
///     cause.is_some_and(|cause| cause.kind() == ConversationErrorKind::Conflict)
/// }
/// ```
#[derive(Debug)]
pub struct ConversationError {
    kind: ConversationErrorKind,
    message: String,
}

/// The kind of a [`ConversationError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConversationErrorKind {
    /// Another writer has changed the conversation since it was loaded. Nothing was stored.
    Conflict,
    /// Another writer kept the conversation's lease until the time was over.
    Leased,
    /// The agent that has the conversation is not among the agents of the runner.
    UnknownAgent,
    /// The conversation is with another team.
    OtherTeam,
    /// There is no such conversation.
    NotFound,
    /// There is a conversation of that name.
    Exists,
    /// The position lies within a turn.
    WithinTurn,
    /// The conversation has no entry at that position.
    NoSuchPosition,
    /// The run does not wait for a decision any more: the conversation went on.
    WaitIsOver,
    /// The conversation is encrypted, and its store was opened without the key.
    Encrypted,
    /// The stored conversation cannot be read.
    Damaged,
}

impl ConversationError {
    fn new(kind: ConversationErrorKind, message: String) -> Self {
        Self { kind, message }
    }

    /// The kind of error.
    pub fn kind(&self) -> ConversationErrorKind {
        self.kind
    }

    pub(crate) fn conflict(id: &str) -> Self {
        Self::new(
            ConversationErrorKind::Conflict,
            format!(
                "the conversation {id:?} was changed by another writer since it was loaded, so \
                 nothing of this change was stored; `exclusive` lets runs wait for each other"
            ),
        )
    }

    pub(crate) fn leased(id: &str) -> Self {
        Self::new(
            ConversationErrorKind::Leased,
            format!(
                "another writer still has the conversation {id:?}; try again later, or raise the \
                 waiting time (`exclusive`)"
            ),
        )
    }

    pub(crate) fn wait_is_over(id: &str) -> Self {
        Self::new(
            ConversationErrorKind::WaitIsOver,
            format!(
                "the conversation {id:?} has gone on since the run began to wait for a decision: the \
                 run was resumed before, or another message came first; nothing was run"
            ),
        )
    }

    pub(crate) fn unknown_agent(id: &str, agent: &str, start: &str, known: &[&str]) -> Self {
        Self::new(
            ConversationErrorKind::UnknownAgent,
            format!(
                "the conversation {id:?} is with agent {agent:?}, which {start:?} does not lead to \
                 (it leads to: {}). Give it to one of them, or begin again in a conversation of another \
                 name",
                known.join(", ")
            ),
        )
    }

    pub(crate) fn other_team(id: &str, stored: &str, current: &str) -> Self {
        Self::new(
            ConversationErrorKind::OtherTeam,
            format!(
                "the conversation {id:?} is with the team {stored}, and this one is {current}. Use a \
                 conversation of another name or a copy of it; or go on with it by Runner::take_over_conversations"
            ),
        )
    }

    pub(crate) fn not_found(id: &str) -> Self {
        Self::new(
            ConversationErrorKind::NotFound,
            format!("there is no conversation {id:?}"),
        )
    }

    pub(crate) fn exists(id: &str) -> Self {
        Self::new(
            ConversationErrorKind::Exists,
            format!(
                "there is a conversation {id:?} already; choose another name, or delete it first"
            ),
        )
    }

    pub(crate) fn within_turn(id: &str, position: u64) -> Self {
        Self::new(
            ConversationErrorKind::WithinTurn,
            format!(
                "position {position} of the conversation {id:?} lies within a turn, and only whole \
                 turns can be kept; use the position of a message of the user, or of the first item \
                 of a turn"
            ),
        )
    }

    pub(crate) fn no_such_position(id: &str, position: u64, known: std::ops::Range<u64>) -> Self {
        Self::new(
            ConversationErrorKind::NoSuchPosition,
            format!(
                "the conversation {id:?} has no position {position}; its entries are at {} to {}",
                known.start, known.end
            ),
        )
    }

    pub(crate) fn encrypted(id: &str) -> Self {
        Self::new(
            ConversationErrorKind::Encrypted,
            format!(
                "the conversation {id:?} is encrypted; open its store as an `EncryptedStore` with the \
                 key that it was encrypted with"
            ),
        )
    }

    pub(crate) fn damaged(id: &str, problem: impl fmt::Display) -> Self {
        Self::new(
            ConversationErrorKind::Damaged,
            format!(
                "the stored conversation {id:?} cannot be read: {problem}; restore it from a copy"
            ),
        )
    }
}

impl_error!(ConversationError, |this| "{}", this.message);
