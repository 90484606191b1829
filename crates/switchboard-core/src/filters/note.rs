//! Adding a note to what the next agent sees.

use serde_json::Value;

use super::visible_items::VisibleItems;
use super::{Filter, when};
use crate::handoff::HandoffInputData;
use crate::items::Item;

/// Puts a developer message in front of what the next agent sees. Trim first and then note: a filter
/// that drops the oldest items drops the note.
///
/// A note takes the place of the notes of earlier handoffs, so that they do not pile up in a cascade.
/// The notes of several filters in one chain stand with the latest first. A stored conversation keeps
/// the note while the next agent has it; it is no part of the record.
///
/// ```
/// use switchboard_core::handoff::HandoffInputData;
/// use switchboard_core::filters;
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
        add_note(data, &note)
    })
    .named("note")
}

/// Puts a note in front of what the next agent sees, in the place of the notes of earlier handoffs.
pub(crate) fn add_note<C>(data: HandoffInputData<C>, note: &Item) -> HandoffInputData<C> {
    let visible = VisibleItems::of(&data);
    visible
        .keep(|_index, item| *item != *note && !data.earlier_notes().contains(item))
        .prepend(note.clone())
        .into_data(data.add_note(note.clone()))
}

/// Shows the payload of the handoff to the next agent: as a developer message with its JSON, in front of
/// what it sees. It is a [`note`], and a stored conversation keeps it while that agent has it. A handoff
/// without a payload is left as it is.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Runner, filters, handoff};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Escalation { reason: String }
///
/// # futures_util::FutureExt::now_or_never(async {
/// let billing: Agent = Agent::new("Billing");
/// let triage = Agent::new("Triage").handoff(
///     handoff(&billing)
///         .payload::<Escalation>()
///         .on_handoff(|_ctx, _escalation| ())
///         .filter(filters::payload()),
/// );
/// let model = ScriptedModel::new()
///     .call("transfer_to_billing", r#"{"reason": "a bill"}"#)
///     .say("Which bill?");
/// Runner::new(&triage).model(model.clone()).run("Help").await?;
/// let first = model.requests()[1].input[0].text().unwrap().into_owned();
/// assert_eq!(first, r#"Triage has handed the conversation over with this: {"reason":"a bill"}"#);
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
pub fn payload<C: Send + Sync + 'static>() -> Filter<C> {
    let shown = note(|data: &HandoffInputData<C>| {
        let made = data.new_items().last().map(|made| made.agent());
        let from = data.from().or(made).unwrap_or("Another agent");
        payload_text(from, data.payload().unwrap_or(&Value::Null))
    });
    let shown = shown.named("payload");
    when(|data: &HandoffInputData<C>| data.payload().is_some(), shown)
}

/// The text with which an agent is shown the payload of a handoff.
pub(crate) fn payload_text(from: &str, payload: &Value) -> String {
    format!("{from} has handed the conversation over with this: {payload}")
}
