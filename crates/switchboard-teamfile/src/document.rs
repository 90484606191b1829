//! A TOML or JSON file as a tree of values, each with its span in the text.

mod json;
mod toml;

use std::ops::Range;

use serde_json::{Number, Value};

use crate::diagnostics::{Problem, Source};

/// A value of a file and its span.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The bytes of the value; for a TOML table with a header, those of the header.
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A field of a table.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) name_span: Range<usize>,
    pub(crate) value: Node,
}

/// A segment of a path into the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

impl<'a> From<&'a str> for Step<'a> {
    fn from(name: &'a str) -> Self {
        Self::Field(name)
    }
}

impl<'a> From<&'a String> for Step<'a> {
    fn from(name: &'a String) -> Self {
        Self::Field(name)
    }
}

impl From<usize> for Step<'_> {
    fn from(index: usize) -> Self {
        Self::Item(index)
    }
}

/// A path from the root of a file to one of its values: `steps!["agents", name, "handoffs", 2]`.
macro_rules! steps {
    ($($step:expr),* $(,)?) => {
        &[$($crate::document::Step::from($step)),*][..]
    };
}
pub(crate) use steps;

/// The range in which an `f64` represents every integer exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

impl Node {
    /// Parses a file: JSON if its name ends in `.json`, TOML otherwise.
    pub(crate) fn parse(source: &Source) -> Result<Self, Box<Problem>> {
        let extension = source.path.extension().unwrap_or_default();
        if extension.eq_ignore_ascii_case("json") {
            json::parse(source)
        } else {
            toml::parse(source)
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.name == name)
    }

    /// Follows a path as far as it exists. Returns the last value, and its entry if it is a field.
    fn follow(&self, path: &[Step<'_>]) -> (&Self, Option<&Entry>) {
        let mut current = (self, None);
        for step in path {
            let next = match (step, &current.0.kind) {
                (Step::Field(name), _) => {
                    let entry = current.0.field(name);
                    entry.map(|entry| (&entry.value, Some(entry)))
                }
                (Step::Item(index), Kind::List(items)) => {
                    items.get(*index).map(|item| (item, None))
                }
                (Step::Item(_), _) => None,
            };
            match next {
                Some(next) => current = next,
                None => break,
            }
        }
        current
    }

    /// Returns the value at a path, or the last one that exists on it.
    pub(crate) fn at(&self, path: &[Step<'_>]) -> &Self {
        self.follow(path).0
    }

    /// Returns the span of the value at a path.
    pub(crate) fn span_of(&self, path: &[Step<'_>]) -> Range<usize> {
        self.at(path).span.clone()
    }

    /// Returns the span of the name of the field at a path, or that of the value if it is no field.
    pub(crate) fn name_span_of(&self, path: &[Step<'_>]) -> Range<usize> {
        match self.follow(path) {
            (_, Some(entry)) => entry.name_span.clone(),
            (node, None) => node.span.clone(),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => match number.as_f64() {
                // `3.0` is accepted where an integer is expected.
                Some(float)
                    if number.is_f64()
                        && float.fract() == 0.0
                        && float.abs() < MAX_EXACT_INTEGER =>
                {
                    #[expect(clippy::cast_possible_truncation, reason = "an exact integer")]
                    let integer = float as i64;
                    integer.into()
                }
                _ => Value::Number(number.clone()),
            },
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Self::to_value).collect(),
            Kind::Table(entries) => {
                let field = |entry: &Entry| (entry.name.clone(), entry.value.to_value());
                Value::Object(entries.iter().map(field).collect())
            }
        }
    }
}
