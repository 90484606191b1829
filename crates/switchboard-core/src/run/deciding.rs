//! Listing the calls that wait for a decision, and deciding them.

use std::sync::Arc;

use super::approvals::{Approval, CallApproval, HostedRequest, StandingDecision};
use super::turn::{HandoffProgress, ToolTurn, Turn};
use super::{Phase, Run};
use crate::approval::{Decision, DecisionError, Interruption, InterruptionKind};
use crate::error::excerpt;
use crate::items::Item;

impl Run {
    /// The calls that wait for a decision, in the order in which they were made, or the person that is
    /// asked for an answer; empty unless the run
    /// is [interrupted](super::RunStatus::Interrupted). Calls inside agents used as tools are in the place
    /// of the call that they lie inside of.
    pub fn interruptions(&self) -> Vec<Interruption> {
        match &self.position.phase {
            Phase::Tools(turn) => self.waiting_calls(turn.tools()),
            Phase::Handoff(turn) if turn.handoff_is_waiting() => {
                self.handoff_interruption(turn).into_iter().collect()
            }
            Phase::Person(_) => self.person_interruption().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn waiting_calls(&self, tools: &ToolTurn) -> Vec<Interruption> {
        let mut waiting = Vec::new();
        for at in 0..tools.calls.len() {
            if tools.approval(at).is_some_and(Approval::is_waiting) {
                waiting.push(self.tool_interruption(tools, at));
            } else if let Some(inner) = tools.inner_run(at) {
                let outer: Arc<str> = call_id(&tools.calls[at].call);
                let inside = inner.interruptions().into_iter().map(|mut waiting| {
                    waiting.inside.insert(0, outer.clone());
                    waiting
                });
                waiting.extend(inside);
            }
        }
        let requests = tools.requests.iter();
        let requests = requests.filter(|request| request.approval.is_waiting());
        waiting.extend(requests.map(|request| request.interruption(&self.agent.name)));
        waiting
    }

    fn tool_interruption(&self, tools: &ToolTurn, at: usize) -> Interruption {
        let call = &tools.calls[at];
        let known = tools.call_approval(at);
        Interruption {
            kind: known.map_or(InterruptionKind::Tool, CallApproval::kind),
            agent: self.agent.name.clone(),
            tool: call.tool.clone(),
            call_id: call_id(&call.call),
            arguments: call.call.arguments().unwrap_or_default().as_ref().into(),
            inside: Vec::new(),
        }
    }

    fn handoff_interruption(&self, turn: &Turn) -> Option<Interruption> {
        let call = turn.handoffs.first()?;
        turn.handoff_approval.as_ref()?;
        Some(Interruption {
            kind: InterruptionKind::Handoff {
                to: self.handoff_target(call),
            },
            agent: self.agent.name.clone(),
            tool: call.tool.clone(),
            call_id: call_id(&call.call),
            arguments: match self.redirected_payload() {
                Some(payload) => payload.to_string().into(),
                None => call.call.arguments().unwrap_or_default().as_ref().into(),
            },
            inside: Vec::new(),
        })
    }

    /// Decides a call that waits. Until the run is resumed the last decision on a call counts. A run
    /// can be resumed once one call is decided: what is decided then runs, and the rest waits on.
    ///
    /// # Errors
    /// An error if no such call waits: the identifier, the tool, the arguments, the agent and the calls
    /// around it must all be those of the interruption.
    pub fn decide(
        &mut self,
        waiting: &Interruption,
        decision: Decision,
    ) -> Result<(), DecisionError> {
        if let InterruptionKind::Person { .. } = waiting.kind {
            return Err(DecisionError(format!(
                "\"{}\" is asked for an answer, which is no decision; give it with Run::answer",
                excerpt(&waiting.agent)
            )));
        }
        let Some((inside, agent)) = self.take_decision(waiting, &waiting.inside, &decision) else {
            return Err(self.unknown_call(waiting));
        };
        if decision.is_always() {
            let standing = StandingDecision {
                inside,
                agent,
                kind: waiting.kind.clone(),
                tool: waiting.tool.clone(),
                decision,
            };
            self.apply_standing(&standing.inside, &standing);
            let known = &mut self.approvals_mut().standing;
            known.retain(|known| {
                (&known.inside, &known.agent, &known.kind, &known.tool)
                    != (
                        &standing.inside,
                        &standing.agent,
                        &standing.kind,
                        &standing.tool,
                    )
            });
            known.push(standing);
        }
        Ok(())
    }

    /// Gives the call of an interruption its decision. Returns the names of the tools that it lies
    /// inside of and the key of the agent, or `None` if no such call waits.
    fn take_decision(
        &mut self,
        waiting: &Interruption,
        inside: &[Arc<str>],
        decision: &Decision,
    ) -> Option<(Vec<Arc<str>>, Arc<str>)> {
        let agent = self.agent.key.clone();
        let found = self.position_of(waiting, inside)?;
        let (Phase::Tools(turn) | Phase::Handoff(turn)) = &mut self.position.phase else {
            return None;
        };
        let approval = match found {
            WaitingAt::Call(at) => turn.tools_mut().approval_mut(at)?,
            WaitingAt::Request(at) => &mut turn.tools_mut().requests.get_mut(at)?.approval,
            WaitingAt::Handoff => turn.handoff_approval.as_deref_mut()?,
            WaitingAt::Inside(at) => {
                let tools = turn.tools_mut();
                let tool = tools.calls.get(at)?.tool.clone();
                let inner = tools.inner_runs.iter_mut().find(|inner| inner.at == at)?;
                let (mut path, agent) =
                    (inner.run).take_decision(waiting, &inside[1..], decision)?;
                path.insert(0, tool);
                return Some((path, agent));
            }
        };
        approval.decide(decision.clone());
        Some((Vec::new(), agent))
    }

    /// Finds the call of an interruption that waits, or waited and was not resumed.
    fn position_of(&self, waiting: &Interruption, inside: &[Arc<str>]) -> Option<WaitingAt> {
        let is_same = |made: &Interruption| {
            made.kind == waiting.kind
                && made.agent == waiting.agent
                && made.tool == waiting.tool
                && made.call_id == waiting.call_id
                && made.arguments == waiting.arguments
        };
        match &self.position.phase {
            Phase::Tools(turn) => {
                let tools = turn.tools();
                if let Some(outer) = inside.first() {
                    let mut inner = tools.inner_runs.iter();
                    let is_outer = |at: usize| {
                        let call = tools.calls.get(at);
                        call.is_some_and(|call| call_id(&call.call) == *outer)
                    };
                    let found = inner.find(|inner| is_outer(inner.at));
                    return found.map(|inner| WaitingAt::Inside(inner.at));
                }
                // A call whose run has begun cannot be taken back.
                let is_open = |at: usize| {
                    let is_needed = tools.approval(at).is_some_and(|known| known.is_needed);
                    is_needed && !tools.is_done(at) && tools.inner_run(at).is_none()
                };
                let mut calls = (0..tools.calls.len()).filter(|at| is_open(*at));
                let is_called = |at: usize| {
                    let id = tools.calls[at].call.call_id().unwrap_or_default();
                    *id == *waiting.call_id && is_same(&self.tool_interruption(tools, at))
                };
                let call = calls.find(|at| is_called(*at));
                let is_request = |request: &HostedRequest| {
                    !request.is_answered && is_same(&request.interruption(&self.agent.name))
                };
                let request = tools.requests.iter().position(is_request);
                call.map(WaitingAt::Call)
                    .or(request.map(WaitingAt::Request))
            }
            Phase::Handoff(turn) if inside.is_empty() => {
                let made = self.handoff_interruption(turn)?;
                let is_needed =
                    (turn.handoff_approval.as_ref()).is_some_and(|known| known.is_needed);
                // Once the callback has run, the handoff cannot be taken back.
                let is_open = is_needed && turn.progress == HandoffProgress::NotStarted;
                (is_open && is_same(&made)).then_some(WaitingAt::Handoff)
            }
            _ => None,
        }
    }

    fn unknown_call(&self, waiting: &Interruption) -> DecisionError {
        let known = self.interruptions();
        let known: Vec<String> = known
            .iter()
            .map(|known| format!("{} (call {})", known.tool, known.call_id))
            .collect();
        let known = match known.as_slice() {
            [] => "nothing waits for a decision in this run".to_owned(),
            known => format!("these calls wait: {}", excerpt(&known.join(", "))),
        };
        DecisionError(format!(
            "no call \"{}\" of the tool \"{}\" with these arguments by \"{}\" waits for a decision; \
             {known}. Decide on what Run::interruptions lists",
            excerpt(&waiting.call_id),
            excerpt(&waiting.tool),
            excerpt(&waiting.agent),
        ))
    }

    /// Gives the calls that wait a standing decision.
    fn apply_standing(&mut self, inside: &[Arc<str>], standing: &StandingDecision) {
        let is_agent = self.agent.key == standing.agent;
        let handoff = self.turn().and_then(|turn| turn.handoffs.first());
        let handoff_to = handoff.map(|call| self.handoff_target(call));
        let (Phase::Tools(turn) | Phase::Handoff(turn)) = &mut self.position.phase else {
            return;
        };
        if let Some((outer, rest)) = inside.split_first() {
            if let Some(tools) = &mut turn.tools {
                let ToolTurn {
                    calls, inner_runs, ..
                } = &mut **tools;
                for inner in inner_runs {
                    if calls.get(inner.at).is_some_and(|call| call.tool == *outer) {
                        inner.run.apply_standing(rest, standing);
                    }
                }
            }
            return;
        }
        if !is_agent {
            return;
        }
        if let Some(tools) = &mut turn.tools {
            let ToolTurn {
                calls, approvals, ..
            } = &mut **tools;
            for known in approvals {
                let is_tool = calls
                    .get(known.at)
                    .is_some_and(|call| call.tool == standing.tool);
                if is_tool && known.kind() == standing.kind {
                    known.approval.decide_standing(&standing.decision);
                }
            }
            for request in &mut tools.requests {
                let is_tool = request.tool() == standing.tool && request.kind() == standing.kind;
                if !request.is_answered && is_tool {
                    request.approval.decide_standing(&standing.decision);
                }
            }
        }
        if let Some(to) = handoff_to
            && (turn.handoffs.first()).is_some_and(|call| call.tool == standing.tool)
            && standing.kind == (InterruptionKind::Handoff { to })
            && let Some(approval) = &mut turn.handoff_approval
        {
            approval.decide_standing(&standing.decision);
        }
    }
}

/// The place of a call that waits.
enum WaitingAt {
    Call(usize),
    Request(usize),
    Handoff,
    /// Inside the tool call at this index.
    Inside(usize),
}

fn call_id(call: &Item) -> Arc<str> {
    call.call_id().unwrap_or_default().as_ref().into()
}
