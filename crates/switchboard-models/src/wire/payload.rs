//! What a request carries, put together while it is sent.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use switchboard_core::__private::{Form, Stretch};
use switchboard_core::{Item, Items};

/// How much is put together at a time, or a little more: what the processor still has at hand when the
/// system copies it, and less than glibc would get from the system anew each time. With half of it 1,000
/// items cost a tenth more, with twice as much no less.
const BLOCK: usize = 120 << 10;

/// Room for what stands around a conversation, or for the item that ends a block.
const ROOM: usize = 2 << 10;

/// Writes items that lie side by side as the protocol has them, with commas between them, until all are
/// written or the block is full; how many these are. `after` is the item that comes next, which may belong to
/// the last one and is then written with it.
pub(crate) type WriteItems = fn(&mut Vec<u8>, &[Item], after: Option<&Item>) -> usize;

/// Writes items as they stand.
pub(crate) fn as_they_are(block: &mut Vec<u8>, items: &[Item], _after: Option<&Item>) -> usize {
    let fitting = fitting(block, items);
    for (at, item) in items[..fitting].iter().enumerate() {
        if at > 0 {
            block.push(b',');
        }
        block.extend_from_slice(item.as_json().as_bytes());
    }
    fitting
}

/// With how many of the items as they stand a block is full. Whoever writes items asks this first: in so
/// small a loop the processor fetches many items at a time that it has not at hand.
pub(crate) fn fitting(block: &[u8], items: &[Item]) -> usize {
    let mut length = block.len();
    let fits = |item: &&Item| {
        let fits = length < BLOCK;
        length += item.as_json().len() + 1;
        fits
    };
    items.iter().take_while(fits).count()
}

/// Whether no other item is to be written into a block.
pub(crate) fn is_full(block: &[u8]) -> bool {
    block.len() >= BLOCK
}

/// JSON in the making, in which most of a conversation is only noted: it stays in the items, which
/// everybody shares, and is written when it is sent.
pub(crate) struct Draft<'i> {
    pub(crate) json: Vec<u8>,
    items: &'i Items,
    write: WriteItems,
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
    pub(crate) fn of(items: &'i Items, write: WriteItems) -> Self {
        Self {
            json: Vec::with_capacity(ROOM),
            items,
            write,
            runs: Vec::new(),
            noted: 0,
        }
    }

    /// Adds all items as a list, each as it stands. Of those that went before the lengths are known.
    pub(crate) fn all(&mut self) {
        self.json.push(b'[');
        let lengths = self.items.stretches().map(|stretch| {
            let known = stretch.usual(Form::Responses);
            let others = stretch.elements[known.elements..].iter();
            let length = others.map(|item| item.as_json().len() + 1).sum::<usize>();
            known.length + length
        });
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
    write: WriteItems,
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
        while let Some(block) = sending.next_block().expect("it is as long as was noted") {
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

    fn next_block(&mut self) -> Result<Option<Bytes>, WrongLength> {
        if self.left == 0 {
            return Ok(None);
        }
        let Finished { json, runs, .. } = &*self.payload.0;
        if runs.is_empty() {
            self.left = 0;
            return Ok(Some(json.clone()));
        }
        let mut block = Vec::with_capacity(self.left.min(BLOCK + ROOM));
        while !is_full(&block) {
            let run = runs.get(self.runs);
            let until = run.map_or(json.len(), |run| run.at);
            block.extend_from_slice(&json[self.json..until]);
            self.json = until;
            let Some(run) = run.filter(|_| !is_full(&block)) else {
                break;
            };
            self.items += self.write(&mut block, *run);
            if self.items >= run.items {
                self.items = 0;
                self.runs += 1;
            }
        }
        // The server was told how much comes. It must not get less, nor the beginning of more.
        if block.is_empty() || block.len() > self.left {
            self.left = 0;
            return Err(WrongLength);
        }
        self.left -= block.len();
        Ok(Some(block.into()))
    }

    /// Writes what is left of a run until the block is full; how many items.
    fn write(&self, block: &mut Vec<u8>, run: Run) -> usize {
        let Finished { items, write, .. } = &*self.payload.0;
        let start = run.first + self.items;
        let end = run.first + run.items;
        let (mut next, mut place) = (start, 0);
        let mut stretches = items.stretches().peekable();
        while let Some(Stretch { elements, .. }) = stretches.next() {
            let (from, to) = (
                next.max(place) - place,
                end.min(place + elements.len()) - place,
            );
            place += elements.len();
            if from >= elements.len() {
                continue;
            }
            if next > run.first {
                block.push(b',');
            }
            let after = stretches
                .peek()
                .and_then(|stretch| stretch.elements.first());
            next += write(block, &elements[from..to], after);
            if next >= end || is_full(block) {
                break;
            }
        }
        next - start
    }
}

/// A run came out longer or shorter than was noted, which is a defect of this crate. The request fails.
#[derive(Debug, PartialEq, Eq)]
struct WrongLength;

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the request is not as long as was announced; this is a defect of switchboard, please report it",
        )
    }
}

