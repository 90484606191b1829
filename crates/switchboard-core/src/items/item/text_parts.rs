//! The content of a message.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json;

/// One part of a message's content.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

impl<'a> Part<'a> {
    /// The JSON of the text, if this is a text part.
    pub(super) fn text(&self) -> Option<&'a str> {
        match self.kind?.get() {
            r#""output_text""# | r#""input_text""# | r#""text""# => self.text.map(RawValue::get),
            _ => None,
        }
    }

    /// The JSON of the refusal.
    pub(super) fn refusal(&self) -> Option<&'a str> {
        self.refusal.map(RawValue::get)
    }
}

/// Joins the strings that `select` returns for the parts of a content. `None` if that is no text.
pub(super) fn join_parts<'a>(
    content: &'a str,
    separator: &'a str,
    select: impl Fn(&Part<'a>) -> Option<&'a str>,
) -> Option<Cow<'a, str>> {
    let parts: Vec<Part<'a>> = serde_json::from_str(content).ok()?;
    let texts = parts.iter().filter_map(select).filter_map(json::unquote);
    let joined = texts.reduce(|joined, text| joined + separator + text);
    joined.filter(|joined| !joined.is_empty())
}

/// The JSON of the string that is the whole text of a message: its content, or the text of the only
/// text part. `None` if there is none, several, or a refusal.
pub(in crate::items) fn only_text(content: &str) -> Option<&str> {
    match content.as_bytes().first()? {
        b'"' => return Some(content),
        b'[' => {}
        _ => return None,
    }
    let parts: Vec<Part<'_>> = serde_json::from_str(content).ok()?;
    if parts.iter().any(|part| part.refusal.is_some()) {
        return None;
    }
    let mut texts = parts
        .iter()
        .filter_map(Part::text)
        .filter(|json| json.starts_with('"'));
    let only = texts.next().filter(|text| *text != r#""""#)?;
    texts.next().is_none().then_some(only)
}
