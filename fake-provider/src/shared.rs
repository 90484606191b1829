//! The state that the server's connections and its handle share.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::error::Problem;
use crate::open_calls::OpenCalls;
use crate::prepared::PreparedReplies;
use crate::record::{Request, Violation};
use crate::reply::Reply;
use crate::rules::Rules;

pub(crate) struct Shared {
    pub(crate) rules: Rules,
    /// If set, requests are not scripted, checked or recorded.
    pub(crate) prepared: Option<PreparedReplies>,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) scripts: FxHashMap<String, VecDeque<Reply>>,
    pub(crate) requests: Vec<Request>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) open_calls: OpenCalls,
}

impl Shared {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            prepared: None,
            state: Mutex::default(),
        }
    }

    pub(crate) fn with_prepared(replies: PreparedReplies) -> Self {
        Self {
            rules: Rules::none(),
            prepared: Some(replies),
            state: Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the next reply from the script of a key.
    pub(crate) fn next_reply(&mut self, key: &str) -> Result<Reply, Problem> {
        let Some(script) = self.scripts.get_mut(key) else {
            let message = format!("Incorrect API key provided: {key}.");
            return Err(Problem::new("invalid_api_key", None, message).status(401));
        };
        script.pop_front().ok_or_else(|| {
            let message = format!("the script of the key {key:?} has no replies left");
            Problem::new("script_over", None, message).status(404)
        })
    }
}