impl Error for WrongLength {}

impl Body for Sending {
    type Data = Bytes;
    type Error = WrongLength;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WrongLength>>> {
        // A connection gathers all that there is before it sends; it is to send each block first.
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let block = self.next_block();
        self.yields = self.left > 0;
        Poll::Ready(block.transpose().map(|block| block.map(Frame::data)))
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
    use switchboard_core::__private::Usual;

    use super::*;

    /// Items as they stand, and one that is a call with what follows it.
    fn in_pairs(block: &mut Vec<u8>, items: &[Item], after: Option<&Item>) -> usize {
        let mut at = 0;
        while at < items.len() && !is_full(block) {
            if at > 0 {
                block.push(b',');
            }
            block.extend_from_slice(items[at].as_json().as_bytes());
            at += 1;
            if let Some(next) = items.get(at).or(after)
                && items[at - 1].call_id().is_some()
            {
                block.push(b'+');
                block.extend_from_slice(next.as_json().as_bytes());
                at += 1;
            }
        }
        at
    }

    #[test]
    fn what_was_taken_back_is_not_sent() {
        let items: Items = vec![Item::user("Hi"), Item::user("Ho")].into();
        let mut draft = Draft::of(&items, as_they_are);
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
    fn what_is_not_as_long_as_was_noted_is_not_sent() {
        let items: Items = vec![Item::user("Hi")].into();
        let length = items[0].as_json().len();
        let sent = |noted| {
            let mut draft = Draft::of(&items, as_they_are);
            draft.run(0, 1, noted, true);
            let mut sending = Sending::new(draft.finish());
            let first = sending.next_block().map(|block| block.is_some());
            (first, sending.next_block(), sending.is_end_stream())
        };
        assert_eq!(sent(length), (Ok(true), Ok(None), true));
        assert_eq!(sent(length + 7), (Ok(true), Err(WrongLength), true));
        assert_eq!(sent(length - 1), (Err(WrongLength), Ok(None), true));
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
            let mut items = Items::new();
            let mut shared = Vec::new();
            for (length, is_pair, _) in &parts {
                let mut list = Vec::new();
                match is_pair {
                    true => list.push(Item::function_call("c", "n", &"x".repeat(*length))),
                    false => list.push(Item::user("x".repeat(*length))),
                }
                if *is_pair {
                    list.push(Item::user("next"));
                }
                // Pairs may lie in one stretch or in two.
                for item in list {
                    if length % 3 > 0 {
                        shared.push(items.clone());
                    }
                    items.extend([item]);
                }
            }
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
                let mut one = Vec::new();
                let count = in_pairs(&mut one, &[items[place].clone()], items.get(place + 1));
                expected.extend(one);
                prop_assert_eq!(count == 2, is_pair);
                draft.run(place, count, expected.len() - start, place == 0);
                place += count;
            }
            let payload = draft.finish();
            prop_assert_eq!(payload.0.length, expected.len());
            let mut sending = Sending::new(payload.clone());
            prop_assert_eq!(sending.size_hint().exact(), Some(expected.len() as u64));
            let mut sent = Vec::new();
            while let Some(block) = sending.next_block().unwrap() {
                prop_assert!(!block.is_empty());
                sent.extend_from_slice(&block);
            }
            prop_assert!(sending.is_end_stream());
            prop_assert_eq!(sent, expected);
        }

        #[test]
        fn all_items_are_a_list(lengths in prop::collection::vec(0usize..400, 0..12)) {
            let mut items = Items::new();
            let mut shared = Vec::new();
            for length in lengths {
                if length % 3 > 0 {
                    shared.push(items.clone());
                }
                items.extend([Item::user("x".repeat(length))]);
                // What is known of the first items is used.
                let known = items.stretches().last().filter(|_| length % 2 > 0);
                if let Some(stretch) = known {
                    let length = stretch.elements.iter().map(|item| item.as_json().len() + 1).sum();
                    stretch.note(Form::Responses, Usual { elements: stretch.elements.len(), length });
                }
            }
            let mut draft = Draft::of(&items, as_they_are);
            draft.all();
            let list: Vec<&str> = items.iter().map(Item::as_json).collect();
            let expected = format!("[{}]", list.join(","));
            prop_assert_eq!(draft.finish().json(), expected.as_bytes());
        }
    }
}
