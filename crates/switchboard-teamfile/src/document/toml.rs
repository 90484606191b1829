//! TOML with the span of every value.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Kind, Node};
use crate::diagnostics::{Problem, Source};

pub(super) fn parse(source: &Source) -> Result<Node, Box<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    // Most errors after the first are caused by it.
    let first = errors
        .iter()
        .min_by_key(|error| error.span().map_or(0, |span| span.start));
    if let Some(error) = first {
        let span = error.span().unwrap_or_default();
        let help = syntax_help(source, &span, error.message());
        let problem = source.problem("syntax", span, error.message().trim());
        return Err(Box::new(problem.help(help)));
    }
    Ok(Node {
        span: table.span(),
        kind: Kind::Table(entries(table.into_inner(), source)?),
    })
}

fn syntax_help(source: &Source, span: &Range<usize>, message: &str) -> &'static str {
    let line_start = source.text[..span.end.min(source.text.len())].rfind('\n');
    let rest = &source.text[line_start.map_or(0, |at| at + 1)..];
    let line = rest.lines().next().unwrap_or_default();
    if source.text.trim_start().starts_with('{') {
        "this looks like JSON: give the file a name that ends in .json"
    } else if line.contains(['“', '”', '‘', '’']) {
        "write straight quotes"
    } else if message.contains("escape") {
        "write patterns in 'single quotes', where a \\ is only a \\"
    } else if message.contains("recursion") {
        "it is nested too deeply"
    } else {
        "in TOML write text in \"quotes\", text of several lines in \"\"\"three\"\"\", and each table once"
    }
}

fn entries(table: DeTable<'_>, source: &Source) -> Result<Vec<Entry>, Box<Problem>> {
    let entry = |(name, value): (Spanned<Cow<'_, str>>, _)| {
        Ok(Entry {
            name_span: name.span(),
            name: name.into_inner().into_owned(),
            value: node(value, source)?,
        })
    };
    table.into_iter().map(entry).collect()
}

fn node(value: Spanned<DeValue<'_>>, source: &Source) -> Result<Node, Box<Problem>> {
    let span = value.span();
    let number_problem = || {
        let problem = source.problem("syntax", span.clone(), "this number cannot be used here");
        Box::new(problem.help("write an integer of at most 64 bits, or a finite number"))
    };
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Boolean(value) => Kind::Bool(value),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            Kind::Number(number.map_err(|_| number_problem())?.into())
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            Kind::Number(number.ok_or_else(number_problem)?)
        }
        // No field of a team file is a date; a schema's example may hold one, as text.
        DeValue::Datetime(date) => Kind::Text(date.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| node(item, source));
            Kind::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Kind::Table(entries(table, source)?),
    };
    Ok(Node { span, kind })
}
