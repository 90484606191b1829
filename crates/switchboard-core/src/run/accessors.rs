//! The public accessors of a run.

use super::handoff_log::HandoffRecord;
use super::machine::Run;
use super::turn::Turn;
use crate::guardrail::{GuardrailKind, GuardrailResult};
use crate::handoff::history_links;
use crate::items::{Input, Items, RunItem, RunItems};
use crate::model::{ModelResponse, RequestUsage, Usage};

impl Run {
    /// The name of the agent that has the conversation.
    pub fn agent(&self) -> &str {
        &self.agent.name
    }

    /// The name of the agent the run began with.
    pub fn first_agent(&self) -> &str {
        &self.first_agent.name
    }

    /// The number of turns taken.
    pub fn turns(&self) -> u32 {
        self.position.turn
    }

    /// The input of the current agent: the run's input, or what the filter of a handoff made of it.
    pub fn input(&self) -> &Input {
        &self.conversation.input
    }

    /// All items the run has made.
    pub fn new_items(&self) -> &RunItems {
        &self.conversation.record
    }

    /// The items of tools that have completed in a turn that failed: calls with their outputs, and the
    /// reasoning before each. They are not among the [`new_items`](Self::new_items) until the run is
    /// resumed; the session has them, unless output guardrails have yet to pass what a tool may end the run
    /// with.
    pub fn completed_items(&self) -> Vec<RunItem> {
        self.turn().map(Turn::completed_tools).unwrap_or_default()
    }

    /// The responses of the models.
    pub fn raw_responses(&self) -> &[ModelResponse] {
        &self.responses
    }

    /// Requests and tokens of all models of the run, failed responses included.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The usage of each model response in order: of the run's agents, of agents used as tools, and
    /// what user code has added. Together they are the [`usage`](Self::usage), except in a run that a
    /// version before this one has stored.
    pub fn request_usage(&self) -> &[RequestUsage] {
        &self.request_usage
    }

    /// The provider's identifier of the last response, to continue from with
    /// [`Runner::previous_response`](crate::Runner::previous_response).
    pub fn last_response_id(&self) -> Option<&str> {
        self.responses.last()?.response_id.as_deref()
    }

    /// The handoffs of the run in order, refused and ignored ones included. Filters do not change them.
    pub fn handoffs(&self) -> &[HandoffRecord] {
        &self.handoffs
    }

    /// The results of the guardrails of one kind.
    pub fn guardrail_results(&self, kind: GuardrailKind) -> &[GuardrailResult] {
        &self.guardrails.of(kind).results
    }

    /// The conversation so far, to continue from: the input, then the items the run made, without
    /// those that the input already contains.
    pub fn to_input_list(&self) -> Items {
        let conversation = &self.conversation;
        let mut items = conversation.input.items();
        let rest =
            history_links::unlinked(&conversation.record, &conversation.history_links, &items);
        items.extend(rest.into_iter().map(RunItem::to_input_item));
        items
    }

    /// The conversation so far as the current agent sees it: its input, then the items since. Where a
    /// filter or a nested history has rewritten the conversation, this has none of the items that it
    /// left out, while [`to_input_list`](Self::to_input_list) has all; otherwise they are the same.
    pub fn to_normalized_input_list(&self) -> Items {
        let conversation = &self.conversation;
        let mut items = conversation.input.items();
        items.extend(conversation.generated.iter().map(RunItem::to_input_item));
        items
    }
}
