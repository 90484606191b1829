//! The permission to begin a run, and the order of requests to one conversation.
//!
//! A request that changes a conversation before its run begins, as one that takes back what followed a message, first
//! locks the conversation, then asks for the permission, and then changes it: a request that is refused has changed nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::{Caller, Service, draining};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::keys::RunPermit;
use crate::runs::RunSlot;
use crate::tenant::Tenant;

/// The permission to begin a run, which counts among the runs of the service and of its key until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(super) slot: RunSlot,
    pub(super) permit: Option<RunPermit>,
}

/// Keeps other requests that would change a conversation waiting, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConversationLock(#[expect(dead_code, reason = "it is held")] OwnedMutexGuard<()>);

/// The locks of conversations.
#[derive(Debug, Default)]
pub(super) struct ConversationLocks(Mutex<LocksByConversation>);

type LocksByConversation = HashMap<(Tenant, Arc<str>), Weak<ConversationMutex>>;
type ConversationMutex = tokio::sync::Mutex<()>;

impl ConversationLocks {
    fn of(&self, tenant: &Tenant, id: &str) -> Arc<ConversationMutex> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        let key = (tenant.clone(), Arc::<str>::from(id));
        if let Some(lock) = locks.get(&key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(key, Arc::downgrade(&lock));
        lock
    }
}

impl Service {
    /// Asks for the permission to begin a run: the service takes new ones, and neither it nor the key has too many.
    pub(crate) fn admit(&self, caller: &Caller) -> Result<Admission, ServiceError> {
        let inner = &self.0;
        let refuse = |reason: &str, error: ServiceError| {
            inner.metrics.refused(reason);
            Err(error)
        };
        inner.runs.forget_ended();
        let Some(slot) = inner.runs.reserve(inner.limits.runs) else {
            let message = "too many runs are under way";
            let error = ServiceError::new(ServiceErrorKind::Unavailable, message);
            return refuse("runs", error.retry_after(Duration::from_secs(1)));
        };
        // After the slot was taken: whoever drains the service waits for it.
        if self.is_draining() {
            return refuse("draining", draining());
        }
        let permit = match caller.key.as_ref().map(|key| key.take_run()).transpose() {
            Ok(permit) => permit,
            Err(error) => return refuse("key", error),
        };
        Ok(Admission { slot, permit })
    }

    /// Locks a conversation, for requests that change it before their run begins. It waits for as long as messages wait.
    pub(crate) async fn lock_conversation(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<ConversationLock, ServiceError> {
        let lock = self.0.locks.of(&caller.tenant, id).lock_owned();
        let locked = tokio::time::timeout(self.0.limits.conversation_wait, lock).await;
        locked.map(ConversationLock).map_err(|_| busy())
    }

    /// Waits until no run of a conversation is under way in this process, for as long as messages wait.
    pub(crate) async fn wait_for_runs(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(), ServiceError> {
        let ended = async {
            for run in self.0.runs.of_conversation(&caller.tenant, id) {
                run.log.closed().await;
            }
        };
        let waited = tokio::time::timeout(self.0.limits.conversation_wait, ended).await;
        waited.map_err(|_| busy())
    }
}

/// The error of a request whose conversation has runs for longer than it waits.
fn busy() -> ServiceError {
    ServiceError::new(
        ServiceErrorKind::Conflict,
        "another run of the conversation is under way; cancel it or wait for its end",
    )
}
