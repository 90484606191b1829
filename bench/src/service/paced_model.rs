//! A model that hands off, and answers at a fixed pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{Stream, StreamExt as _, stream};
use switchboard_core::callback::BoxError;
use switchboard_core::model::ModelEvent;
use switchboard_core::{Item, Model, ModelRequest, ModelResponse};

use super::Pace;
use crate::ages::now_us;

/// A model for the team of [`TeamServer`](super::TeamServer).
#[derive(Clone)]
pub(super) struct PacedModel {
    pace: Pace,
    calls: Arc<AtomicU64>,
}

impl PacedModel {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            calls: Arc::default(),
        }
    }

    /// Returns `true` for the share of numbers that is to fail, spread evenly.
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    fn fails(&self, number: u64) -> bool {
        let reached = |number: u64| (number as f64 * self.pace.failures).floor();
        reached(number + 1) > reached(number)
    }
}

impl Model for PacedModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let mut events = std::pin::pin!(self.stream(request));
        while let Some(event) = events.next().await {
            if let ModelEvent::Completed(response) = event? {
                return Ok(response);
            }
        }
        Err("the stream has no response".into())
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let pace = self.pace;
        let fails = self.fails(number);
        let is_handoff = !request.handoffs.is_empty();
        let pieces = match (fails, is_handoff) {
            (_, true) => 0,
            // Every second failure comes at once.
            (true, false) if number.is_multiple_of(2) => 0,
            (true, false) => pace.pieces / 2,
            (false, false) => pace.pieces,
        };
        let id: Arc<str> = format!("msg_{number}").into();
        let item = id.clone();
        let deltas = stream::iter(0..pieces).then(move |_| {
            let item = item.clone();
            async move {
                tokio::time::sleep(pace.pause).await;
                let text = format!("@{};", now_us());
                Ok(ModelEvent::TextDelta { item, text })
            }
        });
        let last = async move {
            if fails {
                return Err("the provider is down".into());
            }
            let output = if is_handoff {
                let call = format!("call_{number}");
                Item::function_call(&call, "transfer_to_billing", "{}")
            } else {
                Item::assistant("word ".repeat(pieces))
            };
            Ok(ModelEvent::Completed(ModelResponse::new([output])))
        };
        deltas.chain(stream::once(last))
    }

    fn name(&self) -> &str {
        "paced"
    }
}
