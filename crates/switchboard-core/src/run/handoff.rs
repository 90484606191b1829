//! The transitions of a handoff: taken with the conversation as it is or rewritten, or refused.

use std::sync::Arc;

use serde_json::Value;

use super::handoff_log::{HandoffOutcome, HandoffRecord};
use super::machine::{AgentRef, Phase, Run, number_after, output_item};
use super::turn::{HandoffCall, HandoffProgress};
use crate::handoff::{Parts, history_links};
use crate::items::{Input, RunItem, RunItemKind};

/// The output of a handoff call that was not the first of its response.
pub(super) const IGNORED_HANDOFF: &str = "Multiple handoffs detected, ignoring this one.";

/// The conversation for the next agent.
#[derive(Debug)]
pub(super) enum Carried {
    /// The whole conversation, with the items of this turn.
    Everything,
    /// The conversation as a filter or nesting rewrote it.
    Rewritten(Box<Parts>),
}

/// The rule by which the conversation for the next agent is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CarryRule {
    Everything,
    /// By the handoff's own filter.
    HandoffFilter,
    /// By the filter of the run.
    RunFilter,
    Nest,
}

/// The settings of a handoff and the run that decide what the next agent gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct CarrySettings {
    pub(super) handoff_filter: bool,
    pub(super) run_filter: bool,
    /// The handoff's own choice of nesting.
    pub(super) handoff_nests: Option<bool>,
    pub(super) run_nests: bool,
    /// Set if the provider keeps the conversation, which then cannot be nested.
    pub(super) is_kept_by_provider: bool,
}

impl CarrySettings {
    /// A handoff's own filter takes precedence over the run's, and any filter over nesting.
    pub(super) fn rule(self) -> CarryRule {
        if self.handoff_filter {
            CarryRule::HandoffFilter
        } else if self.run_filter {
            CarryRule::RunFilter
        } else if self.nests() && !self.is_kept_by_provider {
            CarryRule::Nest
        } else {
            CarryRule::Everything
        }
    }

    pub(super) fn nests(self) -> bool {
        self.handoff_nests.unwrap_or(self.run_nests)
    }
}

/// The two agents of a handoff and its details.
#[derive(Debug, Clone)]
pub(super) struct Transfer<'a> {
    pub(super) from: &'a Arc<str>,
    pub(super) to: &'a Arc<str>,
    /// The output of the handoff's call.
    pub(super) message: &'a str,
}

impl Run {
    /// The calls of the handoff the run is at.
    pub(super) fn handoff_calls(&self) -> &[HandoffCall] {
        match &self.position.phase {
            Phase::Handoff(turn) => &turn.handoffs,
            _ => &[],
        }
    }

    /// Returns `true` if tools ran in this turn before its handoff.
    pub(super) fn ran_tools_before_handoff(&self) -> bool {
        matches!(&self.position.phase, Phase::Handoff(turn) if !turn.tools().results.is_empty())
    }

    /// The progress of the handoff before the turn failed.
    pub(super) fn handoff_progress(&self) -> HandoffProgress {
        match &self.position.phase {
            Phase::Handoff(turn) => turn.progress,
            _ => HandoffProgress::NotStarted,
        }
    }

    /// The key of the agent that a custom handoff picked before the turn failed.
    pub(super) fn picked_agent(&self) -> Option<&Arc<str>> {
        match &self.position.phase {
            Phase::Handoff(turn) => turn.picked.as_ref(),
            _ => None,
        }
    }

