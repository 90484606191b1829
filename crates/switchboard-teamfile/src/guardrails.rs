//! Guardrails that check text for patterns, words and length.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;
use switchboard_core::guardrail::{
    HandoffGuardrail, HandoffRequest, HandoffVerdict, InputGuardrail, InputVerdict,
    OutputGuardrail, OutputVerdict, Verdict,
};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::{FinalOutput, Input, Item};

use crate::context::Context;
use crate::types::GuardrailAction;

/// A guardrail with its patterns compiled.
#[derive(Debug, Clone)]
pub(crate) struct Guardrail(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    patterns: Vec<Regex>,
    max_length: Option<usize>,
    action: GuardrailAction,
    message: String,
}

/// The text that replaces what is redacted.
const REPLACEMENT: &str = "[removed]";

/// The maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_SIZE: usize = 10 << 20;

pub(crate) fn compile_pattern(pattern: &str) -> Result<Regex, regex::Error> {
    regex::RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN_SIZE)
        .build()
}

/// Returns patterns that match these words and phrases. Many words share a pattern, so that a text is
/// searched few times.
pub(crate) fn word_patterns(words: &[&str]) -> Vec<String> {
    // Small enough that a pattern of long phrases stays below the size limit.
    const WORDS_PER_PATTERN: usize = 50;
    let mut words = words.to_vec();
    // Of two words with a common prefix, the longer must match first.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let chunks = words.chunks(WORDS_PER_PATTERN);
    chunks
        .map(|chunk| {
            let words: Vec<String> = chunk.iter().map(|word| word_pattern(word)).collect();
            format!("(?i)(?:{})", words.join("|"))
        })
        .collect()
}

/// Returns a pattern that matches a word or phrase, but not within another word.
fn word_pattern(word: &str) -> String {
    // Scripts without spaces between words have no word boundaries to match.
    let boundary = |c: Option<char>| match c {
        Some(c) if c.is_alphanumeric() && !is_unspaced_script(c) => r"\b",
        _ => "",
    };
    let word = word.trim();
    let start = boundary(word.chars().next());
    let end = boundary(word.chars().last());
    let phrase: Vec<String> = word.split_whitespace().map(regex::escape).collect();
    format!("{start}{}{end}", phrase.join(r"\s+"))
}

/// Returns `true` for characters of scripts that write words without spaces between them.
fn is_unspaced_script(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

impl Guardrail {
    pub(crate) fn new(
        name: &str,
        patterns: &[String],
        max_length: Option<u32>,
        action: GuardrailAction,
        message: Option<&str>,
    ) -> Result<Self, regex::Error> {
        let patterns = patterns.iter().map(|pattern| compile_pattern(pattern));
        Ok(Self(Arc::new(Inner {
            name: name.to_owned(),
            patterns: patterns.collect::<Result<_, _>>()?,
            max_length: max_length.and_then(|max| usize::try_from(max).ok()),
            action,
            message: message.unwrap_or("This cannot be said here.").to_owned(),
        })))
    }

    fn trips(&self, text: &str) -> bool {
        let max_length = self.0.max_length;
        max_length.is_some_and(|max| text.chars().nth(max).is_some())
            || self.0.patterns.iter().any(|pattern| pattern.is_match(text))
    }

    /// Returns the text with matches replaced and cut to the maximum length, if it trips.
    fn redacted(&self, text: &str) -> Option<String> {
        if !self.trips(text) {
            return None;
        }
        let mut text = text.to_owned();
        for pattern in &self.0.patterns {
            text = pattern.replace_all(&text, REPLACEMENT).into_owned();
        }
        if let Some(max) = self.0.max_length
            && let Some((end, _)) = text.char_indices().nth(max)
        {
            text.truncate(end);
        }
        Some(text)
    }

    fn verdict<T>(&self, text: &str) -> Verdict<T> {
        Verdict::trip_if(self.trips(text), self.0.message.as_str())
    }

    pub(crate) fn on_input(&self) -> InputGuardrail<Context> {
        let guardrail = self.clone();
        let name = self.0.name.as_str();
        match self.0.action {
            GuardrailAction::Stop => {
                InputGuardrail::new(name, move |_ctx, _agent, input: Input| {
                    guardrail.verdict(&input.last_words().unwrap_or_default())
                })
            }
            GuardrailAction::Redact => {
                InputGuardrail::replacing(name, move |_ctx, _agent, input: Input| {
                    let text = input.last_words().unwrap_or_default();
                    InputVerdict::from(guardrail.redacted(&text))
                })
            }
        }
    }

    pub(crate) fn on_output(&self) -> OutputGuardrail<Context> {
        let guardrail = self.clone();
        let name = self.0.name.as_str();
        match self.0.action {
            GuardrailAction::Stop => {
                OutputGuardrail::new(name, move |_ctx, _agent, output: FinalOutput| {
                    guardrail.verdict(&output.text())
                })
            }
            GuardrailAction::Redact => {
                OutputGuardrail::replacing(name, move |_ctx, _agent, output: FinalOutput| {
                    OutputVerdict::from(guardrail.redacted(&output.text()))
                })
            }
        }
    }

    /// Returns a guardrail that checks the payload and the items that the next agent would see.
    pub(crate) fn on_handoff(&self) -> HandoffGuardrail<Context> {
        let guardrail = self.clone();
        let name = self.0.name.as_str();
        HandoffGuardrail::new(name, move |request: HandoffRequest<Context>| {
            let payload = request.payload.as_ref();
            let trips = payload.is_some_and(|payload| guardrail.trips_in_json(payload))
                || items_for_next_agent(&request.data).iter().any(|item| {
                    let texts = [item.text(), item.arguments(), item.output_text()];
                    texts.iter().flatten().any(|text| guardrail.trips(text))
                });
            if trips {
                HandoffVerdict::refuse(guardrail.0.message.clone())
            } else {
                HandoffVerdict::Allow
            }
        })
    }

    /// Returns `true` if any string of a JSON value trips the guardrail.
    fn trips_in_json(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.trips(text),
            Value::Array(items) => items.iter().any(|item| self.trips_in_json(item)),
            Value::Object(fields) => fields.values().any(|field| self.trips_in_json(field)),
            _ => false,
        }
    }
}

fn items_for_next_agent(data: &HandoffInputData<Context>) -> Vec<Item> {
    let mut items = match data.input_history() {
        Input::Text(text) => vec![Item::user(text)],
        Input::Items(items) => items.iter().cloned().collect(),
    };
    let new_items = data.input_items().unwrap_or(data.new_items());
    let run_items = data.pre_handoff_items().iter().chain(new_items.iter());
    items.extend(run_items.map(|item| item.item().clone()));
    items
}
