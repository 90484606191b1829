//! The transitions of a handoff: taken with the conversation as it is or rewritten, or refused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent_keys::AgentRef;
use super::edges::HandoffTrigger;
use super::turn::{HandoffCall, HandoffProgress, Turn};
use super::{Phase, Run, StoredInput, number_after};
use crate::handoff::history_links::HistoryLink;
use crate::handoff::{Parts, ReceivedPayload, history_links};
use crate::items::{Input, Item, RunItem, RunItemKind, RunItems};
use crate::json;
use crate::output::FinalOutput;

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

impl Carried {
    /// The payload as the next agent may get it.
    pub(crate) fn shown_payload<'a>(&'a self, payload: &'a Value) -> &'a Value {
        match self {
            Self::Everything => payload,
            Self::Rewritten(parts) => parts.redacted_payload.as_ref().unwrap_or(payload),
        }
    }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redacted_payload: Option<Value>,
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

/// An agent that gets the conversation instead of the one that the model asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Redirect {
    /// The key of the agent.
    pub(crate) to: Arc<str>,
    /// The payload, instead of the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
    /// The number of redirects of this handoff.
    pub(crate) count: u32,
    /// Set if a limit on loops made it, which is then not checked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_at_limit: bool,
}

impl Run {
    /// The callback of the handoff has run, for the agent that was picked.
    pub(crate) fn handoff_called_back(&mut self, picked: Option<Arc<str>>) {
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.progress = HandoffProgress::CalledBack;
            turn.picked = picked.map(Box::new);
        }
    }

    /// The guardrails of the handoff have allowed this conversation, and are not asked again.
    pub(crate) fn handoff_checked(&mut self, carried: Carried) {
        self.guardrails.handoff.settle();
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.checked = Some(Box::new(carried));
        }
    }

    /// The conversation that the guardrails of the handoff have allowed.
    pub(crate) fn checked_handoff(&self) -> Option<&Carried> {
        self.turn().and_then(|turn| turn.checked.as_deref())
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
            .map_or(0, |turn| turn.items.len() + turn.called_handoffs().len());
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
        items.extend(self.handoff_outputs(calls, kind, message, IGNORED_HANDOFF));
    }

    /// Refuses the handoff: its calls are answered with the reason. The same agent's model is asked
    /// again, or the run ends with this output.
    pub(crate) fn refuse_handoff(
        &mut self,
        to: &Arc<str>,
        payload: Value,
        outcome: HandoffOutcome,
        final_output: Option<FinalOutput>,
    ) {
        let Phase::Handoff(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let reason = outcome.reason().unwrap_or_default().to_owned();
        let output = Value::from(&*reason);
        let kind = RunItemKind::ToolCallOutput { output };
        let others = if turn.refuses_all {
            &reason
        } else {
            IGNORED_HANDOFF
        };
        let made_progress = turn.made_progress() || self.person_part().is_some();
        let outputs = self.handoff_outputs(turn.called_handoffs(), kind, &reason, others);
        let outputs: Vec<RunItem> = outputs.collect();
        turn.items.extend(outputs);
        self.end_handoff(&turn, to, payload, outcome, made_progress);
        self.guardrails.handoff.settle();
        if let Some(edge) = turn.edge.take() {
            self.leave_edge(turn, *edge, final_output);
            return;
        }
        let has_reply = self.person_part().is_some_and(|part| part.output.is_some());
        match final_output.filter(|_| !has_reply) {
            None => self.end_turn(turn, None),
            Some(output) => {
                let message = self.output_message(&output, None);
                turn.items.push(message);
                self.position.phase = Phase::Output(turn, output);
            }
        }
    }

    /// All handoffs of the response will be refused, and not only the first.
    pub(crate) fn refuse_all_handoffs(&mut self) {
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.refuses_all = true;
        }
    }

    /// Leads the handoff to another agent than the model asked for.
    pub(crate) fn redirect_handoff(&mut self, redirect: Box<Redirect>) {
        self.guardrails.handoff.settle();
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.redirect = Some(redirect);
            turn.handoff_approval = None;
            turn.checked = None;
            turn.picked = None;
        }
    }

    /// Hands the conversation to `agent`.
    pub(crate) fn take_handoff(
        &mut self,
        agent: AgentRef,
        message: &str,
        payload: Value,
        carried: Carried,
        received: Option<Arc<ReceivedPayload>>,
    ) {
        let Phase::Handoff(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let made_progress = turn.made_progress() || self.person_part().is_some();
        match carried {
            Carried::Everything => {
                let mut items = std::mem::take(&mut turn.items);
                self.answer_handoffs(turn.called_handoffs(), &mut items, &agent.name, message);
                if !items.is_empty() {
                    self.commit(items, turn.recorded);
                }
            }
            Carried::Rewritten(parts) => {
                if self.session.conversation.is_some() {
                    let mut items = std::mem::take(&mut turn.items);
                    self.answer_handoffs(turn.called_handoffs(), &mut items, &agent.name, message);
                    turn.items = items;
                }
                self.rewrite(*parts, &turn);
            }
        }
        let taken = HandoffOutcome::Taken;
        self.end_handoff(&turn, &agent.name, payload, taken, made_progress);
        self.agent = agent;
        self.received = received;
        self.position.agent_started = false;
        self.position.announced = None;
        if let Some(reply) = self.take_person_part().and_then(|part| part.output) {
            self.position.phase = Phase::Done(reply);
        }
    }

    /// Hands the conversation to `agent` without a call of a model.
    pub(crate) fn move_to(&mut self, agent: AgentRef, trigger: HandoffTrigger) {
        self.handoffs.push(HandoffRecord {
            from: self.agent.name.clone(),
            to: agent.name.clone(),
            tool_name: "".into(),
            payload: Value::Null,
            outcome: HandoffOutcome::Taken,
            turn: self.position.turn,
            redirected_from: None,
            trigger,
            made_progress: true,
        });
        self.agent = agent;
        self.received = None;
        self.position.agent_started = false;
        self.position.announced = None;
        self.note_turn();
    }

    /// Adds the handoffs of a response to the log, the first with its outcome, and counts the outputs
    /// of its calls. A filter is given them too, so they are counted even if it dropped them.
    fn end_handoff(
        &mut self,
        turn: &Turn,
        to: &Arc<str>,
        payload: Value,
        outcome: HandoffOutcome,
        made_progress: bool,
    ) {
        for _ in turn.called_handoffs() {
            self.next_item();
        }
        let refused_too = turn.refuses_all.then(|| outcome.clone());
        let mut first = Some((to, payload, outcome));
        // Most runs have one handoff, and a run that waits for its model keeps what is allocated.
        if self.handoffs.is_empty() {
            self.handoffs.reserve_exact(turn.handoffs.len());
        }
        for call in &turn.handoffs {
            let (to, payload, outcome) = first.take().unwrap_or_else(|| {
                let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
                let outcome = refused_too.clone().unwrap_or(HandoffOutcome::Ignored);
                (&call.to, payload, outcome)
            });
            let is_redirected = turn.redirect.is_some() && outcome != HandoffOutcome::Ignored;
            self.handoffs.push(HandoffRecord {
                from: self.agent.name.clone(),
                to: to.clone(),
                tool_name: call.tool.clone(),
                payload,
                redirected_from: is_redirected.then(|| call.to.clone()),
                turn: self.position.turn,
                trigger: turn
                    .edge
                    .as_ref()
                    .map_or(HandoffTrigger::Model, |edge| edge.trigger),
                made_progress,
                outcome,
            });
        }
    }

    /// The outputs of handoff calls: of the others with their text, then of the first, which has this kind
    /// and text.
    fn handoff_outputs<'a>(
        &'a self,
        calls: &'a [HandoffCall],
        kind: RunItemKind,
        text: &'a str,
        others: &'a str,
    ) -> impl Iterator<Item = RunItem> + use<'a> {
        let ignored = calls.iter().skip(1).map(move |call| {
            let output = Value::from(others);
            let kind = RunItemKind::ToolCallOutput { output };
            (call, kind, others)
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
        // What was recorded while calls waited is part of what the filter was given.
        conversation.forget_recorded(turn.recorded);
        conversation.record.extend(parts.new_items.iter().cloned());
        conversation.history_links = history_links::after_handoff(
            &conversation.history_links,
            &conversation.input,
            &parts.input_history,
            added,
            &conversation.record,
        );
        conversation.input = parts.input_history;
        conversation.notes = parts.notes.into();
        conversation.model_input = None;
    }
}

impl HandoffOutcome {
    /// The text that the model got, unless the handoff was taken or fanned out.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused(reason) | Self::Failed(reason) => Some(reason),
            Self::Ignored => Some(IGNORED_HANDOFF),
            Self::Taken | Self::FannedOut => None,
        }
    }
}

/// A handoff that the model or a condition asked for, and its outcome.
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
    /// The turn in which the model asked for it; the number of turns so far, if no model did.
    #[serde(default)]
    pub turn: u32,
    /// The agent that was asked for, where a decision or a limit led to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirected_from: Option<Arc<str>>,
    /// The cause of the handoff.
    #[serde(default, skip_serializing_if = "HandoffTrigger::is_model")]
    pub trigger: HandoffTrigger,
    /// Set if the turn did something else as well: a tool ran, or the agent said something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) made_progress: bool,
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
    /// It could not be made: the payload was wrong or the callback failed, for example. The model got this
    /// text.
    Failed(String),
    /// Another handoff of the same response was taken or refused.
    Ignored,
    /// The agent answered beside others, and the conversation stayed where it was; see
    /// [`SeveralHandoffs::FanOut`](super::SeveralHandoffs::FanOut).
    FannedOut,
}
