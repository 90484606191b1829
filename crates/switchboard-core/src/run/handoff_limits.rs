//! Limits on handoffs: those that fail, and those that go in circles.

use std::sync::Arc;

use super::Run;
use super::edges::HandoffTrigger;
use super::handoff::{HandoffOutcome, HandoffRecord};
use crate::runner::{HandoffRetries, LoopLimits};

/// The number of handoffs that are looked back on for circles, so that a handoff of a long run costs no
/// more than one of a short run.
const LOOKED_BACK_ON: usize = 32;

/// A limit that a handoff would pass.
#[derive(Debug)]
pub(crate) struct PassedLimit {
    /// The name of the setting.
    pub(crate) name: &'static str,
    pub(crate) description: String,
}

impl Run {
    /// Returns `true` if the model may be told of another failed handoff with this tool.
    pub(crate) fn may_tell_of_failure(&self, tool: &str, retries: Option<HandoffRetries>) -> bool {
        let Some(retries) = retries else {
            return false;
        };
        let (mut in_run, mut of_edge) = (0, 0);
        for record in &self.handoffs {
            if matches!(record.outcome, HandoffOutcome::Failed(_)) {
                in_run += 1;
                of_edge += u32::from(record.from == self.agent.name && *record.tool_name == *tool);
            }
        }
        in_run < retries.per_run && of_edge < retries.per_edge
    }

    /// Notes a handoff that the model asked for and that does not exist.
    pub(crate) fn unknown_handoff(&mut self, tool: &Arc<str>) {
        let problem = "There is no such handoff.".to_owned();
        self.handoffs.push(HandoffRecord {
            from: self.agent.name.clone(),
            to: tool.strip_prefix("transfer_to_").unwrap_or(tool).into(),
            tool_name: tool.clone(),
            payload: serde_json::Value::Null,
            outcome: HandoffOutcome::Failed(problem),
            turn: self.position.turn,
            redirected_from: None,
            trigger: HandoffTrigger::Model,
            made_progress: false,
        });
    }

    /// The limit that a handoff to `to` would pass; `None` if it passes none.
    pub(crate) fn passed_limit(&self, to: &str, limits: &LoopLimits) -> Option<PassedLimit> {
        let passed = |name, description| Some(PassedLimit { name, description });
        let from = &*self.agent.name;
        let is_edge = |record: &HandoffRecord| *record.from == *from && *record.to == *to;
        // Whatever the limits: no model call would end it.
        if !self.handoff_trigger().is_model() && self.edge_was_taken(to) {
            let description =
                format!("1 handoff from \"{from}\" to \"{to}\" between two model calls");
            return passed("loops.without_model_call", description);
        }
        if let Some(limit) = limits.handoffs
            && self.taken().count() >= limit as usize
        {
            return passed("loops.handoffs", format!("{limit} handoffs in one run"));
        }
        if let Some(limit) = limits.per_edge
            && self.taken().filter(|record| is_edge(record)).count() >= limit as usize
        {
            let description = format!("{limit} handoffs from \"{from}\" to \"{to}\"");
            return passed("loops.per_edge", description);
        }
        let recent = || self.taken().take(LOOKED_BACK_ON);
        if let Some(limit) = limits.ping_pong {
            let is_between = |record: &&HandoffRecord| {
                is_edge(record) || (*record.from == *to && *record.to == *from)
            };
            let (count, of) = match limits.ping_pong_window {
                None => (
                    recent().take_while(is_between).count(),
                    "in a row".to_owned(),
                ),
                Some(window) => {
                    let last = self.taken().take(window as usize);
                    let of = format!("among the last {window}");
                    (last.filter(is_between).count(), of)
                }
            };
            if count >= limit as usize {
                let description = format!("{limit} handoffs {of} between \"{from}\" and \"{to}\"");
                return passed("loops.ping_pong", description);
            }
        }
        if let Some(limit) = limits.without_progress
            && self.handoffs_without_progress(to, limit) >= limit
        {
            let description =
                format!("{limit} handoffs from \"{from}\" to \"{to}\" while nothing else happened");
            return passed("loops.without_progress", description);
        }
        None
    }

    /// The number of handoffs from the current agent to `to` since anything else happened, up to `limit`.
    ///
    /// A loop without iterators: it is part of every handoff, and most find nothing.
    fn handoffs_without_progress(&self, to: &str, limit: u32) -> u32 {
        let (mut turn, mut found, mut looked_at) = (self.position.turn, 0, 0);
        let mut index = self.handoffs.len();
        while index > 0 && looked_at < LOOKED_BACK_ON && found < limit {
            index -= 1;
            let record = &self.handoffs[index];
            if !matches!(record.outcome, HandoffOutcome::Taken) {
                continue;
            }
            // Between two that conditions took there is no turn.
            if record.made_progress || (record.turn + 1 != turn && record.turn != turn) {
                break;
            }
            turn = record.turn;
            looked_at += 1;
            let is_same = Arc::ptr_eq(&record.from, &self.agent.name)
                || (record.from.len() == self.agent.name.len() && record.from == self.agent.name);
            if is_same && *record.to == *to {
                found += 1;
            }
        }
        found
    }

    /// The circle that a handoff to `to` closes, as a path of names: `A → B → A`.
    pub(crate) fn circle(&self, to: &str) -> String {
        let mut path = vec![to, &*self.agent.name];
        for record in self.taken().take(LOOKED_BACK_ON) {
            path.push(&record.from);
            if *record.from == *to {
                break;
            }
        }
        path.reverse();
        path.join(" → ")
    }

    /// The handoffs that took place, the last first.
    fn taken(&self) -> impl Iterator<Item = &HandoffRecord> {
        let handoffs = self.handoffs.iter().rev();
        handoffs.filter(|record| record.outcome == HandoffOutcome::Taken)
    }
}
