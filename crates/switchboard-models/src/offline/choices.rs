//! One of several allowed values.

use serde_json::Value;

use super::features::bag_of;
use super::fields::words_of;
use super::index::Index;
use super::text::{normalised, tokens};

/// Below this, a text does not speak of a value.
const SPOKEN_OF: f64 = 0.3;
/// What it counts that a text has the value itself, which outdoes everything like it.
const NAMED: f64 = 10.0;

/// The one of these values that a text speaks of most.
pub(super) fn best(choices: &[Value], text: &str) -> Option<Value> {
    let scores = scores(choices, text);
    // Of equal ones the first.
    let best = (0..scores.len())
        .rev()
        .max_by(|a, b| scores[*a].total_cmp(&scores[*b]))?;
    (scores[best] > SPOKEN_OF).then(|| choices[best].clone())
}

/// All of these values that a text speaks of.
pub(super) fn mentioned(choices: &[Value], text: &str) -> Vec<Value> {
    let scores = scores(choices, text).into_iter();
    let spoken_of = scores.zip(choices).filter(|(score, _)| *score > SPOKEN_OF);
    spoken_of.map(|(_, choice)| choice.clone()).collect()
}

/// A value for a field that must be one of these, where nothing speaks for any: a middling one if
/// there is one, or else the first.
pub(super) fn minimal(choices: &[Value]) -> Value {
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

fn scores(choices: &[Value], text: &str) -> Vec<f64> {
    let texts: Vec<String> = choices.iter().map(meaning_of).collect();
    let index = Index::of(texts.iter().map(|text| vec![(text.as_str(), 1.0)]));
    let mut scores = index.scores(&bag_of(&index.corrected(tokens(text))));
    let text = normalised(text);
    for (score, choice) in scores.iter_mut().zip(choices) {
        let value = choice.as_str().map(normalised).unwrap_or_default();
        *score += if contains_word(&text, &value) {
            NAMED
        } else {
            0.0
        };
    }
    scores
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
