//! What a request carries, put together while it is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use switchboard_core::{Item, Items};

/// About how much is put together at a time: what the processor still has at hand when the system
/// copies it.
const BLOCK: usize = 64 << 10;

/// Room for what stands around a conversation.
const ROOM: usize = 2 << 10;

/// From this length on a part of an item stays there. What is shorter costs less to copy than to note.
const LONG: usize = 128;

/// JSON in the making, in which long parts of a conversation are only noted: they stay in the items,
/// which everybody shares.
pub(crate) struct Draft<'i> {
    pub(crate) json: Vec<u8>,
    items: &'i Items,
    parts: Vec<Part>,
    /// How many bytes the parts have.
    noted: usize,
}

/// What was only noted, and where in the draft it belongs.
#[derive(Debug, Clone, Copy)]
struct Part {
    at: usize,
    length: usize,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// A part of the JSON of the item at a place.
    Of { place: u32, start: u32 },
    /// All items, with commas between them.
    All,
}

impl<'i> Draft<'i> {
    /// Of a conversation.
    pub(crate) fn of(items: &'i Items) -> Self {
        Self {
            json: Vec::with_capacity(ROOM),
            items,
            parts: Vec::new(),
            noted: 0,
        }
    }

    /// Adds all items as a list.
    pub(crate) fn all(&mut self) {
        self.json.push(b'[');
        let lengths = self.items.iter().map(|item| item.as_json().len() + 1);
        let length = lengths.sum::<usize>().saturating_sub(1);
        self.note(length, What::All);
        self.json.push(b']');
    }

    /// Adds a part of the JSON of `item`, which is the one at `place`.
    #[inline]
    pub(crate) fn part(&mut self, place: usize, item: &Item, part: &str) {
        debug_assert!(self.items.get(place).is_some_and(|known| known == item));
        if part.len() >= LONG {
            let start = part.as_ptr() as usize - item.as_json().as_ptr() as usize;
            if let (Ok(place), Ok(start)) = (place.try_into(), start.try_into()) {
                return self.note(part.len(), What::Of { place, start });
            }
        }
        self.json.extend_from_slice(part.as_bytes());
    }

    fn note(&mut self, length: usize, what: What) {
        self.noted += length;
        let at = self.json.len();
        self.parts.push(Part { at, length, what });
    }

    /// Where it ends now, to come back to.
    pub(crate) fn end(&self) -> (usize, usize) {
        (self.json.len(), self.parts.len())
    }

    /// Takes back what was added since.
    pub(crate) fn back_to(&mut self, (json, parts): (usize, usize)) {
        self.json.truncate(json);
        for part in self.parts.drain(parts..) {
            self.noted -= part.length;
        }
    }

    /// What is to be sent.
    pub(crate) fn finish(self) -> Payload {
        Payload(Arc::new(Finished {
            length: self.json.len() + self.noted,
            json: self.json.into(),
            items: self.items.clone(),
            parts: self.parts,
        }))
    }
}

/// The body of a request. Only a block at a time is copied for the connection. A request that waits for
/// its answer so holds little more of a conversation than where its parts are; and 64 of them at once over
/// 1,000 items each cost a quarter less than with copies, which leave the cache before they are sent.
#[derive(Clone)]
pub(crate) struct Payload(Arc<Finished>);

struct Finished {
    json: Bytes,
    items: Items,
    parts: Vec<Part>,
    length: usize,
}

impl Payload {
    /// For one attempt to send it. Wrapped also where it is but bytes: of bytes the client would keep a
    /// request to send again, as we do ourselves, which costs 3,000 instructions.
    pub(crate) fn body(&self) -> reqwest::Body {
        reqwest::Body::wrap(Sending::new(self.clone()))
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
    /// How much of its JSON has gone, how many parts, and how many items of a part that is all of them.
    json: usize,
    parts: usize,
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
            parts: 0,
            items: 0,
            yields: false,
        }
    }

    fn next_block(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let Finished {
            json, items, parts, ..
        } = &*self.payload.0;
        if parts.is_empty() {
            self.left = 0;
            return Some(json.clone());
        }
        let mut block = Block(Vec::with_capacity(self.left.min(BLOCK)));
        let mut rest = items.iter();
        let mut next = 0;
        loop {
            let part = parts.get(self.parts);
            let until = part.map_or(json.len(), |part| part.at);
            if !block.put(&json[self.json..until]) {
                break;
            }
            self.json = until;
            let Some(part) = part else {
                break;
            };
            match part.what {
                What::Of { place, start } => {
                    let place = place as usize;
                    // Mostly parts come in the order of their items.
                    let item = match place.checked_sub(next) {
                        Some(further) => rest.nth(further),
                        None => items.get(place),
                    };
                    next = next.max(place + 1);
                    let text = item.map_or("", Item::as_json).as_bytes();
                    let start = start as usize;
                    if !block.put(&text[start..start + part.length]) {
                        break;
                    }
                }
                What::All => {
                    self.items += block.put_items(items.iter().skip(self.items), self.items == 0);
                    if self.items < items.len() {
                        break;
                    }
                    self.items = 0;
                }
            }
            self.parts += 1;
        }
        self.left = self.left.saturating_sub(block.0.len());
        Some(block.0.into())
    }
}

