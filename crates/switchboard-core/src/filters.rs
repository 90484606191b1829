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
pub(crate) use redact::{AppliedRedaction, redact_added};
pub use redact::{InvalidPattern, Pii, Redaction, redact_pii};
pub use summarize::summarize;
pub(crate) use summarize::write_summary;
pub(crate) use trim::text_tokens;
pub use trim::{
    drop_reasoning, estimated_tokens, keep_first_and_last, keep_last, remove_all_tools,
    token_budget, token_budget_by,
};

use crate::callback::{BoxError, ByValue, IntoOutcome, Outcome, call};
use crate::handoff::{
    AppliedFilter, HandoffInputData, HistoryMarkers, Orphans, nest_handoff_history,
};

/// A function that changes what the next agent sees.
pub struct Filter<C = ()> {
    apply: Arc<Apply<C>>,
    /// The names of the filters that it consists of.
    names: Arc<[Arc<str>]>,
    /// Set if the filters that it consists of log their work themselves.
    is_composed: bool,
}

type Apply<C> = dyn Fn(HandoffInputData<C>) -> Outcome<HandoffInputData<C>> + Send + Sync;

impl<C> Filter<C> {
    /// Creates a filter from a function.
    pub fn new<F, R, M>(filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        Self::of(Arc::new(move |data| filter(data).into_outcome()))
    }

    fn of(apply: Arc<Apply<C>>) -> Self {
        Self {
            apply,
            names: Arc::new([UNNAMED.into()]),
            is_composed: false,
        }
    }

    /// A filter that leads to others.
    fn composed(names: impl IntoIterator<Item = Arc<str>>, apply: Arc<Apply<C>>) -> Self {
        Self {
            apply,
            names: names.into_iter().collect(),
            is_composed: true,
        }
    }

    /// Sets the name by which traces and drawings show the filter, or a whole chain of filters.
    ///
    /// ```
    /// use switchboard_core::filters::{self, Filter};
    ///
    /// let filter: Filter = filters::keep_last(3).then(filters::redact_pii());
    /// assert_eq!(filter.names(), ["keep_last(3)".into(), "redact_pii".into()]);
    /// assert_eq!(filter.named("recent and redacted").names(), ["recent and redacted".into()]);
    /// ```
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            names: Arc::new([name.into()]),
            is_composed: false,
            ..self
        }
    }

    /// The names of the filters that it consists of, in their order. A function of the application without
    /// a name is `filter`.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    fn run(&self, mut data: HandoffInputData<C>) -> Outcome<HandoffInputData<C>>
    where
        C: 'static,
    {
        if self.is_composed {
            return (self.apply)(data);
        }
        let Some(log) = data.filter_log.take() else {
            return (self.apply)(data);
        };
        let before = data.visible_items();
        let name = self.names.first().cloned().unwrap_or_default();
        let finish = move |mut data: HandoffInputData<C>| {
            log.add(AppliedFilter {
                name,
                before,
                after: data.visible_items(),
            });
            data.filter_log = Some(log);
            data
        };
        match (self.apply)(data) {
            Outcome::Ready(result) => Outcome::Ready(result.map(finish)),
            Outcome::Pending(result) => {
                Outcome::Pending(Box::pin(async move { result.await.map(finish) }))
            }
        }
    }

    /// Applies another filter to the result of this one.
    #[must_use]
    pub fn then<M>(self, next: impl IntoFilter<C, M>) -> Self
    where
        C: Send + Sync + 'static,
    {
        let next = next.into_filter();
        let names: Vec<Arc<str>> = self.names.iter().chain(&*next.names).cloned().collect();
        let apply = move |data| match self.run(data) {
            Outcome::Ready(Ok(data)) => next.run(data),
            Outcome::Ready(Err(error)) => Outcome::Ready(Err(error)),
            Outcome::Pending(first) => {
                let next = next.clone();
                Outcome::Pending(Box::pin(async move { next.apply(first.await?).await }))
            }
        };
        Self::composed(names, Arc::new(apply))
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
        let names = self.names.to_vec();
        let apply = move |data: HandoffInputData<C>| {
            let previous = data.orphans;
            let restore = move |data: HandoffInputData<C>| data.with_orphans(previous);
            match self.run(data.with_orphans(Orphans::Keep)) {
                Outcome::Ready(result) => Outcome::Ready(result.map(restore)),
                Outcome::Pending(result) => {
                    Outcome::Pending(Box::pin(async move { result.await.map(restore) }))
                }
            }
        };
        Self::composed(names, Arc::new(apply))
    }

    /// Applies the filter.
    ///
    /// # Errors
    /// Returns the error of the filter's own code.
    pub async fn apply(&self, data: HandoffInputData<C>) -> Result<HandoffInputData<C>, BoxError>
    where
        C: 'static,
    {
        call(|| self.run(data)).await
    }
}

impl_clone! { struct Filter<C> { apply, names, is_composed } }

/// The name of a filter that is a function of the application.
const UNNAMED: &str = "filter";

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
    let names = filter.names.to_vec();
    let apply = move |data| {
        if condition(&data) {
            filter.run(data)
        } else {
            Outcome::Ready(Ok(data))
        }
    };
    Filter::composed(names, Arc::new(apply))
}

/// Puts the conversation into a nested summary, as [`nest_handoff_history`] does, with the
/// default markers.
pub fn nest_history<C: 'static>() -> Filter<C> {
    nest_history_between(HistoryMarkers::default())
}

/// Like [`nest_history`], with markers of your own.
pub fn nest_history_between<C: 'static>(markers: HistoryMarkers) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| nest_handoff_history(data, None, &markers))
        .named("nest_history")
}
