//! The body of a reply: frames, and what follows them.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::render::{Rendered, Tail};
use crate::shared::Shared;

/// Records that the client disconnected if it is dropped before `done` is called.
pub(crate) struct DisconnectGuard {
    shared: Arc<Shared>,
    request: usize,
    done: bool,
}

impl DisconnectGuard {
    pub(crate) fn new(shared: Arc<Shared>, request: usize) -> Self {
        Self {
            shared,
            request,
            done: false,
        }
    }

    pub(crate) fn done(&mut self) {
        self.done = true;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        if !self.done
            && let Some(request) = self.shared.state().requests.get_mut(self.request)
        {
            request.closed_early = true;
        }
    }
}

/// A body that is sent frame by frame.
pub(crate) struct ReplyBody {
    frames: VecDeque<Bytes>,
    tail: Tail,
    length: Option<u64>,
    pace: Option<Duration>,
    /// The pause before the next frame.
    pause: Pause,
    guard: Option<DisconnectGuard>,
}

enum Pause {
    None,
    /// Lets the connection flush, so that each frame is sent by itself.
    Flush,
    Sleep(Pin<Box<Sleep>>),
}

impl ReplyBody {
    pub(crate) fn new(
        rendered: Rendered,
        pace: Option<Duration>,
        mut guard: Option<DisconnectGuard>,
    ) -> Self {
        let frames: VecDeque<Bytes> = rendered.frames.into();
        if let (Tail::End, true, Some(guard)) = (&rendered.tail, frames.is_empty(), &mut guard) {
            guard.done();
        }
        Self {
            frames,
            tail: rendered.tail,
            length: rendered.length.map(|length| length as u64),
            pace,
            pause: Pause::None,
            guard,
        }
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.pause {
            Pause::None => return Poll::Ready(()),
            Pause::Flush => cx.waker().wake_by_ref(),
            Pause::Sleep(sleep) => match sleep.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => {
                    self.pause = Pause::None;
                    return Poll::Ready(());
                }
            },
        }
        self.pause = Pause::None;
        Poll::Pending
    }

    fn next_frame(&mut self) -> Option<Bytes> {
        let frame = self.frames.pop_front().or_else(|| match &self.tail {
            Tail::Repeat(frame) => Some(frame.clone()),
            _ => None,
        })?;
        self.pause = match self.pace {
            Some(pace) => Pause::Sleep(Box::pin(sleep(pace))),
            None => Pause::Flush,
        };
        if let (true, Tail::End) = (self.frames.is_empty(), &self.tail) {
            self.pause = Pause::None;
            self.done();
        }
        Some(frame)
    }

    fn done(&mut self) {
        if let Some(guard) = &mut self.guard {
            guard.done();
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        if this.poll_pause(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(frame) = this.next_frame() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        match this.tail {
            Tail::End | Tail::Repeat(_) => Poll::Ready(None),
            // Woken only when the client disconnects.
            Tail::Hang => Poll::Pending,
            Tail::Close => {
                this.done();
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}
