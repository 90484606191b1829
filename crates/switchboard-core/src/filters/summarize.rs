//! Replacing the older part of a conversation by a summary that a model writes.

use std::sync::Arc;

use super::Filter;
use super::visible_items::VisibleItems;
use crate::callback::{BoxError, Outcome};
use crate::context::RunContext;
use crate::handle::IntoHandle;
use crate::handoff::transcript;
use crate::items::{Item, Items};
use crate::model::{ModelHandle, ModelRequest};

const INSTRUCTIONS: &str = "\
Summarise the conversation for the colleague who takes it over. Keep what the customer wants, what \
was found out, what was promised, and every number, date and name. Leave out greetings. Write plain \
sentences.";

/// Replaces the older part of the conversation by a summary that `model` writes; the last
/// `keep_last` items stay unchanged.
///
/// If that would separate a call from its output, or reasoning from the item that followed it, a
/// few more items stay. The model is not called if there is nothing older. Its usage counts in the
/// usage of the run. If the model fails, the handoff fails with its error and the run stays where it
/// was.
pub fn summarize<C, M>(model: impl IntoHandle<ModelHandle, M>, keep_last: usize) -> Filter<C>
where
    C: Send + Sync + 'static,
{
    let model = model.into_handle();
    let apply = move |data| {
        let visible = VisibleItems::of(&data);
        let cut = visible.len().saturating_sub(keep_last);
        let cut = visible.pairing().before_all(cut);
        if cut == 0 {
            return Outcome::Ready(Ok(data));
        }
        let older: Items = visible.iter().take(cut).cloned().collect();
        let model = model.clone();
        Outcome::Pending(Box::pin(async move {
            let summary = write_summary(&model, &older, data.run_context()).await?;
            let recent = visible.keep(|index, _| index >= cut);
            Ok(recent.prepend(summary).into_data(data))
        }))
    };
    Filter::of(Arc::new(apply)).named("summarize")
}

/// Lets a model write a summary. Returns it as a message.
pub(crate) async fn write_summary<C>(
    model: &ModelHandle,
    items: &Items,
    ctx: &RunContext<C>,
) -> Result<Item, BoxError> {
    let mut request = ModelRequest::new(vec![Item::user(transcript(items))]);
    request.instructions = Some(INSTRUCTIONS.into());
    let response = ctx.step("summary", model.respond(request)).await?;
    ctx.add_usage(response.usage);
    let texts: Vec<_> = response.output.iter().filter_map(Item::text).collect();
    let summary = texts.join("\n");
    if summary.trim().is_empty() {
        return Err("the model that writes the summary returned no text".into());
    }
    let summary = format!("Summary of the conversation so far: {summary}");
    Ok(Item::assistant(summary))
}
