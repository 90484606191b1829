//! One value at a time: what in a text a field means.

use regex::Regex;
use serde_json::Value;

use super::choices;
use super::cues::{person, places};
use super::facts::{self, Fact, Kind};
use super::features::{Feature, bag_of};
use super::roles::Role;
use super::text::{Language, Token, is_stop_word, normalised, stem, tokens};

/// The longest free text that goes into a field, in characters.
const LONGEST: usize = 2_000;
/// The most words of an answer that is taken as the value asked for.
const SHORT_ANSWER: usize = 8;

/// What values are taken from.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) language: Language,
    /// What the user said last.
    message: String,
    /// That, and what was said before where the last message needs it.
    text: String,
    /// The same in the order it was said.
    prose: String,
    facts: Vec<Fact>,
    /// What the assistant said before: it may have asked for something.
    asked: &'a str,
    /// The answer in words, where a value is made of it.
    answer: &'a str,
}

impl<'a> Source<'a> {
    /// A source: what the user said, the newest first, and what the assistant said before.
    pub(super) fn new(messages: &[String], asked: &'a str, answer: &'a str) -> Self {
        let texts: Vec<String> = messages.iter().map(|text| facts::plain(text)).collect();
        let said: Vec<&str> = texts.iter().rev().map(|text| text.trim()).collect();
        let message = texts.first().map(|text| text.trim()).unwrap_or_default();
        let text = texts.join("\n");
        Self {
            language: Language::of(message),
            facts: facts::facts(&text),
            message: message.to_owned(),
            prose: said.join("\n"),
            text,
            asked,
            answer,
        }
    }

    /// A text for a field.
    pub(super) fn string(
        &self,
        name: &str,
        about: &str,
        is_answer: bool,
        used: &mut Vec<usize>,
    ) -> Option<String> {
        let role = Role::of(name, about);
        if is_answer && matches!(role, Role::Answer | Role::Prose) && !self.answer.is_empty() {
            return Some(self.answer.to_owned());
        }
        let found = match role {
            Role::Fact(kind) => self.fact(kind, used),
            Role::Id => self.id(used),
            Role::Currency => facts::currency(&self.text).map(str::to_owned),
            Role::Place(cue) => self.place(cue),
            Role::Person => self.captured(person()),
            Role::Prose | Role::Answer => self.prose(),
            Role::Other => None,
        };
        found
            .or_else(|| self.stated(name))
            .or_else(|| self.short_answer(role, name, about))
    }

    /// A number for a field, within what the schema allows.
    pub(super) fn number(
        &self,
        name: &str,
        about: &str,
        schema: &Value,
        used: &mut Vec<usize>,
    ) -> Option<f64> {
        let role = Role::of(name, about);
        let is_whole = schema["type"] == "integer";
        let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
        let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
        let suits = |number: f64| {
            (least..=most).contains(&number)
                && (!is_whole || number.fract() == 0.0)
                && number.abs() < 1e15
        };
        let kinds: &[Kind] = match role {
            Role::Fact(Kind::Amount) => &[Kind::Amount, Kind::Number],
            Role::Id => &[Kind::Id, Kind::Number],
            Role::Fact(Kind::Phone) => &[Kind::Phone],
            _ => &[Kind::Number, Kind::Amount],
        };
        let near = self.places_of(name);
        let numbers = self.facts.iter().enumerate().filter_map(|(at, fact)| {
            let rank = kinds.iter().position(|kind| *kind == fact.kind)?;
            let number = fact.number().filter(|number| suits(*number))?;
            (!used.contains(&at)).then(|| ((rank, distance(fact, &near), at), number))
        });
        let ((_, _, at), number) = numbers.min_by_key(|(key, _)| *key)?;
        used.push(at);
        Some(number)
    }

    /// Yes or no for a field: whether it is mentioned, and not denied.
    pub(super) fn boolean(&self, name: &str, about: &str) -> Option<bool> {
        let message = tokens(&self.message);
        let asked = self.was_asked(name, about).then(|| yes_or_no(&message));
        if let Some(yes) = asked.flatten() {
            return Some(yes);
        }
        let wanted = bag_of(&tokens(&words_of(name).join(" ")));
        let is_wanted = |feature: &Feature| {
            matches!(feature, Feature::Word(_) | Feature::Idea(_)) && wanted.contains_key(feature)
        };
        (0..message.len()).find_map(|at| {
            let end = (at + 2).min(message.len());
            let mentioned = bag_of(&message[at..end]).keys().any(is_wanted);
            mentioned.then(|| !message[at.saturating_sub(3)..=at].iter().any(denies))
        })
    }

    /// The one of these values that the text speaks of.
    pub(super) fn choice(&self, choices: &[Value]) -> Option<Value> {
        choices::best(choices, &self.text)
    }

    /// All of these values that the text speaks of.
    pub(super) fn mentioned(&self, choices: &[Value]) -> Vec<Value> {
        choices::mentioned(choices, &self.text)
    }

