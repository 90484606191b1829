//! Text with places to fill: `invoices/{number}`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::context::Context;
use crate::mistake::Mistake;
use crate::suggest::{did_you_mean, listed};

/// Text with places to fill. `{name}` is an argument of the tool, `{context.name}` a value of the
/// context, `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Place(Place),
}

/// A place to fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Argument(String),
    Context(String),
}

/// What places are filled with.
#[derive(Clone, Copy)]
pub(crate) struct Filling<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) context: &'a Context,
}

/// What may be named in a template.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The tool's arguments; `None` where its schema does not list them.
    pub(crate) arguments: Option<&'a [String]>,
    pub(crate) context: &'a Context,
}

impl Template {
    pub(crate) fn parse(text: &str, names: Names<'_>) -> Result<Self, Mistake> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let start = at;
            at += c.len_utf8();
            match c {
                '{' | '}' if text[at..].starts_with(c) => {
                    at += 1;
                    literal.push(c);
                }
                '{' => {
                    let Some(length) = text[at..].find('}') else {
                        return Err(Mistake::new(start..text.len(), "this place has no end")
                            .help("close it with }, or write {{ for a brace"));
                    };
                    let name = &text[at..at + length];
                    at += length + 1;
                    let place = names.place(name, start..at)?;
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Place(place));
                }
                '}' => {
                    return Err(
                        Mistake::new(start..at, "this closes nothing").help("write }} for a brace")
                    );
                }
                c => literal.push(c),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self(parts))
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Whether it has a place.
    pub(crate) fn has_place(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Place(_)))
    }

    /// Whether it has a place for something that a model sends.
    pub(crate) fn has_argument(&self) -> bool {
        let is_argument = |part: &Part| matches!(part, Part::Place(Place::Argument(_)));
        self.0.iter().any(is_argument)
    }

    /// The place, where the text is nothing else.
    pub(crate) fn only_place(&self) -> Option<&Place> {
        match self.0.as_slice() {
            [Part::Place(place)] => Some(place),
            _ => None,
        }
    }

    /// The text with its places filled.
    ///
    /// # Errors
    /// What the model is told where a value is absent.
    pub(crate) fn fill_all(&self, filling: Filling<'_>) -> Result<String, String> {
        let absent = self.0.iter().find_map(|part| match part {
            Part::Place(place) if filling.value(place).is_none() => Some(place.name()),
            _ => None,
        });
        match absent {
            Some(name) => Err(format!("{name:?} is missing")),
            None => Ok(self.fill(filling).unwrap_or_default()),
        }
    }

    /// The text with its places filled; `None` where the value of a place is absent.
    pub(crate) fn fill(&self, filling: Filling<'_>) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Place(place) => text.push_str(&filling.text(place)?),
            }
        }
        Some(text)
    }
}

impl Names<'_> {
    fn place(&self, name: &str, span: std::ops::Range<usize>) -> Result<Place, Mistake> {
        if let Some(path) = name.strip_prefix("context.") {
            return match self.context.get(path) {
                Some(_) => Ok(Place::Context(path.to_owned())),
                None => {
                    let (message, suggestion, help) = self.context.no_such(path);
                    Err(Mistake {
                        suggestion,
                        ..Mistake::new(span, message).help(help)
                    })
                }
            };
        }
        match self.arguments {
            Some(known) if !known.iter().any(|known| known == name) => {
                let known = || known.iter().map(String::as_str);
                let help = format!(
                    "the arguments are {}; values of the context are written {{context.name}}",
                    listed(known())
                );
                Err(Mistake {
                    suggestion: did_you_mean(name, known()),
                    ..Mistake::new(span, format!("the tool has no argument {name:?}")).help(help)
                })
            }
            _ => Ok(Place::Argument(name.to_owned())),
        }
    }
}

impl<'a> Filling<'a> {
    /// The value of a place; none where it is absent or null.
    pub(crate) fn value(&self, place: &Place) -> Option<&'a Value> {
        let value = match place {
            Place::Argument(name) => self.arguments.get(name),
            Place::Context(path) => self.context.get(path),
        };
        value.filter(|value| !value.is_null())
    }

    /// The value of a place as text: texts as they are, all else as JSON.
    pub(crate) fn text(&self, place: &Place) -> Option<Cow<'a, str>> {
        self.value(place).map(|value| match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        })
    }
}

impl Place {
    /// What a model is told of the place.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Argument(name) | Self::Context(name) => name,
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
    fn places_are_filled_and_braces_stay() {
        let context = Context::new(map(json!({ "customer": { "id": "C-1" } })));
        let known = ["number".to_owned(), "note".to_owned()];
        let names = Names {
            arguments: Some(&known),
            context: &context,
        };
        let arguments = map(json!({ "number": 7, "note": null }));
        let filling = Filling {
            arguments: &arguments,
            context: &context,
        };
        let filled = |text: &str| Template::parse(text, names).unwrap().fill(filling);
        assert_eq!(
            filled("{{{number}}}/{context.customer.id}").unwrap(),
            "{7}/C-1"
        );
        assert_eq!(filled("a {note}"), None);
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
            ("{number", "{number", "this place has no end"),
            ("a}", "}", "this closes nothing"),
        ] {
            let mistake = Template::parse(text, names).unwrap_err();
            assert_eq!(
                (&text[mistake.span.clone()], mistake.message.as_str()),
                (at, message)
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_filled_in_is_never_read_again(value in ".*") {
            let context = Context::default();
            let names = Names { arguments: None, context: &context };
            let arguments = map(json!({ "a": value }));
            let filling = Filling { arguments: &arguments, context: &context };
            let filled = Template::parse("<{a}>", names).unwrap().fill(filling);
            prop_assert_eq!(filled.unwrap(), format!("<{value}>"));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}a-c.é]{0,30}") {
            let context = Context::default();
            let names = Names { arguments: None, context: &context };
            let _ = Template::parse(&text, names);
        }
    }
}
