//! Reading version 3, in which all fields of a run stood side by side.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Error;
use serde_json::value::{RawValue, to_raw_value};

use super::{Snapshot, VERSION};

/// The fields of an object, which are moved without being read.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct Fields(BTreeMap<String, Box<RawValue>>);

impl Fields {
    fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, Error> {
        let value = self.0.remove(name);
        let value = value.ok_or_else(|| Error::missing_field(name))?;
        serde_json::from_str(value.get())
    }

    fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        self.0.insert(name.to_owned(), to_raw_value(value)?);
        Ok(())
    }

    fn rename(&mut self, from: &'static str, to: &str) -> Result<(), Error> {
        let value: Box<RawValue> = self.take(from)?;
        self.set(to, &value)
    }

    /// Moves fields into an object of their own.
    fn nest(&mut self, object: &str, fields: &[&'static str]) -> Result<(), Error> {
        let mut nested: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
        for field in fields {
            nested.insert(field, self.take(field)?);
        }
        self.set(object, &nested)
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Model,
    Tools(Turn),
    Judge(Turn),
    Handoff(Turn),
    Output(Turn, Box<RawValue>),
    Done(Box<RawValue>),
}

/// A turn; it is read as one of version 3 and written as one of version 4.
#[derive(Deserialize, Serialize)]
#[serde(try_from = "Fields")]
struct Turn(Fields);

impl TryFrom<Fields> for Turn {
    type Error = Error;

    fn try_from(mut turn: Fields) -> Result<Self, Error> {
        turn.rename("tools", "calls")?;
        turn.rename("unknown_tools", "unknown")?;
        turn.nest("tools", &["calls", "unknown", "results", "done", "started"])?;
        Ok(Self(turn))
    }
}

/// Converts a run of version 3.
pub(super) fn convert(stored: &str) -> Result<Snapshot, Error> {
    let mut run: Fields = serde_json::from_str(stored)?;
    let items = run.take("items")?;
    let run_items = run.take("run_items")?;
    let phase: Phase = run.take("phase")?;
    run.set("phase", &phase)?;
    for (from, to) in [("agent", "agent"), ("first", "first_agent")] {
        // Version 3 had no name beside the key.
        let key: Box<RawValue> = run.take(from)?;
        run.set(to, &BTreeMap::from([("key", &key), ("name", &key)]))?;
    }
    run.rename("trail", "handoffs")?;
    run.rename("made_items", "last_item")?;
    let position = ["turn", "phase", "agent_started", "last_item", "tool_users"];
    run.nest("position", &position)?;
    let conversation = [
        "input",
        "stored_input",
        "generated",
        "record",
        "owned",
        "calls",
    ];
    run.nest("conversation", &conversation)?;
    run.rename("has_session", "is_attached")?;
    run.nest("session", &["is_attached", "unsaved", "saved_early"])?;
    for (from, to) in [
        ("input_guardrails", "input"),
        ("output_guardrails", "output"),
        ("tool_guardrails", "tool"),
        ("handoff_guardrails", "handoff"),
    ] {
        let mut guardrails: Fields = run.take(from)?;
        let mut results: Vec<Fields> = guardrails.take("results")?;
        for result in &mut results {
            // Version 3 had the info in a verdict.
            if let Ok(mut verdict) = result.take::<Fields>("verdict") {
                result.set("info", &verdict.take::<Box<RawValue>>("info")?)?;
            }
        }
        guardrails.set("results", &results)?;
        run.set(to, &guardrails)?;
    }
    let guardrails = ["input_checks", "input", "output", "tool", "handoff"];
    run.nest("guardrails", &guardrails)?;
    Ok(Snapshot {
        version: VERSION,
        items,
        run_items,
        run: to_raw_value(&run)?,
    })
}
