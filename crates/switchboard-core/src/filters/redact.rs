//! Replacing personal data by placeholders.

mod addresses;
mod applied;
mod cards;
mod class;
mod columns;
mod detect;
mod dictionary;
mod emails;
mod ibans;
mod identities;
mod labels;
mod normalize;
mod numbers;
mod parts;
mod phones;
mod places;
mod prefilter;
mod replace;
mod tables;
#[cfg(test)]
mod tests;
mod units;

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

pub(crate) use self::applied::{AppliedRedaction, redact_added};
use self::class::Classes;
pub use self::class::Pii;
use self::labels::Source;
use self::parts::{Joined, Parts, Token};
use self::prefilter::CharCounts;
use self::replace::{Replacement, replace};
use super::{Filter, IntoFilter};
use crate::items::{Item, Search};
use crate::json;

/// Replaces personal data of all classes ([`Pii`]) in everything the next agent sees by placeholders.
///
/// See [`Redaction`] for what is searched, and for choosing.
pub fn redact_pii<C: 'static>() -> Filter<C> {
    Redaction::new().into_filter()
}

/// The personal data that is replaced in a conversation by placeholders.
///
/// A new one replaces all classes ([`Pii`]). [`only`](Self::only) and [`without`](Self::without) choose
/// among them, [`placeholder`](Self::placeholder) sets the text for one, and [`pattern`](Self::pattern)
/// adds data of your own.
///
/// All text is searched: parts of messages, also data that goes on in the next part, arguments and outputs
/// of tools (also JSON inside them), payloads, summaries of earlier conversation, reasoning, and fields that
/// this version does not know, keys inside them included. Identifiers and the names of tools stay, so that
/// calls still match their outputs. Only the next agent's view changes: the items that a session stores are
/// not redacted.
///
/// A redaction holds for everything that the handoff gives the next agent, wherever it stands in the chain:
/// also for what later filters add, and for the payload, however it is
/// [delivered](crate::handoff::HandoffBuilder::deliver). The callback of the handoff gets the original.
///
/// | | found | not found |
/// | --- | --- | --- |
/// | [`Card`](Pii::Card) | 13 to 19 digits with the first digits and the length of a card network and the right check digit, in groups or not | numbers in words or over two lines; expiry dates and security codes |
/// | [`Iban`](Pii::Iban) | of the countries in the SWIFT registry, with the right length and check digits, in groups or not | account numbers of other kinds |
/// | [`Ssn`](Pii::Ssn) | `123-45-6789`; nine bare digits where "ssn" or "social security" comes shortly before them, or is their key in JSON | nine bare digits without such words; the last four digits |
/// | [`ResidentId`](Pii::ResidentId) | 18 characters with a region, a date and the right check digit; 15 digits after 身份证 | parts of one; ids of other places |
/// | [`Passport`](Pii::Passport) | 6 to 9 letters and digits after a word for passport, in 60 languages, or with such a key in JSON | without such a word, or before it; machine-readable lines |
/// | [`Email`](Pii::Email) | in any script; `ann [at] example [dot] com`, "ann at example dot com" and the like | without a dot in the domain (`ann@localhost`); quoted (`"a b"@x.com`); "ann at example.com" |
/// | [`Phone`](Pii::Phone) | with a plus or two zeros and a country calling code; in the form in which a country writes it, with its prefix or brackets, by libphonenumber's metadata; American numbers, Chinese mobile numbers, and ten or eleven digits after a zero, also bare; any 7 to 15 digits after a word for phone | other numbers without such a word; extensions; numbers in words |
///
/// Digits may be of any script, letters full-width. Groups are separated by one space of any kind, a dash, a
/// dot or a slash. Invisible characters (Unicode's default-ignorable ones, with variation selectors and
/// tags) and marks on digits are ignored.
///
/// Some numbers are ambiguous. One in ten numbers with the digits and the length of a card has the
/// right check digit by chance. A number without a plus counts as a phone unless the words before it, or its
/// key in JSON, say otherwise ("order 4155552671", `"invoice_id": "0123456789"`). A number of JSON that is
/// not a string is a phone only if its key says so: `{"count": 3387418839}` stays. Amounts, fractions,
/// dates, UUIDs and numbers inside longer identifiers stay. Names and street addresses are not searched for.
/// The guide `docs/redaction.md` has the measured recall and false alarms of each class.
///
/// The time is linear in the length of the text. An item in which nothing was found is not searched
/// again, so that in a chain of handoffs each one only searches new items. With patterns this holds for
/// one `Redaction` and its clones, unless two others with patterns search the item in between.
///
/// ```
/// use switchboard_core::filters::{Filter, IntoFilter, Pii, Redaction};
///
/// let redaction = Redaction::new()
///     .without([Pii::Phone])
///     .placeholder(Pii::Card, "[card hidden]")
///     .pattern(r"\bORD-\d+\b", "[ORDER]")?;
/// assert_eq!(
///     redaction.text("ann@example.com paid ORD-77 with 4111 1111 1111 1111"),
///     "[EMAIL] paid [ORDER] with [card hidden]"
/// );
/// let filter: Filter = redaction.into_filter();
/// # Ok::<(), switchboard_core::filters::InvalidPattern>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Redaction {
    classes: Classes,
    /// Placeholders other than those of the classes.
    placeholders: Vec<(Pii, Arc<str>)>,
    patterns: Vec<Pattern>,
    /// Identifies these rules to the items in which they found nothing.
    search: Search,
}

