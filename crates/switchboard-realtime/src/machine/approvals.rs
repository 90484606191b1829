//! Decisions of people on calls that wait, and those that hold for later calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::ErrorKind;
use switchboard_core::approval::Decision;

use super::agent_change::OUTDATED_HANDOFF;
use super::calls::{Call, Origin, Role, Stage};
use super::io::{Prepared, Task, TaskOutcome, Ticket};
use super::{Commands, RealtimeMachine};
use crate::error::RealtimeError;

/// A decision for all later calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StandingDecision {
    /// The agent, where the decision is on one agent's tool.
    agent: Option<Arc<str>>,
    tool: Arc<str>,
    role: Option<Role>,
    decision: Decision,
}

impl RealtimeMachine {
    /// The decision that holds for a call.
    pub(super) fn standing_decision(&self, call: &Call) -> Option<&Decision> {
        let mut standing = self.standing.iter();
        let found = standing.rfind(|known| {
            known.tool == *call.tool()
                && known.role == call.role
                && known
                    .agent
                    .as_ref()
                    .is_none_or(|agent| *agent == call.agent)
        });
        found.map(|known| &known.decision)
    }

    /// Takes a person's decision on a call that waits.
    pub(super) fn decide(
        &mut self,
        out: &mut Commands,
        request: Ticket,
        call_id: &Arc<str>,
        decision: Decision,
    ) {
        let is_strict = self.policy().strict_calls;
        let is_ordered = !self.settings.async_tool_calls && self.policy().wait_for_tools;
        let Some(call) = self.call_mut(call_id).filter(|call| call.is_waiting()) else {
            let result = if is_strict {
                Err(RealtimeError::new(
                    ErrorKind::Configuration,
                    format!("no call with the identifier \"{call_id}\" waits for a decision"),
                ))
            } else {
                Ok(())
            };
            return self.reply(out, request, result);
        };
        // The reference's caller waits for an approved call where tools run one at a time, and for the
        // answer of a rejected one in any case.
        let waits = !is_strict && (is_ordered || !decision.is_approved());
        call.origin = if waits {
            Origin::Request(request)
        } else {
            Origin::Background
        };
        call.is_approved = decision.is_approved();
        let (role, tool, agent) = (call.role, call.tool().clone(), call.agent.clone());
        let (is_checked, call_ref) = (call.is_checked, call.to_ref());
        if decision.is_always() {
            self.standing.push(StandingDecision {
                agent: is_strict.then(|| agent.clone()),
                tool,
                role,
                decision: decision.clone(),
            });
        }
        if !waits {
            self.reply(out, request, Ok(()));
        }
        if !decision.is_approved() {
            let work = Task::RejectionText(call_ref, decision);
            return self.begin_for(out, call_id, Stage::Rejecting, work);
        }
        if role == Some(Role::Handoff) {
            if agent != self.current.agent {
                return self.refuse_handoff(out, call_id, OUTDATED_HANDOFF.into());
            }
            return self.hand_off(out, call_id, true);
        }
        // The person may have taken long.
        let condition = self.policy().refresh_conditions;
        if is_checked && !condition {
            return self.on_call_task(out, call_id, TaskOutcome::Prepared(Ok(Prepared::Run)));
        }
        let work = Task::Check {
            call: call_ref,
            condition,
            guardrails: !is_checked,
        };
        self.begin_for(out, call_id, Stage::Preparing, work);
    }
}
