//! The decision what to do next: hand off, call a tool, answer, or ask back.

use switchboard_core::ModelRequest;
use switchboard_core::model::ToolChoice;

use crate::candidates::{Candidates, Scores};
use crate::extractor::Extractor;
use crate::filler::{Filled, Purpose, fill_schema};
use crate::history::History;
use crate::language::Language;
use crate::phrases;
use crate::ranking::{MIN_SCORE, Ranking};
use crate::schema::has_required;
use crate::small_talk::SmallTalk;

/// The share of an entry's full score from which it is given as the answer without reservation.
const CONFIDENT: f64 = 0.35;
/// The factor by which a handoff must outscore the agent's own knowledge and instructions. Being
/// greater than 1, it keeps two agents from each preferring the other.
const HANDOFF_MARGIN: f64 = 1.5;
/// The minimum score, topics aside, of a handoff that is taken.
const MIN_WITHOUT_TOPICS: f64 = 0.5;
/// The share of the best handoff's score from which another handoff is as likely meant, so that the
/// user is asked.
const NEAR: f64 = 0.75;
/// The maximum number of handoffs that the user is asked to choose from.
const MAX_OPTIONS: usize = 4;
/// The factor by which a tool's score grows if the text has all its required arguments.
const READY_BONUS: f64 = 1.3;
/// The factor by which it shrinks if the user would have to be asked for all of them: words in common
/// are then all that speaks for the tool.
const UNREADY_MALUS: f64 = 0.8;
/// The factor by which a tool's score shrinks beside a handoff if the message has a word of the handoff and
/// none of the tool.
const UNRELATED_MALUS: f64 = 0.5;
/// The share of the best score from which another candidate is good enough to be preferred.
const GOOD_ENOUGH: f64 = 0.6;
/// The maximum number of handoffs per user message.
const MAX_HANDOFFS: usize = 2;

/// A decision about what to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Call a tool or a handoff.
    Call { name: String, arguments: String },
    /// Reply with a text.
    Reply(String),
}

/// Decides about one request.
pub(crate) fn decide(
    request: &ModelRequest,
    candidates: &Candidates,
    history: &History,
) -> Decision {
    Decider {
        language: Language::of(history.last_message()),
        ranking: Ranking::new(history, candidates),
        request,
        candidates,
        history,
    }
    .decide()
}

/// The scores of what the agent can do itself.
#[derive(Debug, Clone, Copy)]
struct Own {
    /// The better score of its knowledge and its instructions.
    duties: f64,
    /// The best score of a tool.
    tool: f64,
}

struct Decider<'a> {
    request: &'a ModelRequest,
    candidates: &'a Candidates,
    history: &'a History,
    ranking: Ranking,
    language: Language,
}

