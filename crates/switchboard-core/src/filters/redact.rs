//! Taking private data out of what is carried over.

mod find;
mod fold;
mod signs;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use regex::Regex;

use self::find::Find;
use self::fold::Folded;
use self::signs::{Needs, Signs};
use super::carried::Carried;
use super::{Filter, IntoFilter};
use crate::handoff::HandoffInputData;
use crate::items::{Item, Search};
use crate::json;

/// Takes card numbers, social security numbers, e-mail addresses and phone numbers out of
/// everything the next agent sees, and puts placeholders in their place.
///
/// See [`Redaction`] for what is looked at, and for choosing.
pub fn redact_pii<C: 'static>() -> Filter<C> {
    Redaction::new()
        .card_numbers()
        .social_security_numbers()
        .emails()
        .phone_numbers()
        .into_filter()
}

/// What to take out of a conversation.
///
/// Text is looked for wherever it can hide: parts of messages, arguments and outputs of tools
/// (also JSON inside them), payloads, summaries of earlier conversation, reasoning, and fields this
/// version does not know, keys inside them included. Identifiers and the names of tools stay, so that
/// calls and outputs still belong together. The record is left whole: what a session keeps is not redacted.
///
/// | | is found | is not |
/// | --- | --- | --- |
/// | cards | 13 to 19 digits with the first digits and the length of a card network and the right check digit, in groups or not | numbers in words; expiry dates and security codes |
/// | social security numbers | `123-45-6789`; nine bare digits where "ssn" or "social security" comes shortly before them, or is their key in JSON | nine bare digits without such words; the last four digits |
/// | e-mail addresses | in any script | without a dot in the domain (`ann@localhost`); quoted (`"a b"@x.com`); "ann at x dot com" |
/// | phones | with a plus; `(415) 555-2671`, `415-5552671` and like groups; `020 7946 0958` and like groups after a zero; Chinese mobile numbers; bare: ten digits that can be American (and `1` before them), ten or eleven after a zero | bare numbers of other countries; seven digits; extensions |
///
/// Letters and digits may be full-width; between groups stands one space of any sort, a dash or a dot; invisible
/// characters in between do not matter. Digits of other scripts, and groups on two lines, are not
/// found.
///
/// What looks the same cannot be told apart. One in ten numbers with the digits and the length of a
/// card has the right check digit by chance. A bare number, or one after a zero, counts as a phone
/// unless the word right before it, or its key in JSON, says otherwise ("order 4155552671",
/// `"invoice_id": "0123456789"`); `1234567890` never does, as no American number begins so. Amounts
/// with a currency sign before them, fractions, dates, UUIDs and numbers inside longer identifiers
/// stay. Names and street addresses are not looked for; add a [`pattern`](Self::pattern) for what
/// only you know.
///
/// The time is linear in the length of the text. An item in which nothing was found is not looked
/// at again, so that in a chain of handoffs each costs what is new; where there are patterns, that holds
/// for one `Redaction` and its clones, as long as no two others with patterns look at the item in between.
///
/// ```
/// use switchboard_core::filters::{Filter, IntoFilter, Redaction};
///
/// let redaction = Redaction::new().emails().pattern(r"\bORD-\d+\b", "[ORDER]")?;
/// assert_eq!(redaction.text("ann@example.com asks about ORD-77"), "[EMAIL] asks about [ORDER]");
/// let filter: Filter = redaction.into_filter();
/// # Ok::<(), switchboard_core::filters::InvalidPattern>(())
/// ```
#[derive(Debug, Clone)]
pub struct Redaction {
    rules: Vec<Rule>,
    /// What items keep of having been looked at. It is another one after each rule that is added.
    search: Search,
}

impl Default for Redaction {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            search: Search::Sorts(0),
        }
    }
}

#[derive(Debug, Clone)]
struct Rule {
    what: What,
    placeholder: Arc<str>,
}

#[derive(Debug, Clone)]
enum What {
    Known(Find, Needs),
    Pattern(Regex),
}

impl What {
    /// Whether it may be in a text with these signs.
    fn may_be_among(&self, signs: Signs) -> bool {
        match self {
            Self::Pattern(_) => true,
            Self::Known(_, needs) => needs.are_among(signs),
        }
    }