    /// The callback of the handoff has run, for the agent that was picked.
    pub(super) fn handoff_called_back(&mut self, picked: Option<Arc<str>>) {
        self.guardrails.handoff.settle();
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.progress = HandoffProgress::CalledBack;
            turn.picked = picked;
        }
    }

    /// Hooks were notified of the handoff.
    pub(super) fn handoff_hooks_notified(&mut self) {
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.progress = HandoffProgress::HooksNotified;
        }
    }

    /// The number of items the next agent would see without a filter.
    pub(super) fn items_before_handoff(&self) -> usize {
        let turn = self
            .turn()
            .map_or(0, |turn| turn.items.len() + turn.handoffs.len());
        self.shown_items() + turn
    }

    /// The number of items the current agent's model sees.
    pub(super) fn shown_items(&self) -> usize {
        let input = match &self.conversation.input {
            Input::Text(_) => 1,
            Input::Items(items) => items.len(),
        };
        input + self.conversation.generated.len()
    }

    /// The items of the turn, as they would be once the handoff is taken.
    pub(super) fn items_after_handoff(&self, transfer: &Transfer<'_>) -> Vec<RunItem> {
        let Phase::Handoff(turn) = &self.position.phase else {
            return Vec::new();
        };
        let mut items = turn.items.clone();
        let mut last_item = self.position.last_item;
        answer_handoffs(&turn.handoffs, transfer, &mut last_item, &mut items);
        items
    }

    /// Refuses the handoff: its calls are answered, and the same agent's model is asked again.
    pub(super) fn refuse_handoff(
        &mut self,
        from: &Arc<str>,
        to: &Arc<str>,
        payload: Value,
        reason: String,
    ) {
        let Phase::Handoff(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let mut calls = std::mem::take(&mut turn.handoffs).into_iter();
        let refused = calls.next();
        for ignored in calls {
            let output = Value::from(IGNORED_HANDOFF);
            let made = self.tool_output(&ignored.call, IGNORED_HANDOFF, from, output);
            turn.items.push(made);
        }
        if let Some(refused) = refused {
            let made = self.tool_output(&refused.call, &reason, from, Value::from(&*reason));
            turn.items.push(made);
            self.handoffs.push(HandoffRecord {
                from: from.clone(),
                to: to.clone(),
                tool_name: refused.tool,
                payload,
                outcome: HandoffOutcome::Refused(reason),
            });
        }
        self.guardrails.handoff.settle();
        self.end_turn(turn, None);
    }

    /// Hands the conversation to `agent`.
    pub(super) fn take_handoff(
        &mut self,
        agent: AgentRef,
        transfer: &Transfer<'_>,
        payload: Value,
        carried: Carried,
    ) {
        let Phase::Handoff(turn) = &mut self.position.phase else {
            return;
        };
        let calls = std::mem::take(&mut turn.handoffs);
        if let Some(taken) = calls.first() {
            self.handoffs.push(HandoffRecord {
                from: transfer.from.clone(),
                to: transfer.to.clone(),
                tool_name: taken.tool.clone(),
                payload,
                outcome: HandoffOutcome::Taken,
            });
        }
        match carried {
            Carried::Everything => {
                let mut items = std::mem::take(&mut turn.items);
                answer_handoffs(&calls, transfer, &mut self.position.last_item, &mut items);
                self.commit(items);
            }
            Carried::Rewritten(parts) => {
                turn.handoffs = calls;
                self.rewrite(*parts);
            }
        }
        self.agent = agent;
        self.position.agent_started = false;
        self.position.phase = Phase::Model;
    }

    /// Replaces what models see by what a filter or nesting left of it.
    fn rewrite(&mut self, parts: Parts) {
        // The filter was given the handoff's outputs, which were numbered for it.
        for _ in 0..self.handoff_calls().len() {
            self.next_item();
        }
        self.add_unsaved_parts(&parts);
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
        conversation.model_input = None;
    }
}

/// Adds the outputs of handoff calls: of the ignored ones, then of the one that is taken.
fn answer_handoffs(
    calls: &[HandoffCall],
    transfer: &Transfer<'_>,
    last_item: &mut u32,
    items: &mut Vec<RunItem>,
) {
    let mut made = |kind, item| {
        *last_item = number_after(*last_item);
        RunItem::made(kind, transfer.from.clone(), item, *last_item)
    };
    for ignored in calls.iter().skip(1) {
        let item = output_item(&ignored.call, IGNORED_HANDOFF);
        let output = Value::from(IGNORED_HANDOFF);
        items.push(made(RunItemKind::ToolCallOutput { output }, item));
    }
    if let Some(taken) = calls.first() {
        let kind = RunItemKind::HandoffOutput {
            from: transfer.from.clone(),
            to: transfer.to.clone(),
        };
        items.push(made(kind, output_item(&taken.call, transfer.message)));
    }
}
