//! The key of the provider's prompt cache.

use std::sync::{Arc, OnceLock};

use super::fingerprint::Hash;
use super::{ModelRequest, ServerState};
use crate::session::SessionHandle;

/// The conversation of a run: that of its session, that of its group of traces, or else the run
/// itself.
#[derive(Debug)]
pub(crate) struct CacheGroup {
    session: Option<SessionHandle>,
    traces: Option<Arc<str>>,
    /// The key of the group or a random one, made when a model first asks for it and stored with the
    /// run.
    run: OnceLock<Arc<str>>,
}

impl CacheGroup {
    /// `traces` is the group of traces; `key` is the one that was stored with the run.
    pub(crate) fn new(
        session: Option<SessionHandle>,
        traces: Option<Arc<str>>,
        key: Option<Arc<str>>,
    ) -> Self {
        Self {
            session,
            traces,
            run: key.map(OnceLock::from).unwrap_or_default(),
        }
    }

    /// The key of the run, if a model has asked for it.
    pub(crate) fn run_key(&self) -> Option<&Arc<str>> {
        self.run.get()
    }

    /// Sets the key of the run, if no model has asked for it.
    pub(crate) fn set_run_key(&self, key: Arc<str>) {
        // A key that is set already is kept.
        let _ = self.run.set(key);
    }

    fn key(&self) -> Arc<str> {
        let session = self.session.as_ref().and_then(SessionHandle::id);
        match session.map(str::trim) {
            None | Some("") => self.run.get_or_init(|| self.key_without_session()).clone(),
            Some(id) => hashed("session", id),
        }
    }

    fn key_without_session(&self) -> Arc<str> {
        match self.traces.as_deref().map(str::trim) {
            None | Some("") => random_key(),
            Some(group) => hashed("group", group),
        }
    }
}

impl ModelRequest {
    /// A key for the provider's prompt cache that all requests of a conversation share: the one that
    /// the settings name ([`ModelSettings::prompt_cache_key`](super::ModelSettings)), or one made of
    /// the conversation at the provider, the session, the group of traces
    /// ([`Runner::trace_group`](crate::Runner::trace_group)), or else the run, in this order. It quotes
    /// none of their names.
    ///
    /// `None` where the request is not a run's.
    pub fn prompt_cache_key(&self) -> Option<Arc<str>> {
        if let Some(key) = &self.settings.prompt_cache_key {
            return Some(key.clone());
        }
        if let Some(ServerState::Conversation(id)) = &self.server
            && !id.trim().is_empty()
        {
            return Some(hashed("conversation", id.trim()));
        }
        self.added.cache_group().map(CacheGroup::key)
    }
}

fn random_key() -> Arc<str> {
    let id = fastrand::u128(..);
    format!("switchboard:run:{id:032x}").into()
}

fn hashed(kind: &str, id: &str) -> Arc<str> {
    let mut hash = Hash::new();
    hash.text(id);
    format!("switchboard:{kind}:{hash}").into()
}
