//! Text with placeholders: `invoices/{number}`.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::context::Context;
use crate::diagnostics::ExpressionError;
use crate::suggest::{did_you_mean, quoted_list};

/// Text with placeholders. `{name}` is an argument of the tool, `{context.name}` a value of the
/// context, `{call.idempotency_key}` the key of the call, `{payload.name}` a field of the payload by which
/// the agent got the conversation, `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Placeholder(Placeholder),
}

/// The name of a value to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placeholder {
    Argument(String),
    Context(String),
    /// The idempotency key of the call.
    CallKey,
    /// A field of the payload by which the agent got the conversation.
    Payload(String),
}

/// The placeholder for the idempotency key of the call.
const CALL_KEY: &str = "call.idempotency_key";

/// The values for placeholders.
#[derive(Clone, Copy)]
pub(crate) struct TemplateValues<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) context: &'a Context,
    /// The idempotency key of the call.
    pub(crate) call_key: &'a Value,
    /// The payload by which the agent got the conversation, or null.
    pub(crate) payload: &'a Value,
}

/// The names that placeholders may refer to.
#[derive(Clone, Copy)]
pub(crate) struct KnownNames<'a> {
    /// The tool's arguments; `None` if its schema does not list them.
    pub(crate) arguments: Option<&'a [String]>,
    pub(crate) context: &'a Context,
}

impl Template {
    pub(crate) fn parse(text: &str, names: KnownNames<'_>) -> Result<Self, ExpressionError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut end = 0;
        while let Some(c) = text[end..].chars().next() {
            let start = end;
            end += c.len_utf8();
            match c {
                '{' | '}' if text[end..].starts_with(c) => {
                    end += 1;
                    literal.push(c);
                }
                '{' => {
                    let Some(length) = text[end..].find('}') else {
                        let message = "this placeholder is not closed";
                        return Err(ExpressionError::new(start..text.len(), message)
                            .help("close it with }, or write {{ for a brace"));
                    };
                    let name = &text[end..end + length];
                    end += length + 1;
                    let placeholder = names.placeholder(name, start..end)?;
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Placeholder(placeholder));
                }
                '}' => {
                    return Err(ExpressionError::new(start..end, "this closes nothing")
                        .help("write }} for a brace"));
                }
                c => literal.push(c),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self(parts))
    }

    pub(crate) fn from_parts(parts: Vec<Part>) -> Self {
        Self(parts)
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }

    pub(crate) fn has_placeholder(&self) -> bool {
        let is_placeholder = |part: &Part| matches!(part, Part::Placeholder(_));
        self.0.iter().any(is_placeholder)
    }

    /// Returns `true` if it has a placeholder for an argument, a payload or the call's key, which a model
    /// chooses all or part of.
    pub(crate) fn has_argument(&self) -> bool {
        use Placeholder::{Argument, CallKey, Payload};
        let is_chosen =
            |part: &Part| matches!(part, Part::Placeholder(Argument(_) | CallKey | Payload(_)));
        self.0.iter().any(is_chosen)
    }

    /// Returns the placeholder if there is nothing else in the text.
    pub(crate) fn only_placeholder(&self) -> Option<&Placeholder> {
        match self.0.as_slice() {
            [Part::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// Renders the text. Fails with a message for the model if a value is missing.
    pub(crate) fn render(&self, values: TemplateValues<'_>) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Placeholder(placeholder) => text.push_str(&values.text(placeholder)?),
            }
        }
        Ok(text)
    }
}

impl KnownNames<'_> {
    fn placeholder(&self, name: &str, span: Range<usize>) -> Result<Placeholder, ExpressionError> {
        if let Some(path) = name.strip_prefix("context.") {
            return match self.context.get(path) {
                Some(_) => Ok(Placeholder::Context(path.to_owned())),
                None => {
                    let (message, suggestion, help) = self.context.unknown_path(path);
                    Err(ExpressionError {
                        suggestion,
                        ..ExpressionError::new(span, message).help(help)
                    })
                }
            };
        }
        if let Some(path) = name.strip_prefix("payload.")
            && !path.is_empty()
        {
            return Ok(Placeholder::Payload(path.to_owned()));
        }
        if name == CALL_KEY {
            return Ok(Placeholder::CallKey);
        }
        match self.arguments {
            Some(known) if !known.iter().any(|known| known == name) => {
                let known = || known.iter().map(String::as_str);
                let help = format!(
                    "the arguments are {}; values of the context are written {{context.name}}, the key of \
                     the call {{{CALL_KEY}}}",
                    quoted_list(known())
                );
                Err(ExpressionError {
                    suggestion: did_you_mean(name, known()),
                    ..ExpressionError::new(span, format!("the tool has no argument {name:?}"))
                        .help(help)
                })
            }
            _ => Ok(Placeholder::Argument(name.to_owned())),
        }
    }
}

