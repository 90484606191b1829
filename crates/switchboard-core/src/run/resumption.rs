//! The waits of runs that were resumed in this process, so that each is resumed once.
//!
//! A run that waits for decisions has an identifier for that wait, which is stored with it. Copies of
//! the run and what was stored of it share the identifier, and once one of them has been resumed, the
//! others are refused. Across processes the stored conversation does the same, see
//! `driver/conversation.rs`.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// The number of waits that are remembered.
const REMEMBERED: usize = 10_000;

static WAITS: Mutex<Option<Waits>> = Mutex::new(None);

#[derive(Default)]
struct Waits {
    in_progress: HashSet<Arc<str>>,
    resumed: HashSet<Arc<str>>,
    /// The resumed waits, oldest first.
    order: VecDeque<Arc<str>>,
}

/// The claim to resume a run from a wait. Dropped before [`Claim::finish`], it is given back.
#[derive(Debug)]
pub(crate) struct Claim {
    wait: Arc<str>,
    is_finished: bool,
}

/// Claims a wait. Returns the problem if it was resumed before, or is being resumed.
pub(crate) fn claim(wait: &Arc<str>) -> Result<Claim, &'static str> {
    let mut waits = lock(&WAITS);
    let waits = waits.get_or_insert_default();
    if waits.resumed.contains(wait) {
        return Err(
            "this state of the run was resumed before, and what was approved has run; resume \
             the run that came out of it, or a copy that Run::fork made on purpose",
        );
    }
    if !waits.in_progress.insert(wait.clone()) {
        return Err(
            "this state of the run is being resumed elsewhere in this process; wait for the \
             result there, or resume a copy that Run::fork made on purpose",
        );
    }
    Ok(Claim {
        wait: wait.clone(),
        is_finished: false,
    })
}

impl Claim {
    /// Notes that the run has gone on from the wait.
    pub(crate) fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut waits = lock(&WAITS);
        let waits = waits.get_or_insert_default();
        waits.in_progress.remove(&self.wait);
        if !self.is_finished {
            return;
        }
        waits.resumed.insert(self.wait.clone());
        waits.order.push_back(self.wait.clone());
        if waits.order.len() > REMEMBERED
            && let Some(oldest) = waits.order.pop_front()
        {
            waits.resumed.remove(&oldest);
        }
    }
}