/// What is sent at a time.
struct Block(Vec<u8>);

impl Block {
    /// Adds bytes, where there is room for them; whether there was. There is room for anything in an
    /// empty one.
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> bool {
        let has_room = self.0.len() + bytes.len() <= BLOCK || self.0.is_empty();
        if has_room {
            self.0.extend_from_slice(bytes);
        }
        has_room
    }

    /// Adds as many items as there is room for; how many these are.
    fn put_items<'i>(&mut self, items: impl Iterator<Item = &'i Item>, is_first: bool) -> usize {
        let mut count = 0;
        for item in items {
            let json = item.as_json().as_bytes();
            if self.0.len() + json.len() >= BLOCK && !self.0.is_empty() {
                break;
            }
            if !is_first || count > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(json);
            count += 1;
        }
        count
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

    fn blocks(payload: &Payload) -> Vec<Bytes> {
        let mut sending = Sending::new(payload.clone());
        let mut blocks = Vec::new();
        while let Some(block) = sending.next_block() {
            blocks.push(block);
        }
        assert!(sending.is_end_stream());
        blocks
    }

    #[test]
    fn what_is_short_is_ready_and_what_was_taken_back_is_not_sent() {
        let items: Items = vec![Item::user("Hi"), Item::user("x".repeat(300))].into();
        let mut draft = Draft::of(&items);
        draft.json.push(b'[');
        draft.part(0, &items[0], items[0].as_json());
        let before = draft.end();
        draft.json.push(b',');
        draft.part(1, &items[1], items[1].as_json());
        draft.back_to(before);
        draft.json.push(b']');
        let payload = draft.finish();
        let expected = format!("[{}]", items[0].as_json());
        assert_eq!(payload.json(), expected.as_bytes());
        let body = Sending::new(payload);
        assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
    }

    proptest! {
        #[test]
        fn blocks_make_up_the_whole(
            lengths in prop::collection::vec(prop_oneof![0usize..400, Just(BLOCK), Just(3 * BLOCK), 60_000usize..70_000], 1..12),
            order in prop::collection::vec((any::<prop::sample::Index>(), 0usize..200), 0..30),
        ) {
            let items: Items = lengths.iter().map(|length| Item::user("ü".repeat(*length))).collect();
            let mut draft = Draft::of(&items);
            let mut expected = Vec::new();
            for (place, between) in order {
                let place = place.index(items.len());
                let item = &items[place];
                draft.json.extend(std::iter::repeat_n(b'-', between));
                expected.extend(std::iter::repeat_n(b'-', between));
                let part = &item.as_json()[8..];
                draft.part(place, item, part);
                expected.extend_from_slice(part.as_bytes());
            }
            let payload = draft.finish();
            prop_assert_eq!(payload.0.length, expected.len());
            let blocks = blocks(&payload);
            let longest = items.iter().map(|item| item.as_json().len()).max().unwrap_or(0);
            prop_assert!(blocks.iter().all(|block| block.len() <= BLOCK.max(longest)));
            prop_assert_eq!(blocks.concat(), expected);
        }

        #[test]
        fn blocks_make_up_all_items(
            lengths in prop::collection::vec(prop_oneof![0usize..400, Just(BLOCK), 60_000usize..70_000], 0..12),
        ) {
            let items: Items = lengths.iter().map(|length| Item::user("x".repeat(*length))).collect();
            let mut draft = Draft::of(&items);
            draft.json.push(b'{');
            draft.all();
            draft.json.push(b'}');
            let payload = draft.finish();
            let list: Vec<&str> = items.iter().map(Item::as_json).collect();
            let expected = format!("{{[{}]}}", list.join(","));
            prop_assert_eq!(payload.0.length, expected.len());
            prop_assert_eq!(blocks(&payload).concat(), expected.as_bytes());
        }
    }
}
