//! Models over the wire.

mod body;
mod chat;
mod client;
mod endpoint;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod history;
mod lenient;
mod listening;
mod payload;
mod refused;
mod responses;
mod retry;
mod secret;
mod sse;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

pub use chat::ChatModel;
pub use client::Client;
pub use client::trusting_system;
use client::{Events, Opened};
pub use endpoint::Endpoint;
pub use error::{ModelError, ModelErrorKind, RateLimits};
use futures_core::Stream;
use futures_util::stream;
use history::is_assistants;
pub use responses::ResponsesModel;
use switchboard_core::{BoxError, Item, ModelEvent, ModelRequest, ModelResponse};

/// A stream that ended before its answer did.
const BROKE_OFF: &str = "the answer broke off before its end";

/// An answer that comes piece by piece.
trait Pieces: Send {
    /// The next piece; `None` after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<ModelEvent>, ModelError>> + Send;
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
                let texts = answer.output.iter().filter(|item| is_assistants(item));
                let texts = texts.filter_map(Item::text).filter(|text| !text.is_empty());
                let mut events: VecDeque<ModelEvent> = texts
                    .map(|text| ModelEvent::TextDelta(text.into_owned()))
                    .collect();
                events.push_back(ModelEvent::Completed(answer));
                Self::Whole(events)
            }
        }
    }
}

impl<P: Pieces> Pieces for Answer<P> {
    async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        match self {
            Self::Pieces(pieces) => pieces.next().await,
            Self::Whole(events) => Ok(events.pop_front()),
        }
    }
}

/// How far an answer in pieces is. Boxed, since it is moved with every piece.
enum Stage<F, P> {
    Opening(Pin<Box<F>>),
    Open(Box<P>),
}

/// The pieces of an answer that is opened first. After an error nothing follows.
fn pieces<P: Pieces, F: Future<Output = Result<P, ModelError>> + Send>(
    request: ModelRequest,
    open: impl FnOnce(Arc<ModelRequest>) -> F,
) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
    let request = Arc::new(request);
    let opening = Stage::Opening(Box::pin(open(request.clone())));
    stream::try_unfold((opening, request), |(stage, request)| async move {
        let next = async {
            let mut pieces = match stage {
                Stage::Opening(opening) => Box::new(opening.await?),
                Stage::Open(pieces) => pieces,
            };
            let piece = pieces.next().await?;
            Ok(piece.map(|piece| (piece, Stage::Open(pieces))))
        };
        match next.await {
            Ok(next) => Ok(next.map(|(piece, stage)| (piece, (stage, request)))),
            Err(error) => Err(failed(&request, error)),
        }
    })
}

/// The error of a request, whose cost the run counts.
fn failed(request: &ModelRequest, error: ModelError) -> BoxError {
    if let Some(usage) = error.usage() {
        request.add_usage(usage);
    }
    error.into()
}
