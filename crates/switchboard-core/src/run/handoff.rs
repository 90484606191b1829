//! The transitions of a handoff: taken with the conversation as it is or rewritten, or refused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent_keys::AgentRef;
use super::turn::{HandoffCall, HandoffProgress, Turn};
use super::{Phase, Run, StoredInput, number_after};
use crate::handoff::history_links::HistoryLink;
use crate::handoff::{Parts, history_links};
use crate::items::{Input, Item, RunItem, RunItemKind, RunItems};
use crate::json;

/// The output of a handoff call that was not the first of its response.
pub(crate) const IGNORED_HANDOFF: &str = "Multiple handoffs detected, ignoring this one.";

/// The conversation for the next agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Carried {
    /// The whole conversation, with the items of this turn.
    Everything,
    /// The conversation as a filter or nesting rewrote it.
    Rewritten(#[serde(with = "stored_parts")] Box<Parts>),
}

/// The stored form of [`Parts`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Parts")]
struct StoredParts {
    #[serde(with = "StoredInput")]
    input_history: Input,
    pre_handoff_items: RunItems,
    new_items: RunItems,
    input_items: Option<RunItems>,
    history_links: Vec<HistoryLink>,
    notes: Vec<Item>,
}

mod stored_parts {
    use serde::{Deserializer, Serializer};

    use super::{Parts, StoredParts};

    pub(super) fn serialize<S: Serializer>(parts: &Parts, to: S) -> Result<S::Ok, S::Error> {
        StoredParts::serialize(parts, to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Parts>, D::Error> {
        StoredParts::deserialize(from).map(Box::new)
    }
}

impl Run {
    /// The callback of the handoff has run, for the agent that was picked.
    pub(crate) fn handoff_called_back(&mut self, picked: Option<Arc<str>>) {
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.progress = HandoffProgress::CalledBack;
            turn.picked = picked;
        }
    }

    /// The guardrails of the handoff have allowed this conversation, and are not asked again.
    pub(crate) fn handoff_checked(&mut self, carried: Carried) {
        self.guardrails.handoff.settle();
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.checked = Some(carried);
        }
    }

    /// The conversation that the guardrails of the handoff have allowed.
    pub(crate) fn checked_handoff(&self) -> Option<&Carried> {
        self.turn().and_then(|turn| turn.checked.as_ref())
    }

