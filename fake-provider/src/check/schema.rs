//! The schemas of the official client's types.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Protocol;
use crate::error::Problem;

static RESPONSES: LazyLock<Result<Validator, String>> =
    LazyLock::new(|| compile(include_str!("../../schemas/responses_request.json")));
static CHAT: LazyLock<Result<Validator, String>> =
    LazyLock::new(|| compile(include_str!("../../schemas/chat_request.json")));

fn compile(text: &str) -> Result<Validator, String> {
    let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Validator::new(&schema).map_err(|error| error.to_string())
}

/// Checks a body against the schema of its protocol.
pub(super) fn check(protocol: Protocol, body: &Value) -> Result<(), Problem> {
    let validator = match protocol {
        Protocol::Responses => &RESPONSES,
        Protocol::Chat => &CHAT,
    };
    let validator = match &**validator {
        Ok(validator) => validator,
        Err(error) => {
            let message = format!("the schema cannot be read: {error}");
            return Err(Problem::new("broken_schema", None, message).status(500));
        }
    };
    if validator.is_valid(body) {
        return Ok(());
    }
    let errors: Vec<ValidationError<'_>> = validator.iter_errors(body).collect();
    Err(most_telling(&errors).map_or_else(
        || Problem::new("invalid_value", None, "the schema does not allow this body"),
        problem,
    ))
}

/// The error that lies deepest in the body, also within the alternatives of an `anyOf`.
fn most_telling<'a, 'i>(errors: &'a [ValidationError<'i>]) -> Option<&'a ValidationError<'i>> {
    let told = errors.iter().map(inner);
    // The first of the deepest: `max_by_key` gives the last.
    told.rev().max_by_key(|error| depth(error))
}

/// Of the alternatives that have something inside to object to, the one with the fewest errors is the
/// one that was meant.
fn inner<'a, 'i>(error: &'a ValidationError<'i>) -> &'a ValidationError<'i> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return error;
    };
    let alternatives = context.iter().filter_map(|errors| {
        let inner = most_telling(errors)?;
        let fewest = usize::MAX - errors.len();
        (depth(inner) > depth(error)).then_some((inner, (fewest, depth(inner), is_field(inner))))
    });
    let best = alternatives.max_by_key(|(_, key)| *key);
    best.map_or(error, |(inner, _)| inner)
}

/// Whether an error names a field that is missing or too many.
fn is_field(error: &ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::Required { .. }
    )
}

/// How far into the body an error points, the field it names included.
fn depth(error: &ValidationError<'_>) -> usize {
    let steps = error.instance_path().as_str().matches('/').count();
    steps + usize::from(is_field(error))
}

fn problem(error: &ValidationError<'_>) -> Problem {
    let place = place(error.instance_path().as_str());
    let in_place = |field: &str| match place.as_str() {
        "" => field.to_owned(),
        place => format!("{place}.{field}"),
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let field = in_place(unexpected.first().map_or("", String::as_str));
            let message = format!("Unknown parameter: '{field}'.");
            Problem::new("unknown_parameter", field, message)
        }
        ValidationErrorKind::Required { property } => {
            let field = in_place(property.as_str().unwrap_or_default());
            let message = format!("Missing required parameter: '{field}'.");
            Problem::new("missing_required_parameter", field, message)
        }
        kind => {
            let code = match kind {
                ValidationErrorKind::Type { .. } => "invalid_type",
                _ => "invalid_value",
            };
            match place.as_str() {
                "" => Problem::new(code, None, format!("Invalid body: {}", short(error))),
                _ => {
                    let message = format!("Invalid '{place}': {}", short(error));
                    Problem::new(code, place, message)
                }
            }
        }
    }
}

/// The error in few enough words to be read.
fn short(error: &ValidationError<'_>) -> String {
    let value = error.instance().to_string();
    if value.chars().count() > 200 {
        error.masked().to_string()
    } else {
        error.to_string()
    }
}

/// `/input/1/id` as `input[1].id`.
fn place(pointer: &str) -> String {
    let mut place = String::new();
    for step in pointer.split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            place.extend(["[", step, "]"]);
        } else {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(step);
        }
    }
    place
}
