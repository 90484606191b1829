//! Choosing among the values that a schema allows.

use serde_json::Value;

use crate::features::bag_of;
use crate::index::Index;
use crate::text::{identifier_words, normalise, tokenize};

/// The score that a value must exceed to count as mentioned.
const MIN_SCORE: f64 = 0.3;
/// The bonus for a value that the text contains verbatim, larger than any other score.
const VERBATIM: f64 = 10.0;

/// Returns the value that `text` mentions most clearly, if any.
pub(crate) fn best(choices: &[Value], text: &str) -> Option<Value> {
    let scores = scores(choices, text);
    // Reversed, because `max_by` returns the last of equal elements and the first is wanted.
    let best = (0..scores.len())
        .rev()
        .max_by(|a, b| scores[*a].total_cmp(&scores[*b]))?;
    (scores[best] > MIN_SCORE).then(|| choices[best].clone())
}

/// Returns all values that `text` mentions.
pub(crate) fn mentioned(choices: &[Value], text: &str) -> Vec<Value> {
    scores(choices, text)
        .into_iter()
        .zip(choices)
        .filter(|(score, _)| *score > MIN_SCORE)
        .map(|(_, choice)| choice.clone())
        .collect()
}

/// Returns the value for a required field that the text does not mention: a neutral one such as
/// "normal" if there is one, else the first.
pub(crate) fn neutral(choices: &[Value]) -> Value {
    const NEUTRAL: [&str; 7] = [
        "normal", "medium", "default", "general", "other", "unknown", "none",
    ];
    let is_neutral = |choice: &&Value| {
        choice
            .as_str()
            .is_some_and(|value| NEUTRAL.contains(&value.to_lowercase().as_str()))
    };
    let choice = choices.iter().find(is_neutral).or(choices.first());
    choice.cloned().unwrap_or_default()
}

fn scores(choices: &[Value], text: &str) -> Vec<f64> {
    let texts: Vec<String> = choices.iter().map(with_synonyms).collect();
    let index = Index::new(texts.iter().map(|text| vec![(text.as_str(), 1.0)]));
    let mut scores = index.scores(&bag_of(&index.correct_typos(tokenize(text))));
    let text = normalise(text);
    for (score, choice) in scores.iter_mut().zip(choices) {
        let value = choice.as_str().map(normalise).unwrap_or_default();
        if contains_word(&text, &value) {
            *score += VERBATIM;
        }
    }
    scores
}

/// Returns the words of a value, with synonyms for common ones.
fn with_synonyms(choice: &Value) -> String {
    let value = match choice {
        Value::String(text) => identifier_words(text).join(" "),
        other => other.to_string(),
    };
    let synonyms = match value.as_str() {
        "urgent" | "high" | "critical" | "highest" | "p0" | "p1" => "urgent asap emergency",
        "low" | "lowest" | "minor" => "no rush, not urgent, whenever you can, minor",
        "positive" => "great happy love excellent satisfied 满意 很好 开心 喜欢 谢谢",
        "negative" => "bad angry terrible awful hate disappointed 生气 失望 糟糕 投诉 太差",
        _ => "",
    };
    format!("{value}, {synonyms}")
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