    /// Hooks were notified of the handoff.
    pub(crate) fn handoff_hooks_notified(&mut self) {
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.progress = HandoffProgress::HooksNotified;
        }
    }

    /// The number of items the next agent would see without a filter.
    pub(crate) fn items_before_handoff(&self) -> usize {
        let turn = self
            .turn()
            .map_or(0, |turn| turn.items.len() + turn.handoffs.len());
        self.shown_items() + turn
    }

    /// Adds the outputs of handoff calls to the items of their turn, as they are once the conversation
    /// is handed to `to`. The first call is answered with `message`.
    pub(crate) fn answer_handoffs(
        &self,
        calls: &[HandoffCall],
        items: &mut Vec<RunItem>,
        to: &Arc<str>,
        message: &str,
    ) {
        let kind = RunItemKind::HandoffOutput {
            from: self.agent.name.clone(),
            to: to.clone(),
        };
        items.extend(self.handoff_outputs(calls, kind, message));
    }

    /// Refuses the handoff: its calls are answered, and the same agent's model is asked again.
    pub(crate) fn refuse_handoff(&mut self, to: &Arc<str>, payload: Value, reason: String) {
        let Phase::Handoff(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let output = Value::from(&*reason);
        let kind = RunItemKind::ToolCallOutput { output };
        let outputs = self.handoff_outputs(&turn.handoffs, kind, &reason);
        turn.items.extend(outputs);
        self.end_handoff(&turn, to, payload, HandoffOutcome::Refused(reason));
        self.guardrails.handoff.settle();
        self.end_turn(turn, None);
    }

    /// Hands the conversation to `agent`.
    pub(crate) fn take_handoff(
        &mut self,
        agent: AgentRef,
        message: &str,
        payload: Value,
        carried: Carried,
    ) {
        let Phase::Handoff(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        match carried {
            Carried::Everything => {
                let mut items = std::mem::take(&mut turn.items);
                self.answer_handoffs(&turn.handoffs, &mut items, &agent.name, message);
                self.commit(items);
            }
            Carried::Rewritten(parts) => {
                if self.session.conversation.is_some() {
                    let mut items = std::mem::take(&mut turn.items);
                    self.answer_handoffs(&turn.handoffs, &mut items, &agent.name, message);
                    turn.items = items;
                }
                self.rewrite(*parts, &turn);
            }
        }
        self.end_handoff(&turn, &agent.name, payload, HandoffOutcome::Taken);
        self.agent = agent;
        self.position.agent_started = false;
    }

    /// Adds the handoffs of a response to the log, the first with its outcome, and counts the outputs
    /// of its calls. A filter is given them too, so they are counted even if it dropped them.
    fn end_handoff(&mut self, turn: &Turn, to: &Arc<str>, payload: Value, outcome: HandoffOutcome) {
        for _ in &turn.handoffs {
            self.next_item();
        }
        let mut first = Some((to, payload, outcome));
        for call in &turn.handoffs {
            let (to, payload, outcome) = first.take().unwrap_or_else(|| {
                let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
                (&call.to, payload, HandoffOutcome::Ignored)
            });
            self.handoffs.push(HandoffRecord {
                from: self.agent.name.clone(),
                to: to.clone(),
                tool_name: call.tool.clone(),
                payload,
                outcome,
            });
        }
    }

    /// The outputs of handoff calls: of the ignored ones, then of the first, which has this kind and
    /// text.
    fn handoff_outputs(
        &self,
        calls: &[HandoffCall],
        kind: RunItemKind,
        text: &str,
    ) -> impl Iterator<Item = RunItem> {
        let ignored = calls.iter().skip(1).map(|call| {
            let output = Value::from(IGNORED_HANDOFF);
            let kind = RunItemKind::ToolCallOutput { output };
            (call, kind, IGNORED_HANDOFF)
        });
        let first = calls.first().map(|call| (call, kind, text));
        let mut number = self.position.last_item;
        ignored.chain(first).map(move |(call, kind, text)| {
            number = number_after(number);
            let item = Item::output_of(&call.call, text);
            RunItem::made(kind, self.agent.name.clone(), item, number)
        })
    }

    /// Replaces what models see by what a filter or nesting left of it.
    fn rewrite(&mut self, parts: Parts, turn: &Turn) {
        self.add_unsaved_parts(&parts, turn);
        let conversation = &mut self.conversation;
        let added = history_links::after_filters(&parts.history_links, &parts.input_history);
        let shown = parts.input_items.as_ref().unwrap_or(&parts.new_items);
        conversation.generated = parts.pre_handoff_items.concat(shown);
        conversation.record.extend(parts.new_items.iter().cloned());
        conversation.history_links = history_links::after_handoff(
            &conversation.history_links,
            &conversation.input,
            &parts.input_history,
            added,
            &conversation.record,
        );
        conversation.input = parts.input_history;
        conversation.notes = parts.notes;
        conversation.model_input = None;
    }
}

/// A handoff that the model asked for, and its outcome.
///
/// A run keeps one for each handoff: taken, refused or ignored. Filters do not change them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandoffRecord {
    /// The agent that had the conversation.
    pub from: Arc<str>,
    /// The agent that got it, or would have got it.
    pub to: Arc<str>,
    /// The name of the handoff's tool.
    pub tool_name: Arc<str>,
    /// The arguments of the call; an empty object where there are none, and a string where they
    /// are not JSON.
    #[serde(with = "crate::json::on_its_own")]
    pub payload: Value,
    /// The outcome.
    pub outcome: HandoffOutcome,
}

/// The outcome of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffOutcome {
    /// The conversation was handed over.
    Taken,
    /// A guardrail or the callback refused it; the model got this reason.
    Refused(String),
    /// Another handoff of the same response was taken or refused.
    Ignored,
}