    /// The places of it in a text, in order. The first `named` bytes only say what the text is.
    fn places(&self, text: &str, named: usize) -> Vec<Range<usize>> {
        match self {
            Self::Pattern(pattern) => {
                let found = pattern.find_iter(&text[named..]);
                found
                    .map(|found| named + found.start()..named + found.end())
                    .collect()
            }
            Self::Known(find, _) => {
                let folded = Folded::new(text);
                let found = find(folded.text()).into_iter();
                let places = found.map(|range| folded.original(&range));
                places.filter(|place| place.start >= named).collect()
            }
        }
    }
}

impl Redaction {
    /// Takes nothing out yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Card numbers. They become `[CARD]`.
    #[must_use]
    pub fn card_numbers(self) -> Self {
        self.known(0, find::cards, Needs::Digits(13), "[CARD]")
    }

    /// Social security numbers of the United States. They become `[SSN]`.
    #[must_use]
    pub fn social_security_numbers(self) -> Self {
        self.known(1, find::social_security_numbers, Needs::Digits(9), "[SSN]")
    }

    /// E-mail addresses. They become `[EMAIL]`.
    #[must_use]
    pub fn emails(self) -> Self {
        self.known(2, find::emails, Needs::At, "[EMAIL]")
    }

    /// Phone numbers. They become `[PHONE]`.
    #[must_use]
    pub fn phone_numbers(self) -> Self {
        self.known(3, find::phones, Needs::Digits(8), "[PHONE]")
    }

    /// Whatever matches a regular expression of yours.
    ///
    /// # Errors
    /// Where `pattern` is no regular expression, or one too large to be safe.
    pub fn pattern(
        self,
        pattern: &str,
        placeholder: impl Into<Arc<str>>,
    ) -> Result<Self, InvalidPattern> {
        let pattern = Regex::new(pattern).map_err(|error| InvalidPattern(error.to_string()))?;
        let search = Search::numbered();
        Ok(self.rule(What::Pattern(pattern), placeholder, search))
    }

    /// A known sort. Each that finds something takes digits or an `@` away for good, so where several
    /// leave a text as it was, none of them found anything in it.
    fn known(self, sort: u8, find: Find, needs: Needs, placeholder: &str) -> Self {
        let search = self.search.and_sort(sort);
        self.rule(What::Known(find, needs), placeholder, search)
    }

    fn rule(mut self, what: What, placeholder: impl Into<Arc<str>>, search: Search) -> Self {
        let placeholder = placeholder.into();
        self.search = search;
        self.rules.push(Rule { what, placeholder });
        self
    }

