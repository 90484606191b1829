//! What the user's words come to, given what an agent can choose from.

use switchboard_core::HandoffSpec;

use super::board::{Board, Scores};
use super::features::{Bag, Feature, bag_of};
use super::history::History;
use super::language::language;
use super::text::tokens;

/// Below this, a candidate has nothing to do with what was said.
pub(super) const FITS: f64 = 0.55;
/// What it counts that a colleague is there for the user's language.
const SPEAKS: f64 = 2.0;
/// How much an earlier message counts, each one more this much less.
const EARLIER: f64 = 0.5;
/// A message of fewer telling words than this may hang on earlier ones.
const SHORT: usize = 3;

/// What the user's words come to.
#[derive(Debug)]
pub(super) struct Reading {
    /// How well everything fits.
    pub(super) scores: Scores,
    /// Whether the last message says nothing by itself: "yes please", "ORD-5".
    pub(super) hangs_on_earlier: bool,
}

impl Reading {
    /// Reads the last message, and where that says nothing by itself, those before it as well.
    pub(super) fn of(history: &History, board: &Board) -> Self {
        let mut query = bag(history.last_words(), board);
        let is_short = query.keys().filter(|feature| tells(feature)).count() < SHORT;
        let language = language(history.last_words());
        let scores = scored(&query, language, board);
        if !is_short || scores.best() >= FITS {
            return Self {
                scores,
                hangs_on_earlier: false,
            };
        }
        let mut share = 1.0;
        for message in history.user.iter().skip(1) {
            share *= EARLIER;
            for (feature, times) in bag(message, board) {
                *query.entry(feature).or_default() += times * share;
            }
        }
        Self {
            scores: scored(&query, language, board),
            hangs_on_earlier: true,
        }
    }
}

/// How well everything fits, and who is there for the user's language.
fn scored(query: &Bag, language: Option<&str>, board: &Board) -> Scores {
    let mut scores = board.scores(query);
    if let Some(language) = language {
        for (score, handoff) in scores.handoffs.iter_mut().zip(&*board.handoffs) {
            *score += if speaks(handoff, language) {
                SPEAKS
            } else {
                0.0
            };
        }
    }
    scores
}

/// Whether a colleague is there for a language: it is in their name, or they are said to speak it.
fn speaks(handoff: &HandoffSpec, language: &str) -> bool {
    let names = |text: &str| text.to_lowercase().contains(language);
    let speaks = |text: &str| text.to_lowercase().contains("speak");
    names(&handoff.agent_name)
        || (speaks(&handoff.tool_description) && names(&handoff.tool_description))
}

fn bag(text: &str, board: &Board) -> Bag {
    bag_of(&board.index.corrected(tokens(text)))
}

fn tells(feature: &Feature) -> bool {
    matches!(feature, Feature::Word(_) | Feature::Pair(..))
}