#[derive(Debug, Clone)]
struct Pattern {
    regex: Regex,
    placeholder: Arc<str>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self {
            classes: Classes::NONE,
            placeholders: Vec::new(),
            patterns: Vec::new(),
            search: Search::Sorts(0),
        }
        .only(Pii::ALL)
    }
}

impl Redaction {
    /// Creates a redaction of all classes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces data of these classes only. None of them leaves the patterns.
    pub fn only(self, classes: impl IntoIterator<Item = Pii>) -> Self {
        self.with_classes(Classes::of(classes))
    }

    /// Leaves data of these classes as it is.
    pub fn without(self, classes: impl IntoIterator<Item = Pii>) -> Self {
        let classes = self.classes.without(Classes::of(classes));
        self.with_classes(classes)
    }

    fn with_classes(mut self, classes: Classes) -> Self {
        self.classes = classes;
        self.with_search()
    }

    /// Sets the text that replaces data of a class.
    pub fn placeholder(mut self, class: Pii, placeholder: impl Into<Arc<str>>) -> Self {
        self.placeholders.retain(|(other, _)| *other != class);
        self.placeholders.push((class, placeholder.into()));
        self
    }

    /// Replaces the matches of a regular expression.
    ///
    /// Patterns see the text as it came, not placeholders. Where matches overlap, all of their text is
    /// replaced, by the placeholder of the longest.
    ///
    /// # Errors
    /// If `pattern` is no regular expression, or too large.
    pub fn pattern(
        mut self,
        pattern: &str,
        placeholder: impl Into<Arc<str>>,
    ) -> Result<Self, InvalidPattern> {
        let regex = Regex::new(pattern).map_err(|error| InvalidPattern(error.to_string()))?;
        let placeholder = placeholder.into();
        self.patterns.push(Pattern { regex, placeholder });
        Ok(self.with_search())
    }

    /// Sets the key under which items without matches are remembered. Placeholders do not change what is
    /// found, so classes alone identify a search without patterns.
    fn with_search(mut self) -> Self {
        self.search = if self.patterns.is_empty() {
            Search::Sorts(self.classes.bits())
        } else {
            Search::numbered()
        };
        self
    }

    /// Redacts a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let matches = self.matches(text, 0, Source::Text);
        replace(text, matches).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn may_match(&self, counts: CharCounts) -> bool {
        !self.patterns.is_empty() || counts.may_have(self.classes)
    }

    fn placeholder_of(&self, class: Pii) -> &str {
        let own = self.placeholders.iter().find(|(other, _)| *other == class);
        own.map_or(class.placeholder(), |(_, placeholder)| placeholder)
    }

