//! Problems with missing and dependent fields.

use serde_json::Value;

use crate::error::Problem;

/// The problem of a missing field.
pub(super) fn missing(field: &str) -> Problem {
    let message = format!("Missing required parameter: '{field}'.");
    Problem::new("missing_required_parameter", field.to_owned(), message)
}

/// Checks that `field` is set only if its requirement is.
pub(super) fn requires(
    body: &Value,
    field: &str,
    required: &str,
    is_set: bool,
) -> Result<(), Problem> {
    if is_set || body[field].is_null() {
        return Ok(());
    }
    let message = format!("'{field}' is only allowed when '{required}' is specified.");
    Err(Problem::new("invalid_value", field.to_owned(), message))
}
