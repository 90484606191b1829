//! The filters and history mappers that cases name. All but two are custom filters.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::filters::{self, Filter};
use switchboard_core::handoff::{HandoffInputData, HistoryMapper, HistoryMarkers};
use switchboard_core::{Input, Item};

use super::{CaseContext, Log as _};
use crate::serialize;

/// Returns the filter that a case names, or `None` if it names none.
pub(super) fn optional(
    spec: &Option<Value>,
    markers: &HistoryMarkers,
) -> Result<Option<Filter<CaseContext>>, String> {
    match spec {
        None | Some(Value::Null) => Ok(None),
        Some(spec) => filter(spec, markers).map(Some),
    }
}

fn filter(spec: &Value, markers: &HistoryMarkers) -> Result<Filter<CaseContext>, String> {
    match spec {
        Value::String(name) => by_name(name, markers),
        Value::Array(chain) => {
            let mut chain = chain.iter().map(|spec| filter(spec, markers));
            let first = chain.next().ok_or("an empty chain of filters")??;
            chain.try_fold(first, |chained, next| Ok(chained.then(next?)))
        }
        Value::Object(_) => with_argument(spec),
        other => Err(format!("unknown filter {other}")),
    }
}

fn by_name(name: &str, markers: &HistoryMarkers) -> Result<Filter<CaseContext>, String> {
    type Data = HandoffInputData<CaseContext>;
    Ok(match name {
        "identity" => Filter::new(|data: Data| data),
        "remove_all_tools" => filters::remove_all_tools(),
        "nest" => filters::nest_history_between(markers.clone()),
        "drop_new_items" => Filter::new(|data: Data| data.with_new_items([])),
        "drop_pre_handoff_items" => Filter::new(|data: Data| data.with_pre_handoff_items([])),
        "input_items_empty" => Filter::new(|data: Data| data.with_input_items([])),
        "record" => Filter::new(|data: Data| {
            let mut entry = serialize::handoff_data(&data);
            // Always true here: the type has a run context.
            entry["has_run_context"] = Value::Bool(true);
            data.run_context().log(json!({"filter": entry}));
            data
        }),
        other => return Err(format!("unknown filter {other:?}")),
    })
}

fn with_argument(spec: &Value) -> Result<Filter<CaseContext>, String> {
    if let Some(count) = spec["keep_last_history"].as_u64() {
        let count = usize::try_from(count).map_err(|error| error.to_string())?;
        return Ok(Filter::new(
            move |data: HandoffInputData<CaseContext>| match data.input_history().clone() {
                Input::Text(_) => data,
                Input::Items(items) => {
                    let kept = items.skip(items.len().saturating_sub(count));
                    data.with_input_history(kept)
                }
            },
        ));
    }
    if let Some(text) = spec["replace_history"].as_str() {
        let text = text.to_owned();
        return Ok(Filter::new(move |data: HandoffInputData<CaseContext>| {
            data.with_input_history(text.as_str())
        }));
    }
    if let Some(pause) = spec["async_identity_ms"].as_u64() {
        return Ok(Filter::new(
            move |data: HandoffInputData<CaseContext>| async move {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                data
            },
        ));
    }
    Err(format!("unknown filter {spec}"))
}

/// Returns the history mapper that a case names, or `None` if it names none.
pub(super) fn mapper(name: Option<&str>) -> Result<Option<HistoryMapper>, String> {
    Ok(Some(match name {
        None => return Ok(None),
        Some("identity") => HistoryMapper::new(|transcript| transcript),
        Some("last_two") => HistoryMapper::new(|transcript| {
            let skipped = transcript.len().saturating_sub(2);
            transcript.into_iter().skip(skipped).collect()
        }),
        Some("count") => HistoryMapper::new(|transcript| {
            vec![Item::assistant(format!(
                "{} earlier items",
                transcript.len()
            ))]
        }),
        Some(other) => return Err(format!("unknown history mapper {other:?}")),
    }))
}
