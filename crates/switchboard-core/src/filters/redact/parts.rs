//! The text parts of a message, over which data may be split.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

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

    /// Takes the only part, if there are no others.
    pub(super) fn take_only(&mut self) -> Option<Token<'a>> {
        if self.more.is_empty() {
            self.first.take()
        } else {
            None
        }
    }

    /// Returns the parts that follow each other and are searched as one text. A part with JSON is one by
    /// itself.
    pub(super) fn into_runs(self) -> Vec<Vec<Token<'a>>> {
        let Self { first, more, .. } = self;
        let mut runs: Vec<Vec<Token<'a>>> = Vec::new();
        let mut is_plain = false;
        for token in first.into_iter().chain(more) {
            let text = token.text();
            let was_plain = std::mem::replace(
                &mut is_plain,
                !has_lines_of_json(&text) && !looks_like_json(&text),
            );
            match runs.last_mut() {
                Some(run) if was_plain && is_plain => run.push(token),
                _ => runs.push(vec![token]),
            }
        }
        runs
    }
}

/// Returns the texts of parts.
pub(super) fn texts_of<'a>(tokens: &[Token<'a>]) -> Vec<Cow<'a, str>> {
    tokens.iter().map(Token::text).collect()
}

/// Returns an item's JSON without the parts of which redaction has left nothing: providers refuse empty text.
/// One part stays. `None` if there is nothing to leave out.
pub(super) fn without_emptied(original: &str, redacted: &str) -> Option<String> {
    // A part is emptied only if it is searched with another.
    let mut quotes = redacted.match_indices('"');
    let may_be_emptied =
        quotes.any(|(at, _)| redacted[at + 1..].trim_start_matches(' ').starts_with('"'));
    if !may_be_emptied {
        return None;
    }
    let fields: Fields<'_> = serde_json::from_str(redacted).ok()?;
    let originals: Fields<'_> = serde_json::from_str(original).ok()?;
    let mut lists: Vec<(Range<usize>, String)> = Vec::new();
    for (name, list) in &fields {
        let original = originals.get(name)?.get();
        let list = list.get();
        if list.starts_with('[') && list != original {
            let parts: Vec<&RawValue> = serde_json::from_str(list).ok()?;
            let originals: Vec<&RawValue> = serde_json::from_str(original).ok()?;
            let is_emptied = |at: usize| {
                let was_blank = originals.get(at).is_none_or(|part| is_blank(part));
                at > 0 && !was_blank && is_blank(parts[at])
            };
            let kept = (0..parts.len()).filter(|at| !is_emptied(*at));
            let kept: Vec<&str> = kept.map(|at| parts[at].get()).collect();
            if kept.len() < parts.len() {
                let start = list.as_ptr() as usize - redacted.as_ptr() as usize;
                lists.push((start..start + list.len(), format!("[{}]", kept.join(","))));
            }
        }
    }
    if lists.is_empty() {
        return None;
    }
    lists.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut left = redacted.to_owned();
    for (range, list) in lists {
        left.replace_range(range, &list);
    }
    Some(left)
}

/// The fields of an item.
type Fields<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

/// Returns `true` for a part whose text is blank.
fn is_blank(part: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    serde_json::from_str::<Part<'_>>(part.get()).is_ok_and(|part| part.text.trim().is_empty())
}

/// The texts of parts as one text.
pub(super) struct Joined {
    pub(super) text: String,
    /// The range of each part.
    parts: Vec<Range<usize>>,
}

impl Joined {
    /// `joint` gets the last character of a part and the first of the next.
    pub(super) fn new(
        texts: &[Cow<'_, str>],
        joint: impl Fn(Option<char>, Option<char>) -> &'static str,
    ) -> Self {
        let mut joined = Self {
            text: String::new(),
            parts: Vec::with_capacity(texts.len()),
        };
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                let last = texts[at - 1].chars().next_back();
                joined.text.push_str(joint(last, text.chars().next()));
            }
            let start = joined.text.len();
            joined.text.push_str(text);
            joined.parts.push(start..joined.text.len());
        }
        joined
    }

    /// Returns the ranges of data in the parts that it is in.
    fn pieces(&self, found: &Found) -> Vec<(usize, Range<usize>)> {
        let first = self
            .parts
            .partition_point(|part| part.end <= found.range.start);
        let parts = self.parts.iter().enumerate().skip(first);
        let parts = parts.take_while(|(_, part)| part.start < found.range.end);
        let pieces = parts.map(|(at, part)| {
            let range = found.range.start.max(part.start)..found.range.end.min(part.end);
            (at, range, part.start)
        });
        let pieces = pieces.filter(|(_, range, _)| range.start < range.end);
        let pieces = pieces.map(|(at, range, start)| (at, range.start - start..range.end - start));
        pieces.collect()
    }
}

/// Between a word and the part that it names there is a colon. Numbers of two parts are apart.
pub(super) fn label_joint(last: Option<char>, _next: Option<char>) -> &'static str {
    match last {
        Some(last) if last.is_alphabetic() => ": ",
        Some(last) if last.is_whitespace() || last.is_ascii_punctuation() => " ",
        _ => "\n",
    }
}

/// A digit and a letter after it are apart.
pub(super) fn word_joint(last: Option<char>, next: Option<char>) -> &'static str {
    let is_number = last.is_some_and(char::is_numeric);
    if is_number && next.is_some_and(char::is_alphabetic) {
        "\n"
    } else {
        ""
    }
}

/// Adds data that was found with what the part before says of it.
pub(super) fn add_own<'p>(
    joined: &Joined,
    matches: &mut [Vec<Replacement<'p>>],
    found: &Found,
    placeholder: &'p str,
) {
    for (index, (part, range)) in joined.pieces(found).into_iter().enumerate() {
        let placeholder = if index == 0 { placeholder } else { "" };
        matches[part].push(Replacement { range, placeholder });
    }
}

/// Adds data that goes over the end of a part, found in all parts as one text.
pub(super) fn add_continued<'p>(
    texts: &[Cow<'_, str>],
    joined: &Joined,
    matches: &mut [Vec<Replacement<'p>>],
    found: &Found,
    placeholder: &'p str,
) {
    let pieces = joined.pieces(found);
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
