//! The text parts of a message, over which data may be split.

use std::borrow::Cow;

use super::class::Pii;
use super::detect::Found;
use super::labels::Source;
use super::replace::Replacement;
use super::{has_lines_of_json, looks_like_json};
use crate::json::{self, Scalar};

/// A string or a number of a JSON text.
pub(super) struct Token<'a> {
    pub(super) json: &'a str,
    /// The offset of the token.
    pub(super) at: usize,
    pub(super) key: Option<&'a str>,
    pub(super) outer_key: Option<&'a str>,
    is_key: bool,
}

impl<'a> Token<'a> {
    pub(super) fn of(scalar: &Scalar<'a>) -> Self {
        Self {
            json: scalar.token,
            at: scalar.at,
            key: scalar.key,
            outer_key: scalar.outer_key,
            is_key: scalar.is_key,
        }
    }

    fn is_string(&self) -> bool {
        self.json.starts_with('"')
    }

    /// Returns `true` for the text of a part of a message.
    pub(super) fn is_part(&self) -> bool {
        self.key == Some("text") && self.is_string() && !self.is_key
    }

    pub(super) fn text(&self) -> Cow<'a, str> {
        json::unquote(self.json).unwrap_or(Cow::Borrowed(self.json))
    }

    pub(super) fn source(&self) -> Source {
        if self.is_string() {
            Source::Text
        } else {
            Source::JsonNumber
        }
    }
}

/// The parts of one message: texts of objects in the same list.
#[derive(Default)]
pub(super) struct Parts<'a> {
    depth: usize,
    /// Most messages have one part, which needs no allocation.
    first: Option<Token<'a>>,
    more: Vec<Token<'a>>,
}

impl<'a> Parts<'a> {
    pub(super) fn push(&mut self, depth: usize, token: Token<'a>) {
        self.depth = depth;
        match self.first {
            None => self.first = Some(token),
            Some(_) => self.more.push(token),
        }
    }

    /// Returns `true` if a scalar is outside of the list of these parts.
    pub(super) fn end_before(&self, next: &Scalar<'_>) -> bool {
        let is_other_part = next.key == Some("text") && next.depth != self.depth;
        self.first.is_some() && (next.depth < self.depth || is_other_part)
    }

    /// Returns the only part, or all of them.
    pub(super) fn into_tokens(self) -> (Option<Token<'a>>, Vec<Token<'a>>) {
        let Self { first, more, .. } = self;
        if more.is_empty() {
            return (first, more);
        }
        (None, first.into_iter().chain(more).collect())
    }
}

/// Returns the texts of several parts that can be searched as one, or `None`.
pub(super) fn searchable_texts<'a>(tokens: &[Token<'a>]) -> Option<Vec<Cow<'a, str>>> {
    if tokens.len() < 2 {
        return None;
    }
    let texts: Vec<Cow<'a, str>> = tokens.iter().map(Token::text).collect();
    let is_plain = |text: &Cow<'_, str>| !has_lines_of_json(text) && !looks_like_json(text);
    texts.iter().all(is_plain).then_some(texts)
}

/// Adds data that goes over the end of a part, found in all parts as one text.
pub(super) fn add_continued<'p>(
    texts: &[Cow<'_, str>],
    matches: &mut [Vec<Replacement<'p>>],
    found: &Found,
    placeholder: &'p str,
) {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (part, text) in texts.iter().enumerate() {
        let end = start + text.len();
        let range = found.range.start.max(start)..found.range.end.min(end);
        if range.start < range.end {
            pieces.push((part, range.start - start..range.end - start));
        }
        start = end;
    }
    if pieces.len() < 2 {
        return;
    }
    // What a part has by itself stays what it is, unless a number goes on, or the end of the part before can only be that of a name
    // in an address: "ann.st" before "ern@example.com".
    let (first, piece) = &pieces[0];
    let begins_address = texts[*first][piece.clone()].contains(['.', '_', '+']);
    let is_kept = pieces.iter().any(|(part, piece)| {
        matches[*part].iter().any(|own| {
            let overlaps = own.range.start < piece.end && piece.start < own.range.end;
            let is_covered = piece.start <= own.range.start && own.range.end <= piece.end;
            overlaps && (!is_covered || (found.class == Pii::Email && !begins_address))
        })
    });
    if is_kept {
        return;
    }
    for (part, piece) in &pieces {
        matches[*part].retain(|own| own.range.end <= piece.start || piece.end <= own.range.start);
    }
    for (index, (part, range)) in pieces.into_iter().enumerate() {
        let placeholder = if index == 0 { placeholder } else { "" };
        matches[part].push(Replacement { range, placeholder });
    }
}
