//! How the machine hands the conversation over, or stays where a handoff was refused.

use std::sync::Arc;

use serde_json::Value;

use super::machine::{Phase, Run, answer_item, next_occurrence};
use super::turn::HandoffCall;
use crate::handoff::{Parts, owned};
use crate::items::{RunItem, RunItemKind};

/// What a handoff that was not the first of its response is answered with.
const IGNORED_HANDOFF: &str = "Multiple handoffs detected, ignoring this one.";

/// What the next agent is given.
#[derive(Debug)]
pub(super) enum Handover {
    /// Everything so far, and then this turn's items.
    AsItIs,
    /// What a filter or nesting made of it.
    Rewritten(Box<Parts>),
}

/// Who passes the conversation to whom, and what the model that asked for it is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passing<'a> {
    pub(super) from: &'a Arc<str>,
    pub(super) to: &'a Arc<str>,
    pub(super) message: &'a str,
}

impl Run {
    /// What the turn would consist of, were the conversation handed over so.
    pub(super) fn handed_over_items(&self, passing: Passing<'_>) -> Vec<RunItem> {
        let Phase::Handoff(turn) = &self.phase else {
            return Vec::new();
        };
        let mut items = Vec::with_capacity(turn.items.len() + turn.handoffs.len());
        items.extend_from_slice(&turn.items);
        let mut made_items = self.made_items;
        answer_handoffs(&turn.handoffs, passing, &mut made_items, &mut items);
        items
    }

    /// Answers the calls of a handoff that was refused; the agent stays and is asked again.
    pub(super) fn handoff_refused(&mut self, reason: &str, agent: &Arc<str>) {
        let Phase::Handoff(mut turn) = std::mem::replace(&mut self.phase, Phase::Model) else {
            return;
        };
        let mut calls = std::mem::take(&mut turn.handoffs).into_iter();
        let refused = calls.next();
        let ignored = calls.map(|ignored| (ignored, IGNORED_HANDOFF));
        for (call, text) in ignored.chain(refused.map(|refused| (refused, reason))) {
            let made = self.answer(&call.call, text, agent, Value::from(text));
            turn.items.push(made);
        }
        self.end_turn(turn, None);
    }

    /// Hands the conversation to the agent whose name in this run is `key`.
    pub(super) fn handed_over(&mut self, key: Arc<str>, passing: Passing<'_>, handover: Handover) {
        match handover {
            Handover::AsItIs => {
                let Phase::Handoff(turn) = std::mem::replace(&mut self.phase, Phase::Model) else {
                    return;
                };
                let (mut items, made_items) = (turn.items, &mut self.made_items);
                answer_handoffs(&turn.handoffs, passing, made_items, &mut items);
                self.commit(items);
            }
            Handover::Rewritten(parts) => {
                if let Phase::Handoff(turn) = &self.phase {
                    for _ in &turn.handoffs {
                        self.made_items = next_occurrence(self.made_items);
                    }
                }
                let added = owned::after_filters(&parts.owned, &parts.input_history);
                let shown = parts.input_items.as_ref().unwrap_or(&parts.new_items);
                self.generated = parts.pre_handoff_items.concat(shown);
                self.record.extend(parts.new_items.iter().cloned());
                self.note_unsaved_parts(&parts);
                self.owned = owned::after_handoff(
                    &self.owned,
                    &self.input,
                    &parts.input_history,
                    added,
                    &self.record,
                );
                self.input = parts.input_history;
                self.view = None;
            }
        }
        self.agent = key;
        self.agent_started = false;
        self.phase = Phase::Model;
    }
}

/// Adds the answers to the calls of a handoff: those that are ignored, and then the one that is taken.
fn answer_handoffs(
    calls: &[HandoffCall],
    passing: Passing<'_>,
    made_items: &mut u32,
    items: &mut Vec<RunItem>,
) {
    let Passing { from, to, message } = passing;
    let mut made = |kind, item| {
        *made_items = next_occurrence(*made_items);
        RunItem::made(kind, from.clone(), item, *made_items)
    };
    for ignored in calls.iter().skip(1) {
        let item = answer_item(&ignored.call, IGNORED_HANDOFF);
        let output = Value::from(IGNORED_HANDOFF);
        items.push(made(RunItemKind::ToolCallOutput { output }, item));
    }
    if let Some(taken) = calls.first() {
        let kind = RunItemKind::HandoffOutput {
            source: from.clone(),
            target: to.clone(),
        };
        items.push(made(kind, answer_item(&taken.call, message)));
    }
}
