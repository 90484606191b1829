//! What a message says.

use std::borrow::Cow;

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
    scan(&mut scanner).filter(|_| scanner.is_at_end())?
}

/// Goes over the parts of a message; the text of the only one that has one, as it is written. `None`
/// where they are not written as usual.
pub(in crate::items) fn scan<'a>(scanner: &mut Scanner<'a>) -> Option<Option<&'a str>> {
    let (mut only, mut is_one) = (None, true);
    scanner.list(|scanner| {
        if !scanner.is_at(b'{') {
            is_one = false;
            return scanner.ignore();
        }
        let (mut kind, mut text) = (None, None);
        scanner.object(|scanner, name| {
            let json = scanner.skip()?;
            is_one &= match name {
                "type" => kind.replace(json).is_none(),
                "text" => text.replace(json).is_none(),
                "refusal" => json == "null",
                _ => true,
            };
            Some(())
        })?;
        if let Some(text) = text.filter(|text| is_text(kind) && text.starts_with('"')) {
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
