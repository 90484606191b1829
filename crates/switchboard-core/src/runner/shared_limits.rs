//! The limits that runs beside each other share.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::model::{AddedUsage, RequestUsage};
use crate::run::max_turns_error;

/// The turns and the usage of runs beside each other, inside another one.
#[derive(Debug)]
pub(crate) struct SharedLimits {
    turns: Option<SharedTurns>,
    /// The requests of the run around them, from before.
    requests: Vec<RequestUsage>,
    /// What the run around them has not counted yet: everything that they have used.
    used: AddedUsage,
}

#[derive(Debug)]
struct SharedTurns {
    left: AtomicU32,
    /// The limit of the run around them.
    max: u32,
}

impl SharedLimits {
    /// `turns` are those that are left, and the limit.
    pub(crate) fn new(
        turns: Option<(u32, u32)>,
        requests: Vec<RequestUsage>,
        used: AddedUsage,
    ) -> Self {
        let turns = turns.map(|(left, max)| SharedTurns {
            left: left.into(),
            max,
        });
        Self {
            turns,
            requests,
            used,
        }
    }

    /// Takes one of the turns that are left.
    pub(crate) fn take_turn(&self) -> Result<(), Error> {
        let Some(turns) = &self.turns else {
            return Ok(());
        };
        let order = Ordering::Relaxed;
        let taken = turns
            .left
            .fetch_update(order, order, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| max_turns_error(turns.max))
    }

    /// All requests so far, those of the runs beside this one included.
    pub(crate) fn requests(&self) -> Vec<RequestUsage> {
        let mut requests = self.requests.clone();
        requests.extend(self.used.pending());
        requests
    }
}
