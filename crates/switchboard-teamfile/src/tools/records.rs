//! Tools that look up a record in a file.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_core::callback::BoxError;

use super::{Limits, output_text};
use crate::template::{Placeholder, TemplateValues};

/// A table of records. `by` is the argument that names the record.
#[derive(Debug, Clone)]
pub(crate) struct RecordsTool {
    pub(crate) records: Arc<Map<String, Value>>,
    pub(crate) by: String,
}

impl RecordsTool {
    pub(super) fn find(
        &self,
        values: TemplateValues<'_>,
        limits: Limits,
    ) -> Result<String, BoxError> {
        let name = values.text(&Placeholder::Argument(self.by.clone()))?;
        let name = name.trim();
        // Customers write "inv-7" for "INV-7".
        let ignoring_case = || {
            let mut records = self.records.iter();
            records.find(|(known, _)| known.to_lowercase() == name.to_lowercase())
        };
        let record = self.records.get_key_value(name).or_else(ignoring_case);
        Ok(match record {
            Some((_, Value::String(text))) => output_text(text.as_bytes(), true, limits),
            Some((_, record)) => output_text(record.to_string().as_bytes(), true, limits),
            // Similar names are not suggested: they may belong to other customers.
            None => format!("There is no record {name:?}."),
        })
    }
}