impl Decider<'_> {
    fn decide(&self) -> Decision {
        let forced = match &self.request.settings.tool_choice {
            Some(ToolChoice::Named(name)) => self.named_call(name),
            Some(ToolChoice::Required) => self.best_call(),
            _ => None,
        };
        if let Some(call) = forced {
            return call;
        }
        let outputs = &self.history.turn.outputs;
        if outputs.is_empty() {
            self.choose()
        } else {
            Decision::Reply(phrases::tool_results(outputs, self.language))
        }
    }

    /// Calls the tool or handoff `name`, if there is one.
    fn named_call(&self, name: &str) -> Option<Decision> {
        let mut handoffs = self.candidates.handoffs.iter();
        if let Some(at) = handoffs.position(|handoff| &*handoff.tool_name == name) {
            return Some(self.hand_off(at));
        }
        let mut tools = self.candidates.tools.iter();
        let at = tools.position(|tool| &*tool.name == name)?;
        Some(self.call(at, &self.arguments(at)))
    }

    /// Calls the tool or handoff with the best score, however low.
    fn best_call(&self) -> Option<Decision> {
        let scores = self.scores();
        let handoff = self
            .best_handoff()
            .or_else(|| best(&scores.handoffs, |_| true));
        let tool = self.best_tool().or_else(|| best(&scores.tools, |_| true));
        match (tool, handoff) {
            (Some((at, score)), handoff) if handoff.is_none_or(|(_, other)| score >= other) => {
                Some(self.call(at, &self.arguments(at)))
            }
            (_, Some((at, _))) => Some(self.hand_off(at)),
            _ => None,
        }
    }

    fn choose(&self) -> Decision {
        if let Some(talk) = SmallTalk::detect(self.history.last_message()) {
            return Decision::Reply(phrases::small_talk(talk, self.candidates, self.language));
        }
        if self.request.settings.tool_choice == Some(ToolChoice::None) {
            return self.answer();
        }
        let scores = self.scores();
        let tool = self.best_tool().map(|(at, score)| {
            let filled = self.arguments(at);
            let factor = match (filled.missing.is_empty(), filled.found) {
                (true, 0) => 1.0,
                (true, _) => READY_BONUS,
                (false, 0) => UNREADY_MALUS,
                (false, _) => 1.0,
            };
            (at, score * factor, filled)
        });
        let knowledge = best(&scores.knowledge, |_| true).map_or(0.0, |(_, score)| score);
        let tool_score = tool.as_ref().map_or(0.0, |(_, score, _)| *score);
        let mut own = Own {
            duties: knowledge.max(scores.instructions),
            tool: tool_score,
        };
        let handoff = self.best_handoff();
        if let (Some((to, _)), Some((at, ..))) = (handoff, &tool)
            && scores.handoff_words[to] > 0.0
            && scores.tool_words[*at] == 0.0
        {
            // Related words alone speak for the tool.
            own.tool *= UNRELATED_MALUS;
        }
        match (handoff, tool) {
            (Some((at, score)), _) if self.may_hand_off(at, score, own) => self.hand_off_or_ask(at),
            (_, Some((at, score, filled))) if score >= MIN_SCORE && score >= knowledge => {
                self.use_tool(at, &filled, knowledge >= score * GOOD_ENOUGH)
            }
            _ => self.answer(),
        }
    }

    /// Returns `true` if a handoff with this score should be taken. An agent that has just received
    /// the conversation keeps it, unless the message matches nothing that the agent has.
    fn may_hand_off(&self, at: usize, score: f64, own: Own) -> bool {
        let is_better = score >= MIN_SCORE
            && self.scores().handoffs_without_topics[at] >= MIN_WITHOUT_TOPICS
            && score > own.duties * HANDOFF_MARGIN
            && score > own.tool;
        let handoffs = self.history.turn.handoffs.len();
        is_better
            && (handoffs == 0
                || (handoffs < MAX_HANDOFFS
                    && own.duties.max(own.tool) < MIN_SCORE / 2.0
                    && !self.candidates.knowledge.is_empty()))
    }

    fn hand_off_or_ask(&self, at: usize) -> Decision {
        let scores = &self.scores().handoffs;
        let mut options: Vec<usize> = (0..scores.len())
            .filter(|other| scores[*other] >= scores[at] * NEAR && self.is_untried(*other))
            .collect();
        if options.len() < 2 {
            let missing = self.payload(at).missing;
            if missing.is_empty() {
                return self.hand_off(at);
            }
            return Decision::Reply(phrases::ask_for(&missing, self.language));
        }
        options.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let handoffs = options
            .into_iter()
            .take(MAX_OPTIONS)
            .map(|option| &self.candidates.handoffs[option]);
        Decision::Reply(phrases::which_handoff(handoffs, self.language))
    }

    fn hand_off(&self, at: usize) -> Decision {
        Decision::Call {
            name: self.candidates.handoffs[at].tool_name.to_string(),
            arguments: self.payload(at).value.to_string(),
        }
    }

    fn payload(&self, at: usize) -> Filled {
        let schema = self.candidates.handoffs[at].described_schema.get();
        fill_schema(schema, &self.extractor(), Purpose::Handoff)
    }

    /// Calls a tool, or asks for its missing arguments. Prefers the answer from the agent's
    /// knowledge, if `has_answer`, to asking and to a call without any argument from the text.
    fn use_tool(&self, at: usize, filled: &Filled, has_answer: bool) -> Decision {
        let needs_nothing = !has_required(self.candidates.tools[at].parameters.get());
        let is_complete = filled.missing.is_empty();
        if is_complete && (needs_nothing || filled.found > 0 || !has_answer) {
            self.call(at, filled)
        } else if has_answer {
            self.answer()
        } else {
            Decision::Reply(phrases::ask_for(&filled.missing, self.language))
        }
    }

    fn call(&self, at: usize, arguments: &Filled) -> Decision {
        Decision::Call {
            name: self.candidates.tools[at].name.to_string(),
            arguments: arguments.value.to_string(),
        }
    }

    /// Answers from the agent's knowledge, or asks back.
    fn answer(&self) -> Decision {
        let entry = self.best_entry().filter(|(_, score)| *score >= MIN_SCORE);
        let Some((at, score)) = entry else {
            let agent = self.history.turn.handoffs.last().map(String::as_str);
            return Decision::Reply(phrases::ask_back(self.candidates, agent, self.language));
        };
        let text = &self.candidates.knowledge[at].text;
        if score >= self.candidates.full_score(at) * CONFIDENT {
            Decision::Reply(text.to_string())
        } else {
            Decision::Reply(phrases::tentative_answer(text, self.language))
        }
    }

    /// Returns the best entry in the user's language if it is good enough, else the best of all,
    /// and the best score of all.
    fn best_entry(&self) -> Option<(usize, f64)> {
        let answers = &self.scores().answers;
        let is_in_language =
            |at: usize| Language::of(&self.candidates.knowledge[at].text) == self.language;
        let (first, most) = best(answers, |_| true)?;
        match best(answers, is_in_language) {
            Some((at, score)) if score >= most * GOOD_ENOUGH => Some((at, most)),
            _ => Some((first, most)),
        }
    }

    fn best_handoff(&self) -> Option<(usize, f64)> {
        best(&self.scores().handoffs, |at| self.is_untried(at))
    }

    /// Returns `true` if a handoff was neither taken nor refused in this turn.
    fn is_untried(&self, at: usize) -> bool {
        let handoff = &self.candidates.handoffs[at];
        let turn = &self.history.turn;
        !turn.handoffs.iter().any(|name| **name == *handoff.to)
            && !turn.called.iter().any(|name| **name == *handoff.tool_name)
    }

    fn best_tool(&self) -> Option<(usize, f64)> {
        let called = &self.history.turn.called;
        let is_untried = |at: usize| {
            let tool = &self.candidates.tools[at];
            !called.iter().any(|name| **name == *tool.name)
        };
        best(&self.scores().tools, is_untried)
    }

    fn scores(&self) -> &Scores {
        &self.ranking.scores
    }

    fn arguments(&self, at: usize) -> Filled {
        let schema = self.candidates.tools[at].parameters.get();
        fill_schema(schema, &self.extractor(), Purpose::Tool)
    }

    fn extractor(&self) -> Extractor<'_> {
        let question = self.history.assistant.as_deref().unwrap_or_default();
        let messages = &self.history.user;
        let count = if self.ranking.uses_earlier_messages {
            messages.len()
        } else {
            messages.len().min(1)
        };
        Extractor::new(&messages[..count], question, "")
    }
}

/// Returns the position and value of the highest score that `may_be` admits, the first of equal ones.
fn best(scores: &[f64], may_be: impl Fn(usize) -> bool) -> Option<(usize, f64)> {
    scores
        .iter()
        .copied()
        .enumerate()
        .filter(|(at, _)| may_be(*at))
        .fold(None, |best, (at, score)| match best {
            Some((_, most)) if most >= score => best,
            _ => Some((at, score)),
        })
}
