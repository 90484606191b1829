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
mod refused;
mod responses;
mod retry;
mod secret;
mod sse;

pub use chat::ChatModel;
pub use client::Client;
pub use endpoint::Endpoint;
pub use error::{ModelError, ModelErrorKind, RateLimits};
use futures_core::Stream;
use futures_util::stream::{self, TryStreamExt as _};
pub use responses::ResponsesModel;
use switchboard_core::{BoxError, ModelEvent};

/// A stream that ended before its answer did.
const BROKE_OFF: &str = "the answer broke off before its end";

/// An answer that comes piece by piece.
trait Pieces: Send {
    /// The next piece; `None` after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<ModelEvent>, ModelError>> + Send;
}

/// The pieces of an answer that is opened first. After an error nothing follows.
fn pieces<P: Pieces>(
    opening: impl Future<Output = Result<P, ModelError>> + Send,
) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
    let opened = stream::once(opening).map_ok(|pieces| {
        stream::try_unfold(pieces, |mut pieces| async move {
            let piece = pieces.next().await?;
            Ok::<_, ModelError>(piece.map(|piece| (piece, pieces)))
        })
    });
    opened.try_flatten().map_err(BoxError::from)
}
