//! People in a conversation: agents that a person answers for.
//!
//! A handoff to an [`Agent::person`](crate::Agent::person) is like any other. When the person has the
//! conversation, no model is asked: the run ends with
//! [`RunStatus::Interrupted`](crate::run::RunStatus::Interrupted), and [`Run::interruptions`] has one
//! interruption of the kind [`Person`](crate::approval::InterruptionKind::Person), with the person, the
//! payload of the handoff and the agents that the person may hand the conversation to. The person's answer is
//! given with [`Run::answer`], and [`Runner::resume`](crate::Runner::resume) continues the run, days later or
//! in another process.
//!
//! ```
//! use switchboard_core::people::PersonAnswer;
//! use switchboard_core::run::RunStatus;
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let ann: Agent = Agent::person("Ann").handoff_description("Complaints, and all else that is urgent.");
//! let triage = Agent::new("Triage").handoff(&ann);
//! let model = ScriptedModel::new().call("transfer_to_ann", "{}");
//! let runner = Runner::new(&triage).model(model);
//!
//! let result = runner.run("I want to speak to a person!").await?;
//! assert_eq!(result.status(), RunStatus::Interrupted);
//!
//! let mut run = result.into_run();
//! let waiting = run.interruptions().remove(0);
//! println!("{} is asked: {:?}", waiting.agent, run.to_input_list());
//! run.answer(&waiting, PersonAnswer::reply("I am here. What happened?"))?;
//! let result = runner.resume(run).await?;
//! assert_eq!(result.final_text(), "I am here. What happened?");
//! assert_eq!(result.last_agent().name(), "Ann");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! A reply is the final output of the run, and the person keeps the conversation: in a
//! [stored one](crate::conversation), the next message waits for the person again, until the person hands it
//! to an agent.
//!
//! | answer | who speaks next | who has the conversation |
//! | --- | --- | --- |
//! | [`reply`](PersonAnswer::reply) | the user | the person |
//! | [`reply`](PersonAnswer::reply) and [`then_hand_to`](PersonAnswer::then_hand_to) or [`then_hand_back`](PersonAnswer::then_hand_back) | the user | that agent |
//! | [`hand_to`](PersonAnswer::hand_to) or [`hand_back`](PersonAnswer::hand_back) | that agent, in the same run | that agent |
//!
//! A person's handoff goes through what a model's goes through: its condition, the limits on circles,
//! guardrails, approval, callback, hooks and filter. If it is refused, the run waits for the person again, with
//! the reason.
//!
//! Waiting counts for no budget and no limit of turns. A message that the user sends before the person has
//! answered is added to the conversation, and waits with the one before it. Hooks are told of the agent's start when
//! the person is asked, and of its end when the person has replied.
//!
//! A provider that keeps the conversation ([`Runner::server_history`](crate::Runner::server_history)) would not get
//! what a person says, so both together are a configuration error.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use crate::run::Run;

/// The answer of a person that a run waits for; see [`Run::answer`].
///
/// ```
/// use switchboard_core::people::PersonAnswer;
///
/// let stays = PersonAnswer::reply("What is your order number?");
/// let solved = PersonAnswer::reply("It is solved. Goodbye!").then_hand_back();
/// let passed_on = PersonAnswer::hand_to("Billing")
///     .message("My colleague will look at your bill.")
///     .note("The customer was promised a refund.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct PersonAnswer {
    /// The words for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Arc<str>>,
    /// The agent that gets the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<NextAgent>,
    /// Set if the run ends with the words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_reply: bool,
    /// The words for the next agent alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<Arc<str>>,
    /// The payload of the handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
}

/// The agent that a person hands the conversation to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NextAgent {
    /// The agent of this name, or the one that the handoff with this tool name leads to.
    Named(Arc<str>),
    /// The agent that the person has the conversation from.
    Previous,
}

impl PersonAnswer {
    /// Answers the user. The run ends with these words, and the person keeps the conversation.
    pub fn reply(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: Some(text.into()),
            next: None,
            is_reply: true,
            note: None,
            payload: None,
        }
    }

    /// Hands the conversation to an agent, which answers in the same run. It is one of those that the
    /// [interruption](crate::approval::InterruptionKind::Person) lists, by its name; where several handoffs lead
    /// to it, by the name of the handoff's tool.
    pub fn hand_to(agent: impl Into<Arc<str>>) -> Self {
        Self::handing(NextAgent::Named(agent.into()))
    }

    /// Hands the conversation back to the agent that the person has it from, which answers in the same
    /// run. If that agent's handoff [returns](crate::handoff::HandoffBuilder::returns) something, it is the
    /// [`payload`](Self::payload).
    pub fn hand_back() -> Self {
        Self::handing(NextAgent::Previous)
    }

    fn handing(next: NextAgent) -> Self {
        Self {
            text: None,
            next: Some(next),
            is_reply: false,
            note: None,
            payload: None,
        }
    }

    /// Hands the conversation to an agent after a reply: the run ends with the reply, and the agent gets
    /// the next message. If the handoff is refused, the person keeps the conversation.
    pub fn then_hand_to(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.next = Some(NextAgent::Named(agent.into()));
        self
    }

    /// Hands the conversation back after a reply; see [`then_hand_to`](Self::then_hand_to).
    pub fn then_hand_back(mut self) -> Self {
        self.next = Some(NextAgent::Previous);
        self
    }

    /// Sets the words for the user: before an agent answers, or of the reply.
    pub fn message(mut self, text: impl Into<Arc<str>>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a note for the next agent's model. It is a developer message in the conversation, which the user
    /// is not shown. Without a handoff it has no meaning.
    pub fn note(mut self, note: impl Into<Arc<str>>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Sets the payload of the handoff, where it takes one. It is validated like that of a model.
    pub fn payload(mut self, payload: impl Into<Value>) -> Self {
        self.payload = Some(payload.into());
        self
    }

    /// Returns `true` if an agent answers in the same run.
    pub(crate) fn asks_next_agent(&self) -> bool {
        !self.is_reply && self.next.is_some()
    }
}
