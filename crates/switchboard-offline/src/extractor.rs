//! Extraction of single values from a text.

use regex::Regex;
use serde_json::Value;

use crate::choices;
use crate::entities::{Entity, EntityKind, currency, find_entities, prepare};
use crate::features::{Feature, bag_of};
use crate::field_kind::FieldKind;
use crate::language::Language;
use crate::name_patterns::{person_pattern, place_patterns};
use crate::text::{Token, identifier_words, is_stop_char, is_stop_word, normalise, stem, tokenize};
use crate::units::{Field, Unit, unit_of};

/// The maximum number of characters of free text in a field.
const MAX_PROSE: usize = 2_000;
/// The maximum number of bytes between a number and the word that says what it is.
const MAX_DISTANCE: usize = 16;
/// The maximum number of tokens of a reply that is taken as the value that was asked for.
const MAX_SHORT_REPLY: usize = 8;

/// Extracts the values of fields from what the user wrote.
#[derive(Debug)]
pub(crate) struct Extractor<'a> {
    pub(crate) language: Language,
    /// The last message.
    message: String,
    /// All messages, newest first.
    text: String,
    /// All messages, oldest first.
    prose: String,
    /// The entities in `text`.
    entities: Vec<Entity>,
    /// The assistant's last reply, which may have asked for a value.
    question: &'a str,
    /// The text of the answer, for structured output; otherwise empty.
    answer: &'a str,
}

impl<'a> Extractor<'a> {
    /// Creates an extractor over messages of the user, newest first.
    pub(crate) fn new(messages: &[String], question: &'a str, answer: &'a str) -> Self {
        let texts: Vec<String> = messages.iter().map(|text| prepare(text)).collect();
        let oldest_first: Vec<&str> = texts.iter().rev().map(|text| text.trim()).collect();
        let message = texts.first().map(|text| text.trim()).unwrap_or_default();
        let text = texts.join("\n");
        Self {
            language: Language::of(message),
            entities: find_entities(&text),
            message: message.to_owned(),
            prose: oldest_first.join("\n"),
            text,
            question,
            answer,
        }
    }

    /// Returns the text for a field. Entities that it uses are added to `used`.
    pub(crate) fn string(
        &self,
        name: &str,
        description: &str,
        used: &mut Vec<usize>,
    ) -> Option<String> {
        let kind = FieldKind::of(name, description);
        if matches!(kind, FieldKind::Answer | FieldKind::Prose) && !self.answer.is_empty() {
            return Some(self.answer.to_owned());
        }
        let value = match kind {
            FieldKind::Entity(kind) => self.entity(kind, used),
            FieldKind::Id => self.id(used),
            FieldKind::Currency => currency(&self.text).map(str::to_owned),
            FieldKind::Place(preposition) => self.place(preposition),
            FieldKind::Person => self.captured(person_pattern()),
            FieldKind::Prose | FieldKind::Answer => self.prose(),
            FieldKind::Other => None,
        };
        value
            .or_else(|| self.stated(name))
            .or_else(|| self.short_reply(kind, name, description))
    }

