//! The arguments of calls in conditions.

use std::ops::Range;

use serde_json::{Map, Value};

use super::parse::Type;
use crate::diagnostics::ExpressionError;
use crate::suggest::{did_you_mean, quoted_list};

/// The arguments that a condition may refer to, as `arguments.NAME` or `payload.NAME`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentNames<'a> {
    call: Call,
    schema: Schema<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Tool,
    Handoff,
    /// A call of any tool or handoff.
    Any,
}

#[derive(Debug, Clone, Copy)]
enum Schema<'a> {
    /// The call has no arguments.
    Empty,
    Known(&'a Value),
    Unknown,
}

impl<'a> ArgumentNames<'a> {
    /// The arguments of a tool. Without a schema it takes none.
    pub(crate) fn of_tool(schema: Option<&'a Value>) -> Self {
        let schema = schema.map_or(Schema::Empty, Schema::Known);
        Self {
            call: Call::Tool,
            schema,
        }
    }

    /// The payload of a handoff. Without a schema it has none.
    pub(crate) fn of_handoff(schema: Option<&'a Value>) -> Self {
        let schema = schema.map_or(Schema::Empty, Schema::Known);
        Self {
            call: Call::Handoff,
            schema,
        }
    }

    /// The payload of a handoff whose schema cannot be used.
    pub(crate) fn of_unknown_payload() -> Self {
        Self {
            call: Call::Handoff,
            schema: Schema::Unknown,
        }
    }

    /// The arguments of tools or the payloads of handoffs, by their schema if it is known.
    pub(crate) fn of_any_call(schema: Option<&'a Value>) -> Self {
        let schema = schema.map_or(Schema::Unknown, Schema::Known);
        Self {
            call: Call::Any,
            schema,
        }
    }

    /// The path of an argument, if the word refers to one.
    pub(super) fn path<'w>(&self, word: &'w str) -> Option<&'w str> {
        let prefixes: &[&str] = match self.call {
            Call::Handoff => &["payload"],
            Call::Tool => &["arguments"],
            Call::Any => &["arguments", "payload"],
        };
        prefixes.iter().find_map(|prefix| {
            let rest = word.strip_prefix(prefix)?;
            if rest.is_empty() {
                return Some(rest);
            }
            rest.strip_prefix('.')
        })
    }

    /// The type of the argument at a path.
    pub(super) fn type_of(&self, path: &str, span: &Range<usize>) -> Result<Type, ExpressionError> {
        let mut schema = match self.schema {
            Schema::Unknown => return Ok(Type::Unknown),
            Schema::Known(schema) => schema,
            Schema::Empty => {
                let message = match self.call {
                    Call::Handoff => "the handoff has no payload",
                    Call::Tool | Call::Any => "the tool takes no arguments",
                };
                let help = match self.call {
                    Call::Handoff => "describe it with payload",
                    Call::Tool | Call::Any => "describe them with parameters",
                };
                return Err(ExpressionError::new(span.clone(), message).help(help));
            }
        };
        let names = path.split('.').filter(|_| !path.is_empty());
        for name in names {
            let type_ = Type::of_schema(schema);
            let properties = schema.get("properties").and_then(Value::as_object);
            schema = match properties {
                Some(properties) => match properties.get(name) {
                    Some(property) => property,
                    None if allows_others(schema) => return Ok(Type::Unknown),
                    None => return Err(self.unknown(path, name, properties, span)),
                },
                None if matches!(type_, Type::Table | Type::Unknown) => return Ok(Type::Unknown),
                None => return Err(self.unknown(path, name, &Map::new(), span)),
            };
        }
        Ok(Type::of_schema(schema))
    }

    fn unknown(
        &self,
        path: &str,
        name: &str,
        properties: &Map<String, Value>,
        span: &Range<usize>,
    ) -> ExpressionError {
        let message = match self.call {
            Call::Handoff => format!("the payload has no field {path:?}"),
            Call::Tool | Call::Any => format!("the tool has no argument {path:?}"),
        };
        let known = || properties.keys().map(String::as_str);
        let error = ExpressionError::new(span.clone(), message);
        if properties.is_empty() {
            return error;
        }
        ExpressionError {
            suggestion: did_you_mean(name, known()),
            ..error.help(format!("there are {}", quoted_list(known())))
        }
    }
}

/// Returns `true` if an object may have properties that its schema does not list.
fn allows_others(schema: &Value) -> bool {
    let fields = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
    let is_open = |more: &Value| more != &Value::Bool(false);
    schema.get("additionalProperties").is_some_and(is_open)
        || fields.iter().any(|field| schema.get(*field).is_some())
}

/// Returns the argument at a path.
pub(super) fn get<'a>(arguments: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.').filter(|_| !path.is_empty());
    names.try_fold(arguments, |value, name| value.get(name))
}