    /// A text without what must be taken out.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.after(0, text)
    }

    /// The same for a text whose first `named` bytes only say what it is, and stay.
    fn after<'a>(&self, named: usize, text: &'a str) -> Cow<'a, str> {
        let mut redacted = Cow::Borrowed(text);
        let mut signs = Signs::of(&text[named..]);
        for rule in &self.rules {
            if !rule.what.may_be_among(signs) {
                continue;
            }
            let places = rule.what.places(&redacted, named);
            if places.is_empty() {
                continue;
            }
            let mut out = String::with_capacity(redacted.len());
            let mut copied = 0;
            for place in places {
                out.push_str(&redacted[copied..place.start]);
                out.push_str(&rule.placeholder);
                copied = place.end;
            }
            out.push_str(&redacted[copied..]);
            signs = Signs::of(&out[named..]);
            redacted = Cow::Owned(out);
        }
        redacted
    }

    /// Whether a text, or a part of JSON, may hold anything to take out. Most hold nothing: over
    /// 1,000 items of 500 bytes this makes 0.56 ms of 4.0.
    fn may_change(&self, text: &str) -> bool {
        let signs = Signs::of(text);
        self.rules.iter().any(|rule| rule.what.may_be_among(signs))
    }

    /// A value under a key, which may say what a number is.
    fn value<'a>(&self, key: Option<&str>, text: &'a str) -> Cow<'a, str> {
        let is_short = text.len() <= 64 && !text.contains('\n');
        let Some(key) = key.filter(|_| is_short) else {
            return self.prose(text);
        };
        let named = format!("{key}: {text}");
        let start = named.len() - text.len();
        Cow::Owned(self.after(start, &named)[start..].to_owned())
    }

    /// An item without what must be taken out; `None` where it stays as it is.
    pub fn item(&self, item: &Item) -> Option<Item> {
        if item.is_clean_of(self.search) {
            return None;
        }
        let redacted = self.looked_at(item);
        if redacted.is_none() {
            item.note_clean_of(self.search);
        }
        redacted
    }

    /// The same, whatever is known of the item. It depends on the item and the rules alone.
    fn looked_at(&self, item: &Item) -> Option<Item> {
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + 1);
        let level = if item.kind().is_tool_use() {
            Level::ToolUseBehavior
        } else {
            Level::Item
        };
        let redacted = self.json(item.as_json(), level)?;
        // What was written is JSON; were it not, nothing of the item must get out.
        let redacted = Item::from_json(redacted);
        Some(redacted.unwrap_or_else(|_| Item::developer("[REDACTED]")))
    }

    /// Text that may hold JSON on lines of its own, as a summary of a conversation does.
    fn prose<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains('\n') || !text.contains(['{', '[']) {
            return self.text(text);
        }
        let line = |line: &str| {
            let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            let after_number = line[digits..].strip_prefix(". ");
            let record = after_number.unwrap_or(line);
            if looks_like_json(record) {
                let redacted = self.json(record, Level::Inside);
                let number = &line[..line.len() - record.len()];
                format!("{number}{}", redacted.as_deref().unwrap_or(record))
            } else {
                self.text(line).into_owned()
            }
        };
        let lines: Vec<String> = text.split('\n').map(line).collect();
        Cow::Owned(lines.join("\n"))
    }

    /// JSON with its texts and numbers redacted; `None` where nothing changed.
    fn json(&self, raw: &str, level: Level) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut scalars = json::Scalars::new(raw);
        while let Some(scalar) = scalars.next_scalar() {
            let is_fixed = match level {
                Level::Inside => false,
                Level::Item | Level::ToolUseBehavior if scalar.depth > 1 => false,
                Level::ToolUseBehavior if scalar.key == Some("name") => true,
                Level::Item | Level::ToolUseBehavior => scalar.is_key || is_fixed(scalar.key),
            };
            if is_fixed || !self.may_change(scalar.token) {
                continue;
            }
            let text = json::unquote(scalar.token).unwrap_or(Cow::Borrowed(scalar.token));
            // Text may itself be JSON, as the arguments of a call are.
            let redacted = if looks_like_json(&text) {
                self.json(&text, Level::Inside).map(Cow::Owned)
            } else {
                Some(self.value(scalar.key, &text)).filter(|redacted| *redacted != text)
            };
            let Some(redacted) = redacted else {
                continue;
            };
            out.push_str(&raw[copied..scalar.at]);
            json::quote_into(&mut out, &redacted);
            copied = scalar.at + scalar.token.len();
        }
        if copied == 0 {
            return None;
        }
        out.push_str(&raw[copied..]);
        Some(out)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    /// An item, whose own fields have meanings. A name in it may be a person's.
    Item,
    /// A call or an output. A name in it is a tool's.
    ToolUseBehavior,
    /// What is in one: data, keys included.
    Inside,
}

/// Fields of an item that hold no text of anybody's.
fn is_fixed(key: Option<&str>) -> bool {
    let fixed = [
        "type",
        "id",
        "call_id",
        "role",
        "status",
        "encrypted_content",
    ];
    key.is_some_and(|key| fixed.contains(&key))
}

fn looks_like_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['{', '['])
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

impl<C: 'static> IntoFilter<C, Redaction> for Redaction {
    fn into_filter(self) -> Filter<C> {
        Filter::new(move |data: HandoffInputData<C>| {
            let carried = Carried::of(&data).replace(|item| self.item(item));
            carried.into_data(data)
        })
    }
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPattern(String);

impl std::fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the pattern cannot be used for redaction: {}", self.0)
    }
}

impl std::error::Error for InvalidPattern {}
