//! Ranking of an agent's candidates for the user's last message.

use switchboard_core::model::HandoffSpec;

use crate::candidates::{Candidates, Scores};
use crate::features::{Bag, Feature, bag_of};
use crate::history::History;
use crate::language::detect_language;
use crate::rejected::without_rejected;
use crate::text::tokenize;

/// The minimum score of a candidate that has to do with the message.
pub(crate) const MIN_SCORE: f64 = 0.8;
/// The bonus for an agent that serves the user's language.
const LANGUAGE_BONUS: f64 = 2.0;
/// The weight of each earlier message relative to the one after it.
const EARLIER_WEIGHT: f64 = 0.5;
/// A message with fewer words than this, stop words aside, may depend on earlier ones.
const MIN_WORDS: usize = 3;

/// The scores of an agent's candidates.
#[derive(Debug)]
pub(crate) struct Ranking {
    pub(crate) scores: Scores,
    /// Set if the last message says too little by itself ("yes please", "ORD-5"), so that earlier
    /// ones were used too.
    pub(crate) uses_earlier_messages: bool,
}

impl Ranking {
    /// Ranks the candidates by the last message, or, if that is short and matches nothing, by the
    /// earlier messages too.
    pub(crate) fn new(history: &History, candidates: &Candidates) -> Self {
        let mut query = query(history.last_message(), candidates);
        let is_short = query.keys().filter(|feature| is_word(feature)).count() < MIN_WORDS;
        let language = detect_language(history.last_message());
        let scores = score(&query, language, candidates);
        if !is_short || scores.best() >= MIN_SCORE {
            return Self {
                scores,
                uses_earlier_messages: false,
            };
        }
        let mut weight = 1.0;
        for message in history.user.iter().skip(1) {
            weight *= EARLIER_WEIGHT;
            for (feature, count) in self::query(message, candidates) {
                *query.entry(feature).or_default() += count * weight;
            }
        }
        Self {
            scores: score(&query, language, candidates),
            uses_earlier_messages: true,
        }
    }
}

/// Scores all candidates, with a bonus for agents that serve the user's language.
fn score(query: &Bag, language: Option<&str>, candidates: &Candidates) -> Scores {
    let mut scores = candidates.scores(query);
    if let Some(language) = language {
        for (at, handoff) in candidates.handoffs.iter().enumerate() {
            if serves_language(handoff, language) {
                scores.handoffs[at] += LANGUAGE_BONUS;
                scores.handoffs_without_topics[at] += LANGUAGE_BONUS;
            }
        }
    }
    scores
}

/// Returns `true` if the agent's name has the language, or its description says that it speaks it.
fn serves_language(handoff: &HandoffSpec, language: &str) -> bool {
    let description = handoff.tool_description.to_lowercase();
    handoff.to.to_lowercase().contains(language)
        || (description.contains("speak") && description.contains(language))
}

fn query(text: &str, candidates: &Candidates) -> Bag {
    let tokens = candidates.index.correct_typos(tokenize(text));
    bag_of(&without_rejected(tokens))
}

fn is_word(feature: &Feature) -> bool {
    matches!(feature, Feature::Word(_) | Feature::Pair(..))
}
