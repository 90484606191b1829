//! Checks bodies against the schemas of the official client's types.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Protocol;
use crate::error::Problem;
use crate::route::Route;

static RESPONSES: LazyLock<Result<Validator, String>> =
    LazyLock::new(|| compile(include_str!("../../schemas/responses_request.json")));
static CHAT: LazyLock<Result<Validator, String>> =
    LazyLock::new(|| compile(include_str!("../../schemas/chat_request.json")));
static SPEECH: LazyLock<Result<Validator, String>> =
    LazyLock::new(|| compile(include_str!("../../schemas/speech_request.json")));
static TRANSCRIPTION: LazyLock<Result<Validator, String>> =
    LazyLock::new(|| compile(include_str!("../../schemas/transcription_request.json")));

fn compile(text: &str) -> Result<Validator, String> {
    let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Validator::new(&schema).map_err(|error| error.to_string())
}

/// Checks a body against the schema of its endpoint.
pub(super) fn check(route: Route, body: &Value) -> Result<(), Problem> {
    let validator = match route {
        Route::Model(Protocol::Responses) => &RESPONSES,
        Route::Model(Protocol::Chat) => &CHAT,
        Route::Speech => &SPEECH,
        Route::Transcriptions => &TRANSCRIPTION,
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
    Err(most_specific(&errors).map_or_else(
        || Problem::new("invalid_value", None, "the schema does not allow this body"),
        problem,
    ))
}

/// The error deepest in the body, also inside the alternatives of an `anyOf`.
fn most_specific<'a, 'i>(errors: &'a [ValidationError<'i>]) -> Option<&'a ValidationError<'i>> {
    // Reversed, since `max_by_key` returns the last maximum.
    errors
        .iter()
        .map(in_alternative)
        .rev()
        .max_by_key(|error| depth(error))
}

/// The error inside the alternative of an `anyOf` that was probably meant: the one with the fewest
/// errors.
fn in_alternative<'a, 'i>(error: &'a ValidationError<'i>) -> &'a ValidationError<'i> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return error;
    };
    let alternatives = context.iter().filter_map(|errors| {
        let inner = most_specific(errors)?;
        let fewest = usize::MAX - errors.len();
        (depth(inner) > depth(error)).then_some((inner, (fewest, depth(inner), is_field(inner))))
    });
    let best = alternatives.max_by_key(|(_, key)| *key);
    best.map_or(error, |(inner, _)| inner)
}

/// Returns `true` if an error names a missing or unknown field.
fn is_field(error: &ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::Required { .. }
    )
}

/// The depth of an error in the body, including the field it names.
fn depth(error: &ValidationError<'_>) -> usize {
    let steps = error.instance_path().as_str().matches('/').count();
    steps + usize::from(is_field(error))
}

fn problem(error: &ValidationError<'_>) -> Problem {
    let path = param_path(error.instance_path().as_str());
    let field_path = |field: &str| match path.as_str() {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let field = field_path(unexpected.first().map_or("", String::as_str));
            let message = format!("Unknown parameter: '{field}'.");
            Problem::new("unknown_parameter", field, message)
        }
        ValidationErrorKind::Required { property } => {
            let field = field_path(property.as_str().unwrap_or_default());
            let message = format!("Missing required parameter: '{field}'.");
            Problem::new("missing_required_parameter", field, message)
        }
        kind => {
            let code = match kind {
                ValidationErrorKind::Type { .. } => "invalid_type",
                _ => "invalid_value",
            };
            match path.as_str() {
                "" => Problem::new(code, None, format!("Invalid body: {}", short(error))),
                _ => {
                    let message = format!("Invalid '{path}': {}", short(error));
                    Problem::new(code, path, message)
                }
            }
        }
    }
}

/// The text of an error, without the value if that is long.
fn short(error: &ValidationError<'_>) -> String {
    let value = error.instance().to_string();
    if value.chars().count() > 200 {
        error.masked().to_string()
    } else {
        error.to_string()
    }
}

/// Converts a JSON pointer like `/input/1/id` to `input[1].id`.
fn param_path(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.extend(["[", step, "]"]);
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(step);
        }
    }
    path
}
