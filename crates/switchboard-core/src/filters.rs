//! Filters: what the next agent sees of the conversation.
//!
//! A filter takes the [`HandoffInputData`] of a handoff and returns a changed one. Any function
//! that does so is one, sync or async, fallible or not; [`Filter::then`] chains them.
//!
//! ```
//! use switchboard_core::{Agent, HandoffInputData, filters, handoff};
//!
//! let billing: Agent = Agent::new("Billing");
//! let triage = Agent::new("Triage")
//!     .handoff(handoff(&billing).filter(
//!         filters::remove_all_tools().then(|data: HandoffInputData| async move { data }),
//!     ));
//! ```
//!
//! The filters here keep whole what belongs together: none leaves a call without its output, an output
//! without its call, or reasoning without the item it led to. [`Filter::allow_orphans`] lets them.
//!
//! What a filter of yours returns is passed on as given. The handoff fails where nothing is left of
//! what was said, or where an item that the filter made has neither a type nor a role. A call without
//! its output is warned of and does not get into a session;
//! [`Runner::drop_orphaned_calls`](crate::Runner::drop_orphaned_calls) keeps it from the model as well.

mod carried;
mod compose;
mod redact;
mod trim;

use std::fmt;
use std::sync::Arc;

pub use compose::{note, summarize, when};
pub use redact::{InvalidPattern, Redaction, redact_pii};
pub use trim::{
    drop_reasoning, estimated_tokens, keep_first_and_last, keep_last, token_budget, token_budget_by,
};

use crate::callback::{BoxError, ByValue, IntoOutcome, Outcome, call};
use crate::handoff::{Halves, HandoffInputData, HistoryMarkers, nest_handoff_history};
use crate::items::{Input, RunItem, RunItems};

/// Changes what the next agent sees.
pub struct Filter<C = ()>(Arc<Apply<C>>);

type Apply<C> = dyn Fn(HandoffInputData<C>) -> Outcome<HandoffInputData<C>> + Send + Sync;

impl<C> Filter<C> {
    /// A filter from a function.
    pub fn new<F, R, M>(filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        Self(Arc::new(move |data| filter(data).into_outcome()))
    }

    /// This filter, then the other one on what it returned.
    #[must_use]
    pub fn then<M>(self, next: impl IntoFilter<C, M>) -> Self
    where
        C: Send + Sync + 'static,
    {
        let next = next.into_filter();
        Self(Arc::new(move |data| match (self.0)(data) {
            Outcome::Ready(Ok(data)) => (next.0)(data),
            Outcome::Ready(Err(error)) => Outcome::Ready(Err(error)),
            Outcome::Later(first) => {
                let next = next.clone();
                Outcome::Later(Box::pin(async move { next.apply(first.await?).await }))
            }
        }))
    }

    /// This filter, leaving what it takes apart: a call may lose its output, an output its call,
    /// reasoning the item it led to.
    ///
    /// By itself a filter of the library also drops what it would leave without its other half, as
    /// most providers refuse that. It does the same with halves left by an earlier filter, so a chain
    /// is best told as a whole: `a.then(b).allow_orphans()`. A call of the run itself that has no output
    /// is not shown in any case.
    ///
    /// ```
    /// use switchboard_core::{HandoffInputData, Item, RunContext, filters};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let history = vec![
    ///     Item::function_call("c1", "lookup", "{}"),
    ///     Item::function_call_output("c1", "Ann"),
    ///     Item::user("Thanks."),
    /// ];
    /// let data = || HandoffInputData::new(history.clone(), vec![], vec![], RunContext::new(()));
    ///
    /// let whole = filters::keep_last(2).apply(data()).await?;
    /// assert_eq!(whole.history_items().len(), 1);
    /// let exact = filters::keep_last(2).allow_orphans().apply(data()).await?;
    /// assert_eq!(exact.history_items().len(), 2);
    /// # Ok::<(), switchboard_core::BoxError>(())
    /// # })?;
    /// # Ok::<(), switchboard_core::BoxError>(())
    /// ```
    #[must_use]
    pub fn allow_orphans(self) -> Self
    where
        C: Send + Sync + 'static,
    {
        Self(Arc::new(move |data| {
            let before = data.halves();
            match (self.0)(data.with_halves(Halves::Stay)) {
                Outcome::Ready(done) => Outcome::Ready(done.map(|data| data.with_halves(before))),
                Outcome::Later(done) => Outcome::Later(Box::pin(async move {
                    done.await.map(|data| data.with_halves(before))
                })),
            }
        }))
    }

    /// Applies the filter.
    ///
    /// # Errors
    /// What the filter's own code returned as its error.
    pub async fn apply(&self, data: HandoffInputData<C>) -> Result<HandoffInputData<C>, BoxError> {
        call(|| (self.0)(data)).await
    }
}

impl<C> Clone for Filter<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Filter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}

/// What can be used as a filter: a [`Filter`], or a function from data to data, sync or async.
///
/// `M` only tells the forms apart and is always inferred.
pub trait IntoFilter<C, M> {
    /// The filter.
    fn into_filter(self) -> Filter<C>;
}

impl<C> IntoFilter<C, ()> for Filter<C> {
    fn into_filter(self) -> Self {
        self
    }
}

impl<C, F, R, M> IntoFilter<C, (ByValue, M)> for F
where
    F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
    R: IntoOutcome<HandoffInputData<C>, M>,
{
    fn into_filter(self) -> Filter<C> {
        Filter::new(self)
    }
}

/// Drops everything that belongs to the use of tools: calls and outputs, the provider's own
/// tools, reasoning, and handoffs.
///
/// Like the reference's, and unlike the other filters here, it drops them from the new items as
/// well, so that a session does not keep them.
pub fn remove_all_tools<C: 'static>() -> Filter<C> {
    Filter::new(|data: HandoffInputData<C>| {
        let was_empty = data.shows_nothing();
        let history = match data.input_history() {
            Input::Text(text) => Input::Text(text.clone()),
            Input::Items(items) => {
                let kept = items.iter().filter(|item| !item.kind().is_tool_use());
                Input::Items(kept.cloned().collect())
            }
        };
        let before = without_tools(data.pre_handoff_items());
        let now = without_tools(data.new_items());
        let instead = data.input_items().map(without_tools);
        let data = data
            .with_input_history(history)
            .with_pre_handoff_items(before)
            .with_new_items(now);
        let data = match instead {
            Some(items) => data.with_input_items(items),
            None => data,
        };
        data.left_by_library(was_empty)
    })
}

fn without_tools(items: &RunItems) -> Vec<RunItem> {
    let kept = items.iter().filter(|made| !made.kind().is_tool_use());
    kept.cloned().collect()
}

/// Puts the conversation into a nested summary, as [`nest_handoff_history`] does, with the
/// default markers.
pub fn nest_history<C: 'static>() -> Filter<C> {
    nest_history_between(HistoryMarkers::default())
}

/// The same with markers of your own.
pub fn nest_history_between<C: 'static>(markers: HistoryMarkers) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| nest_handoff_history(data, None, &markers))
}
