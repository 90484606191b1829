//! Taking private data out of what is carried over.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::carried::Carried;
use super::{Filter, IntoFilter};
use crate::handoff::HandoffInputData;
use crate::items::Item;
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
/// version does not know. Identifiers and the names of tools stay, so that calls and outputs still
/// belong together. The record is left whole: what a session keeps is not redacted.
///
/// ```
/// use switchboard_core::filters::{Filter, IntoFilter, Redaction};
///
/// let redaction = Redaction::new().emails().pattern(r"\bORD-\d+\b", "[ORDER]")?;
/// assert_eq!(redaction.text("ann@example.com asks about ORD-77"), "[EMAIL] asks about [ORDER]");
/// let filter: Filter = redaction.into_filter();
/// # Ok::<(), switchboard_core::filters::InvalidPattern>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: Regex,
    placeholder: Arc<str>,
    /// Whether a match that looks right is right.
    is_meant: fn(&str) -> bool,
}

impl Redaction {
    /// Takes nothing out yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Card numbers: 13 to 19 digits whose check digit is right. They become `[CARD]`.
    #[must_use]
    pub fn card_numbers(self) -> Self {
        // Word boundaries are ASCII ones throughout: Chinese text has no spaces around numbers.
        static CARD: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"(?-u:\b)[0-9](?:[ \-]?[0-9]){12,18}(?-u:\b)").ok());
        self.known(&CARD, "[CARD]", has_right_check_digit)
    }

    /// Social security numbers of the form 123-45-6789. They become `[SSN]`.
    #[must_use]
    pub fn social_security_numbers(self) -> Self {
        static SSN: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"(?-u:\b)[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}(?-u:\b)").ok());
        self.known(&SSN, "[SSN]", |_| true)
    }

    /// E-mail addresses. They become `[EMAIL]`.
    #[must_use]
    pub fn emails(self) -> Self {
        static EMAIL: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~\-]+@[A-Za-z0-9](?:[A-Za-z0-9.\-]*[A-Za-z0-9])?\.[A-Za-z]{2,}").ok()
        });
        self.known(&EMAIL, "[EMAIL]", |_| true)
    }

    /// Phone numbers: international ones with a plus, and ones of 10 or 11 digits in groups. They
    /// become `[PHONE]`.
    #[must_use]
    pub fn phone_numbers(self) -> Self {
        static PHONE: LazyLock<Option<Regex>> = LazyLock::new(|| {
            let international = r"\+[0-9]{1,3}[ .\-]?(?:\(?[0-9]{1,4}\)?[ .\-]?){2,5}[0-9]{2,4}";
            let grouped = r"(?:(?-u:\b)1[ .\-])?(?:\([0-9]{3}\) ?|(?-u:\b)[0-9]{3}[ .\-])[0-9]{3}[ .\-][0-9]{4}(?-u:\b)";
            let mobile = r"(?-u:\b)1[3-9][0-9]{9}(?-u:\b)";
            Regex::new(&format!("{international}|{grouped}|{mobile}")).ok()
        });
        self.known(&PHONE, "[PHONE]", |found| {
            let digits = found.bytes().filter(u8::is_ascii_digit).count();
            (8..=15).contains(&digits)
        })
    }

    /// Whatever matches a regular expression of yours.
    ///
    /// # Errors
    /// Where `pattern` is no regular expression, or one too large to be safe.
    pub fn pattern(
        mut self,
        pattern: &str,
        placeholder: impl Into<Arc<str>>,
    ) -> Result<Self, InvalidPattern> {
        let pattern = Regex::new(pattern).map_err(|error| InvalidPattern(error.to_string()))?;
        self.rules.push(Rule {
            pattern,
            placeholder: placeholder.into(),
            is_meant: |_| true,
        });
        Ok(self)
    }

    fn known(
        mut self,
        pattern: &LazyLock<Option<Regex>>,
        placeholder: &str,
        is_meant: fn(&str) -> bool,
    ) -> Self {
        // The patterns above are fixed, and a test compiles them all.
        if let Some(pattern) = &**pattern {
            self.rules.push(Rule {
                pattern: pattern.clone(),
                placeholder: placeholder.into(),
                is_meant,
            });
        }
        self
    }

    /// A text without what must be taken out.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut redacted = Cow::Borrowed(text);
        for rule in &self.rules {
            let replaced = rule
                .pattern
                .replace_all(&redacted, |found: &regex::Captures<'_>| {
                    match (rule.is_meant)(&found[0]) {
                        true => rule.placeholder.to_string(),
                        false => found[0].to_owned(),
                    }
                });
            if let Cow::Owned(replaced) = replaced {
                redacted = Cow::Owned(replaced);
            }
        }
        redacted
    }

    /// An item without what must be taken out; `None` where it stays as it is.
    pub fn item(&self, item: &Item) -> Option<Item> {
        let redacted = self.json(item.as_json(), Level::Item)?;
        Item::from_json(redacted).ok()
    }

    /// JSON with the text of its strings redacted; `None` where nothing changed.
    fn json(&self, raw: &str, level: Level) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut strings = json::Strings::new(raw);
        while let Some(string) = strings.next_string() {
            if string.is_key || (string.depth == 1 && level == Level::Item && is_fixed(string.key))
            {
                continue;
            }
            let Some(text) = json::unquote(string.token) else {
                continue;
            };
            // Text may itself be JSON, as the arguments of a call are.
            let inner = looks_like_json(&text)
                .then(|| self.json(&text, Level::Inside))
                .flatten();
            let redacted = match inner {
                Some(inner) => Cow::Owned(inner),
                None => self.text(&text),
            };
            if redacted == text {
                continue;
            }
            out.push_str(&raw[copied..string.at]);
            json::quote_into(&mut out, &redacted);
            copied = string.at + string.token.len();
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
    Item,
    Inside,
}

