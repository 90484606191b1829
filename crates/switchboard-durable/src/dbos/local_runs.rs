//! The workflows of this process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The workflows of this process. Clones share them.
#[derive(Clone)]
pub(super) struct LocalRuns(Arc<Inner>);

struct Inner {
    workflows: Mutex<Workflows>,
    /// The number of workflows that may wait in memory.
    most_waiting: usize,
}

#[derive(Default)]
struct Workflows {
    states: HashMap<String, State>,
    /// The number of those that wait in memory.
    waiting: usize,
}

/// The state of a workflow that DBOS has given to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Executed,
    /// It waits, and has left the memory of the process.
    Suspended,
    /// It has stopped before its end, and is to be executed again.
    Interrupted,
}

/// A workflow that is executed. Dropping it interrupts the workflow.
pub(super) struct Executed {
    local: LocalRuns,
    id: String,
    /// The state after that; `None` if the workflow has ended.
    after: Option<State>,
}

/// A wait in memory. Dropping it ends that.
pub(super) struct InMemory(LocalRuns);

impl LocalRuns {
    /// Creates a set of workflows of which so many may wait in memory.
    pub(super) fn new(most_waiting: usize) -> Self {
        Self(Arc::new(Inner {
            workflows: Mutex::default(),
            most_waiting,
        }))
    }

    fn workflows(&self) -> MutexGuard<'_, Workflows> {
        let workflows = self.0.workflows.lock();
        workflows.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to execute a workflow; `None` if this process does already.
    pub(super) fn execute(&self, id: &str) -> Option<Executed> {
        let mut workflows = self.workflows();
        let before = workflows.states.insert(id.to_owned(), State::Executed);
        (before != Some(State::Executed)).then(|| Executed {
            local: self.clone(),
            id: id.to_owned(),
            after: Some(State::Interrupted),
        })
    }

    pub(super) fn state(&self, id: &str) -> Option<State> {
        self.workflows().states.get(id).copied()
    }

    /// Lets a workflow wait in memory, unless too many do.
    pub(super) fn wait(&self) -> Option<InMemory> {
        let mut workflows = self.workflows();
        if workflows.waiting >= self.0.most_waiting {
            return None;
        }
        workflows.waiting += 1;
        drop(workflows);
        Some(InMemory(self.clone()))
    }

    /// Takes note that a workflow is to be executed again. Returns `true` if it was suspended.
    pub(super) fn wake(&self, id: &str) -> bool {
        let mut workflows = self.workflows();
        let is_suspended = workflows.states.get(id) == Some(&State::Suspended);
        if is_suspended {
            workflows.states.insert(id.to_owned(), State::Interrupted);
        }
        is_suspended
    }

    /// The workflows that are not executed.
    pub(super) fn not_executed(&self) -> HashSet<String> {
        let workflows = self.workflows();
        let states = workflows.states.iter();
        let not_executed = states.filter(|(_, state)| **state != State::Executed);
        not_executed.map(|(id, _)| id.clone()).collect()
    }

    /// Forgets workflows that are not executed here, and are no more this process's.
    pub(super) fn forget<'a>(&self, gone: impl IntoIterator<Item = &'a String>) {
        let mut workflows = self.workflows();
        for id in gone {
            if workflows.states.get(id) != Some(&State::Executed) {
                workflows.states.remove(id);
            }
        }
    }
}

impl Executed {
    pub(super) fn end(mut self) {
        self.after = None;
    }

    pub(super) fn suspend(mut self) {
        self.after = Some(State::Suspended);
    }
}

impl Drop for Executed {
    fn drop(&mut self) {
        let mut workflows = self.local.workflows();
        match self.after {
            Some(state) => workflows.states.insert(self.id.clone(), state),
            None => workflows.states.remove(&self.id),
        };
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.0.workflows().waiting -= 1;
    }
}
