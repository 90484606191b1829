//! JSON with the span of every value.
//!
//! serde_json parses, and the spans are the positions of its borrowed [`RawValue`]s within the text.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Entry, Kind, Node};
use crate::diagnostics::{Problem, Source};

pub(super) fn parse(source: &Source) -> Result<Node, Box<Problem>> {
    // `RawValue` accepts lone surrogates and any depth; `Value` rejects both.
    serde_json::from_str::<Value>(&source.text)
        .and_then(|_| serde_json::from_str::<&RawValue>(&source.text))
        .map_err(|error| syntax_problem(source, &error))
        .and_then(|raw| node(raw, source))
}

/// A syntax error at the position that serde_json gives: a line and a column in bytes, both from 1.
fn syntax_problem(source: &Source, error: &serde_json::Error) -> Box<Problem> {
    let lines = source.text.split_inclusive('\n');
    let line_start: usize = lines
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let start = (line_start + error.column().saturating_sub(1)).min(source.text.len());
    let message = error.to_string();
    // The problem has a position of its own.
    let message = message.split(" at line ").next().unwrap_or_default();
    Box::new(source.problem("syntax", start..start + 1, message))
}

fn node(raw: &RawValue, source: &Source) -> Result<Node, Box<Problem>> {
    let syntax = |error| syntax_problem(source, &error);
    let text = raw.get();
    let kind = if text.starts_with('{') {
        let fields = serde_json::from_str::<Fields<'_>>(text).map_err(syntax)?;
        Kind::Table(entries(fields, source)?)
    } else if text.starts_with('[') {
        let items = serde_json::from_str::<Vec<&RawValue>>(text).map_err(syntax)?;
        let items = items.into_iter().map(|item| node(item, source));
        Kind::List(items.collect::<Result<_, _>>()?)
    } else {
        match serde_json::from_str(text).map_err(syntax)? {
            Value::Bool(value) => Kind::Bool(value),
            Value::Number(number) => Kind::Number(number),
            Value::String(text) => Kind::Text(text),
            Value::Null | Value::Array(_) | Value::Object(_) => Kind::Null,
        }
    };
    Ok(Node {
        span: span(raw, source),
        kind,
    })
}

fn entries(fields: Fields<'_>, source: &Source) -> Result<Vec<Entry>, Box<Problem>> {
    let mut names = HashSet::new();
    let mut entries = Vec::with_capacity(fields.0.len());
    for (raw_name, raw_value) in fields.0 {
        let name: String =
            serde_json::from_str(raw_name.get()).map_err(|error| syntax_problem(source, &error))?;
        let name_span = span(raw_name, source);
        if !names.insert(name.clone()) {
            let message = format!("duplicate key {name:?}");
            let problem = source.problem("syntax", name_span, message);
            return Err(Box::new(problem.help("remove one of them")));
        }
        entries.push(Entry {
            name,
            name_span,
            value: node(raw_value, source)?,
        });
    }
    Ok(entries)
}

/// The span of a value that borrows from the source.
fn span(raw: &RawValue, source: &Source) -> Range<usize> {
    let start = raw.get().as_ptr().addr() - source.text.as_ptr().addr();
    start..start + raw.get().len()
}

/// The fields of an object in order, duplicates included.
struct Fields<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|integer| Value::from(f64::from(integer) + 0.125)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_tree_and_its_spans_match_the_text(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let source = Source::new(Path::new("t.json"), &text);
            let node = parse(&source).unwrap();
            prop_assert_eq!(node.to_value(), value);
            let mut open = vec![&node];
            while let Some(node) = open.pop() {
                let shown: Value = serde_json::from_str(&text[node.span.clone()]).unwrap();
                prop_assert_eq!(node.to_value(), shown);
                open.extend(node.entries().iter().map(|entry| &entry.value));
                if let Kind::List(items) = &node.kind {
                    open.extend(items);
                }
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = parse(&Source::new(Path::new("t.json"), &text));
        }
    }
}
