//! The filters and mappers that cases name. All but two are a user's own filters.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::filters::{self, Filter};
use switchboard_core::{HandoffInputData, HistoryMapper, HistoryMarkers, Input, Item};

use super::World;
use crate::written;

/// The filter a case names, if it names one.
pub(super) fn optional(
    named: &Option<Value>,
    markers: &HistoryMarkers,
) -> Result<Option<Filter<World>>, String> {
    match named {
        None | Some(Value::Null) => Ok(None),
        Some(named) => filter(named, markers).map(Some),
    }
}

fn filter(named: &Value, markers: &HistoryMarkers) -> Result<Filter<World>, String> {
    match named {
        Value::String(name) => by_name(name, markers),
        Value::Array(chain) => {
            let mut chain = chain.iter().map(|named| filter(named, markers));
            let first = chain.next().ok_or("an empty chain of filters")??;
            chain.try_fold(first, |chained, next| Ok(chained.then(next?)))
        }
        Value::Object(_) => with_argument(named),
        other => Err(format!("unknown filter {other}")),
    }
}

fn by_name(name: &str, markers: &HistoryMarkers) -> Result<Filter<World>, String> {
    type Data = HandoffInputData<World>;
    Ok(match name {
        "identity" => Filter::new(|data: Data| data),
        "remove_all_tools" => filters::remove_all_tools(),
        "nest" => filters::nest_history_between(markers.clone()),
        "drop_new_items" => Filter::new(|data: Data| data.with_new_items([])),
        "drop_pre_handoff_items" => Filter::new(|data: Data| data.with_pre_handoff_items([])),
        "input_items_empty" => Filter::new(|data: Data| data.with_input_items([])),
        "record" => Filter::new(|data: Data| {
            let mut seen = written::handoff_data(&data);
            // The type says so; the corpus wants it said.
            seen["has_run_context"] = Value::Bool(true);
            data.run_context().log(json!({"filter": seen}));
            data
        }),
        other => return Err(format!("unknown filter {other:?}")),
    })
}

fn with_argument(named: &Value) -> Result<Filter<World>, String> {
    if let Some(count) = named["keep_last_history"].as_u64() {
        let count = usize::try_from(count).map_err(|error| error.to_string())?;
        return Ok(Filter::new(move |data: HandoffInputData<World>| match data
            .input_history()
            .clone()
        {
            Input::Text(_) => data,
            Input::Items(items) => {
                let kept = items.skip(items.len().saturating_sub(count));
                data.with_input_history(kept)
            }
        }));
    }
    if let Some(text) = named["replace_history"].as_str() {
        let text = text.to_owned();
        return Ok(Filter::new(move |data: HandoffInputData<World>| {
            data.with_input_history(text.as_str())
        }));
    }
    if let Some(pause) = named["async_identity_ms"].as_u64() {
        return Ok(Filter::new(
            move |data: HandoffInputData<World>| async move {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                data
            },
        ));
    }
    Err(format!("unknown filter {named}"))
}

/// The mapper a case names, if it names one.
pub(super) fn mapper(named: Option<&str>) -> Result<Option<HistoryMapper>, String> {
    Ok(Some(match named {
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