impl<'a> TemplateValues<'a> {
    /// The value of a placeholder; `None` if it is missing or null.
    pub(crate) fn value(&self, placeholder: &Placeholder) -> Option<&'a Value> {
        let value = match placeholder {
            Placeholder::Argument(name) => self.arguments.get(name),
            Placeholder::Context(path) => self.context.get(path),
            Placeholder::CallKey => Some(self.call_key),
            Placeholder::Payload(path) => {
                let mut names = path.split('.');
                names.try_fold(self.payload, |value, name| value.get(name))
            }
        };
        value.filter(|value| !value.is_null())
    }

    /// The value of a placeholder as text: a string itself, anything else as JSON. Fails with a
    /// message for the model if it is missing.
    pub(crate) fn text(&self, placeholder: &Placeholder) -> Result<Cow<'a, str>, String> {
        match self.value(placeholder) {
            Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
            Some(other) => Ok(Cow::Owned(other.to_string())),
            None => Err(format!("{:?} is missing", placeholder.name())),
        }
    }
}

impl Placeholder {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Argument(name) | Self::Context(name) | Self::Payload(name) => name,
            Self::CallKey => CALL_KEY,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!(),
        }
    }

    #[test]
    fn placeholders_are_replaced_and_braces_unescaped() {
        let context = Context::new(map(json!({ "customer": { "id": "C-1" } })));
        let known = ["number".to_owned(), "note".to_owned()];
        let names = KnownNames {
            arguments: Some(&known),
            context: &context,
        };
        let arguments = map(json!({ "number": 7, "note": null }));
        let values = TemplateValues {
            arguments: &arguments,
            context: &context,
            call_key: &json!("s/1/2/c3"),
            payload: &json!({ "to": { "city": "Bonn" } }),
        };
        let render = |text: &str| Template::parse(text, names).unwrap().render(values);
        assert_eq!(
            render("{{{number}}}/{context.customer.id}").unwrap(),
            "{7}/C-1"
        );
        assert_eq!(render("{call.idempotency_key}").unwrap(), "s/1/2/c3");
        assert_eq!(render("{payload.to.city}").unwrap(), "Bonn");
        assert_eq!(render("{payload.x}").unwrap_err(), "\"x\" is missing");
        assert_eq!(render("a {note}").unwrap_err(), "\"note\" is missing");
        for (text, at, message) in [
            (
                "x{nubmer}",
                "{nubmer}",
                "the tool has no argument \"nubmer\"",
            ),
            (
                "{context.customer.name}",
                "{context.customer.name}",
                "the context has no \"customer.name\"",
            ),
            ("{number", "{number", "this placeholder is not closed"),
            ("a}", "}", "this closes nothing"),
        ] {
            let error = Template::parse(text, names).unwrap_err();
            assert_eq!(
                (&text[error.span.clone()], error.message.as_str()),
                (at, message)
            );
        }
    }

    proptest! {
        #[test]
        fn values_are_not_parsed_as_templates(value in ".*") {
            let context = Context::default();
            let names = KnownNames { arguments: None, context: &context };
            let arguments = map(json!({ "a": value }));
            let values = TemplateValues { arguments: &arguments, context: &context, call_key: &Value::Null, payload: &Value::Null };
            let text = Template::parse("<{a}>", names).unwrap().render(values);
            prop_assert_eq!(text.unwrap(), format!("<{value}>"));
        }

        #[test]
        fn parsing_never_panics(text in "[{}a-c.é]{0,30}") {
            let context = Context::default();
            let names = KnownNames { arguments: None, context: &context };
            let _ = Template::parse(&text, names);
        }
    }
}
