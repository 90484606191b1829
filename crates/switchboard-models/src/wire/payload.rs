//! The bytes of a request, whose items are serialized while it is sent.

mod sending;

use std::sync::Arc;

use sending::PayloadStream;
pub(crate) use sending::WrongLength;
use switchboard_core::Item;
use switchboard_core::items::Items;

use crate::http_client::{RequestBody, body};

/// Capacity for the JSON around a conversation.
const JSON_CAPACITY: usize = 1 << 10;

/// Writes an item in the form of the protocol, and returns the number of items written: a writer may
/// write `next`, the item that follows, together with it.
pub(crate) type WriteItem = fn(&mut Vec<u8>, &Item, next: Option<&Item>) -> usize;

/// Writes an item's own JSON.
pub(crate) fn write_unchanged(out: &mut Vec<u8>, item: &Item, _next: Option<&Item>) -> usize {
    out.extend_from_slice(item.as_json().as_bytes());
    1
}

/// The body of a request. It shares the conversation's items and copies one block of them at a time, so
/// a request that waits for its answer holds no copy of its conversation.
pub(crate) struct Payload {
    pub(crate) json: Vec<u8>,
    items: Items,
    write: WriteItem,
    /// The runs of items between the JSON, written when the payload is sent.
    runs: Vec<ItemRun>,
    /// The serialized length of the runs.
    runs_length: usize,
    /// Set until the current list has an element.
    is_list_empty: bool,
}

/// Consecutive items, to be written with commas between them.
#[derive(Debug, Clone, Copy)]
struct ItemRun {
    /// The offset in the JSON where they are inserted.
    at: usize,
    /// The index of the first item.
    first: usize,
    count: usize,
    /// The serialized length.
    length: usize,
}

impl Payload {
    /// A payload for this conversation, whose items `write` writes.
    pub(crate) fn new(items: &Items, write: WriteItem) -> Self {
        Self {
            json: Vec::with_capacity(JSON_CAPACITY),
            items: items.clone(),
            write,
            runs: Vec::new(),
            runs_length: 0,
            is_list_empty: true,
        }
    }

    /// Begins a list.
    pub(crate) fn begin_list(&mut self) {
        self.json.push(b'[');
        self.is_list_empty = true;
    }

    /// Begins an element of a list, with a comma unless it is the first.
    pub(crate) fn begin_element(&mut self) {
        if !std::mem::take(&mut self.is_list_empty) {
            self.json.push(b',');
        }
    }

    /// Adds items as elements of a list; `length` is their serialized length.
    pub(crate) fn add_items(&mut self, first: usize, count: usize, length: usize) {
        let at = self.json.len();
        match self.runs.last_mut() {
            Some(run) if run.at == at && run.first + run.count == first => {
                run.count += count;
                run.length += 1 + length;
                self.runs_length += 1 + length;
            }
            _ => {
                self.begin_element();
                self.runs_length += length;
                self.runs.push(ItemRun {
                    at: self.json.len(),
                    first,
                    count,
                    length,
                });
            }
        }
    }

    /// The current end, for [`Payload::truncate`].
    pub(crate) fn end(&self) -> (usize, usize) {
        (self.json.len(), self.runs.len())
    }

    /// Removes what was added to the payload after [`Payload::end`].
    pub(crate) fn truncate(&mut self, (json, runs): (usize, usize)) {
        self.json.truncate(json);
        for run in self.runs.drain(runs..) {
            self.runs_length -= run.length;
        }
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> usize {
        self.json.len() + self.runs_length
    }

    /// The body for one attempt to send it.
    pub(crate) fn body(self: &Arc<Self>) -> RequestBody {
        body(PayloadStream::new(self.clone()))
    }

    /// The whole body.
    #[cfg(test)]
    pub(crate) fn into_json(self) -> Vec<u8> {
        let mut stream = PayloadStream::new(Arc::new(self));
        let mut json = Vec::new();
        while let Some(block) = stream.next_block().expect("its length is right") {
            json.extend_from_slice(&block);
        }
        json
    }
}
