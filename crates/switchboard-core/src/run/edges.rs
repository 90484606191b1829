//! Handoffs that conditions take, without a call of a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::handoff::{HandoffOutcome, HandoffRecord};
use super::turn::{HandoffCall, Turn};
use super::{Phase, Run};
use crate::items::Item;
use crate::output::FinalOutput;

/// The cause of a handoff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffTrigger {
    /// A call of the model.
    #[default]
    Model,
    /// A condition that held before a turn.
    BeforeTurn,
    /// A condition that held after a turn.
    AfterTurn,
    /// A budget that was used up.
    Budget,
    /// The answers of several agents, which this one joins.
    FanOut,
}

impl HandoffTrigger {
    pub(crate) fn is_model(&self) -> bool {
        *self == Self::Model
    }
}

/// A handoff that a condition takes. Its call is made by the run, and is in no history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Edge {
    pub(crate) trigger: HandoffTrigger,
    /// The index of the handoff among those of the agent.
    pub(crate) at: usize,
    /// The answer that the agent has given, which is final if the handoff is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<FinalOutput>,
}

/// A handoff whose condition holds.
#[derive(Debug)]
pub(crate) struct FoundEdge {
    pub(crate) trigger: HandoffTrigger,
    /// The index of the handoff among those of the agent.
    pub(crate) at: usize,
    pub(crate) tool: Arc<str>,
    pub(crate) to: Arc<str>,
    pub(crate) payload: Option<Value>,
}

impl Run {
    /// Begins a handoff whose condition holds.
    pub(crate) fn begin_edge(&mut self, found: FoundEdge) {
        let id = format!("edge_{}_{}", self.position.turn, self.handoffs.len());
        let arguments = found.payload.map(|payload| payload.to_string());
        let arguments = arguments.as_deref().unwrap_or("{}");
        let call = HandoffCall {
            call: Item::function_call(&id, &found.tool, arguments),
            tool: found.tool,
            to: found.to,
        };
        let (mut turn, output) = match std::mem::take(&mut self.position.phase) {
            Phase::Output(turn, output) => (turn, Some(output)),
            _ => (Turn::default(), None),
        };
        turn.handoffs.push(call);
        turn.edge = Some(Box::new(Edge {
            trigger: found.trigger,
            at: found.at,
            output,
        }));
        self.position.phase = Phase::Handoff(turn);
    }

    /// Ends a handoff by a condition that was refused: the agent goes on, or its answer is final.
    pub(crate) fn leave_edge(&mut self, mut turn: Turn, edge: Edge, answer: Option<FinalOutput>) {
        turn.forget_handoffs();
        self.position.phase = match (answer, edge.output) {
            (Some(answer), _) => {
                let message = self.output_message(&answer, None);
                turn.items.push(message);
                Phase::Output(turn, answer)
            }
            (None, Some(output)) => Phase::Output(turn, output),
            (None, None) => Phase::Model,
        };
    }

    /// The cause of the handoff in progress.
    pub(crate) fn handoff_trigger(&self) -> HandoffTrigger {
        let edge = self.turn().and_then(|turn| turn.edge.as_ref());
        edge.map_or(HandoffTrigger::Model, |edge| edge.trigger)
    }

    /// Returns `true` if a handoff by a condition was refused since the last model call: no other is
    /// tried before the next.
    pub(crate) fn edge_was_refused(&self, trigger: HandoffTrigger) -> bool {
        let here = self.handoffs_since_model_call();
        here.into_iter().any(|record| {
            record.trigger == trigger
                && record.outcome != HandoffOutcome::Taken
                && record.from == self.agent.name
        })
    }

    /// Returns `true` if a condition has taken the handoff from the current agent to `to` since the last
    /// model call.
    pub(crate) fn edge_was_taken(&self, to: &str) -> bool {
        let here = self.handoffs_since_model_call();
        here.into_iter().any(|record| {
            !record.trigger.is_model()
                && record.outcome == HandoffOutcome::Taken
                && record.from == self.agent.name
                && *record.to == *to
        })
    }

    /// Returns `true` if a handoff was redirected since the last model call.
    pub(crate) fn was_redirected_since_model_call(&self) -> bool {
        let here = self.handoffs_since_model_call();
        here.into_iter()
            .any(|record| !record.trigger.is_model() && record.redirected_from.is_some())
    }

    /// Returns `true` if the current agent has taken a turn since it got the conversation in this run.
    pub(crate) fn agent_has_taken_turn(&self) -> bool {
        let mut taken = self.handoffs.iter().rev();
        let last = taken.find(|record| record.outcome == HandoffOutcome::Taken);
        let since = last.map_or(0, |record| record.turn);
        self.position.turn > since
    }

    /// Returns `true` if the answer that the run is about to end with may become a message of a conversation
    /// that goes on.
    pub(crate) fn answer_may_go_on(&self) -> bool {
        let Phase::Output(turn, _) = &self.position.phase else {
            return false;
        };
        !turn.end_reported && !turn.is_fallback && !turn.is_withheld
    }

    /// The handoffs since the last model call, the last first.
    fn handoffs_since_model_call(&self) -> impl IntoIterator<Item = &HandoffRecord> {
        let turn = self.position.turn;
        let last = self.handoffs.iter().rev();
        last.take_while(move |record| record.turn == turn)
    }
}
