//! Guardrails of a file: patterns, words and lengths.

use std::sync::Arc;

use regex::Regex;
use switchboard_core::{
    FinalOutput, GuardrailVerdict, HandoffGuardrail, HandoffInputData, HandoffRequest,
    HandoffVerdict, Input, InputGuardrail, InputVerdict, Item, Items, OutputGuardrail,
    OutputVerdict,
};

use crate::context::Context;
use crate::types::ThenShape;

/// A guardrail, ready to look at text.
#[derive(Debug, Clone)]
pub(crate) struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    patterns: Vec<Regex>,
    max_length: Option<usize>,
    then: ThenShape,
    message: String,
}

/// What is put in place of what was found.
const HIDDEN: &str = "[removed]";

/// The largest automaton of a pattern.
const LARGEST: usize = 10 << 20;

/// A pattern as the file writes it.
pub(crate) fn pattern(text: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(text).size_limit(LARGEST).build()
}

/// Patterns that find these words and phrases. Many words are few patterns: a text is searched once for
/// all words of one.
pub(crate) fn word_patterns(words: &[&str]) -> Vec<String> {
    // So few that even long phrases make no pattern that is too large.
    const IN_ONE: usize = 50;
    let mut words = words.to_vec();
    // Of words that begin alike the longest is to be hidden.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let chunks = words.chunks(IN_ONE);
    let joined = chunks.map(|chunk| {
        let words: Vec<String> = chunk.iter().map(|word| word_pattern(word)).collect();
        format!("(?i)(?:{})", words.join("|"))
    });
    joined.collect()
}

/// The pattern of a word or phrase that is not within another word.
fn word_pattern(word: &str) -> String {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !has_no_spaces(c));
    let word = word.trim();
    // Where words have no spaces between them, a boundary would keep them from being found.
    let start = if is_letter(word.chars().next()) {
        r"\b"
    } else {
        ""
    };
    let end = if is_letter(word.chars().last()) {
        r"\b"
    } else {
        ""
    };
    let phrase: Vec<String> = word.split_whitespace().map(regex::escape).collect();
    format!("{start}{}{end}", phrase.join(r"\s+"))
}

/// Whether a character is of a script that writes words without spaces between them.
fn has_no_spaces(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

impl Guard {
    pub(crate) fn new(
        name: &str,
        patterns: &[String],
        max_length: Option<u32>,
        then: ThenShape,
        message: Option<&str>,
    ) -> Result<Self, regex::Error> {
        let patterns = patterns.iter().map(|text| pattern(text));
        let patterns = patterns.collect::<Result<_, _>>()?;
        let message = message.unwrap_or("This cannot be said here.");
        Ok(Self(Arc::new(Inner {
            name: name.to_owned(),
            patterns,
            max_length: max_length.and_then(|most| usize::try_from(most).ok()),
            then,
            message: message.to_owned(),
        })))
    }

    fn trips(&self, text: &str) -> bool {
        let too_long = self
            .0
            .max_length
            .is_some_and(|most| text.chars().nth(most).is_some());
        too_long || self.0.patterns.iter().any(|pattern| pattern.is_match(text))
    }

    /// The text without what was found, if anything was.
    fn hidden(&self, text: &str) -> Option<String> {
        if !self.trips(text) {
            return None;
        }
        let mut text = text.to_owned();
        for pattern in &self.0.patterns {
            text = pattern.replace_all(&text, HIDDEN).into_owned();
        }
        if let Some(most) = self.0.max_length
            && let Some((end, _)) = text.char_indices().nth(most)
        {
            text.truncate(end);
        }
        Some(text)
    }

    fn verdict(&self, text: &str) -> GuardrailVerdict {
        if self.trips(text) {
            GuardrailVerdict::trip().info(self.0.message.as_str())
        } else {
            GuardrailVerdict::allow()
        }
    }

    pub(crate) fn on_input(&self) -> InputGuardrail<Context> {
        let guard = self.clone();
        let name = self.0.name.as_str();
        match self.0.then {
            ThenShape::Stop => InputGuardrail::new(name, move |_ctx, _agent, input: Input| {
                guard.verdict(&input.last_words().unwrap_or_default())
            }),
            ThenShape::Redact => {
                InputGuardrail::replacing(name, move |_ctx, _agent, input: Input| {
                    let words = input.last_words().unwrap_or_default();
                    InputVerdict::from(guard.hidden(&words))
                })
            }
        }
    }

    pub(crate) fn on_output(&self) -> OutputGuardrail<Context> {
        let guard = self.clone();
        let name = self.0.name.as_str();
        match self.0.then {
            ThenShape::Stop => {
                OutputGuardrail::new(name, move |_ctx, _agent, output: FinalOutput| {
                    guard.verdict(&output.text())
                })
            }
            ThenShape::Redact => {
                OutputGuardrail::replacing(name, move |_ctx, _agent, output: FinalOutput| {
                    OutputVerdict::from(guard.hidden(&output.text()))
                })
            }
        }
    }

    /// Looks at the payload and at what would be carried over.
    pub(crate) fn on_handoff(&self) -> HandoffGuardrail<Context> {
        let guard = self.clone();
        HandoffGuardrail::new(
            self.0.name.as_str(),
            move |check: HandoffRequest<Context>| {
                let payload = check.payload.as_ref();
                let trips = payload.is_some_and(|payload| guard.trips_in(payload))
                    || carried(&check.data).any(|item| {
                        let texts = [item.text(), item.arguments(), item.output()];
                        texts.iter().flatten().any(|text| guard.trips(text))
                    });
                if trips {
                    HandoffVerdict::refuse(guard.0.message.clone())
                } else {
                    HandoffVerdict::Allow
                }
            },
        )
    }

    /// Whether any text of a value trips it.
    fn trips_in(&self, value: &serde_json::Value) -> bool {
        use serde_json::Value;
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) if self.trips(text) => return true,
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => open.extend(fields.values()),
                _ => {}
            }
        }
        false
    }
}

/// What the next agent would be shown.
fn carried(data: &HandoffInputData<Context>) -> impl Iterator<Item = Item> {
    let history = match data.input_history() {
        Input::Text(text) => Items::from_iter([Item::user(text)]),
        Input::Items(items) => items.clone(),
    };
    let now = data.input_items().unwrap_or(data.new_items()).clone();
    let since = data.pre_handoff_items().clone();
    let run_items: Vec<Item> = since
        .iter()
        .chain(now.iter())
        .map(|item| item.item().clone())
        .collect();
    let history: Vec<Item> = history.iter().cloned().collect();
    history.into_iter().chain(run_items)
}
