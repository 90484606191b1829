//! What to do next: hand off, call a tool, answer, or ask back.

use switchboard_core::{ModelRequest, ToolChoice};

use super::board::{Board, Scores};
use super::fields::Source;
use super::fill::{Filled, Purpose, fill};
use super::history::History;
use super::reading::{FITS, Reading};
use super::schema::has_required;
use super::small_talk::SmallTalk;
use super::text::Language;
use super::words;

/// An entry that is about this much else may not be what was asked for, and the answer says so: the
/// share of what its own title would score.
const SURE: f64 = 0.35;
/// How much better a colleague must fit than what the agent can do itself.
const MARGIN: f64 = 1.5;
/// Two colleagues nearer than this are asked about.
const TIE: f64 = 1.02;
/// A tool that the text gives everything for is meant more likely.
const READY: f64 = 1.3;
/// A prepared answer is as good as a tool that would have to ask, from this share of its score.
const ENOUGH: f64 = 0.6;
/// How much the instructions count as a sign that a topic is the agent's own: as much as a
/// colleague's description. With the margin, two agents cannot both find the other better.
const OWN: f64 = 1.0;
/// The most handoffs that one message of the user may lead to.
const MOST_HOPS: usize = 2;

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// Call a tool or a handoff.
    Call { name: String, arguments: String },
    /// Say something.
    Say(String),
}

/// Decides about one request.
pub(super) fn decide(request: &ModelRequest, board: &Board, history: &History) -> Decision {
    Decider {
        language: Language::of(history.last_words()),
        reading: Reading::of(history, board),
        request,
        board,
        history,
    }
    .decide()
}

struct Decider<'a> {
    request: &'a ModelRequest,
    board: &'a Board,
    history: &'a History,
    reading: Reading,
    language: Language,
}

