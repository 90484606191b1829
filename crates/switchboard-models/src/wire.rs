//! Models over the wire.

mod body;
mod chat;
mod client;
mod endpoint;
mod error;
mod error_body;
#[cfg(fuzzing)]
pub mod fuzzing;
mod history;
mod lenient;
mod payload;
mod responses;
mod retry;
mod secret;
mod sse;
mod stream_reader;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pub use chat::ChatModel;
pub use client::Client;
pub use client::trusting_system;
use client::{Events, Opened};
pub use endpoint::Endpoint;
pub use error::{ModelError, ModelErrorKind, RateLimits};
use futures_core::Stream;
use history::is_assistants;
pub use responses::ResponsesModel;
use switchboard_core::{BoxError, ModelEvent, ModelRequest, ModelResponse};

/// A stream that ended before its answer did.
const BROKE_OFF: &str = "the answer broke off before its end";

/// An answer that comes piece by piece.
trait Pieces: Send {
    /// The next piece; `None` after the last.
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<ModelEvent>, ModelError>>;
}

/// An answer to a request for a stream.
enum Answer<P> {
    Pieces(P),
    /// From a server that does not stream.
    Whole(VecDeque<ModelEvent>),
}

impl<P> Answer<P> {
    fn new(opened: Opened<ModelResponse>, pieces: impl FnOnce(Events) -> P) -> Self {
        match opened {
            Opened::Events(events) => Self::Pieces(pieces(*events)),
            Opened::Whole(answer) => {
                let mut events = VecDeque::new();
                for message in answer.output.iter().filter(|item| is_assistants(item)) {
                    if let Some(text) = message.text().filter(|text| !text.is_empty()) {
                        let id = message.id().unwrap_or_default();
                        events.push_back(ModelEvent::text_delta(&*id, text));
                    }
                }
                events.push_back(ModelEvent::Completed(answer));
                Self::Whole(events)
            }
        }
    }
}

impl<P: Pieces> Pieces for Answer<P> {
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<ModelEvent>, ModelError>> {
        match self {
            Self::Pieces(pieces) => pieces.poll_next(context),
            Self::Whole(events) => Poll::Ready(Ok(events.pop_front())),
        }
    }
}

/// The pieces of an answer that is opened first. After an error nothing follows.
fn pieces<P: Pieces, F: Future<Output = Result<P, ModelError>> + Send>(
    request: ModelRequest,
    open: impl FnOnce(Arc<ModelRequest>) -> F,
) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
    let request = Arc::new(request);
    InPieces {
        stage: Stage::Opening(Box::pin(open(request.clone()))),
        request,
    }
}

/// An answer in pieces. It is polled by hand: a stream unfolded from futures took 500 instructions
/// more for each piece.
struct InPieces<F, P> {
    stage: Stage<F, P>,
    request: Arc<ModelRequest>,
}

/// How far it is. Boxed, so that it stays where it is without being pinned.
enum Stage<F, P> {
    Opening(Pin<Box<F>>),
    Open(Box<P>),
    Over,
}

impl<P: Pieces, F: Future<Output = Result<P, ModelError>> + Send> Stream for InPieces<F, P> {
    type Item = Result<ModelEvent, BoxError>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<ModelEvent, BoxError>>> {
        let this = self.get_mut();
        let next = loop {
            match &mut this.stage {
                Stage::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                    Ok(pieces) => this.stage = Stage::Open(Box::new(pieces)),
                    Err(error) => break Err(error),
                },
                Stage::Open(pieces) => break ready!(pieces.poll_next(context)),
                Stage::Over => return Poll::Ready(None),
            }
        };
        Poll::Ready(match next {
            Ok(Some(piece)) => Some(Ok(piece)),
            Ok(None) => {
                this.stage = Stage::Over;
                None
            }
            Err(error) => {
                this.stage = Stage::Over;
                Some(Err(failed(&this.request, error)))
            }
        })
    }
}

/// The error of a request, whose cost the run counts.
fn failed(request: &ModelRequest, error: ModelError) -> BoxError {
    if let Some(usage) = error.usage() {
        request.add_usage(usage);
    }
    error.into()
}
