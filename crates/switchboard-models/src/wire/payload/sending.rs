//! Sending a payload block by block.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::Payload;

/// The length at which a block is sent. Each block is a write of its own, which costs several
/// microseconds, and the next is copied over the last one while the processor's cache still holds it.
/// Small in tests, so that blocks end everywhere.
const BLOCK: usize = if cfg!(test) { 64 } else { 256 << 10 };

/// Capacity for the last item of a block.
const SPARE: usize = 2 << 10;

/// A payload as an HTTP body.
pub(super) struct PayloadStream {
    payload: Arc<Payload>,
    /// The number of bytes of the payload's JSON that are written.
    json: usize,
    /// The number of runs that are written.
    runs: usize,
    /// The number of items of the next run that are written.
    items: usize,
    /// The number of bytes that are left.
    left: usize,
    /// Set after a block, so that the connection sends it before it polls for the next.
    must_yield: bool,
}

impl PayloadStream {
    pub(super) fn new(payload: Arc<Payload>) -> Self {
        Self {
            left: payload.length(),
            payload,
            json: 0,
            runs: 0,
            items: 0,
            must_yield: false,
        }
    }

    pub(super) fn next_block(&mut self) -> Result<Option<Bytes>, WrongLength> {
        if self.left == 0 {
            return Ok(None);
        }
        let payload = &*self.payload;
        let mut block = Vec::with_capacity(self.left.min(BLOCK + SPARE));
        let mut items = payload.items.iter().enumerate().peekable();
        while block.len() < BLOCK {
            let run = payload.runs.get(self.runs);
            let end = run.map_or(payload.json.len(), |run| run.at);
            block.extend_from_slice(&payload.json[self.json..end]);
            self.json = end;
            let Some(run) = run else {
                break;
            };
            while self.items < run.count && block.len() < BLOCK {
                let position = items.peek().map_or(0, |(position, _)| *position);
                let Some((_, item)) = items.nth(run.first + self.items - position) else {
                    break;
                };
                if self.items > 0 {
                    block.push(b',');
                }
                let next = items.peek().map(|(_, next)| *next);
                let written = (payload.write)(&mut block, item, next);
                self.items += written.max(1);
            }
            if self.items >= run.count {
                self.items = 0;
                self.runs += 1;
            }
        }
        // The length has been announced to the server. It must not get less, nor the start of more.
        if block.is_empty() || block.len() > self.left {
            self.left = 0;
            return Err(WrongLength);
        }
        self.left -= block.len();
        Ok(Some(block.into()))
    }
}

/// The error for a payload whose length was computed wrongly. The request fails.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongLength;

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "its length was computed wrongly; this is a bug in switchboard, please report it",
        )
    }
}

impl Error for WrongLength {}

impl Body for PayloadStream {
    type Data = Bytes;
    type Error = WrongLength;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WrongLength>>> {
        // A connection buffers all blocks that are ready before it sends any.
        if std::mem::take(&mut self.must_yield) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let block = self.next_block();
        self.must_yield = self.left > 0;
        Poll::Ready(block.transpose().map(|block| block.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    /// Exact, since not all servers accept a body of unknown length.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests;