    /// Finds what is to be replaced. The first `prefix_len` bytes are context only and stay unchanged.
    fn matches(&self, text: &str, prefix_len: usize, source: Source) -> Vec<Replacement<'_>> {
        let found = detect::find(text, self.classes, source).into_iter();
        let data = found.map(|found| Replacement {
            range: found.range,
            placeholder: self.placeholder_of(found.class),
        });
        let mut matches: Vec<Replacement<'_>> = data
            .filter(|found| found.range.start >= prefix_len)
            .collect();
        matches.extend(self.pattern_matches(text, prefix_len));
        matches
    }

    fn pattern_matches(
        &self,
        text: &str,
        prefix_len: usize,
    ) -> impl Iterator<Item = Replacement<'_>> {
        self.patterns.iter().flat_map(move |pattern| {
            let found = pattern.regex.find_iter(&text[prefix_len..]);
            found.map(move |found| Replacement {
                range: prefix_len + found.start()..prefix_len + found.end(),
                placeholder: &pattern.placeholder,
            })
        })
    }

    /// Redacts the value of a JSON key. The key may tell what a number is, and so may the key around one
    /// that only says that it is a number. Returns `None` if nothing was found.
    fn value(&self, token: &Token<'_>, text: &str) -> Option<String> {
        let source = token.source();
        // The key of a part of a message says nothing.
        let key = token.key.filter(|key| *key != "text");
        match key {
            Some(key) if text.len() <= 64 && !text.contains('\n') => {
                let mut words = labels::words_of_key(&key_text(key));
                if let Some(outer) = token.outer_key.filter(|_| labels::says_number(&words)) {
                    let outer = labels::words_of_key(&key_text(outer));
                    // A number in a payment may be that of a card.
                    if source == Source::Text || !labels::is_of_another_thing(&outer) {
                        words = format!("{outer} {words}");
                    }
                }
                let labelled = format!("{words}: {text}");
                let prefix_len = labelled.len() - text.len();
                let redacted = replace(&labelled, self.matches(&labelled, prefix_len, source))?;
                Some(redacted[prefix_len..].to_owned())
            }
            _ if source == Source::JsonNumber => replace(text, self.matches(text, 0, source)),
            _ => self.lines(text),
        }
    }

    /// Redacts text that may have JSON on lines of its own, as a summary of a conversation has. Returns
    /// `None` if nothing was found.
    fn lines(&self, text: &str) -> Option<String> {
        if !has_lines_of_json(text) {
            return replace(text, self.matches(text, 0, Source::Text));
        }
        let redact_line = |line: &str| {
            let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            let record = line[digits..].strip_prefix(". ").unwrap_or(line);
            if !looks_like_json(record) {
                return replace(line, self.matches(line, 0, Source::Text));
            }
            let number = &line[..line.len() - record.len()];
            let json = self.json(record, JsonLevel::Nested);
            json.map(|json| format!("{number}{json}"))
        };
        let lines = text.split('\n').map(|line| (line, redact_line(line)));
        let lines: Vec<(&str, Option<String>)> = lines.collect();
        if lines.iter().all(|(_, redacted)| redacted.is_none()) {
            return None;
        }
        let lines = lines
            .into_iter()
            .map(|(line, redacted)| redacted.map_or(Cow::Borrowed(line), Cow::Owned));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Redacts an item. Returns `None` if nothing was found.
    pub fn item(&self, item: &Item) -> Option<Item> {
        if item.is_clean_of(self.search) {
            return None;
        }
        #[cfg(test)]
        tests::SEARCHED_ITEMS.set(tests::SEARCHED_ITEMS.get() + 1);
        let level = if item.kind().is_tool_use() {
            JsonLevel::ToolUse
        } else {
            JsonLevel::Message
        };
        let Some(redacted) = self.json(item.as_json(), level) else {
            item.note_clean_of(self.search);
            return None;
        };
        let redacted = parts::without_emptied(item.as_json(), &redacted).unwrap_or(redacted);
        // The result is valid JSON; if it were not, nothing of the item may get out.
        let redacted = Item::from_json(redacted);
        Some(redacted.unwrap_or_else(|_| Item::developer("[REDACTED]")))
    }

    /// Redacts the payload of a handoff. Returns `None` if nothing was found.
    fn payload(&self, payload: &Value) -> Option<Value> {
        let redacted = self.json(&format!("[{payload}]"), JsonLevel::Nested)?;
        // The result is valid JSON; if it were not, nothing of the payload may get out.
        let mut redacted: Vec<Value> = serde_json::from_str(&redacted).unwrap_or_default();
        Some(redacted.pop().unwrap_or_else(|| "[REDACTED]".into()))
    }

    /// Redacts the strings and numbers of a JSON text. Returns `None` if nothing was found.
    fn json(&self, raw: &str, level: JsonLevel) -> Option<String> {
        let mut edits: Vec<(Token<'_>, String)> = Vec::new();
        let mut parts = Parts::default();
        let mut scalars = json::Scalars::new(raw);
        while let Some(scalar) = scalars.next_scalar() {
            if parts.end_before(&scalar) {
                self.parts(std::mem::take(&mut parts), &mut edits);
            }
            let is_field = level != JsonLevel::Nested && scalar.depth <= 1;
            let is_tool_name = level == JsonLevel::ToolUse && scalar.key == Some("name");
            if is_field && (is_tool_name || scalar.is_key || is_identifier(scalar.key)) {
                continue;
            }
            let token = Token::of(&scalar);
            if token.is_part() {
                parts.push(scalar.depth, token);
            } else if let Some(redacted) = self.token(&token) {
                edits.push((token, redacted));
            }
        }
        self.parts(parts, &mut edits);
        if edits.is_empty() {
            return None;
        }
        edits.sort_by_key(|(token, _)| token.at);
        let mut out = String::with_capacity(raw.len());
        let mut copied = 0;
        for (token, redacted) in edits {
            out.push_str(&raw[copied..token.at]);
            json::quote_into(&mut out, &redacted);
            copied = token.at + token.json.len();
        }
        out.push_str(&raw[copied..]);
        Some(out)
    }

    /// Redacts a string or a number of JSON. Returns `None` if nothing was found.
    fn token(&self, token: &Token<'_>) -> Option<String> {
        // Rules out most tokens: over 1,000 items of 500 bytes this takes 0.56 ms instead of 4.0.
        if !self.may_match(CharCounts::of(token.json)) {
            return None;
        }
        let text = token.text();
        // A string may hold JSON, as the arguments of a call do.
        if looks_like_json(&text) {
            self.json(&text, JsonLevel::Nested)
        } else {
            self.value(token, &text)
        }
    }

    /// Redacts the parts of a message, also data that goes on in the next part.
    fn parts<'a>(&self, mut parts: Parts<'a>, edits: &mut Vec<(Token<'a>, String)>) {
        if let Some(only) = parts.take_only() {
            edits.extend(self.token(&only).map(|redacted| (only, redacted)));
            return;
        }
        for run in parts.into_runs() {
            let redacted: Vec<Option<String>> = match &*run {
                [only] => vec![self.token(only)],
                tokens => self.texts(&parts::texts_of(tokens)),
            };
            let edited = run.into_iter().zip(redacted);
            edits.extend(edited.filter_map(|(token, redacted)| Some((token, redacted?))));
        }
    }

    /// Redacts texts that follow each other. What a number is may be said in an earlier one.
    fn texts(&self, texts: &[Cow<'_, str>]) -> Vec<Option<String>> {
        let mut matches: Vec<Vec<Replacement<'_>>> = vec![Vec::new(); texts.len()];
        let labelled = Joined::new(texts, parts::label_joint);
        for found in detect::find(&labelled.text, self.classes, Source::Text) {
            let placeholder = self.placeholder_of(found.class);
            parts::add_own(&labelled, &mut matches, &found, placeholder);
        }
        for (text, matches) in texts.iter().zip(&mut matches) {
            matches.extend(self.pattern_matches(text, 0));
        }
        let whole = Joined::new(texts, |_, _| "");
        // A number that goes on does not end at the word of the next part.
        let words_apart = Joined::new(texts, parts::word_joint);
        let is_same = words_apart.text == whole.text;
        let joined = [Some(whole), (!is_same).then_some(words_apart)];
        for joined in joined.iter().flatten() {
            for found in detect::find(&joined.text, self.classes, Source::Text) {
                let placeholder = self.placeholder_of(found.class);
                parts::add_continued(texts, joined, &mut matches, &found, placeholder);
            }
        }
        let parts = texts.iter().zip(matches);
        parts
            .map(|(text, matches)| replace(text, matches))
            .collect()
    }
}

/// The meaning of the fields of a JSON text.
#[derive(Clone, Copy, PartialEq)]
enum JsonLevel {
    /// An item that is no tool use. Its `name` may be a person's.
    Message,
    /// A call or an output. Its `name` is a tool's.
    ToolUse,
    /// Data inside an item. All of it is searched, keys included.
    Nested,
}

/// Returns `true` if a field of an item holds no text of the conversation.
fn is_identifier(key: Option<&str>) -> bool {
    matches!(
        key,
        Some("type" | "id" | "call_id" | "role" | "status" | "encrypted_content")
    )
}

fn looks_like_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['{', '['])
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// The most bytes of the JSON of a key that are read, so that the work for a value does not grow with its key.
const MAX_KEY: usize = 256;

/// Returns the text of the JSON of a key, of a long key only the end.
fn key_text(json: &str) -> Cow<'_, str> {
    let end = numbers::last_bytes(json, MAX_KEY);
    if !end.contains('\\') {
        return Cow::Borrowed(end);
    }
    // The end of a long key may begin after the backslash of an escape.
    let text = [0, 1].into_iter().find_map(|start| {
        let quoted = format!("\"{}\"", end.get(start..)?);
        json::unquote(&quoted).map(Cow::into_owned)
    });
    text.map_or(Cow::Borrowed(end), Cow::Owned)
}

/// Returns `true` if a text may have JSON on lines of its own.
fn has_lines_of_json(text: &str) -> bool {
    text.contains('\n') && text.contains(['{', '['])
}

/// Counts the work that a search does. Only tests look at it.
#[cfg(test)]
fn count_steps(steps: usize) {
    tests::STEPS.set(tests::STEPS.get() + steps);
}

#[cfg(not(test))]
const fn count_steps(_: usize) {}

impl<C: 'static> IntoFilter<C, Redaction> for Redaction {
    fn into_filter(self) -> Filter<C> {
        let redaction = Arc::new(self);
        Filter::new(move |data| applied::apply(&redaction, data)).named("redact_pii")
    }
}

/// The error for a pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPattern(String);

impl_error!(
    InvalidPattern,
    |error| "the pattern cannot be used for redaction: {}",
    error.0
);
