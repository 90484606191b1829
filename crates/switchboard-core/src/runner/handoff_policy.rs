//! The policy of a run around handoffs and approvals.

use std::sync::Arc;

use super::announcement::{AnnouncementPredicate, PossibleAnnouncement};
use super::fan_out::FanOut;
use crate::callback::IntoOutcome;

/// Policy for handoffs, approvals and what follows from them. Each point can be set on its own.
///
/// ```
/// use switchboard_core::run::{ApprovalGuardrails, HandoffPolicy};
///
/// let policy = HandoffPolicy::production().approval_guardrails(ApprovalGuardrails::Both);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct HandoffPolicy {
    /// The number of handoffs that may fail with the model being told, before one ends the run; `None`
    /// ends the run with the first.
    pub retries: Option<HandoffRetries>,
    /// The limits on handoffs that go in circles.
    pub loops: LoopLimits,
    /// The choice among several handoffs of one response.
    pub several: SeveralHandoffs,
    /// The words by which an agent announces a handoff. Where it does and calls none, its model is asked
    /// once to call it, with the tool choice set; `None` takes such an answer as final.
    pub announced: Option<AnnouncedHandoffs>,
    /// The time at which guardrails look at a tool call that needs approval.
    pub approval_guardrails: ApprovalGuardrails,
    /// The time at which a resumed run is checked.
    pub resume_checks: ResumeChecks,
}

/// The number of failed handoffs that a model is told of: a payload that is not what the handoff asks
/// for, a callback that fails, a condition that does not hold any more, a handoff that does not exist.
/// The model gets the problem as the answer of its call, and can correct it. The next failure ends the
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandoffRetries {
    /// The number in the whole run.
    pub per_run: u32,
    /// The number for one handoff of one agent.
    pub per_edge: u32,
}

impl HandoffRetries {
    /// Allows this many failures in the whole run, and for one handoff of one agent.
    pub const fn new(per_run: u32, per_edge: u32) -> Self {
        Self { per_run, per_edge }
    }
}

/// Limits on handoffs in one run, so that agents do not pass the conversation around in circles. They are
/// checked before a handoff's callback runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct LoopLimits {
    /// The number of handoffs; `None` is no limit.
    pub handoffs: Option<u32>,
    /// The number of handoffs from one agent to another; `None` is no limit.
    pub per_edge: Option<u32>,
    /// The number of handoffs in a row between the same two agents, back and forth; `None` is no limit.
    pub ping_pong: Option<u32>,
    /// The number of last handoffs among which those between the same two agents are counted, whatever came
    /// between; `None` counts those in a row.
    pub ping_pong_window: Option<u32>,
    /// The number of times that one agent may hand off to another while nothing else happens: no tool
    /// runs and nobody says anything; `None` is no limit.
    pub without_progress: Option<u32>,
    /// The consequence of reaching a limit.
    pub at_limit: AtLoopLimit,
}

/// The consequence of reaching a limit of [`LoopLimits`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtLoopLimit {
    /// The run ends with an error of the kind
    /// [`ErrorKind::HandoffLoop`](crate::ErrorKind::HandoffLoop), which names the circle.
    #[default]
    Fail,
    /// The handoff is refused: the model is told, and the agent keeps the conversation.
    Refuse,
    /// The agent of this name gets the conversation instead. It must be one that the run can reach. A
    /// handoff of that agent itself is refused.
    Redirect(Arc<str>),
    /// The run ends with this as its final output.
    Answer(Arc<str>),
}

impl LoopLimits {
    /// No limits; [`max_turns`](crate::Runner::max_turns) still counts.
    pub const fn none() -> Self {
        Self {
            handoffs: None,
            per_edge: None,
            ping_pong: None,
            ping_pong_window: None,
            without_progress: None,
            at_limit: AtLoopLimit::Fail,
        }
    }

    /// Sets the number of handoffs in a run.
    pub const fn handoffs(mut self, limit: u32) -> Self {
        self.handoffs = Some(limit);
        self
    }

    /// Sets the number of handoffs from one agent to another.
    pub const fn per_edge(mut self, limit: u32) -> Self {
        self.per_edge = Some(limit);
        self
    }

    /// Sets the number of handoffs in a row between the same two agents.
    pub const fn ping_pong(mut self, limit: u32) -> Self {
        self.ping_pong = Some(limit);
        self
    }

    /// Sets the number of handoffs between the same two agents among the last `window`, also with others in
    /// between: `A → B → A → C → A → B` has three between A and B.
    pub const fn ping_pong_within(mut self, limit: u32, window: u32) -> Self {
        self.ping_pong = Some(limit);
        self.ping_pong_window = Some(window);
        self
    }

    /// Sets the number of times that one agent may hand off to another while nothing else happens.
    pub const fn without_progress(mut self, limit: u32) -> Self {
        self.without_progress = Some(limit);
        self
    }

    /// Sets the consequence of reaching a limit.
    pub fn at_limit(mut self, consequence: AtLoopLimit) -> Self {
        self.at_limit = consequence;
        self
    }
}

/// Policy for several handoffs in one response of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeveralHandoffs {
    /// The first is taken, and the others are answered as ignored.
    #[default]
    First,
    /// None is taken: the model is told to choose one.
    AskToChoose,
    /// None is taken: the model is told that it cannot hand off to several agents, and goes on itself.
    Refuse,
    /// The agents answer side by side, each on a copy of the conversation, and their answers are joined. The
    /// agent that called the handoffs keeps the conversation until then.
    ///
    /// Each handoff goes through all its stages, in the order of the calls, before the first agent begins:
    /// one that is refused has the reason as its answer. Each agent sees the conversation as if the handoff to
    /// it were the only one, after the filter of that handoff. Turns and budgets are counted together, calls
    /// that need approval wait as those inside agents used as tools do, and a session gets the calls with the
    /// answers. It counts as one more level of [`max_agent_depth`](crate::Runner::max_agent_depth).
    FanOut(FanOut),
}

