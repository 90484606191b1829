//! The ways in which the payload of a handoff reaches the next agent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Handoff, HandoffBuilder};
use crate::filters::payload_text;

/// A way in which the payload of a handoff reaches the next agent; see [`HandoffBuilder::deliver`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadDelivery {
    /// As a developer message in front of what the agent sees, after the filter of the handoff: the filter
    /// [`filters::payload`](crate::filters::payload).
    Message,
    /// At the end of its instructions, in each of its turns.
    Instructions,
    /// In its context: its tools, instructions, hooks and conditions get the payload with
    /// [`RunContext::handoff_payload`](crate::RunContext::handoff_payload), and its model does not.
    Context,
}

/// The payload of the handoff by which an agent has got the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReceivedPayload {
    /// The agent that had the conversation.
    pub(crate) from: Arc<str>,
    #[serde(with = "crate::json::on_its_own")]
    pub(crate) payload: Value,
    /// Set if it is part of the instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_in_instructions: bool,
}

impl ReceivedPayload {
    /// The instructions with the payload, where it is part of them.
    pub(crate) fn add_to(&self, instructions: Option<Arc<str>>) -> Option<Arc<str>> {
        if !self.is_in_instructions {
            return instructions;
        }
        let text = payload_text(&self.from, &self.payload);
        Some(match instructions {
            Some(instructions) if !instructions.is_empty() => {
                format!("{instructions}\n\n{text}").into()
            }
            _ => text.into(),
        })
    }
}

impl<C, K> HandoffBuilder<C, K> {
    /// Sets a way in which the payload reaches the next agent; call it again for another way. The callback
    /// gets the payload in any case. The agent keeps it as long as it has the conversation by this handoff,
    /// also in later runs with a stored conversation. What a redaction of the handoff hides is hidden in it; the
    /// callback gets the original.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use switchboard_core::handoff::PayloadDelivery;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, RunContext, Runner, handoff};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Escalation { reason: String }
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let billing: Agent = Agent::new("Billing").instructions_fn(|ctx: RunContext, _agent| {
    ///     match ctx.handoff_payload::<Escalation>() {
    ///         Some(escalation) => format!("Begin with this: {}", escalation.reason),
    ///         None => "Ask what it is about.".to_owned(),
    ///     }
    /// });
    /// let triage = Agent::new("Triage").handoff(
    ///     handoff(&billing).payload::<Escalation>().deliver(PayloadDelivery::Context),
    /// );
    /// let model = ScriptedModel::new()
    ///     .call("transfer_to_billing", r#"{"reason": "a bill"}"#)
    ///     .say("Which bill?");
    /// Runner::new(&triage).model(model.clone()).run("Help").await?;
    /// let instructions = model.requests()[1].instructions.clone();
    /// assert_eq!(instructions.as_deref(), Some("Begin with this: a bill"));
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn deliver(self, way: PayloadDelivery) -> Self {
        self.with(|inner| inner.deliveries.push(way))
    }
}

impl<C> Handoff<C> {
    /// The ways in which the payload reaches the next agent.
    pub fn deliveries(&self) -> &[PayloadDelivery] {
        &self.0.deliveries
    }

    /// Returns `true` if the next agent gets the payload as a message.
    pub(crate) fn delivers_message(&self) -> bool {
        self.0.deliveries.contains(&PayloadDelivery::Message)
    }

    /// The payload as the next agent keeps it, if it does.
    pub(crate) fn received(
        &self,
        from: &Arc<str>,
        payload: &Value,
    ) -> Option<Arc<ReceivedPayload>> {
        let has = |way| self.0.deliveries.contains(&way);
        let is_in_instructions = has(PayloadDelivery::Instructions);
        let is_kept = is_in_instructions || has(PayloadDelivery::Context);
        (is_kept && self.takes_payload()).then(|| {
            Arc::new(ReceivedPayload {
                from: from.clone(),
                payload: payload.clone(),
                is_in_instructions,
            })
        })
    }
}
