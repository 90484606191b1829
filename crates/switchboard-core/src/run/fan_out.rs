//! Handoffs of one response that are made side by side: their agents answer in runs of their own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent_keys::AgentRef;
use super::approvals::InnerRun;
use super::edges::HandoffTrigger;
use super::guardrail_results::InputChecks;
use super::handoff::{Carried, HandoffOutcome, HandoffRecord};
use super::session_state::SessionState;
use super::tool_results::{RanTool, ToolStage};
use super::turn::{HandoffCall, ToolCall, ToolTurn, Turn};
use super::{Phase, Run};
use crate::agent::ToolResult;
use crate::handoff::ReceivedPayload;
use crate::items::{Input, RunItemKind};
use crate::output::{FinalOutput, OutputType};

/// The handoffs of a turn that are made side by side, once they are decided. The calls, the runs and the
/// answers are those of the turn's tools, at the same indexes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FanOutTurn {
    pub(crate) branches: Vec<Branch>,
}

/// A handoff beside others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Branch {
    /// The name of the agent that answers, or would have answered.
    pub(crate) to: Arc<str>,
    #[serde(with = "crate::json::on_its_own")]
    pub(crate) payload: Value,
}

/// The conversation for an agent that answers beside others.
#[derive(Debug)]
pub(crate) struct BranchView<'a> {
    pub(crate) agent: AgentRef,
    /// The output of the handoff's call.
    pub(crate) message: &'a str,
    pub(crate) payload: Value,
    pub(crate) carried: Carried,
    pub(crate) received: Option<Arc<ReceivedPayload>>,
}

/// The continuation of a turn whose agents have answered.
#[derive(Debug)]
pub(crate) enum JoinedBy {
    /// The agent that called the handoffs.
    Caller,
    Agent(AgentRef),
    /// The run ends with this output.
    Output(FinalOutput),
}

impl Turn {
    /// The turn as one of several agents sees it, as if the handoff to it were the only one.
    pub(crate) fn of_branch(&self) -> Self {
        let call = self.handoffs.first();
        let id = call.and_then(|call| call.call.call_id());
        let items = self
            .items
            .iter()
            .filter(|made| *made.kind() != RunItemKind::HandoffCall || made.item().call_id() == id);
        Self {
            items: items.cloned().collect(),
            handoffs: call.into_iter().cloned().collect(),
            recorded: 0,
            tools: None,
            ..self.clone()
        }
    }
}

impl Run {
    /// Begins to make the handoffs of a response side by side.
    pub(crate) fn begin_fan_out(&mut self) {
        if let Phase::Handoff(turn) = &mut self.position.phase
            && !turn.is_fanned_out()
        {
            // The results tell that tools ran before.
            let results = std::mem::take(&mut turn.tools_mut().results);
            *turn.tools_mut() = ToolTurn {
                results,
                fan_out: Some(FanOutTurn::default()),
                ..ToolTurn::default()
            };
        }
    }

    /// The run of an agent that answers beside others, on a copy of the conversation.
    pub(crate) fn branch(&self, view: BranchView<'_>) -> Self {
        let mut copy = self.clone();
        copy.session = SessionState::default();
        if let Phase::Handoff(turn) = &mut copy.position.phase {
            // Items that were recorded while a call waited are those of the turn.
            copy.conversation.forget_recorded(turn.recorded);
            *turn = turn.of_branch();
        }
        let agent = view.agent.clone();
        copy.take_handoff(
            view.agent,
            view.message,
            view.payload,
            view.carried,
            view.received,
        );
        let mut branch = Self::new(agent, Input::Items(copy.turn_input()));
        branch.received = copy.received;
        branch.conversation.notes = copy.conversation.notes;
        branch.guardrails.input_checks = InputChecks::Passed;
        let taken = copy.handoffs.pop();
        branch.handoffs = taken
            .map(|taken| HandoffRecord { turn: 0, ..taken })
            .into_iter()
            .collect();
        branch
    }

    /// Notes the decision on the first handoff that has none: the run of its agent, or the answer of its
    /// call. Once all are decided the agents can answer.
    pub(crate) fn decide_branch(
        &mut self,
        to: Arc<str>,
        payload: Value,
        outcome: HandoffOutcome,
        run: Option<Box<Self>>,
    ) {
        self.guardrails.handoff.settle();
        let Phase::Handoff(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let call = turn.handoffs.remove(0);
        self.record_branch(&turn, &call, &to, &payload, outcome.clone());
        let others = std::mem::take(&mut turn.handoffs);
        turn.forget_handoffs();
        turn.handoffs = others;
        let tools = turn.tools_mut();
        if let Some(fan_out) = &mut tools.fan_out {
            fan_out.branches.push(Branch { to, payload });
        }
        let at = tools.calls.len();
        let tool = call.tool.clone();
        if let Some(run) = run {
            tools.inner_runs.push(InnerRun { at, run });
        } else {
            let result = ToolResult {
                tool: tool.clone(),
                output: outcome.reason().unwrap_or_default().into(),
                data: None,
            };
            tools.done.push(RanTool {
                stage: ToolStage::Reported,
                ..RanTool::rejected(at, result)
            });
        }
        tools.calls.push(ToolCall {
            tool,
            call: call.call,
        });
        self.position.phase = if turn.handoffs.is_empty() {
            Phase::Tools(turn)
        } else {
            Phase::Handoff(turn)
        };
    }

    fn record_branch(
        &mut self,
        turn: &Turn,
        call: &HandoffCall,
        to: &Arc<str>,
        payload: &Value,
        outcome: HandoffOutcome,
    ) {
        self.handoffs.push(HandoffRecord {
            from: self.agent.name.clone(),
            to: to.clone(),
            tool_name: call.tool.clone(),
            payload: payload.clone(),
            redirected_from: turn.redirect.is_some().then(|| call.to.clone()),
            turn: self.position.turn,
            trigger: HandoffTrigger::Model,
            made_progress: turn.made_progress(),
            outcome,
        });
    }

    /// Counts the turns of agents that have answered beside others.
    pub(crate) fn count_turns(&mut self, turns: u32) {
        self.position.turn = self.position.turn.saturating_add(turns);
    }

    /// The turns of agents that have not answered yet.
    pub(crate) fn turns_inside(&self) -> u32 {
        let tools = self.turn().map(|turn| turn.tools().inner_runs.as_slice());
        let inner = tools.unwrap_or_default().iter();
        inner.map(|inner| inner.run.turns()).sum()
    }

    /// Answers the calls of handoffs that were made side by side.
    pub(crate) fn join_branches(
        &mut self,
        ran: Vec<RanTool>,
        joined_by: JoinedBy,
        output_type: Option<&OutputType>,
    ) {
        let Phase::Tools(mut turn) = std::mem::take(&mut self.position.phase) else {
            return;
        };
        let tools = std::mem::take(turn.tools_mut());
        turn.tools = None;
        self.add_outputs(&mut turn, &tools.calls, ran);
        match joined_by {
            JoinedBy::Caller => self.end_turn(turn, None),
            JoinedBy::Agent(agent) => {
                self.end_turn(turn, None);
                self.move_to(agent, HandoffTrigger::FanOut);
            }
            JoinedBy::Output(output) => {
                let message = self.output_message(&output, output_type);
                turn.items.push(message);
                self.position.phase = Phase::Output(turn, output);
            }
        }
    }
}