    /// Returns the number for a field within the bounds of its schema, preferring numbers near the
    /// field's name. A number that counts or measures something else is not taken. An optional field gets a plain number only if it stands near a word of the field's
    /// name or description: any number would do otherwise.
    pub(crate) fn number(
        &self,
        name: &str,
        schema: &Value,
        is_optional: bool,
        used: &mut Vec<usize>,
    ) -> Option<f64> {
        let description = schema["description"].as_str().unwrap_or_default();
        let is_integer = schema["type"] == "integer";
        let min = schema["minimum"].as_f64().unwrap_or(f64::MIN);
        let max = schema["maximum"].as_f64().unwrap_or(f64::MAX);
        let is_allowed = |number: f64| {
            (min..=max).contains(&number)
                && (!is_integer || number.fract() == 0.0)
                && number.abs() < 1e15
        };
        let kinds: &[EntityKind] = match FieldKind::of(name, description) {
            FieldKind::Entity(EntityKind::Amount) => &[EntityKind::Amount, EntityKind::Number],
            FieldKind::Id => &[EntityKind::Id, EntityKind::Number],
            FieldKind::Entity(EntityKind::Phone) => &[EntityKind::Phone],
            _ => &[EntityKind::Number, EntityKind::Amount],
        };
        let field = Field::new(name, description);
        let mentions = self.mentions(identifier_words(name));
        let words = identifier_words(name).into_iter();
        let field_mentions = if is_optional {
            self.mentions(words.chain(identifier_words(description)))
        } else {
            Vec::new()
        };
        let is_about_field = |entity: &Entity| distance(entity, &field_mentions) <= MAX_DISTANCE;
        let numbers = self.entities.iter().enumerate().filter_map(|(at, entity)| {
            let rank = kinds.iter().position(|kind| *kind == entity.kind)?;
            let number = entity.number().filter(|number| is_allowed(*number))?;
            let unit = unit_of(&self.text, entity.kind, &entity.span);
            if unit.is_some_and(|unit| !field.takes(&unit)) {
                return None;
            }
            if is_optional && entity.kind == EntityKind::Number && !is_about_field(entity) {
                return None;
            }
            (!used.contains(&at)).then(|| ((rank, distance(entity, &mentions), at), number))
        });
        let ((_, _, at), number) = numbers.min_by_key(|(key, _)| *key)?;
        used.push(at);
        Some(number)
    }

    /// Returns the flag for a field: the reply to a question about it, or `true` if the message
    /// mentions it without a negation.
    pub(crate) fn boolean(&self, name: &str, description: &str) -> Option<bool> {
        let message = tokenize(&self.message);
        if self.was_asked(name, description)
            && let Some(reply) = yes_or_no(&message)
        {
            return Some(reply);
        }
        let name = bag_of(&tokenize(&identifier_words(name).join(" ")));
        let is_in_name = |feature: &Feature| {
            matches!(feature, Feature::Word(_) | Feature::Concept(_)) && name.contains_key(feature)
        };
        (0..message.len()).find_map(|at| {
            let end = (at + 2).min(message.len());
            let is_mentioned = bag_of(&message[at..end]).keys().any(is_in_name);
            is_mentioned.then(|| !message[at.saturating_sub(3)..=at].iter().any(is_negation))
        })
    }

    /// Returns the one of `choices` that the text mentions most clearly, if any.
    pub(crate) fn choice(&self, choices: &[Value]) -> Option<Value> {
        choices::best(choices, &self.text)
    }

    /// Returns all of `choices` that the text mentions.
    pub(crate) fn choices(&self, choices: &[Value]) -> Vec<Value> {
        choices::mentioned(choices, &self.text)
    }

    fn entity(&self, kind: EntityKind, used: &mut Vec<usize>) -> Option<String> {
        self.first_entity(|entity| entity.kind == kind, used)
    }

    fn id(&self, used: &mut Vec<usize>) -> Option<String> {
        if let Some(id) = self.entity(EntityKind::Id, used) {
            return Some(id.trim_start_matches('#').trim().to_owned());
        }
        let is_long_number = |entity: &Entity| {
            let unit = || unit_of(&self.text, entity.kind, &entity.span);
            matches!(entity.kind, EntityKind::Number | EntityKind::Phone)
                && !matches!(unit(), Some(Unit::Money | Unit::Measure(_)))
                && entity.text.chars().filter(char::is_ascii_digit).count() >= 3
        };
        self.first_entity(is_long_number, used)
    }

    fn first_entity(
        &self,
        is_wanted: impl Fn(&Entity) -> bool,
        used: &mut Vec<usize>,
    ) -> Option<String> {
        let mut entities = self.entities.iter().enumerate();
        let (at, entity) = entities.find(|(at, entity)| is_wanted(entity) && !used.contains(at))?;
        used.push(at);
        Some(entity.text.clone())
    }

