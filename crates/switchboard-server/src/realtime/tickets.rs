//! Tickets for WebSockets. A browser cannot send a key with one, so it gets a ticket first, which is good once and for
//! a short time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::frames::{PlaybackReports, Turns};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::keys::random_id;
use crate::service::Caller;

/// The time for which a ticket is good.
pub(crate) const TICKET_TIME: Duration = Duration::from_secs(30);

/// The largest number of tickets that are not used yet.
const MAX_TICKETS: usize = 4096;

/// The session that a ticket admits to.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) caller: Caller,
    pub(crate) team: Arc<str>,
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) conversation: Arc<str>,
    pub(crate) turns: Turns,
    pub(crate) playback: PlaybackReports,
}

/// The tickets that are not used yet.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<Arc<str>, (Ticket, Instant)>>);

impl Tickets {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, (Ticket, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a ticket.
    pub(crate) fn issue(&self, ticket: Ticket) -> Result<Arc<str>, ServiceError> {
        let id = random_id("rt")?;
        let mut tickets = self.lock();
        tickets.retain(|_, (_, made)| made.elapsed() < TICKET_TIME);
        if tickets.len() >= MAX_TICKETS {
            let message = "too many tickets are not used yet";
            let error = ServiceError::new(ServiceErrorKind::Unavailable, message);
            return Err(error.retry_after(TICKET_TIME));
        }
        tickets.insert(id.clone(), (ticket, Instant::now()));
        Ok(id)
    }

    /// Takes a ticket, which cannot be taken again. A ticket for another team is as unknown as one that was used.
    pub(crate) fn take(&self, id: &str, team: &str) -> Option<Ticket> {
        let (ticket, made) = self.lock().remove(id)?;
        (made.elapsed() < TICKET_TIME && *ticket.team == *team).then_some(ticket)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;
    use crate::tenant::Tenant;

    fn ticket() -> Ticket {
        Ticket {
            caller: Caller {
                tenant: Tenant::single(),
                key: None,
                request: "".into(),
            },
            team: "support".into(),
            agent: None,
            conversation: "c".into(),
            turns: Turns::default(),
            playback: PlaybackReports::default(),
        }
    }

    #[test]
    fn a_ticket_is_good_once_for_its_team_and_its_time() {
        let tickets = Tickets::default();
        let id = tickets.issue(ticket()).unwrap();
        assert_eq!(&*tickets.take(&id, "support").unwrap().conversation, "c");
        assert!(tickets.take(&id, "support").is_none());
        let id = tickets.issue(ticket()).unwrap();
        assert!(tickets.take(&id, "sales").is_none());
        assert!(tickets.take(&id, "support").is_none());
        let id = tickets.issue(ticket()).unwrap();
        tickets.lock().get_mut(&id).unwrap().1 = Instant::now().checked_sub(TICKET_TIME).unwrap();
        assert!(tickets.take(&id, "support").is_none());
        assert!(tickets.take("", "support").is_none());
    }

    #[test]
    fn tickets_are_bounded() {
        let tickets = Tickets::default();
        for _ in 0..MAX_TICKETS {
            tickets.issue(ticket()).unwrap();
        }
        let error = tickets.issue(ticket()).unwrap_err();
        assert_eq!(error.kind(), ServiceErrorKind::Unavailable);
    }
}
