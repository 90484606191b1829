//! Filters, which change what the next agent sees of the conversation.
//!
//! A filter takes the [`HandoffInputData`] of a handoff and returns a changed one. Any function
//! that does so is a filter, sync or async, fallible or not; [`Filter::then`] chains them.
//!
//! ```
//! use switchboard_core::handoff::HandoffInputData;
//! use switchboard_core::{Agent, filters, handoff};
//!
//! let billing: Agent = Agent::new("Billing");
//! let triage = Agent::new("Triage")
//!     .handoff(handoff(&billing).filter(
//!         filters::remove_all_tools().then(|data: HandoffInputData| async move { data }),
//!     ));
//! ```
//!
//! The filters here leave no orphans: no call without its output, no output without its call, and no
//! reasoning without the item it led to. [`Filter::allow_orphans`] lets them.
//!
//! The result of your own filter is passed on unchanged. The handoff fails if it is empty, or if an
//! item that the filter made has neither a type nor a role. A call without its output causes a warning
//! and is not stored in a session;
//! [`Runner::drop_orphaned_calls`](crate::Runner::drop_orphaned_calls) hides it from the model as well.

mod note;
mod redact;
mod summarize;
mod trim;
mod visible_items;

use std::sync::Arc;

pub(crate) use note::{add_note, payload_text};
pub use note::{note, payload};
pub use redact::{InvalidPattern, Pii, Redaction, redact_pii};
pub use summarize::summarize;
pub(crate) use summarize::write_summary;
pub(crate) use trim::text_tokens;
pub use trim::{
    drop_reasoning, estimated_tokens, keep_first_and_last, keep_last, remove_all_tools,
    token_budget, token_budget_by,
};

use crate::callback::{BoxError, ByValue, IntoOutcome, Outcome, call};
use crate::handoff::{HandoffInputData, HistoryMarkers, Orphans, nest_handoff_history};

/// A function that changes what the next agent sees.
pub struct Filter<C = ()>(Arc<Apply<C>>);

type Apply<C> = dyn Fn(HandoffInputData<C>) -> Outcome<HandoffInputData<C>> + Send + Sync;

impl<C> Filter<C> {
    /// Creates a filter from a function.
    pub fn new<F, R, M>(filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        Self(Arc::new(move |data| filter(data).into_outcome()))
    }

    /// Applies another filter to the result of this one.
    #[must_use]
    pub fn then<M>(self, next: impl IntoFilter<C, M>) -> Self
    where
        C: Send + Sync + 'static,
    {
        let next = next.into_filter();
        Self(Arc::new(move |data| match (self.0)(data) {
            Outcome::Ready(Ok(data)) => (next.0)(data),
            Outcome::Ready(Err(error)) => Outcome::Ready(Err(error)),
            Outcome::Pending(first) => {
                let next = next.clone();
                Outcome::Pending(Box::pin(async move { next.apply(first.await?).await }))
            }
        }))
    }

    /// Lets this filter leave orphans: a call without its output, an output without its call, or
    /// reasoning without the item it led to.
    ///
    /// By default a filter of the library also drops the orphans, as most providers reject them. It
    /// does the same with orphans left by an earlier filter, so this is best called on a whole chain:
    /// `a.then(b).allow_orphans()`. A call of the run itself that has no output is never shown.
    ///
    /// ```
    /// use switchboard_core::handoff::HandoffInputData;
    /// use switchboard_core::{Item, RunContext, filters};
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
    /// # Ok::<(), switchboard_core::callback::BoxError>(())
    /// # })?;
    /// # Ok::<(), switchboard_core::callback::BoxError>(())
    /// ```
    #[must_use]
    pub fn allow_orphans(self) -> Self
    where
        C: Send + Sync + 'static,
    {
        Self(Arc::new(move |data| {
            let previous = data.orphans;
            let restore = move |data: HandoffInputData<C>| data.with_orphans(previous);
            match (self.0)(data.with_orphans(Orphans::Keep)) {
                Outcome::Ready(result) => Outcome::Ready(result.map(restore)),
                Outcome::Pending(result) => {
                    Outcome::Pending(Box::pin(async move { result.await.map(restore) }))
                }
            }
        }))
    }

    /// Applies the filter.
    ///
    /// # Errors
    /// Returns the error of the filter's own code.
    pub async fn apply(&self, data: HandoffInputData<C>) -> Result<HandoffInputData<C>, BoxError> {
        call(|| (self.0)(data)).await
    }
}

impl_clone! { struct Filter<C> { 0 } }

impl_debug!(Filter<C>);

/// A type that can be used as a filter: a [`Filter`], or a function from data to data, sync or async.
///
/// `M` distinguishes the two and is always inferred.
pub trait IntoFilter<C, M> {
    /// Converts this into a filter.
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

/// Applies a filter only if `condition` returns `true` for the data.
pub fn when<C, M>(
    condition: impl Fn(&HandoffInputData<C>) -> bool + Send + Sync + 'static,
    filter: impl IntoFilter<C, M>,
) -> Filter<C>
where
    C: Send + Sync + 'static,
{
    let filter = filter.into_filter();
    Filter(Arc::new(move |data| {
        if condition(&data) {
            (filter.0)(data)
        } else {
            Outcome::Ready(Ok(data))
        }
    }))
}

/// Puts the conversation into a nested summary, as [`nest_handoff_history`] does, with the
/// default markers.
pub fn nest_history<C: 'static>() -> Filter<C> {
    nest_history_between(HistoryMarkers::default())
}

/// Like [`nest_history`], with markers of your own.
pub fn nest_history_between<C: 'static>(markers: HistoryMarkers) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| nest_handoff_history(data, None, &markers))
}