    fn place(&self, preposition: &str) -> Option<String> {
        place_patterns()
            .iter()
            .filter(|(of, _)| preposition.is_empty() || *of == preposition)
            .filter_map(|(_, pattern)| self.captured(pattern))
            .find(|name| !is_stop_word(&stem(&name.to_lowercase())))
    }

    fn captured(&self, pattern: &Option<Regex>) -> Option<String> {
        let captures = pattern.as_ref()?.captures(&self.text)?;
        captures.get(1).map(|name| name.as_str().trim().to_owned())
    }

    fn prose(&self) -> Option<String> {
        let text: String = self.prose.chars().take(MAX_PROSE).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the word that is stated as the field's value: `size: XL`, `the colour is red`.
    fn stated(&self, name: &str) -> Option<String> {
        let text = normalise(&self.text);
        let name = Some(identifier_words(name).join(" ")).filter(|name| !name.is_empty())?;
        let after = text.match_indices(&name).find_map(|(at, _)| {
            let rest = text[at + name.len()..].trim_start();
            let verbs = [":", "=", "is ", "was ", "是", "为"];
            verbs.iter().find_map(|verb| rest.strip_prefix(verb))
        })?;
        let value = after
            .trim_start()
            .split([' ', ',', '.', '\n', '，', '。', ';'])
            .next()?;
        (!value.is_empty()).then(|| original_case(&self.text, value))
    }

    /// Returns the whole message if it is a short reply to a question about this field, and the
    /// field takes free text, or an identifier and the reply has a digit.
    fn short_reply(&self, kind: FieldKind, name: &str, description: &str) -> Option<String> {
        let is_plausible = match kind {
            FieldKind::Id => self.message.contains(|c: char| c.is_ascii_digit()),
            FieldKind::Place(_) | FieldKind::Person | FieldKind::Other => true,
            _ => false,
        };
        let length = tokenize(&self.message).len();
        let is_reply = is_plausible
            && (1..=MAX_SHORT_REPLY).contains(&length)
            && self.was_asked(name, description);
        is_reply.then(|| self.message.clone())
    }

    /// Returns `true` if the assistant's last reply contains the field's name or the first sentence
    /// of its description.
    pub(crate) fn was_asked(&self, name: &str, description: &str) -> bool {
        let name = identifier_words(name).join(" ");
        let description = description
            .split(['.', '。', '\n'])
            .next()
            .unwrap_or_default()
            .trim();
        [name.as_str(), description]
            .iter()
            .any(|label| !label.is_empty() && self.question.contains(label))
    }

    /// Returns the offsets at which the text mentions some of these words. Of Chinese ones a character
    /// is enough: `人数` is mentioned in `四个人`.
    fn mentions(&self, words: impl IntoIterator<Item = String>) -> Vec<usize> {
        let text = self.text.to_ascii_lowercase();
        words
            .into_iter()
            .flat_map(|word| {
                if word.is_ascii() {
                    vec![stem(&word)]
                } else {
                    word.chars()
                        .filter(|c| !is_stop_char(*c))
                        .map(String::from)
                        .collect()
                }
            })
            .filter(|word| !word.is_ascii() || (word.len() > 2 && !is_stop_word(word)))
            .flat_map(|word| {
                let offsets = text.match_indices(&word).map(|(at, _)| at);
                offsets.take(8).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Returns a normalised value as it is written in the text.
fn original_case(text: &str, value: &str) -> String {
    normalise(text)
        .find(value)
        .and_then(|at| text.get(at..at + value.len()))
        .filter(|original| normalise(original) == value)
        .unwrap_or(value)
        .to_owned()
}

/// Returns the distance of an entity to the nearest of these offsets.
fn distance(entity: &Entity, offsets: &[usize]) -> usize {
    offsets
        .iter()
        .map(|offset| offset.abs_diff(entity.span.start))
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

fn is_negation(token: &Token) -> bool {
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
