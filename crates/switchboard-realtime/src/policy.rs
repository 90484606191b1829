//! Policies of a realtime session, where more than one behaviour makes sense.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::RealtimeModelPolicy;

/// The choices of a realtime session where more than one behaviour makes sense. Each can be set on its
/// own.
///
/// ```
/// use switchboard_realtime::{FirstWords, RealtimePolicy};
///
/// let policy = RealtimePolicy {
///     first_words: FirstWords::Instruct("Greet the caller, and do not mention the transfer.".into()),
///     ..RealtimePolicy::production()
/// };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealtimePolicy {
    /// The consequence of an invalid payload, and of a callback, a tool or a new agent that fails.
    pub failures: Failures,
    /// The moment at which a handoff changes the agent.
    pub switching: Switching,
    /// The handoffs that are taken, if there are several at a time.
    pub several_handoffs: SeveralHandoffs,
    /// The old agent's audio that is still coming when a handoff is made.
    pub old_audio: OldAudio,
    /// The first response of the agent that a handoff leads to.
    pub first_words: FirstWords,
    /// The number of responses that the outputs of several calls ask for.
    pub responses: Responses,
    /// Asks for a response after the answer to a call of an unknown tool.
    pub respond_to_unknown_tools: bool,
    /// Cancels the response when the application interrupts, beside cutting what was not heard.
    pub cancel_on_interrupt: bool,
    /// Reports what the reference passes over: responses that failed or are incomplete, pieces of
    /// transcripts, speech, and the end of the connection.
    pub report_all: bool,
    /// Calls hooks.
    pub call_hooks: bool,
    /// Stops reading from the model while a tool runs, if tools run one at a time.
    pub wait_for_tools: bool,
    /// Evaluates conditions again when the context may have changed, and tells the model.
    pub refresh_conditions: bool,
    /// Delivers the events that were queued before an error, then the error.
    pub events_before_error: bool,
    /// Checks the end of an answer with output guardrails too, where it is shorter than the interval.
    pub check_short_answers: bool,
    /// Asks tool guardrails before a person is asked for approval, and not again afterwards.
    pub guardrails_before_approval: bool,
    /// Treats a decision on a call that does not wait, and a call that repeats an identifier, as a problem
    /// to report and go on, not to ignore or to end with.
    pub strict_calls: bool,
    /// Cuts messages in the local history to what was heard.
    pub truncate_history: bool,
}

impl RealtimePolicy {
    /// The default: what can fail is told to the model, and nothing happens in silence.
    pub fn production() -> Self {
        Self {
            failures: Failures::Tell { in_a_row: 3 },
            switching: Switching::default(),
            several_handoffs: SeveralHandoffs::First,
            old_audio: OldAudio::Finish,
            first_words: FirstWords::Continue,
            responses: Responses::Joined,
            respond_to_unknown_tools: true,
            cancel_on_interrupt: true,
            report_all: true,
            call_hooks: true,
            wait_for_tools: false,
            refresh_conditions: true,
            events_before_error: true,
            check_short_answers: true,
            guardrails_before_approval: true,
            strict_calls: true,
            truncate_history: true,
        }
    }

    /// The behaviour of the reference, the OpenAI Agents SDK for Python.
    pub const fn reference() -> Self {
        Self {
            failures: Failures::End,
            switching: Switching::AtOnce,
            several_handoffs: SeveralHandoffs::All,
            old_audio: OldAudio::Finish,
            first_words: FirstWords::Continue,
            responses: Responses::PerOutput,
            respond_to_unknown_tools: false,
            cancel_on_interrupt: false,
            report_all: false,
            call_hooks: false,
            wait_for_tools: true,
            refresh_conditions: false,
            events_before_error: false,
            check_short_answers: false,
            guardrails_before_approval: false,
            strict_calls: false,
            truncate_history: false,
        }
    }

    /// The policy for the model's adapter that goes with this one.
    pub(crate) fn model_policy(&self) -> RealtimeModelPolicy {
        if self.report_all {
            RealtimeModelPolicy::production()
        } else {
            RealtimeModelPolicy::reference()
        }
    }
}

impl Default for RealtimePolicy {
    fn default() -> Self {
        Self::production()
    }
}

/// The consequence of a call that fails: an invalid payload, a callback, a tool whose failures end a run,
/// or an agent whose instructions or tools cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Failures {
    /// The session ends with the error, and the call stays unanswered.
    End,
    /// The model is told. After so many failures without a success between them the session ends.
    #[non_exhaustive]
    Tell {
        /// The number of failures in a row.
        in_a_row: u32,
    },
}

impl Failures {
    /// Tells the model of at most so many failures in a row.
    pub const fn tell(in_a_row: u32) -> Self {
        Self::Tell { in_a_row }
    }
}

/// The moment at which a handoff changes the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Switching {
    /// Before the model is told.
    AtOnce,
    /// As soon as the server has taken the new settings. If it refuses them, or does not answer in time, the
    /// agent stays, on both sides, and the call is answered so.
    #[non_exhaustive]
    WhenTaken {
        /// The time that the server has.
        within: Duration,
    },
}

impl Switching {
    /// Changes the agent when the server has taken the new settings, which it must within this time.
    pub const fn when_taken_within(within: Duration) -> Self {
        Self::WhenTaken { within }
    }
}

impl Default for Switching {
    fn default() -> Self {
        Self::when_taken_within(Duration::from_secs(10))
    }
}

/// The handoffs that are taken, if the model asks for several at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SeveralHandoffs {
    /// The first; the others are answered.
    #[default]
    First,
    /// All of them; the agent of the last to finish stays.
    All,
}

/// The old agent's audio that is still coming when a handoff is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OldAudio {
    /// The agent finishes what it says.
    #[default]
    Finish,
    /// Its response is cancelled, and its playback stops.
    Cancel,
}

/// The first response of the agent that a handoff leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FirstWords {
    /// The model goes on as it sees fit.
    #[default]
    Continue,
    /// The agent waits until the user speaks.
    WaitForUser,
    /// The first response follows these instructions, beside the agent's own.
    Instruct(Arc<str>),
}

/// The number of responses that the outputs of several calls ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Responses {
    /// One, when all calls of a response are answered, except for those that wait for a person.
    #[default]
    Joined,
    /// One for each output.
    PerOutput,
}
