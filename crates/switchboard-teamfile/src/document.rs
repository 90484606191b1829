//! A file as a tree of values, each with its place.

mod json;
mod toml;

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Number, Value};

use crate::problem::{Problem, Source};

/// A value of a file, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The bytes of the value; of a table with a header, those of the header.
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
    /// The bytes of the name.
    pub(crate) name_span: Range<usize>,
    pub(crate) value: Node,
}

/// A step down into a tree.
#[derive(Debug, Clone, Copy)]
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
    fn from(at: usize) -> Self {
        Self::Item(at)
    }
}

/// The way from the top of a file to one of its values: `way!["agents", name, "handoffs", 2]`.
macro_rules! way {
    ($($step:expr),* $(,)?) => {
        &[$($crate::document::Step::from($step)),*][..]
    };
}
pub(crate) use way;

impl Node {
    /// Reads a file, by its name as JSON or else as TOML.
    pub(crate) fn read(source: &Source) -> Result<Self, Box<Problem>> {
        if is_json(&source.path) {
            json::read(source)
        } else {
            toml::read(source)
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

    /// The value at the end of a way, or the last one there is on it.
    fn down(&self, way: &[Step<'_>]) -> (&Self, Option<&Entry>) {
        let mut at = (self, None);
        for step in way {
            let next = match (step, &at.0.kind) {
                (Step::Field(name), _) => at.0.field(name).map(|entry| (&entry.value, Some(entry))),
                (Step::Item(item), Kind::List(items)) => items.get(*item).map(|item| (item, None)),
                (Step::Item(_), _) => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// The value at the end of a way, or the last one there is on it.
    pub(crate) fn at(&self, way: &[Step<'_>]) -> &Self {
        self.down(way).0
    }

    /// The bytes of the value at the end of a way.
    pub(crate) fn span_of(&self, way: &[Step<'_>]) -> Range<usize> {
        self.down(way).0.span.clone()
    }

    /// The bytes of the name of the field at the end of a way; those of the value where it has none.
    pub(crate) fn name_span_of(&self, way: &[Step<'_>]) -> Range<usize> {
        match self.down(way) {
            (_, Some(entry)) => entry.name_span.clone(),
            (node, None) => node.span.clone(),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => match number.as_f64() {
                // What is whole can stand where whole numbers are asked for, however it is written.
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < WHOLE => {
                    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
                    let whole = float as i64;
                    whole.into()
                }
                _ => Value::Number(number.clone()),
            },
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Self::to_value).collect(),
            Kind::Table(entries) => {
                let fields = entries.iter();
                let fields = fields.map(|entry| (entry.name.clone(), entry.value.to_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

/// Up to here every whole number is itself as a float.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Whether a file is JSON, by its name.
pub(crate) fn is_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}
