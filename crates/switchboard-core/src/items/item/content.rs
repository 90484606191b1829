//! What a message says.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json;
use crate::scan::Scanner;

/// One part of a message's content.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
}

impl<'a> Part<'a> {
    pub(super) fn text(&self) -> Option<&'a str> {
        is_text(self.kind.map(RawValue::get))
            .then(|| self.text.map(RawValue::get))
            .flatten()
    }
}

pub(super) fn joined<'a>(
    content: &'a str,
    pick: impl Fn(&Part<'a>) -> Option<&'a str>,
) -> Option<Cow<'a, str>> {
    let parts: Vec<Part<'a>> = serde_json::from_str(content).ok()?;
    let mut texts = parts.iter().filter_map(pick).filter_map(json::unquote);
    let first = texts.next()?;
    let mut joined = match texts.next() {
        None => return (!first.is_empty()).then_some(first),
        Some(second) => first.into_owned() + &second,
    };
    texts.for_each(|text| joined.push_str(&text));
    (!joined.is_empty()).then_some(Cow::Owned(joined))
}

/// The text of the only part that has one, as it is written.
pub(super) fn only_text(content: &str) -> Option<&str> {
    let mut scanner = Scanner::new(content);
    let text = scan(&mut scanner).filter(|_| scanner.is_at_end())?;
    content.get(text?)
}

/// Goes over the parts of a message; where the text of the only one that has one stands, as it is
/// written. `None` where they are not written as usual.
pub(in crate::items) fn scan(scanner: &mut Scanner<'_>) -> Option<Option<Range<usize>>> {
    let (mut only, mut is_one) = (None, true);
    scanner.list(|scanner| {
        if scanner.peek()? != b'{' {
            is_one = false;
            return scanner.ignore();
        }
        let (mut kind, mut text) = (None, None);
        scanner.object(|scanner, name| {
            let first = scanner.peek()?;
            let start = scanner.place();
            scanner.ignore()?;
            is_one &= match name {
                b"type" => kind.replace(scanner.since(start)?).is_none(),
                b"text" => text.replace((first, start..scanner.place())).is_none(),
                b"refusal" => first == b'n',
                _ => true,
            };
            Some(())
        })?;
        if let Some((b'"', text)) = text
            && is_text(kind)
        {
            is_one &= only.replace(text).is_none();
        }
        Some(())
    })?;
    Some(only.filter(|text| is_one && text.len() > 2))
}

/// Whether a part of this type is text.
fn is_text(kind: Option<&str>) -> bool {
    matches!(
        kind,
        Some(r#""output_text""# | r#""input_text""# | r#""text""#)
    )
}
