//! JSON with places.

use std::ops::Range;

use serde_json::{Number, Value};

use super::{Entry, Kind, Node};
use crate::problem::{Problem, Source};

/// Reads JSON: first as such, which finds every mistake and bounds its depth, then once more for the
/// places.
pub(super) fn read(source: &Source) -> Result<Node, Box<Problem>> {
    if let Err(error) = serde_json::from_str::<Value>(&source.text) {
        let at = offset(&source.text, error.line(), error.column());
        let message = error.to_string();
        // The place is told by the problem itself.
        let message = message.split(" at line ").next().unwrap_or_default();
        return Err(Box::new(source.problem("syntax", at..at + 1, message)));
    }
    let mut reader = Reader {
        text: &source.text,
        at: 0,
    };
    let node = reader.value();
    node.map_err(|Twice { name, span }| {
        let message = format!("{name:?} is there twice");
        Box::new(
            source
                .problem("syntax", span, message)
                .help("leave one of them out"),
        )
    })
}

/// The byte of a line and column as serde_json counts them: columns in bytes, from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}

/// A name that is in a table twice: JSON allows it, and means nothing by it.
struct Twice {
    name: String,
    span: Range<usize>,
}

/// Walks over text that is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Node, Twice> {
        self.skip_space();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Table(self.entries()?),
            Some(b'[') => Kind::List(self.items()?),
            Some(b'"') => Kind::Text(self.string()),
            _ => self.scalar(),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    fn entries(&mut self) -> Result<Vec<Entry>, Twice> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut names = std::collections::HashSet::new();
        self.at += 1;
        while self.goes_on(b'}') {
            let start = self.at;
            let name = self.string();
            let name_span = start..self.at;
            if !names.insert(name.clone()) {
                return Err(Twice {
                    name,
                    span: name_span,
                });
            }
            self.skip_space();
            // The colon.
            self.at += 1;
            let value = self.value()?;
            entries.push(Entry {
                name,
                name_span,
                value,
            });
        }
        Ok(entries)
    }

    fn items(&mut self) -> Result<Vec<Node>, Twice> {
        let mut items = Vec::new();
        self.at += 1;
        while self.goes_on(b']') {
            items.push(self.value()?);
        }
        Ok(items)
    }

    /// Steps over a comma or the end; whether there is more.
    fn goes_on(&mut self, end: u8) -> bool {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                true
            }
            Some(byte) if byte != end => true,
            _ => {
                self.at += 1;
                false
            }
        }
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at = (self.at + 1).min(self.text.len());
        serde_json::from_str(&self.text[start..self.at]).unwrap_or_default()
    }

    fn scalar(&mut self) -> Kind {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            self.at += 1;
        }
        match &self.text[start..self.at] {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "null" => Kind::Null,
            number => {
                let number = serde_json::from_str::<Number>(number);
                Kind::Number(number.unwrap_or_else(|_| 0.into()))
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
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
            any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) + 0.125)),
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
        fn a_tree_is_what_the_text_says_and_places_hold_their_values(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let source = Source::new(Path::new("t.json"), &text);
            let node = read(&source).unwrap();
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
            let _ = read(&Source::new(Path::new("t.json"), &text));
        }
    }
}
