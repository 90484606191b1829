//! What a message says.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{json, scan};

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

/// The text of the only part that has one, as it is written; `None` also where it is not written as
/// usual.
pub(super) fn only_text(content: &str) -> Option<&str> {
    let mut only = None;
    scan::list(content, |scanner| {
        let (mut kind, mut text) = (None, None);
        scanner.object(|scanner, name| match name {
            "type" => scan::keep(&mut kind, scanner.raw()),
            "text" => scan::keep(&mut text, scanner.raw()),
            "refusal" => scanner.raw()?.is_none().then_some(()),
            _ => scanner.ignore(),
        })?;
        match text.filter(|text| is_text(kind) && text.starts_with('"')) {
            Some(text) => scan::keep(&mut only, Some(Some(text))),
            None => Some(()),
        }
    })?;
    only.filter(|text| text.len() > 2)
}

/// Whether a part of this type is text.
fn is_text(kind: Option<&str>) -> bool {
    matches!(
        kind,
        Some(r#""output_text""# | r#""input_text""# | r#""text""#)
    )
}
