//! The messages that wait in this process for others of their conversation: only one that has not begun is executed at a
//! time, as the next would wait for it in memory, and ask the store for it again and again.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use switchboard_core::conversation::folder_of;

use crate::record::RunRecord;

/// The largest number of messages of a conversation that are kept in memory. Later ones are looked for in the store.
const LONGEST: usize = 10_000;

/// The queues of conversations.
#[derive(Default)]
pub(crate) struct MessageQueues(Mutex<FxHashMap<String, Queue>>);

struct Queue {
    /// The run that is executed.
    current: Place,
    waiting: BTreeSet<Place>,
    /// Set if the store may have messages that are not in the queue.
    has_more: bool,
}

/// The place of a run in the order of its conversation: the time of its start, and its identifier.
type Place = (u64, String);

/// The outcome of adding a run to the queue of its conversation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is executed now.
    First,
    /// It waits for its turn.
    Behind,
    /// It waits, and is earlier than the one that is executed.
    Before(String),
}

/// The run that follows one that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Following {
    None,
    /// This one is executed now.
    Run(String),
    /// The store may have one.
    InStore,
}

impl MessageQueues {
    fn queues(&self) -> MutexGuard<'_, FxHashMap<String, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run that has not begun.
    pub(crate) fn add(&self, run: &RunRecord) -> Added {
        let mut queues = self.queues();
        let queue = match queues.entry(folder_of(&run.id).to_owned()) {
            Entry::Vacant(vacant) => {
                vacant.insert(Queue::of(place(run)));
                return Added::First;
            }
            Entry::Occupied(queue) => queue.into_mut(),
        };
        let place = place(run);
        if place == queue.current {
            return Added::Behind;
        }
        let is_earlier = place < queue.current;
        queue.add(place);
        if is_earlier {
            Added::Before(queue.current.1.clone())
        } else {
            Added::Behind
        }
    }

    /// Adds a run that has begun in a process that is gone. It is executed now, and the messages that waited for it there follow.
    pub(crate) fn add_begun(&self, run: &RunRecord) {
        let mut queues = self.queues();
        let queue = queues.entry(folder_of(&run.id).to_owned());
        queue.or_insert_with(|| Queue::of(place(run))).has_more = true;
    }

    /// Returns `true` if a run waits.
    pub(crate) fn is_waiting(&self, run: &RunRecord) -> bool {
        let queues = self.queues();
        let queue = queues.get(folder_of(&run.id));
        queue.is_some_and(|queue| queue.waiting.contains(&place(run)))
    }

    /// Lets the run that is executed wait behind an earlier one, if there is one.
    pub(crate) fn wait_behind_earlier(&self, run: &RunRecord) -> bool {
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(folder_of(&run.id)) else {
            return false;
        };
        let place = place(run);
        let has_earlier = queue.waiting.first().is_some_and(|first| *first < place);
        let waits = has_earlier && place == queue.current;
        if waits {
            queue.add(place);
        }
        waits
    }

    /// Removes a run that is not executed any more. The next one is.
    pub(crate) fn remove(&self, id: &str) -> Following {
        let mut queues = self.queues();
        let Entry::Occupied(mut queue) = queues.entry(folder_of(id).to_owned()) else {
            return Following::None;
        };
        if queue.get().current.1 != id {
            return Following::None;
        }
        if let Some(next) = queue.get_mut().waiting.pop_first() {
            queue.get_mut().current = next.clone();
            return Following::Run(next.1);
        }
        if queue.remove().has_more {
            Following::InStore
        } else {
            Following::None
        }
    }
}

impl Queue {
    fn of(current: Place) -> Self {
        Self {
            current,
            waiting: BTreeSet::new(),
            has_more: false,
        }
    }

    fn add(&mut self, place: Place) {
        self.waiting.insert(place);
        if self.waiting.len() > LONGEST {
            self.waiting.pop_last();
            self.has_more = true;
        }
    }
}

fn place(run: &RunRecord) -> Place {
    (run.order, run.id.clone())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::record::RunStatus;

    fn run(order: u64) -> RunRecord {
        RunRecord {
            id: format!("talk/m{order}"),
            conversation: "talk".to_owned(),
            key: format!("m{order}"),
            engine: None,
            team: None,
            version: None,
            status: RunStatus::Pending { reason: None },
            failures: 0,
            created: SystemTime::UNIX_EPOCH,
            changed: SystemTime::UNIX_EPOCH,
            due: None,
            wake: None,
            log: 0,
            order,
            has_begun: false,
            lease_owner: String::new(),
        }
    }

    fn following(order: u64) -> Following {
        Following::Run(run(order).id)
    }

    #[test]
    fn messages_follow_each_other_in_their_order() {
        let queues = MessageQueues::default();
        assert_eq!(queues.add(&run(3)), Added::First);
        assert_eq!(queues.add(&run(3)), Added::Behind);
        assert_eq!(queues.add(&run(5)), Added::Behind);
        assert_eq!(queues.add(&run(4)), Added::Behind);
        assert!(queues.is_waiting(&run(4)) && !queues.is_waiting(&run(3)));
        assert_eq!(queues.remove("talk/m5"), Following::None);
        assert_eq!(queues.remove("talk/m3"), following(4));
        assert_eq!(queues.remove("talk/m4"), following(5));
        assert_eq!(queues.remove("talk/m5"), Following::None);
        assert_eq!(queues.add(&run(1)), Added::First);
    }

    #[test]
    fn a_message_waits_behind_an_earlier_one_that_came_later() {
        let queues = MessageQueues::default();
        assert_eq!(queues.add(&run(3)), Added::First);
        assert!(!queues.wait_behind_earlier(&run(3)));
        assert_eq!(queues.add(&run(2)), Added::Before(run(3).id));
        assert!(queues.wait_behind_earlier(&run(3)));
        assert_eq!(queues.remove("talk/m3"), following(2));
        assert_eq!(queues.remove("talk/m2"), following(3));
    }

    #[test]
    fn the_store_is_asked_for_the_messages_that_a_process_that_is_gone_had() {
        let queues = MessageQueues::default();
        queues.add_begun(&run(1));
        assert_eq!(queues.add(&run(2)), Added::Behind);
        assert_eq!(queues.remove("talk/m1"), following(2));
        assert_eq!(queues.remove("talk/m2"), Following::InStore);
        assert_eq!(queues.remove("talk/m2"), Following::None);
    }

    #[test]
    fn a_queue_has_a_bounded_length() {
        let queues = MessageQueues::default();
        let longest = LONGEST as u64;
        for order in 0..longest + 3 {
            queues.add(&run(order));
        }
        for order in 0..longest {
            let next = queues.remove(&run(order).id);
            assert_eq!(next, following(order + 1));
        }
        assert_eq!(queues.remove(&run(longest).id), Following::InStore);
    }
}