impl Decider<'_> {
    fn decide(&self) -> Decision {
        let forced = match &self.request.settings.tool_choice {
            Some(ToolChoice::Named(name)) => self.named(name),
            Some(ToolChoice::Required) => self.required(),
            _ => None,
        };
        let outputs = &self.history.since.outputs;
        forced.unwrap_or_else(|| {
            if outputs.is_empty() {
                self.freely()
            } else {
                Decision::Say(words::from_outputs(outputs, self.language))
            }
        })
    }

    /// A call of the tool or handoff of this name.
    fn named(&self, name: &str) -> Option<Decision> {
        let mut handoffs = self.board.handoffs.iter();
        if let Some(at) = handoffs.position(|handoff| &*handoff.tool_name == name) {
            return Some(self.hand_off(at));
        }
        let at = self
            .board
            .tools
            .iter()
            .position(|tool| &*tool.name == name)?;
        Some(self.call(at, self.filled(at).value.to_string()))
    }

    /// A call of whatever fits best.
    fn required(&self) -> Option<Decision> {
        let scores = &self.reading.scores;
        let handoff = self
            .best_handoff(scores)
            .or_else(|| best(&scores.handoffs, |_| true));
        let tool = self
            .best_tool(scores)
            .or_else(|| best(&scores.tools, |_| true));
        match (tool, handoff) {
            (Some((at, fits)), other) if other.is_none_or(|(_, better)| fits >= better) => {
                Some(self.call(at, self.filled(at).value.to_string()))
            }
            (_, Some((at, _))) => Some(self.hand_off(at)),
            _ => None,
        }
    }

    fn freely(&self) -> Decision {
        if let Some(talk) = SmallTalk::of(self.history.last_words()) {
            return Decision::Say(words::small_talk(talk, self.board, self.language));
        }
        let scores = &self.reading.scores;
        if self.request.settings.tool_choice == Some(ToolChoice::None) {
            return self.answer(scores);
        }
        let tool = self.best_tool(scores).map(|(at, fits)| {
            let filled = self.filled(at);
            let is_ready = filled.missing.is_empty() && filled.found > 0;
            (at, if is_ready { fits * READY } else { fits }, filled)
        });
        let known = best(&scores.knowledge, |_| true).map_or(0.0, |(_, fits)| fits);
        let own = known.max(scores.own * OWN);
        let tool_fits = tool.as_ref().map_or(0.0, |(_, fits, _)| *fits);
        match (self.best_handoff(scores), tool) {
            (Some((at, fits)), _) if self.may_leave(fits, own.max(tool_fits)) => {
                self.hand_off_or_ask(at, scores)
            }
            (_, Some((at, fits, filled))) if fits >= FITS && fits >= known => {
                self.use_tool(at, filled, known >= fits * ENOUGH, scores)
            }
            _ => self.answer(scores),
        }
    }

    /// Whether to pass the conversation on. Who has just got it keeps it, unless nothing of it is
    /// theirs.
    fn may_leave(&self, fits: f64, own: f64) -> bool {
        let is_better = fits >= FITS && fits > own * MARGIN;
        match self.history.since.handoffs.len() {
            0 => is_better,
            hops => {
                is_better
                    && hops < MOST_HOPS
                    && own < FITS / 2.0
                    && !self.board.knowledge.is_empty()
            }
        }
    }

    fn hand_off_or_ask(&self, at: usize, scores: &Scores) -> Decision {
        let fits = scores.handoffs[at];
        let rival = best(&scores.handoffs, |other| other != at && self.is_new(other));
        match rival {
            Some((other, near)) if near * TIE > fits => {
                let (one, other) = (&self.board.handoffs[at], &self.board.handoffs[other]);
                Decision::Say(words::which(one, other, self.language))
            }
            _ => self.hand_off(at),
        }
    }

    fn hand_off(&self, at: usize) -> Decision {
        let handoff = &self.board.handoffs[at];
        let filled = fill(
            handoff.input_json_schema.get(),
            &self.source(),
            Purpose::Handoff,
        );
        Decision::Call {
            name: handoff.tool_name.to_string(),
            arguments: filled.value.to_string(),
        }
    }

    fn use_tool(&self, at: usize, filled: Filled, is_known: bool, scores: &Scores) -> Decision {
        let needs_nothing = !has_required(self.board.tools[at].parameters.get());
        match filled.missing.is_empty() {
            true if needs_nothing || filled.found > 0 || !is_known => {
                self.call(at, filled.value.to_string())
            }
            _ if is_known => self.answer(scores),
            _ => Decision::Say(words::ask_for(&filled.missing, self.language)),
        }
    }

    fn call(&self, at: usize, arguments: String) -> Decision {
        let name = self.board.tools[at].name.to_string();
        Decision::Call { name, arguments }
    }

    fn answer(&self, scores: &Scores) -> Decision {
        if let Some((at, fits)) = self.best_entry(scores).filter(|(_, fits)| *fits >= FITS) {
            let text = self.board.knowledge[at].text.to_string();
            return Decision::Say(if fits >= self.board.full_score(at) * SURE {
                text
            } else {
                words::perhaps(&text, self.language)
            });
        }
        let agent = self.history.since.handoffs.last();
        Decision::Say(words::ask_back(
            self.board,
            agent.map(String::as_str),
            self.language,
        ))
    }

    /// The entry that fits best, if possible one in the user's language.
    fn best_entry(&self, scores: &Scores) -> Option<(usize, f64)> {
        let knowledge = &self.board.knowledge;
        let is_spoken = |at: usize| Language::of(&knowledge[at].text) == self.language;
        let (first, fits) = best(&scores.answers, |_| true)?;
        match best(&scores.answers, is_spoken) {
            Some((at, near)) if near >= fits * ENOUGH => Some((at, fits)),
            _ => Some((first, fits)),
        }
    }

    fn best_handoff(&self, scores: &Scores) -> Option<(usize, f64)> {
        best(&scores.handoffs, |at| self.is_new(at))
    }

    /// Whether a colleague has neither had the conversation since the user spoke, nor refused it.
    fn is_new(&self, at: usize) -> bool {
        let handoff = &self.board.handoffs[at];
        let since = &self.history.since;
        !since
            .handoffs
            .iter()
            .any(|name| **name == *handoff.agent_name)
            && !since.called.iter().any(|name| **name == *handoff.tool_name)
    }

    fn best_tool(&self, scores: &Scores) -> Option<(usize, f64)> {
        let called = &self.history.since.called;
        let is_new = |at: usize| {
            !called
                .iter()
                .any(|name| **name == *self.board.tools[at].name)
        };
        best(&scores.tools, is_new)
    }

    fn filled(&self, at: usize) -> Filled {
        fill(
            self.board.tools[at].parameters.get(),
            &self.source(),
            Purpose::Tool,
        )
    }

    fn source(&self) -> Source<'_> {
        let asked = self.history.assistant.as_deref().unwrap_or_default();
        let count = if self.reading.hangs_on_earlier {
            self.history.user.len()
        } else {
            self.history.user.len().min(1)
        };
        Source::new(&self.history.user[..count], asked, "")
    }
}

/// The best of these scores; of equal ones the first.
fn best(scores: &[f64], may_be: impl Fn(usize) -> bool) -> Option<(usize, f64)> {
    let allowed = scores
        .iter()
        .copied()
        .enumerate()
        .filter(|(at, _)| may_be(*at));
    allowed.fold(None, |best, (at, score)| match best {
        Some((_, most)) if most >= score => best,
        _ => Some((at, score)),
    })
}
