//! Checks tools and the tool choice.

use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::error::Problem;

/// Checks that the names of tools are unique.
pub(super) fn check_unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Problem> {
    let mut seen = FxHashSet::default();
    for name in names {
        if !seen.insert(name) {
            let message = format!("Tool names must be unique: '{name}' is there twice.");
            return Err(Problem::new("invalid_value", "tools".to_owned(), message));
        }
    }
    Ok(())
}

/// Checks that a tool that is chosen by name exists.
pub(super) fn check_choice(
    choice: &Value,
    is_offered: impl Fn(&str, &Value) -> bool,
) -> Result<(), Problem> {
    let kind = choice["type"].as_str().unwrap_or_default();
    match kind {
        "function" | "custom" if !is_offered(kind, choice) => {
            let message = format!("Tool choice '{kind}' not found in 'tools' parameter.");
            Err(Problem::new(None, "tool_choice".to_owned(), message))
        }
        _ => Ok(()),
    }
}
