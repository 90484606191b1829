//! What a request carries, put together while it is sent.

mod sending;

use std::sync::Arc;

use bytes::Bytes;
use sending::Sending;
pub(crate) use sending::{WriteItems, WrongLength, as_they_are, fitting, is_full};
use switchboard_core::__private::Form;
use switchboard_core::Items;

/// Room for what stands around a conversation, or for the item that ends a block.
const ROOM: usize = 2 << 10;

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
        let lengths = self.items.chunks().map(|stretch| {
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
