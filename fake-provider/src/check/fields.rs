//! Fields that need or exclude each other.

use serde_json::Value;

use crate::error::Problem;

/// A field is missing.
pub(super) fn missing(field: &str) -> Problem {
    let message = format!("Missing required parameter: '{field}'.");
    Problem::new("missing_required_parameter", field.to_owned(), message)
}

/// `field` is only there where what it needs is as well.
pub(super) fn needs(
    body: &Value,
    field: &str,
    needed: &str,
    is_there: bool,
) -> Result<(), Problem> {
    if is_there || body[field].is_null() {
        return Ok(());
    }
    let message = format!("'{field}' is only allowed when '{needed}' is specified.");
    Err(Problem::new("invalid_value", field.to_owned(), message))
}
