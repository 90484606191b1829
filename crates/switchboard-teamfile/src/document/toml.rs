//! TOML with places.

use std::ops::Range;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Kind, Node};
use crate::problem::{Problem, Source};

pub(super) fn read(source: &Source) -> Result<Node, Box<Problem>> {
    let (table, mut errors) = DeTable::parse_recoverable(&source.text);
    // What comes after the first mistake is mostly made of it.
    errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
    if let Some(error) = errors.first() {
        let span = error.span().unwrap_or_default();
        let help = help(source, &span, error.message());
        let problem = source.problem("syntax", span, error.message().trim());
        return Err(Box::new(problem.help(help)));
    }
    let span = table.span();
    entries(table.into_inner(), source).map(|entries| Node {
        span,
        kind: Kind::Table(entries),
    })
}

/// What to do about a mistake of syntax.
fn help(source: &Source, span: &Range<usize>, message: &str) -> &'static str {
    let line = source.text[..span.end.min(source.text.len())].rfind('\n');
    let line = source.text[line.map_or(0, |at| at + 1)..].lines().next();
    let line = line.unwrap_or_default();
    if source.text.trim_start().starts_with('{') {
        "this looks like JSON: give the file a name that ends in .json"
    } else if line.contains(['“', '”', '‘', '’']) {
        "write straight quotes"
    } else if message.contains("escape") {
        "write patterns in 'single quotes', where a \\ is only a \\"
    } else if message.contains("recursion") {
        "it is nested too deeply"
    } else {
        "in TOML texts stand in \"quotes\", those of several lines in \"\"\"three\"\"\", and each table is written once"
    }
}

fn entries(table: DeTable<'_>, source: &Source) -> Result<Vec<Entry>, Box<Problem>> {
    let read = |(name, value): (Spanned<_>, _)| {
        Ok(Entry {
            name_span: name.span(),
            name: std::borrow::Cow::into_owned(name.into_inner()),
            value: node(value, source)?,
        })
    };
    table.into_iter().map(read).collect()
}

fn node(value: Spanned<DeValue<'_>>, source: &Source) -> Result<Node, Box<Problem>> {
    let span = value.span();
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Boolean(value) => Kind::Bool(value),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            match number {
                Ok(number) => Kind::Number(number.into()),
                Err(_) => return Err(no_number(&span, source)),
            }
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse::<f64>().ok();
            match number.and_then(Number::from_f64) {
                Some(number) => Kind::Number(number),
                None => return Err(no_number(&span, source)),
            }
        }
        // Nothing in a team file is a date; as text it can stand in a payload's example.
        DeValue::Datetime(date) => Kind::Text(date.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| node(item, source));
            Kind::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Kind::Table(entries(table, source)?),
    };
    Ok(Node { span, kind })
}

fn no_number(span: &Range<usize>, source: &Source) -> Box<Problem> {
    let problem = source.problem("syntax", span.clone(), "this number cannot be used here");
    Box::new(problem.help("write an integer of at most 64 bits, or a finite number"))
}
