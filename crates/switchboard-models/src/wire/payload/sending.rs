//! A payload on its way to the server, block by block.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use switchboard_core::Item;

use super::{Finished, Payload, ROOM, Run};

/// How much is put together at a time, or a little more: what the processor still has at hand when the
/// system copies it, and less than glibc would get from the system anew each time. With half of it 1,000
/// items cost a tenth more, with twice as much no less. In tests blocks end everywhere.
const BLOCK: usize = if cfg!(test) { 64 } else { 120 << 10 };

/// Writes items that lie side by side as the protocol has them, with commas between them, until all are
/// written or the block is full, but at least one; how many these are. `after` is the item that comes next,
/// which may belong to the last one and is then written with it.
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

/// With how many of the items as they stand a block is full; at least one. Whoever writes items asks this
/// first: in so small a loop the processor fetches many items at a time that it has not at hand.
pub(crate) fn fitting(block: &[u8], items: &[Item]) -> usize {
    let mut length = block.len();
    let leaves_room = |item: &&Item| {
        length += item.as_json().len();
        let leaves_room = length < BLOCK;
        length += 1;
        leaves_room
    };
    let before_last = items.iter().take_while(leaves_room).count();
    items.len().min(before_last + 1)
}

/// Whether no other item is to be written into a block.
pub(crate) fn is_full(block: &[u8]) -> bool {
    block.len() >= BLOCK
}

/// A payload on its way.
pub(super) struct Sending {
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
    pub(super) fn new(payload: Payload) -> Self {
        Self {
            left: payload.0.length,
            payload,
            json: 0,
            runs: 0,
            items: 0,
            yields: false,
        }
    }

    pub(super) fn next_block(&mut self) -> Result<Option<Bytes>, WrongLength> {
        if self.left == 0 {
            return Ok(None);
        }
        let Finished {
            json,
            runs,
            items,
            write,
            ..
        } = &*self.payload.0;
        if runs.is_empty() {
            self.left = 0;
            return Ok(Some(json.clone()));
        }
        let mut block = Vec::with_capacity(self.left.min(BLOCK + ROOM));
        let stretches = items.chunks().map(|stretch| stretch.elements);
        let mut writer = Writer {
            stretches: stretches.collect(),
            at: 0,
            place: 0,
            write: *write,
        };
        while !is_full(&block) {
            let run = runs.get(self.runs);
            let until = run.map_or(json.len(), |run| run.at);
            block.extend_from_slice(&json[self.json..until]);
            self.json = until;
            let Some(run) = run else {
                break;
            };
            self.items += writer.write(&mut block, *run, self.items);
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
}

/// Goes through a conversation from its first item to its last.
struct Writer<'a> {
    stretches: Vec<&'a [Item]>,
    /// The stretch it is at, and where that begins.
    at: usize,
    place: usize,
    write: WriteItems,
}

impl Writer<'_> {
    /// Writes a run, of which so many items have gone, until the block is full; how many items.
    fn write(&mut self, block: &mut Vec<u8>, run: Run, gone: usize) -> usize {
        let (start, end) = (run.first + gone, run.first + run.items);
        let mut next = start;
        while next < end && !is_full(block) {
            let Some(elements) = self.stretches.get(self.at) else {
                break;
            };
            if next >= self.place + elements.len() {
                self.place += elements.len();
                self.at += 1;
                continue;
            }
            if next > run.first {
                block.push(b',');
            }
            let items = &elements[next - self.place..elements.len().min(end - self.place)];
            let after = self.stretches.get(self.at + 1);
            let written = (self.write)(block, items, after.and_then(|after| after.first()));
            // It must come to an end, whatever a writer says.
            next += written.max(1);
        }
        next - start
    }
}

/// A run came out longer or shorter than was noted, which is a defect of this crate. The request fails.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongLength;

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "it is not as long as was announced; this is a defect of switchboard, please report it",
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
mod tests;