/// Fields of an item that hold no text of anybody's.
fn is_fixed(key: Option<&str>) -> bool {
    let fixed = [
        "type",
        "id",
        "call_id",
        "role",
        "name",
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

/// The check that card numbers carry (Luhn's).
fn has_right_check_digit(number: &str) -> bool {
    let digits = number.bytes().rev().filter(u8::is_ascii_digit);
    let sum: u32 = digits
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            match (at % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled @ 10..) => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Redaction {
        let all = Redaction::new()
            .card_numbers()
            .social_security_numbers()
            .emails()
            .phone_numbers();
        assert_eq!(all.rules.len(), 4, "every fixed pattern compiles");
        all
    }

    #[test]
    fn private_data_becomes_placeholders() {
        for (text, expected) in [
            ("card 4111 1111 1111 1111.", "card [CARD]."),
            ("card 4111-1111-1111-1112", "card 4111-1111-1111-1112"),
            ("5500005555555559", "[CARD]"),
            ("ssn 078-05-1120!", "ssn [SSN]!"),
            ("mail ann.lee+x@mail.example.co.uk now", "mail [EMAIL] now"),
            (
                "call +44 20 7946 0958 or (415) 555-2671",
                "call [PHONE] or [PHONE]",
            ),
            ("手机13812345678，谢谢", "手机[PHONE]，谢谢"),
            (
                "order 12345, 3 items, 2026-11-15",
                "order 12345, 3 items, 2026-11-15",
            ),
            ("version 1.2.3.4", "version 1.2.3.4"),
        ] {
            assert_eq!(all().text(text), expected);
        }
    }

    #[test]
    fn text_is_found_wherever_it_hides() {
        let mail = "ann@example.com";
        for item in [
            format!(r#"{{"role":"user","content":"{mail}"}}"#),
            format!(r#"{{"role":"user","content":[{{"type":"input_text","text":"{mail}"}}]}}"#),
            format!(r#"{{"type":"function_call","call_id":"c","name":"f","arguments":"{{\"to\":\"{mail}\"}}"}}"#),
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{\"to\":\"ann\\u0040example.com\"}"}"#.to_owned(),
            format!(r#"{{"type":"function_call_output","call_id":"c","output":"sent to {mail}"}}"#),
            format!(r#"{{"type":"reasoning","id":"r","summary":[{{"type":"summary_text","text":"{mail}"}}]}}"#),
            format!(r#"{{"type":"unknown","deep":{{"deeper":[["{mail}"]]}}}}"#),
            r#"{"role":"user","content":"ann\u0040example.com"}"#.to_owned(),
        ] {
            let item = Item::from_json(item).unwrap();
            let redacted = all().item(&item).unwrap();
            assert!(redacted.as_json().contains("[EMAIL]"), "{redacted:?}");
            assert!(!redacted.as_json().contains("example.com"), "{redacted:?}");
            assert_eq!(redacted.call_id(), item.call_id());
        }
    }

    #[test]
    fn identifiers_stay() {
        let item = Item::from_json(
            r#"{"type":"function_call","id":"a@b.com","call_id":"078-05-1120","name":"13812345678","arguments":"{}"}"#,
        )
        .unwrap();
        assert_eq!(all().item(&item), None);
    }
}