    fn fact(&self, kind: Kind, used: &mut Vec<usize>) -> Option<String> {
        let facts = self.facts.iter().enumerate();
        let (at, fact) = facts
            .into_iter()
            .find(|(at, fact)| fact.kind == kind && !used.contains(at))?;
        used.push(at);
        Some(fact.text.clone())
    }

    fn id(&self, used: &mut Vec<usize>) -> Option<String> {
        if let Some(id) = self.fact(Kind::Id, used) {
            return Some(id.trim_start_matches('#').trim().to_owned());
        }
        let is_long = |fact: &Fact| fact.text.chars().filter(char::is_ascii_digit).count() >= 3;
        let mut numbers = self.facts.iter().enumerate();
        let (at, fact) = numbers.find(|(at, fact)| {
            matches!(fact.kind, Kind::Number | Kind::Phone) && is_long(fact) && !used.contains(at)
        })?;
        used.push(at);
        Some(fact.text.clone())
    }

    fn place(&self, cue: &str) -> Option<String> {
        let cued = places()
            .iter()
            .filter(|(of, _)| cue.is_empty() || *of == cue);
        let names = cued.filter_map(|(_, pattern)| self.captured(pattern));
        names
            .into_iter()
            .find(|name| !is_stop_word(&stem(&name.to_lowercase())))
    }

    fn captured(&self, pattern: &Option<Regex>) -> Option<String> {
        let found = pattern.as_ref()?.captures(&self.text)?;
        found.get(1).map(|name| name.as_str().trim().to_owned())
    }

    fn prose(&self) -> Option<String> {
        let text: String = self.prose.chars().take(LONGEST).collect();
        (!text.is_empty()).then_some(text)
    }

    /// What follows the field's name: `size: XL`, `the colour is red`.
    fn stated(&self, name: &str) -> Option<String> {
        let text = normalised(&self.text);
        let name = Some(words_of(name).join(" ")).filter(|name| !name.is_empty())?;
        let after = text.match_indices(&name).find_map(|(at, _)| {
            let rest = text[at + name.len()..].trim_start();
            let signs = [":", "=", "is ", "was ", "是", "为"];
            signs.iter().find_map(|sign| rest.strip_prefix(sign))
        })?;
        let value = after
            .trim_start()
            .split([' ', ',', '.', '\n', '，', '。', ';'])
            .next()?;
        (!value.is_empty()).then(|| as_written(&self.text, value))
    }

    /// A short message, where the assistant has just asked for this field. What must look like
    /// something, a date say, is not just anything.
    fn short_answer(&self, role: Role, name: &str, about: &str) -> Option<String> {
        let may_be = match role {
            Role::Id => self.message.contains(|c: char| c.is_ascii_digit()),
            Role::Place(_) | Role::Person | Role::Other => true,
            _ => false,
        };
        let words = tokens(&self.message).len();
        let is_answer =
            may_be && (1..=SHORT_ANSWER).contains(&words) && self.was_asked(name, about);
        is_answer.then(|| self.message.clone())
    }

    fn was_asked(&self, name: &str, about: &str) -> bool {
        let name = words_of(name).join(" ");
        let about = about
            .split(['.', '。', '\n'])
            .next()
            .unwrap_or_default()
            .trim();
        [name.as_str(), about]
            .iter()
            .any(|words| !words.is_empty() && self.asked.contains(words))
    }

    /// Where the words of a name stand in the text.
    fn places_of(&self, name: &str) -> Vec<usize> {
        let text = self.text.to_ascii_lowercase();
        let words = words_of(name).into_iter().map(|word| stem(&word));
        let words = words.filter(|word| word.len() > 2 || !word.is_ascii());
        words
            .flat_map(|word| {
                text.match_indices(&word)
                    .map(|(at, _)| at)
                    .take(8)
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

/// The words of a field's or a tool's name, in lower case: `orderId` and `order_id` are both
/// "order id".
pub(super) fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars().take(200) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A lower-case value as it is written in the text.
fn as_written(text: &str, value: &str) -> String {
    let at = normalised(text).find(value);
    let written = at.and_then(|at| text.get(at..at + value.len()));
    written
        .filter(|written| normalised(written) == value)
        .unwrap_or(value)
        .to_owned()
}

fn distance(fact: &Fact, near: &[usize]) -> usize {
    near.iter()
        .map(|at| at.abs_diff(fact.at.start))
        .min()
        .unwrap_or(usize::MAX)
}

fn yes_or_no(message: &[Token]) -> Option<bool> {
    message.iter().find_map(|token| match token {
        Token::Word(word) => match word.as_str() {
            "yes" | "yeah" | "yep" | "sure" | "ok" | "okay" | "ye" | "pleas" => Some(true),
            "no" | "nope" | "not" => Some(false),
            _ => None,
        },
        Token::Han('是' | '好' | '要' | '对') => Some(true),
        Token::Han('不' | '否' | '没') => Some(false),
        _ => None,
    })
}

fn denies(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            matches!(
                word.as_str(),
                "no" | "not" | "dont" | "without" | "never" | "isnt" | "doesnt" | "didnt"
            )
        }
        Token::Han(c) => "不没无别".contains(*c),
        Token::Break => false,
    }
}
