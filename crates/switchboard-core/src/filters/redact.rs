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
    /// What a match becomes, given the placeholder; `None` where it stays as it is.
    replace: fn(&str, &str) -> Option<String>,
}

fn whole(_found: &str, placeholder: &str) -> Option<String> {
    Some(placeholder.to_owned())
}

impl Redaction {
    /// Takes nothing out yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Card numbers: 13 to 19 digits, in groups or not, whose check digit is right. They become
    /// `[CARD]`.
    #[must_use]
    pub fn card_numbers(self) -> Self {
        // Any run of groups of digits; which of them are a card is found out by the check digit.
        static DIGITS: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"[0-9]+(?:[ \-][0-9]+)*").ok());
        self.known(&DIGITS, "[CARD]", without_cards)
    }

    /// Social security numbers of the form 123-45-6789. They become `[SSN]`.
    #[must_use]
    pub fn social_security_numbers(self) -> Self {
        static SSN: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"(?-u:\b)[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}(?-u:\b)").ok());
        self.known(&SSN, "[SSN]", whole)
    }

    /// E-mail addresses. They become `[EMAIL]`.
    #[must_use]
    pub fn emails(self) -> Self {
        static EMAIL: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~\-]+@[A-Za-z0-9](?:[A-Za-z0-9.\-]*[A-Za-z0-9])?\.[A-Za-z]{2,}").ok()
        });
        self.known(&EMAIL, "[EMAIL]", whole)
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
        self.known(&PHONE, "[PHONE]", |found, placeholder| {
            let digits = found.bytes().filter(u8::is_ascii_digit).count();
            (8..=15).contains(&digits).then(|| placeholder.to_owned())
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
            replace: whole,
        });
        Ok(self)
    }

    fn known(
        mut self,
        pattern: &LazyLock<Option<Regex>>,
        placeholder: &str,
        replace: fn(&str, &str) -> Option<String>,
    ) -> Self {
        // The patterns above are fixed, and a test compiles them all.
        if let Some(pattern) = &**pattern {
            self.rules.push(Rule {
                pattern: pattern.clone(),
                placeholder: placeholder.into(),
                replace,
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
                    let found = &found[0];
                    (rule.replace)(found, &rule.placeholder).unwrap_or_else(|| found.to_owned())
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
            match looks_like_json(record) {
                true => {
                    let redacted = self.json(record, Level::Inside);
                    let number = &line[..line.len() - record.len()];
                    format!("{number}{}", redacted.as_deref().unwrap_or(record))
                }
                false => self.text(line).into_owned(),
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
                Level::Item => scalar.is_key || (scalar.depth == 1 && is_fixed(scalar.key)),
                Level::Inside => false,
            };
            if is_fixed {
                continue;
            }
            let text = json::unquote(scalar.token).unwrap_or(Cow::Borrowed(scalar.token));
            // Text may itself be JSON, as the arguments of a call are.
            let redacted = match looks_like_json(&text) {
                true => self.json(&text, Level::Inside).map(Cow::Owned),
                false => Some(self.prose(&text)).filter(|redacted| *redacted != text),
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

/// Groups of digits without those that are a card number: as many neighbouring groups as have 13 to
/// 19 digits and the right check digit, so that a date before it or a code after it does not hide it.
fn without_cards(found: &str, placeholder: &str) -> Option<String> {
    let groups: Vec<(usize, &str)> = found
        .split([' ', '-'])
        .scan(0, |at, group| {
            let start = *at;
            *at += group.len() + 1;
            Some((start, group))
        })
        .collect();
    let mut out = String::new();
    let mut copied = 0;
    let mut first = 0;
    while first < groups.len() {
        let start = groups[first].0;
        let end_of = |last: usize| groups[last].0 + groups[last].1.len();
        let card = (first..groups.len().min(first + 20)).rev().find(|last| {
            let number = &found[start..end_of(*last)];
            let digits = number.bytes().filter(u8::is_ascii_digit).count();
            (13..=19).contains(&digits) && has_right_check_digit(number)
        });
        match card {
            Some(last) => {
                out.push_str(&found[copied..start]);
                out.push_str(placeholder);
                copied = end_of(last);
                first = last + 1;
            }
            None => first += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&found[copied..]);
    Some(out)
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
            (
                "4111 1111 1111 1111 12/27, cvv 123",
                "[CARD] 12/27, cvv 123",
            ),
            ("order 12 4111 1111 1111 1111", "order 12 [CARD]"),
            ("2026-11-15 4111111111111111", "2026-11-15 [CARD]"),
            ("card4111111111111111", "card[CARD]"),
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
    fn numbers_and_keys_inside_arguments_are_found_and_the_json_stays_json() {
        let arguments = r#"{"to":"ann@x.com","card":4111111111111111,"ann@x.com":1}"#;
        let redacted = all()
            .item(&Item::function_call("c", "f", arguments))
            .unwrap();
        let inner: serde_json::Value =
            serde_json::from_str(&redacted.arguments().unwrap()).unwrap();
        assert_eq!(
            inner,
            serde_json::json!({"to": "[EMAIL]", "card": "[CARD]", "[EMAIL]": 1})
        );
        let only = all().item(&Item::function_call(
            "c",
            "f",
            r#"{"card":4111111111111111}"#,
        ));
        assert_eq!(only.unwrap().arguments().unwrap(), r#"{"card":"[CARD]"}"#);
    }

    #[test]
    fn records_of_a_summary_are_redacted_one_by_one() {
        let said = Item::user("my card:\n4111111111111111\nann@x.com");
        let record = said.as_json();
        let text = format!("For context:\n<H>\n1. {record}\n2. user: ann@x.com\n</H>");
        let redacted = all().item(&Item::assistant(text)).unwrap();
        assert_eq!(
            redacted.text().unwrap(),
            "For context:\n<H>\n1. {\"role\":\"user\",\"content\":\"my card:\\n[CARD]\\n[EMAIL]\"}\n\
             2. user: [EMAIL]\n</H>"
        );
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
