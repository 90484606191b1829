//! What a run tells of itself.

use super::machine::Run;
use crate::guardrail::GuardrailResult;
use crate::handoff::owned;
use crate::items::{Input, Items, RunItem, RunItems};
use crate::model::{ModelResponse, Usage};

impl Run {
    /// Who has the conversation.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The agent the run began with.
    pub fn first_agent(&self) -> &str {
        &self.first
    }

    /// How many turns have been taken.
    pub fn turns(&self) -> u32 {
        self.turn
    }

    /// What the current agent's conversation starts from: the run's input, or what a handoff's
    /// filter made of it.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// All the run has made.
    pub fn new_items(&self) -> &RunItems {
        &self.record
    }

    /// What the models answered.
    pub fn raw_responses(&self) -> &[ModelResponse] {
        &self.responses
    }

    /// Requests and tokens of all models the run asked, failed answers included.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What the input guardrails found.
    pub fn input_guardrail_results(&self) -> &[GuardrailResult] {
        self.input_guardrails.results()
    }

    /// What the output guardrails found.
    pub fn output_guardrail_results(&self) -> &[GuardrailResult] {
        self.output_guardrails.results()
    }

    /// What the guardrails on tools found.
    pub fn tool_guardrail_results(&self) -> &[GuardrailResult] {
        self.tool_guardrails.results()
    }

    /// What the guardrails on handoffs found.
    pub fn handoff_guardrail_results(&self) -> &[GuardrailResult] {
        self.handoff_guardrails.results()
    }

    /// The conversation so far, to go on from: the input, and then what the run made, without
    /// what the input already carries.
    pub fn to_input_list(&self) -> Items {
        let mut items = self.input.items();
        let rest = owned::not_owned(&self.record, &self.owned, &items);
        items.extend(rest.into_iter().map(RunItem::to_input_item));
        items
    }
}
