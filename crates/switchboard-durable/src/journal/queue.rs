//! Entries of a journal that wait to be written.

use switchboard_core::conversation::{Entry, EntryContent};

use crate::events::EVENTS_PER_ENTRY;

/// Entries in their order. Events that come one after the other, or between other entries, share an entry: stores take a row
/// for each.
#[derive(Default)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    events: Events,
    /// The number of entries and events that were ever added.
    added: u64,
}

/// Events that share an entry, as JSON.
#[derive(Default)]
struct Events {
    list: Vec<String>,
    /// The place of the entry: that of its first event, so that none is moved behind the outcome of its step.
    place: usize,
}

impl Queue {
    /// Returns `true` if something else waits than the events that share an entry with the next one.
    pub(super) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.events.list.is_empty()
    }

    pub(super) fn added(&self) -> u64 {
        self.added
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.added += 1;
    }

    /// Adds an event, as JSON.
    pub(super) fn push_event(&mut self, event: String) {
        let events = &mut self.events;
        if events.list.is_empty() {
            events.place = self.entries.len();
        }
        events.list.push(event);
        self.added += 1;
    }

    /// Has the next event begin an entry of its own.
    pub(super) fn end_events(&mut self) {
        let Events { list, place } = std::mem::take(&mut self.events);
        for (at, events) in list.chunks(EVENTS_PER_ENTRY as usize).enumerate() {
            let json = format!(r#"{{"events":[{}]}}"#, events.join(","));
            let entry = Entry::new(EntryContent::Step(json.into()));
            self.entries.insert(place + at, entry);
        }
    }

    /// Takes the events since [`end_events`](Self::end_events) for which a condition holds.
    pub(super) fn take_events(&mut self, is_taken: impl Fn(&str) -> bool) -> Vec<String> {
        let events = std::mem::take(&mut self.events.list);
        let (taken, kept) = events.into_iter().partition(|event| is_taken(event));
        self.events.list = kept;
        taken
    }

    /// Takes all entries.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        self.end_events();
        std::mem::take(&mut self.entries)
    }

    /// Puts entries back that were taken, before those that have come meanwhile.
    pub(super) fn put_back(&mut self, mut entries: Vec<Entry>) {
        self.events.place += entries.len();
        entries.append(&mut self.entries);
        self.entries = entries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> Entry {
        Entry::new(EntryContent::Step(json.into()))
    }

    fn taken(queue: &mut Queue) -> Vec<String> {
        let entries = queue.take();
        let json = entries.iter().map(|entry| entry.content.as_json());
        json.map(str::to_owned).collect()
    }

    #[test]
    fn events_share_the_entry_of_the_first() {
        let mut queue = Queue::default();
        queue.push(entry("1"));
        queue.push_event("2".to_owned());
        queue.push(entry("3"));
        queue.push_event("4".to_owned());
        assert_eq!(queue.added(), 4);
        assert_eq!(taken(&mut queue), ["1", r#"{"events":[2,4]}"#, "3"]);
        assert!(queue.is_empty());
        assert_eq!(taken(&mut queue), [""; 0]);
    }

    #[test]
    fn events_after_a_retraction_are_stored_after_it() {
        let mut queue = Queue::default();
        queue.push_event("1".to_owned());
        queue.end_events();
        queue.push(entry("2"));
        queue.push_event("3".to_owned());
        let expected = [r#"{"events":[1]}"#, "2", r#"{"events":[3]}"#];
        assert_eq!(taken(&mut queue), expected);
    }

    #[test]
    fn events_are_taken_out_and_put_in_again() {
        let mut queue = Queue::default();
        for event in ["1", "2", "3"] {
            queue.push_event(event.to_owned());
        }
        queue.push(entry("4"));
        assert_eq!(queue.take_events(|event| event != "2"), ["1", "3"]);
        assert!(!queue.is_empty());
        queue.push_event("5".to_owned());
        assert_eq!(taken(&mut queue), [r#"{"events":[2,5]}"#, "4"]);
    }

    #[test]
    fn entries_that_are_put_back_come_first() {
        let mut queue = Queue::default();
        queue.push_event("1".to_owned());
        queue.push(entry("2"));
        let entries = queue.take();
        queue.push(entry("3"));
        queue.push_event("4".to_owned());
        queue.put_back(entries);
        let expected = [r#"{"events":[1]}"#, "2", "3", r#"{"events":[4]}"#];
        assert_eq!(taken(&mut queue), expected);
    }

    #[test]
    fn an_entry_has_a_bounded_number_of_events() {
        let mut queue = Queue::default();
        for _ in 0..2 * EVENTS_PER_ENTRY + 1 {
            queue.push_event("0".to_owned());
        }
        let numbers = taken(&mut queue);
        let numbers = numbers.iter().map(|json| json.matches('0').count() as u64);
        let numbers: Vec<u64> = numbers.collect();
        assert_eq!(numbers, [EVENTS_PER_ENTRY, EVENTS_PER_ENTRY, 1]);
    }
}
