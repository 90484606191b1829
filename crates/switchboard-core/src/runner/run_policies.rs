//! Policies of runs: for stored conversations, and for streams.

use std::time::Duration;

/// Policy for what a session keeps from one run to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryPolicy {
    /// The conversation is kept: what filters left out stays left out while the agent has it, notes
    /// and summaries stay, the next message goes to the agent that has the conversation, a refused
    /// message is neither stored nor shown again, and a turn that failed leaves nothing behind.
    ///
    /// This needs a session that stores all of it, as Switchboard's own do (see
    /// [`Session::conversation`](crate::Session::conversation)). Other sessions are used as with
    /// `Reference`, and a warning is logged where a filter could not be kept.
    #[default]
    Kept,
    /// As the OpenAI Agents SDK does it: the session is a list of items. It gets the user's message
    /// before the model is asked, also one that a guardrail refuses; filters last for one run; each
    /// run begins with the agent of its runner.
    Reference,
}

/// Policy for the agent that gets the next message of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActiveAgent {
    /// The agent that gave the last answer.
    #[default]
    Stay,
    /// The agent of the runner.
    ReturnToStart,
}

/// Policy for the stream of an output that guardrails have yet to pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamedOutput {
    /// It is held back: where the agent or the run has output guardrails, the text of a response waits
    /// for their verdict, and what they refuse or replace is never shown. Guardrails that
    /// [judge parts](crate::guardrail::OutputGuardrail::judging_parts) let it through sentence by
    /// sentence.
    #[default]
    AfterGuardrails,
    /// It is shown while the model writes it, as the OpenAI Agents SDK does.
    AtOnce,
}

/// Policy for the events of runs inside a streamed one: of agents used as tools, and of agents that answer
/// beside others ([`SeveralHandoffs::FanOut`](super::SeveralHandoffs::FanOut)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InnerEvents {
    /// The stream has them, each as an [`EventKind::Inner`](crate::EventKind::Inner), so that the models inside
    /// are streamed too. Where guardrails have yet to pass an output that a run inside makes, its events are
    /// left out.
    #[default]
    Shown,
    /// The stream has none of them, as in the OpenAI Agents SDK.
    /// [`AgentTool::on_event`](crate::agent::AgentTool::on_event) still gets those of its agent.
    Hidden,
}

/// The wait for other runs with the same conversation; see
/// [`Runner::exclusive`](crate::Runner::exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exclusive {
    /// The longest time to wait.
    pub wait: Duration,
    /// Set if the lease was taken for the run already, a moment ago.
    pub(crate) is_taken: bool,
}

impl Exclusive {
    /// Waits at most this long.
    pub fn new(wait: Duration) -> Self {
        Self {
            wait,
            is_taken: false,
        }
    }
}
