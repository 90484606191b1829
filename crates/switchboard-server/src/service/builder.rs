//! Building a service.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

use switchboard_core::conversation::Conversations;
use switchboard_core::run::Price;

use super::admission::ConversationLocks;
use super::resumptions::Beginning;
use super::waiting_marks::WaitingMarks;
use super::{Inner, Service};
use crate::changes::Changes;
use crate::error::ServiceError;
use crate::keys::{Keys, random_id};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::realtime::Tickets;
use crate::recording::{RecordingLimits, Recordings};
use crate::runs::Runs;
use crate::studio::Studio;
use crate::team::ServedTeam;

/// Builds a [`Service`]; see [`Service::builder`].
#[derive(Debug)]
#[must_use]
pub struct ServiceBuilder {
    teams: Vec<ServedTeam>,
    store: Option<Conversations>,
    keys: Option<Keys>,
    limits: Limits,
    prices: Vec<(Arc<str>, Price)>,
    logs_content: bool,
    hosts: Option<Vec<String>>,
    public_url: Option<String>,
    recordings: Option<RecordingLimits>,
    studio: Option<Studio>,
}

impl ServiceBuilder {
    pub(super) fn new() -> Self {
        Self {
            teams: Vec::new(),
            store: None,
            keys: None,
            limits: Limits::default(),
            prices: Vec::new(),
            logs_content: false,
            hosts: None,
            public_url: None,
            recordings: None,
            studio: None,
        }
    }

    /// Adds a team.
    pub fn team(mut self, team: ServedTeam) -> Self {
        self.teams.push(team);
        self
    }

    /// Sets the store of conversations. Without one, they are in memory, as long as the service runs.
    pub fn conversations(mut self, store: Conversations) -> Self {
        self.store = Some(store);
        self
    }

    /// Asks every client for a key. Without keys anybody who reaches the service may use it, as one tenant.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the price of a model, by its name, for the limits on cost.
    pub fn price(mut self, model: impl Into<Arc<str>>, price: Price) -> Self {
        self.prices.push((model.into(), price));
        self
    }

    /// Writes messages and answers to the log. Otherwise it has no content of conversations.
    pub fn log_content(mut self, logs_content: bool) -> Self {
        self.logs_content = logs_content;
        self
    }

    /// Answers only requests whose `Host` header has one of these names, without a port. On a loopback address
    /// this keeps pages of other sites out that have made their name lead to it (DNS rebinding).
    pub fn hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the address that clients reach the service by, such as `https://agents.example`, for the agent cards of
    /// A2A. Without one, a card has the address that it was asked for at, which behind a proxy is another one.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Records what happens in runs: what models, tools and handoffs were sent and what came back, for
    /// `/api/runs/RUN/recording`. The recordings are in memory, and hold the content of conversations.
    pub fn record(mut self, limits: RecordingLimits) -> Self {
        self.recordings = Some(limits);
        self
    }

    /// Serves the studio: a page at `/` to talk to the teams and to see what happens in them.
    pub fn studio(mut self, studio: Studio) -> Self {
        self.studio = Some(studio);
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    /// An error if there is no team, or two of one name, or a name with a `/`, or if the public address is none.
    pub fn build(self) -> Result<Service, ServiceError> {
        if self.teams.is_empty() {
            return Err(ServiceError::invalid("a service needs a team"));
        }
        for (at, team) in self.teams.iter().enumerate() {
            let name = team.name();
            if name.is_empty() || name.contains('/') || name.chars().any(char::is_control) {
                let message = format!("{name:?} is no name of a team: it is empty or has a \"/\"");
                return Err(ServiceError::invalid(message));
            }
            if self.teams[..at].iter().any(|other| other.name() == name) {
                return Err(ServiceError::invalid(format!(
                    "two teams are named {name:?}; a team file names its team with `name`"
                )));
            }
        }
        let public_url = self.public_url.map(|url| match url.split_once("://") {
            Some(("http" | "https", rest)) if !rest.is_empty() && !url.contains(['?', '#']) => {
                Ok(url.trim_end_matches('/').to_owned())
            }
            _ => Err(ServiceError::invalid(format!(
                "{url:?} is no address of a service; it begins with http:// or https://"
            ))),
        });
        Ok(Service(Arc::new(Inner {
            teams: RwLock::new(self.teams),
            store: self.store.unwrap_or_else(Conversations::in_memory),
            keys: self.keys,
            requests: Arc::new(tokio::sync::Semaphore::new(self.limits.requests)),
            runs: Arc::new(Runs::new(self.limits.keep_ended, self.limits.ended_runs)),
            limits: self.limits,
            prices: self.prices.into(),
            logs_content: self.logs_content,
            hosts: self.hosts,
            public_url: public_url.transpose()?,
            metrics: Metrics::new(),
            records_changed: tokio::sync::Notify::new(),
            locks: ConversationLocks::default(),
            recordings: self.recordings.map(Recordings::new),
            changes: Changes::default(),
            waiting: WaitingMarks::default(),
            beginning: Beginning::default(),
            sources: std::sync::Mutex::default(),
            process: random_id("p")?,
            renewal: tokio::sync::Mutex::default(),
            studio: self.studio,
            is_draining: AtomicBool::new(false),
            tickets: Tickets::default(),
            sessions: Arc::default(),
        })))
    }
}
