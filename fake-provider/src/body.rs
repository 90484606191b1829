//! The body of an answer: frames, and what follows them.

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

/// Notes that the client went away, where it is dropped before it is done.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    request: usize,
    done: bool,
}

impl Watch {
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

impl Drop for Watch {
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
    /// What must pass before the next frame.
    pause: Pause,
    watch: Option<Watch>,
}

enum Pause {
    None,
    /// Let the connection send what it has, so that each frame travels by itself.
    Flush,
    Sleep(Pin<Box<Sleep>>),
}

impl ReplyBody {
    pub(crate) fn new(
        rendered: Rendered,
        pace: Option<Duration>,
        mut watch: Option<Watch>,
    ) -> Self {
        let frames: VecDeque<Bytes> = rendered.frames.into();
        if let (Tail::End, true, Some(watch)) = (&rendered.tail, frames.is_empty(), &mut watch) {
            watch.done();
        }
        Self {
            frames,
            tail: rendered.tail,
            length: rendered.length.map(|length| length as u64),
            pace,
            pause: Pause::None,
            watch,
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
            Tail::Repeat(again) => Some(again.clone()),
            _ => None,
        })?;
        self.pause = match self.pace {
            Some(pace) => Pause::Sleep(Box::pin(sleep(pace))),
            None => Pause::Flush,
        };
        if let (true, Tail::End) = (self.frames.is_empty(), &self.tail) {
            // Nothing to wait for after the last.
            self.pause = Pause::None;
            self.done();
        }
        Some(frame)
    }

    fn done(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.done();
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
            // Woken only when the client goes away.
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
