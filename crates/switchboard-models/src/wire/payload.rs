//! What a request carries, put together while it is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use switchboard_core::{Item, Items};

/// How much is put together at a time, or a little more: what the processor still has at hand when the
/// system copies it, and less than glibc would get from the system anew each time. With half of it 1,000
/// items cost a tenth more, with twice as much no less.
const BLOCK: usize = 120 << 10;

/// Room for what stands around a conversation, or for the item that ends a block.
const ROOM: usize = 2 << 10;

/// Writes an item as the protocol has it, and the next one with it where they belong together; how many
/// these are.
pub(crate) type WriteItem = fn(&mut Vec<u8>, &Item, Option<&Item>) -> usize;

/// Writes an item as it stands.
pub(crate) fn as_it_is(json: &mut Vec<u8>, item: &Item, _next: Option<&Item>) -> usize {
    json.extend_from_slice(item.as_json().as_bytes());
    1
}

/// JSON in the making, in which most of a conversation is only noted: it stays in the items, which
/// everybody shares, and is written when it is sent.
pub(crate) struct Draft<'i> {
    pub(crate) json: Vec<u8>,
    items: &'i Items,
    write: WriteItem,
    runs: Vec<Run>,
    /// How many bytes the runs will have.
    noted: usize,
}

/// Items that come one after another, with commas between them, and where in the draft they belong.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: usize,
    first: usize,
    items: usize,
    length: usize,
}

impl<'i> Draft<'i> {
    /// Of a conversation, whose items `write` writes.
    pub(crate) fn of(items: &'i Items, write: WriteItem) -> Self {
        Self {
            json: Vec::with_capacity(ROOM),
            items,
            write,
            runs: Vec::new(),
            noted: 0,
        }
    }

    /// Adds all items as a list, each as it stands.
    pub(crate) fn all(&mut self) {
        self.json.push(b'[');
        let lengths = self.items.iter().map(|item| item.as_json().len() + 1);
        let length = lengths.sum::<usize>().saturating_sub(1);
        self.run(0, self.items.len(), length, true);
        self.json.push(b']');
    }

    /// Adds the items from `first` on, which the writer will write in so many bytes.
    pub(crate) fn run(&mut self, first: usize, items: usize, length: usize, is_first: bool) {
        let at = self.json.len();
        match self.runs.last_mut() {
            Some(run) if run.at == at && run.first + run.items == first => {
                run.items += items;
                run.length += 1 + length;
                self.noted += 1 + length;
            }
            _ => {
                if !is_first {
                    self.json.push(b',');
                }
                self.noted += length;
                self.runs.push(Run {
                    at: self.json.len(),
                    first,
                    items,
                    length,
                });
            }
        }
    }

    /// Where it ends now, to come back to.
    pub(crate) fn end(&self) -> (usize, usize) {
        (self.json.len(), self.runs.len())
    }

    /// Takes back what was added since.
    pub(crate) fn back_to(&mut self, (json, runs): (usize, usize)) {
        self.json.truncate(json);
        for run in self.runs.drain(runs..) {
            self.noted -= run.length;
        }
    }

    /// What is to be sent.
    pub(crate) fn finish(self) -> Payload {
        Payload(Arc::new(Finished {
            length: self.json.len() + self.noted,
            json: self.json.into(),
            items: self.items.clone(),
            write: self.write,
            runs: self.runs,
        }))
    }
}

/// The body of a request. Only a block at a time is copied for the connection. A request that waits for
/// its answer so holds no copy of its conversation; and 64 of them at once over 1,000 items each cost a
/// quarter less than with copies, which leave the cache before they are sent.
#[derive(Clone)]
pub(crate) struct Payload(Arc<Finished>);

struct Finished {
    json: Bytes,
    items: Items,
    write: WriteItem,
    runs: Vec<Run>,
    length: usize,
}

impl Payload {
    /// For one attempt to send it. Wrapped also where it is but bytes: of bytes the client would keep a
    /// request to send again, as we do ourselves, which costs 3,000 instructions.
    pub(crate) fn body(&self) -> reqwest::Body {
        reqwest::Body::wrap(Sending::new(self.clone()))
    }

    #[cfg(test)]
    pub(crate) fn length(&self) -> usize {
        self.0.length
    }

    /// All of it in one piece.
    #[cfg(test)]
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut sending = Sending::new(self.clone());
        let mut json = Vec::new();
        while let Some(block) = sending.next_block() {
            json.extend_from_slice(&block);
        }
        json
    }
}

/// A payload on its way.
struct Sending {
    payload: Payload,
    /// How much of its JSON has gone, how many runs, and how many items of the next run.
    json: usize,
    runs: usize,
    items: usize,
    /// How many bytes are left.
    left: usize,
    /// Whether the connection gets the word before the next block.
    yields: bool,
}

impl Sending {
    fn new(payload: Payload) -> Self {
        Self {
            left: payload.0.length,
            payload,
            json: 0,
            runs: 0,
            items: 0,
            yields: false,
        }
    }

