//! Tools that look something up in a file.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_core::BoxError;

use super::{Limits, shown};
use crate::template::{Filling, Place};

/// A table of records, found by the value of an argument.
#[derive(Debug, Clone)]
pub(crate) struct RecordsTool {
    pub(crate) records: Arc<Map<String, Value>>,
    pub(crate) by: String,
}

impl RecordsTool {
    pub(super) fn find(&self, filling: Filling<'_>, limits: Limits) -> Result<String, BoxError> {
        let by = &self.by;
        let name = filling
            .text(&Place::Argument(by.clone()))
            .ok_or_else(|| format!("{by:?} is missing"))?;
        let name = name.trim();
        let found = self.records.get(name).or_else(|| {
            // Customers write "inv-7" for "INV-7".
            let mut same = self.records.iter();
            let same = same.find(|(known, _)| known.to_lowercase() == name.to_lowercase());
            same.map(|(_, record)| record)
        });
        let Some(record) = found else {
            // Nothing is said of others that are close: they may be of other customers.
            return Ok(format!("There is no record {name:?}."));
        };
        let text = match record {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Ok(shown(text.as_bytes(), true, limits))
    }
}
