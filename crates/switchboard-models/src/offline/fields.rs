//! One value at a time: what in a text a field means.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use super::facts::{self, Fact, Kind};
use super::features::{Feature, bag_of};
use super::index::Index;
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
    facts: Vec<Fact>,
    /// What the assistant said before: it may have asked for something.
    asked: &'a str,
    /// The answer in words, where a value is made of it.
    answer: &'a str,
}

impl<'a> Source<'a> {
    /// A source: what the user said, the newest first, and what the assistant said before.
    pub(super) fn new(messages: &[String], asked: &'a str, answer: &'a str) -> Self {
        let message = messages
            .first()
            .map(|text| facts::plain(text))
            .unwrap_or_default();
        let earlier = messages.iter().skip(1).map(|text| facts::plain(text));
        let text = [message.clone()]
            .into_iter()
            .chain(earlier)
            .collect::<Vec<_>>()
            .join("\n");
        Self {
            language: Language::of(&message),
            facts: facts::facts(&text),
            message: message.trim().to_owned(),
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
            .or_else(|| self.short_answer(name, about))
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
        if self.was_asked(name, about) {
            if let Some(yes) = yes_or_no(&message) {
                return Some(yes);
            }
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
        let scores = self.scores(choices);
        let best = (0..scores.len())
            .rev()
            .max_by(|a, b| scores[*a].total_cmp(&scores[*b]))?;
        (scores[best] > 0.3).then(|| choices[best].clone())
    }

    /// All of these values that the text speaks of.
    pub(super) fn mentioned(&self, choices: &[Value]) -> Vec<Value> {
        let scores = self.scores(choices).into_iter();
        let spoken_of = scores.zip(choices).filter(|(score, _)| *score > 0.3);
        spoken_of.map(|(_, choice)| choice.clone()).collect()
    }

    fn scores(&self, choices: &[Value]) -> Vec<f64> {
        let texts: Vec<String> = choices.iter().map(meaning_of).collect();
        let index = Index::of(texts.iter().map(|text| vec![(text.as_str(), 1.0)]));
        let mut scores = index.scores(&bag_of(&index.corrected(tokens(&self.text))));
        let text = normalised(&self.text);
        for (score, choice) in scores.iter_mut().zip(choices) {
            // The value itself outdoes everything like it.
            if choice
                .as_str()
                .is_some_and(|value| contains_word(&text, &normalised(value)))
            {
                *score += 10.0;
            }
        }
        scores
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
        let text: String = self.message.chars().take(LONGEST).collect();
        (!text.is_empty()).then_some(text)
    }

    /// What follows the field's name: `size: XL`, `the colour is red`.
    fn stated(&self, name: &str) -> Option<String> {
        let text = normalised(&self.text);
        let name = words_of(name).join(" ");
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

    /// A short message, where the assistant has just asked for this field.
    fn short_answer(&self, name: &str, about: &str) -> Option<String> {
        let words = tokens(&self.message).len();
        let is_answer = (1..=SHORT_ANSWER).contains(&words) && self.was_asked(name, about);
        is_answer.then(|| self.message.clone())
    }

    fn was_asked(&self, name: &str, about: &str) -> bool {
        let name = words_of(name).join(" ");
        let about = about
            .split(['.', '。', '\n'])
            .next()
            .unwrap_or_default()
            .trim();
        self.asked.contains(&name) || (!about.is_empty() && self.asked.contains(about))
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

/// A value for a field that must be one of these, where nothing speaks for any: a middling one if
/// there is one, or else the first.
pub(super) fn minimal_choice(choices: &[Value]) -> Value {
    let middling = [
        "normal", "medium", "default", "general", "other", "unknown", "none",
    ];
    let is_middling = |choice: &&Value| {
        choice
            .as_str()
            .is_some_and(|value| middling.contains(&value.to_lowercase().as_str()))
    };
    let choice = choices.iter().find(is_middling).or(choices.first());
    choice.cloned().unwrap_or_default()
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

/// An allowed value with what it means in other words.
fn meaning_of(choice: &Value) -> String {
    let value = match choice {
        Value::String(text) => words_of(text).join(" "),
        other => other.to_string(),
    };
    let more = match value.as_str() {
        "urgent" | "high" | "critical" | "highest" | "p0" | "p1" => "urgent asap emergency",
        "low" | "lowest" | "minor" => "no rush, not urgent, whenever you can, minor",
        "positive" => "great happy love excellent satisfied 满意 很好 开心 喜欢 谢谢",
        "negative" => "bad angry terrible awful hate disappointed 生气 失望 糟糕 投诉 太差",
        _ => "",
    };
    format!("{value}, {more}")
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !word.is_ascii() || (!is_word(before) && !is_word(after))
        })
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

/// How a place is named, by what leads to it.
fn places() -> &'static [(&'static str, Option<Regex>)] {
    static PLACES: OnceLock<Vec<(&str, Option<Regex>)>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let name = r"([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*){0,3})";
        let han = r"([\u{4e00}-\u{9fff}]{2,6}?)";
        let end = r"(?:的|天气|气温|酒店|机票|飞|到|去|有|$|[\s，。？！,.?!])";
        let patterns = [
            ("from", format!(r"\b(?i:from)\s+{name}")),
            ("to", format!(r"\b(?i:to)\s+{name}")),
            ("in", format!(r"\b(?i:in|at|near|for|of)\s+{name}")),
            ("from", format!("从{han}{end}")),
            ("to", format!("(?:去|到|飞){han}{end}")),
            ("in", format!("在{han}{end}")),
            (
                "in",
                format!(r"(?m)^{han}(?:今天|明天|后天|现在)?的?(?:天气|气温)"),
            ),
            ("from", r"\bfrom\s+([a-z]{3,30})\b".to_owned()),
            ("to", r"\bto\s+([a-z]{3,30})\b".to_owned()),
            ("in", r"\b(?:in|at|near)\s+([a-z]{3,30})\b".to_owned()),
        ];
        patterns
            .into_iter()
            .map(|(cue, text)| (cue, Regex::new(&text).ok()))
            .collect()
    })
}

/// How somebody gives their name.
fn person() -> &'static Option<Regex> {
    static PERSON: OnceLock<Option<Regex>> = OnceLock::new();
    PERSON.get_or_init(|| {
        Regex::new(
            r"(?:(?i:my name is|i am|i'm|this is|name:)\s+([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*){0,2}))",
        )
        .ok()
    })
}