    fn next_block(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let Finished { json, runs, .. } = &*self.payload.0;
        if runs.is_empty() {
            self.left = 0;
            return Some(json.clone());
        }
        let mut block = Vec::with_capacity(self.left.min(BLOCK + ROOM));
        while block.len() < BLOCK {
            let run = runs.get(self.runs);
            let until = run.map_or(json.len(), |run| run.at);
            block.extend_from_slice(&json[self.json..until]);
            self.json = until;
            let Some(run) = run else {
                break;
            };
            self.items += self.write(&mut block, *run);
            if self.items >= run.items {
                self.items = 0;
                self.runs += 1;
            }
        }
        debug_assert!(block.len() <= self.left, "a run is longer than was noted");
        // Were a run shorter than was noted, the request would fail; it must not wait for the rest.
        if block.is_empty() {
            self.left = 0;
            return None;
        }
        self.left = self.left.saturating_sub(block.len());
        Some(block.into())
    }

    /// Writes what is left of a run until the block is full; how many items.
    fn write(&self, block: &mut Vec<u8>, run: Run) -> usize {
        let Finished { items, write, .. } = &*self.payload.0;
        let mut rest = items.iter().skip(run.first + self.items);
        let mut item = rest.next();
        let mut written = 0;
        while let Some(this) = item
            && self.items + written < run.items
            && block.len() < BLOCK
        {
            if self.items + written > 0 {
                block.push(b',');
            }
            let next = rest.next();
            let count = write(block, this, next);
            item = if count > 1 { rest.next() } else { next };
            written += count.max(1);
        }
        written
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // A connection gathers all that there is before it sends; it is to send each block first.
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let block = self.next_block();
        self.yields = self.left > 0;
        Poll::Ready(block.map(|block| Ok(Frame::data(block))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    /// Known beforehand, and so told to the server: not all of them take a body of unknown length.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An item as it stands, and one that is a call with what follows it.
    fn in_pairs(json: &mut Vec<u8>, item: &Item, next: Option<&Item>) -> usize {
        as_it_is(json, item, None);
        match next {
            Some(next) if item.call_id().is_some() => {
                json.push(b'+');
                as_it_is(json, next, None) + 1
            }
            _ => 1,
        }
    }

    #[test]
    fn what_was_taken_back_is_not_sent() {
        let items: Items = vec![Item::user("Hi"), Item::user("Ho")].into();
        let mut draft = Draft::of(&items, as_it_is);
        draft.json.push(b'<');
        let before = draft.end();
        draft.all();
        draft.back_to(before);
        draft.json.push(b'>');
        let payload = draft.finish();
        assert_eq!(payload.json(), b"<>");
        assert_eq!(Sending::new(payload).size_hint().exact(), Some(2));
    }

    #[test]
    fn what_is_shorter_than_was_noted_ends() {
        let items: Items = vec![Item::user("Hi")].into();
        let mut draft = Draft::of(&items, as_it_is);
        draft.run(0, 1, items[0].as_json().len() + 7, true);
        let mut sending = Sending::new(draft.finish());
        assert!(sending.next_block().is_some());
        assert_eq!((sending.left, sending.next_block()), (7, None));
        assert!(sending.is_end_stream());
    }

    proptest! {
        #[test]
        fn blocks_make_up_the_whole(
            parts in prop::collection::vec(
                (
                    prop_oneof![4 => 0usize..400, 1 => Just(BLOCK), 1 => 60_000usize..70_000],
                    any::<bool>(),
                    prop_oneof![3 => Just(0), 1 => 0usize..300],
                ),
                0..14,
            ),
        ) {
            let mut list = Vec::new();
            for (length, is_pair, _) in &parts {
                match is_pair {
                    true => list.push(Item::function_call("c", "n", &"x".repeat(*length))),
                    false => list.push(Item::user("x".repeat(*length))),
                }
                if *is_pair {
                    list.push(Item::user("next"));
                }
            }
            let items: Items = list.into();
            let mut draft = Draft::of(&items, in_pairs);
            let (mut place, mut expected) = (0, Vec::new());
            for (_, is_pair, between) in parts {
                if between > 0 {
                    draft.json.extend(std::iter::repeat_n(b'-', between));
                    expected.extend(std::iter::repeat_n(b'-', between));
                }
                if place > 0 {
                    expected.push(b',');
                }
                let start = expected.len();
                let count = in_pairs(&mut expected, &items[place], items.get(place + 1));
                prop_assert_eq!(count == 2, is_pair);
                draft.run(place, count, expected.len() - start, place == 0);
                place += count;
            }
            let payload = draft.finish();
            prop_assert_eq!(payload.0.length, expected.len());
            let mut sending = Sending::new(payload.clone());
            prop_assert_eq!(sending.size_hint().exact(), Some(expected.len() as u64));
            let mut sent = Vec::new();
            while let Some(block) = sending.next_block() {
                prop_assert!(!block.is_empty());
                sent.extend_from_slice(&block);
            }
            prop_assert!(sending.is_end_stream());
            prop_assert_eq!(sent, expected);
        }

        #[test]
        fn all_items_are_a_list(lengths in prop::collection::vec(0usize..400, 0..12)) {
            let items: Items = lengths.iter().map(|length| Item::user("x".repeat(*length))).collect();
            let mut draft = Draft::of(&items, as_it_is);
            draft.all();
            let list: Vec<&str> = items.iter().map(Item::as_json).collect();
            let expected = format!("[{}]", list.join(","));
            prop_assert_eq!(draft.finish().json(), expected.as_bytes());
        }
    }
}
