//! Changes that clients are told of as they happen: conversations, runs, what waits, teams.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::tenant::Tenant;

/// The number of changes that a slow client may be behind.
const CAPACITY: usize = 1024;

/// A change.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Change {
    Conversation(ConversationChange),
    Run(RunChange),
    Waiting(WaitingChange),
    Team(TeamChange),
}

/// A conversation has changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ConversationChange {
    pub(crate) id: Arc<str>,
    /// `created`, `changed` or `deleted`.
    pub(crate) change: &'static str,
}

/// A run has begun or ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunChange {
    pub(crate) id: Arc<str>,
    pub(crate) conversation: Option<Arc<str>>,
    /// `running`, `completed`, `waiting`, `stopped`, `cancelled` or `failed`.
    pub(crate) status: &'static str,
}

/// A conversation waits for a decision or a person, or does not any more.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct WaitingChange {
    pub(crate) conversation: Arc<str>,
    pub(crate) is_waiting: bool,
}

/// A team was replaced.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TeamChange {
    pub(crate) name: Arc<str>,
    pub(crate) version: Arc<str>,
}

impl Change {
    /// The name of the event.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Conversation(_) => "conversation",
            Self::Run(_) => "run",
            Self::Waiting(_) => "waiting",
            Self::Team(_) => "team",
        }
    }
}

/// The changes of a service, for any number of clients.
#[derive(Debug)]
pub(crate) struct Changes(broadcast::Sender<(Option<Tenant>, Change)>);

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl Changes {
    /// Tells the clients of a tenant of a change.
    pub(crate) fn tell(&self, tenant: &Tenant, change: Change) {
        if self.0.receiver_count() > 0 {
            // Nobody may listen any more.
            let _ = self.0.send((Some(tenant.clone()), change));
        }
    }

    /// Tells all clients of a change of a team.
    pub(crate) fn tell_all(&self, change: Change) {
        let _ = self.0.send((None, change));
    }

    /// Follows the changes that a tenant is told of.
    pub(crate) fn follow(&self, tenant: &Tenant) -> ChangeReader {
        ChangeReader {
            tenant: tenant.clone(),
            receiver: self.0.subscribe(),
        }
    }
}

/// A reader of changes.
pub(crate) struct ChangeReader {
    tenant: Tenant,
    receiver: broadcast::Receiver<(Option<Tenant>, Change)>,
}

/// The next change for a reader.
pub(crate) enum NextChange {
    Change(Change),
    /// The reader was too slow, and has missed some.
    Missed,
}

impl ChangeReader {
    /// Waits for the next change; `None` at the end of the service.
    pub(crate) async fn next(&mut self) -> Option<NextChange> {
        loop {
            match self.receiver.recv().await {
                Ok((tenant, change)) => {
                    if tenant.is_none_or(|tenant| tenant == self.tenant) {
                        return Some(NextChange::Change(change));
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => return Some(NextChange::Missed),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
