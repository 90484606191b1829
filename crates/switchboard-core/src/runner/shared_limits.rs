//! The limits of a run that hold for the runs inside it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Budgets;
use crate::error::Error;
use crate::lock::lock;
use crate::model::{AddedUsage, RequestUsage};
use crate::run::Run;
use crate::run::budgets::{Holder, Ledger, Spent, SpentTime};
use crate::run::max_turns_error;

/// The turns that are left to agents that answer beside each other.
#[derive(Debug)]
pub(crate) struct SharedTurns {
    left: AtomicU32,
    /// The limit of the run around them.
    max: u32,
}

impl SharedTurns {
    pub(crate) fn new(left: u32, max: u32) -> Self {
        Self {
            left: left.into(),
            max,
        }
    }

    /// Takes one of the turns that are left.
    pub(crate) fn take(&self) -> Result<(), Error> {
        let order = Ordering::Relaxed;
        let taken = self
            .left
            .fetch_update(order, order, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| max_turns_error(self.max))
    }
}

/// The budgets of a run, for the runs inside one of its steps. They count what all of them use, also side by
/// side, with what the run has used before.
#[derive(Debug)]
pub(crate) struct OuterBudgets {
    budgets: Arc<Budgets>,
    /// The agent whose step it is.
    holder: Holder,
    requests: Vec<RequestUsage>,
    spent: Spent,
    /// The usage that the run has not counted yet: everything that the runs inside have used.
    used: AddedUsage,
    started: Instant,
    inside: Mutex<Inside>,
    /// The budgets of the run around that one.
    outer: Option<Arc<Self>>,
}

/// The use by the runs inside a step, as far as their usage does not tell.
#[derive(Debug, Default)]
struct Inside {
    time: Vec<SpentTime>,
    /// Requests without a response so far, each with its number.
    requests: Vec<(u64, RequestUsage)>,
    numbered: u64,
}

impl OuterBudgets {
    /// The budgets of a run at the beginning of a step. `used` is usage that it counts after the step.
    pub(crate) fn new(
        run: &Run,
        budgets: Arc<Budgets>,
        used: AddedUsage,
        outer: Option<Arc<Self>>,
    ) -> Self {
        Self {
            budgets,
            holder: run.holder(),
            requests: run.request_usage().to_vec(),
            spent: run.spent.as_deref().cloned().unwrap_or_default(),
            used,
            started: Instant::now(),
            inside: Mutex::default(),
            outer,
        }
    }

    /// These budgets and those around them.
    fn all(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(self), |budgets| budgets.outer.as_ref())
    }

    /// These budgets and those around them, with what was used of each.
    pub(crate) fn ledgers(self: &Arc<Self>) -> impl Iterator<Item = Ledger<'_>> {
        self.all().map(|budgets| budgets.ledger())
    }

    fn ledger(&self) -> Ledger<'_> {
        let inside = lock(&self.inside);
        let mut requests = self.requests.clone();
        requests.extend(self.used.pending());
        requests.extend(inside.requests.iter().map(|(_, request)| request.clone()));
        let mut spent = self.spent.clone();
        spent.add_inside(&inside.time);
        let step = (self.holder.clone(), self.started.elapsed());
        Ledger::around(&self.budgets, requests, spent, step)
    }

    /// Counts time of an agent in a run inside.
    pub(crate) fn spend_time(self: &Arc<Self>, holder: &Holder, time: Duration) {
        for budgets in self.all() {
            SpentTime::add(&mut lock(&budgets.inside).time, holder, time);
        }
    }

    /// Takes the time of the agents in runs inside.
    pub(crate) fn take_time(&self) -> Vec<SpentTime> {
        std::mem::take(&mut lock(&self.inside).time)
    }

    /// Counts a request from before it is sent until its usage is known, so that runs side by side do not
    /// begin more requests than are left.
    pub(crate) fn begin_request(self: &Arc<Self>, request: &RequestUsage) -> RequestInProgress {
        let begun = self.all().map(|budgets| {
            let mut inside = lock(&budgets.inside);
            inside.numbered += 1;
            let number = inside.numbered;
            inside.requests.push((number, request.clone()));
            (budgets.clone(), number)
        });
        RequestInProgress(begun.collect())
    }
}

/// A request that has no response yet. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct RequestInProgress(Vec<(Arc<OuterBudgets>, u64)>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        for (budgets, number) in &self.0 {
            let requests = &mut lock(&budgets.inside).requests;
            requests.retain(|(of, _)| of != number);
        }
    }
}
