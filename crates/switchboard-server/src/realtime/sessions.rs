//! The sessions that are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::frames::CloseReason;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::tenant::Tenant;

type Place = (Tenant, Arc<str>);

/// All sessions of a service: one for a conversation at a time.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<Place, watch::Sender<Signal>>>,
    ended: Notify,
}

/// A signal of the service to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    GoOn,
    /// End after the answer that is under way.
    EndSoon,
    /// End at once.
    End(CloseReason),
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, HashMap<Place, watch::Sender<Signal>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session, unless there are `limit` of them or one of the conversation.
    pub(crate) fn enter(
        self: &Arc<Self>,
        tenant: &Tenant,
        conversation: &Arc<str>,
        limit: usize,
    ) -> Result<SessionPlace, ServiceError> {
        let place = (tenant.clone(), conversation.clone());
        let mut open = self.open();
        if open.contains_key(&place) {
            return Err(ServiceError::new(
                ServiceErrorKind::Conflict,
                "a session of this conversation is open",
            ));
        }
        if open.len() >= limit {
            let message = "too many realtime sessions are open";
            let error = ServiceError::new(ServiceErrorKind::Unavailable, message);
            return Err(error.retry_after(std::time::Duration::from_secs(5)));
        }
        let (sender, signal) = watch::channel(Signal::GoOn);
        open.insert(place.clone(), sender);
        Ok(SessionPlace {
            sessions: self.clone(),
            place,
            signal,
        })
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }

    /// Sends a signal to all sessions.
    pub(crate) fn signal_all(&self, signal: Signal) {
        for sender in self.open().values() {
            sender.send_replace(signal);
        }
    }

    /// Ends the session of a conversation, and waits for its end.
    pub(crate) async fn end(&self, tenant: &Tenant, conversation: &str, reason: CloseReason) {
        let place: Place = (tenant.clone(), conversation.into());
        self.wait_until(|open| match open.get(&place) {
            Some(sender) => {
                sender.send_replace(Signal::End(reason));
                false
            }
            None => true,
        })
        .await;
    }

    /// Waits until no session is open.
    pub(crate) async fn all_ended(&self) {
        self.wait_until(HashMap::is_empty).await;
    }

    async fn wait_until(
        &self,
        is_reached: impl Fn(&HashMap<Place, watch::Sender<Signal>>) -> bool,
    ) {
        loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            if is_reached(&self.open()) {
                return;
            }
            ended.await;
        }
    }
}

/// The place of a session among those that are open; dropping it leaves it.
#[derive(Debug)]
pub(crate) struct SessionPlace {
    sessions: Arc<Sessions>,
    place: Place,
    pub(crate) signal: watch::Receiver<Signal>,
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        self.sessions.open().remove(&self.place);
        self.sessions.ended.notify_waiters();
    }
}
