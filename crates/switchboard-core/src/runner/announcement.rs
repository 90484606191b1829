//! Code that finds handoffs which an agent announces and does not call.

use std::fmt;
use std::sync::Arc;

use crate::callback::{BoxError, IntoOutcome, Outcome, call};

/// An answer that may announce a handoff; see
/// [`AnnouncedHandoffs::predicate`](super::AnnouncedHandoffs::predicate).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PossibleAnnouncement {
    /// The agent that answers.
    pub agent: Arc<str>,
    /// The text of the answer.
    pub text: String,
    /// The agents that it could hand off to.
    pub handoffs: Vec<Arc<str>>,
}

/// Code that tells whether an answer announces a handoff.
#[derive(Clone)]
pub(crate) struct AnnouncementPredicate(Arc<Predicate>);

type Predicate = dyn Fn(PossibleAnnouncement) -> Outcome<bool> + Send + Sync;

impl AnnouncementPredicate {
    pub(super) fn new<F, R, M>(predicate: F) -> Self
    where
        F: Fn(PossibleAnnouncement) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        Self(Arc::new(move |answer| predicate(answer).into_outcome()))
    }

    pub(crate) async fn holds(&self, answer: PossibleAnnouncement) -> Result<bool, BoxError> {
        call(|| (self.0)(answer)).await
    }
}

impl PartialEq for AnnouncementPredicate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AnnouncementPredicate {}

impl fmt::Debug for AnnouncementPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnnouncementPredicate")
    }
}
