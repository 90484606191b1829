//! Adding to what is carried over, and deciding when to filter.

use std::sync::Arc;

use super::carried::{Carried, Entry};
use super::{Filter, IntoFilter};
use crate::callback::{BoxError, Outcome};
use crate::context::RunContext;
use crate::handoff::HandoffInputData;
use crate::items::{Item, Items};
use crate::model::{ModelHandle, ModelRequest};

/// Puts a note in front of what the next agent sees, as a message of the developer. Trim first and
/// then note: a filter that drops the oldest items drops the note.
///
/// Notes of several handoffs, or of several filters in a chain, stand with the latest first. A note
/// that stands among them already is moved to the front and not repeated, so that two agents that
/// hand a conversation to and fro do not pile up what they say each time. Notes last for the run: a
/// session does not keep them.
///
/// ```
/// use switchboard_core::{HandoffInputData, filters};
///
/// struct App { tier: &'static str }
///
/// let filter = filters::note(|data: &HandoffInputData<App>| {
///     format!("The customer's tier is {}.", data.run_context().tier)
/// });
/// ```
pub fn note<C: 'static, R: Into<String>>(
    write: impl Fn(&HandoffInputData<C>) -> R + Send + Sync + 'static,
) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| {
        let note = Item::developer(write(&data).into());
        let carried = Carried::of(&data);
        let is_note = |entry: &Entry| entry.item().role().is_some_and(|role| role == "developer");
        let notes = carried.entries().iter().take_while(|entry| is_note(entry));
        let notes = notes.count();
        let carried = carried.keep(|at, entry| at >= notes || *entry.item() != note);
        carried.with_front(note).into_data(data)
    })
}

/// Applies a filter only where `condition` holds for the data.
pub fn when<C, M>(
    condition: impl Fn(&HandoffInputData<C>) -> bool + Send + Sync + 'static,
    filter: impl IntoFilter<C, M>,
) -> Filter<C>
where
    C: Send + Sync + 'static,
{
    let filter = filter.into_filter();
    Filter::from_apply(move |data| {
        if condition(&data) {
            filter.start(data)
        } else {
            Outcome::Ready(Ok(data))
        }
    })
}

/// Replaces the older part of the conversation by a summary that `model` writes; the last
/// `keep_last` items stay as they are.
///
/// Where that would separate a call from its output, or reasoning from what it led to, a little more
/// stays. Nothing is asked where there is nothing older. What the model uses counts in the usage of
/// the run. Where the model fails, the handoff fails with its error and the run stays where it was.
pub fn summarize<C>(model: impl Into<ModelHandle>, keep_last: usize) -> Filter<C>
where
    C: Send + Sync + 'static,
{
    let model = model.into();
    Filter::from_apply(move |data| {
        let carried = Carried::of(&data);
        let older = carried.entries().len().saturating_sub(keep_last);
        let older = carried.ties().before_all(older);
        if older == 0 {
            return Outcome::Ready(Ok(data));
        }
        let items: Items = carried.entries()[..older]
            .iter()
            .map(|entry| entry.item().clone())
            .collect();
        let model = model.clone();
        Outcome::Later(Box::pin(async move {
            let summary = ask_for_summary(&model, &items, data.run_context()).await?;
            let summary = Item::assistant(format!("Summary of the conversation so far: {summary}"));
            let kept = carried.keep(|at, _| at >= older);
            Ok(kept.with_front(summary).into_data(data))
        }))
    })
}

const SUMMARY_INSTRUCTIONS: &str = "\
Summarise the conversation for the colleague who takes it over. Keep what the customer wants, what \
was found out, what was promised, and every number, date and name. Leave out greetings. Write plain \
sentences.";

async fn ask_for_summary<C>(
    model: &ModelHandle,
    items: &Items,
    ctx: &RunContext<C>,
) -> Result<String, BoxError> {
    let transcript = crate::handoff::transcript(items);
    let mut request = ModelRequest::new(vec![Item::user(transcript)]);
    request.instructions = Some(SUMMARY_INSTRUCTIONS.into());
    let response = model.respond(request).await?;
    ctx.add_usage(response.usage);
    let said: Vec<String> = response
        .output
        .iter()
        .filter_map(|item| item.text().map(|text| text.into_owned()))
        .collect();
    if said.is_empty() {
        Err("the model that writes the summary said nothing".into())
    } else {
        Ok(said.join("\n"))
    }
}

impl<C> Filter<C> {
    /// A filter from a function that starts the work.
    fn from_apply<F>(apply: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> Outcome<HandoffInputData<C>> + Send + Sync + 'static,
    {
        Self(Arc::new(apply))
    }

    /// Starts applying the filter.
    fn start(&self, data: HandoffInputData<C>) -> Outcome<HandoffInputData<C>> {
        (self.0)(data)
    }
}