impl SeveralHandoffs {
    /// The name of the policy in spans.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::First => "several.first",
            Self::AskToChoose => "several.ask_to_choose",
            Self::Refuse => "several.refuse",
            Self::FanOut(_) => "several.fan_out",
        }
    }
}

/// The words by which agents announce a handoff; see [`HandoffPolicy::announced`].
///
/// ```
/// use switchboard_core::run::{AnnouncedHandoffs, HandoffPolicy};
///
/// let policy = HandoffPolicy::production()
///     .announced(AnnouncedHandoffs::default().phrase("ich verbinde Sie"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct AnnouncedHandoffs {
    /// In lower case.
    phrases: Vec<String>,
    /// Code that finds announcements in other words.
    predicate: Option<AnnouncementPredicate>,
}

impl AnnouncedHandoffs {
    /// No words.
    pub const fn none() -> Self {
        Self {
            phrases: Vec::new(),
            predicate: None,
        }
    }

    /// Adds words, whatever the case of their letters.
    pub fn phrase(mut self, words: &str) -> Self {
        self.phrases.push(words.to_lowercase());
        self
    }

    /// Sets code that tells whether an answer announces a handoff, where no phrase does; sync or async. It is
    /// asked about answers that would be final, of agents with handoffs.
    ///
    /// ```
    /// use switchboard_core::run::{AnnouncedHandoffs, HandoffPolicy};
    ///
    /// let announced = AnnouncedHandoffs::none().predicate(|answer| {
    ///     answer.handoffs.iter().any(|to| answer.text.contains(&format!("ask {to}")))
    /// });
    /// let policy = HandoffPolicy::production().announced(announced);
    /// ```
    pub fn predicate<F, R, M>(mut self, predicate: F) -> Self
    where
        F: Fn(PossibleAnnouncement) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.predicate = Some(AnnouncementPredicate::new(predicate));
        self
    }

    pub(crate) fn predicate_code(&self) -> Option<&AnnouncementPredicate> {
        self.predicate.as_ref()
    }

    /// Returns `true` if a text in lower case has any of the words.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.phrases.iter().any(|phrase| text.contains(phrase))
    }
}

/// English words: "I'll transfer you", "connecting you with", and the like.
impl Default for AnnouncedHandoffs {
    fn default() -> Self {
        let words = [
            "transfer you",
            "transferring you",
            "hand you over",
            "handing you over",
            "connect you with",
            "connect you to",
            "connecting you",
            "put you through",
            "putting you through",
            "pass you on",
            "passing you on",
        ];
        words.into_iter().fold(Self::none(), Self::phrase)
    }
}

/// Policy for the guardrails on a tool call that needs approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalGuardrails {
    /// They look at the call once, before a person is asked: nobody decides on a call that would be
    /// refused.
    #[default]
    BeforeDecision,
    /// They look at the call once, after it was approved.
    AfterDecision,
    /// They look at the call before a person is asked, and again before it runs.
    Both,
}

/// Policy for the checks of a run that is resumed after a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeChecks {
    /// The input that was added, the limit of turns and budgets whose end is an error are checked before what
    /// was approved runs.
    #[default]
    BeforeSideEffects,
    /// Each is checked when the run gets there, as the OpenAI Agents SDK does.
    WhenReached,
}

impl HandoffPolicy {
    /// The policy for production, which is the default: what can be refused is refused before a side
    /// effect, a model is told of a failed handoff (five times in a run, twice for one handoff), and
    /// agents that hand off to each other a fourth time while nothing else happens are stopped.
    pub const fn production() -> Self {
        Self {
            retries: Some(HandoffRetries::new(5, 2)),
            loops: LoopLimits::none().without_progress(3),
            several: SeveralHandoffs::First,
            announced: None,
            approval_guardrails: ApprovalGuardrails::BeforeDecision,
            resume_checks: ResumeChecks::BeforeSideEffects,
        }
    }

    /// The behaviour of the OpenAI Agents SDK.
    pub const fn reference() -> Self {
        Self {
            retries: None,
            loops: LoopLimits::none(),
            several: SeveralHandoffs::First,
            announced: None,
            approval_guardrails: ApprovalGuardrails::AfterDecision,
            resume_checks: ResumeChecks::WhenReached,
        }
    }

    /// Sets the number of failed handoffs that a model is told of; `None` ends the run with the first.
    pub fn retries(mut self, retries: impl Into<Option<HandoffRetries>>) -> Self {
        self.retries = retries.into();
        self
    }

    /// Sets the limits on handoffs that go in circles.
    pub fn loops(mut self, limits: LoopLimits) -> Self {
        self.loops = limits;
        self
    }

    /// Sets the choice among several handoffs of one response.
    pub fn several(mut self, policy: SeveralHandoffs) -> Self {
        self.several = policy;
        self
    }

    /// Sets the words by which agents announce a handoff; `None` takes such an answer as final.
    pub fn announced(mut self, words: impl Into<Option<AnnouncedHandoffs>>) -> Self {
        self.announced = words.into();
        self
    }

    /// Sets the time at which guardrails look at a tool call that needs approval.
    pub fn approval_guardrails(mut self, time: ApprovalGuardrails) -> Self {
        self.approval_guardrails = time;
        self
    }

    /// Sets the time at which a resumed run is checked.
    pub fn resume_checks(mut self, time: ResumeChecks) -> Self {
        self.resume_checks = time;
        self
    }
}

impl Default for HandoffPolicy {
    fn default() -> Self {
        Self::production()
    }
}
