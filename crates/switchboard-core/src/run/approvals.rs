//! The approvals of calls: their state, waiting for decisions, and standing decisions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::people::PersonPart;
use super::tool_results::RanTool;
use super::turn::{HandoffCall, ToolTurn, Turn};
use super::{Phase, Run};
use crate::approval::{Decision, Interruption, InterruptionKind};
use crate::items::{Item, RunItem, RunItemKind};
use crate::json::unquote;

/// The decisions of people on a run, and what they have added to it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ApprovalState {
    /// Decisions on all calls of a tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) standing: Vec<StandingDecision>,
    /// Input for the next model call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) added_input: Vec<Item>,
    /// Set once guardrails have passed the added input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) input_is_checked: bool,
    /// The identifier of the wait that the run is in. Each wait can be resumed from once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wait: Option<Arc<str>>,
    /// The answer of a person in the turn in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<PersonPart>,
}

/// A decision on all calls of a tool by one agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StandingDecision {
    /// The names of the agent tools that the agent runs inside of, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inside: Vec<Arc<str>>,
    /// The key of the agent.
    pub(crate) agent: Arc<str>,
    /// The kind of the tool: tools of the application, and those of different servers, may share a name.
    pub(crate) kind: InterruptionKind,
    pub(crate) tool: Arc<str>,
    pub(crate) decision: Decision,
}

/// The approval of one call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// Set if the call needs a decision.
    pub(crate) is_needed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Decision>,
    /// Set if the decision is a standing one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_standing: bool,
    /// Set once the run was interrupted for the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_waited: bool,
    /// The fingerprint of the arguments' schema when a person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Arc<str>>,
}

impl Approval {
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_needed && self.decision.is_none()
    }

    /// Returns `true` if the call is answered instead of carried out.
    pub(crate) fn is_rejected(&self) -> bool {
        let decision = self.decision.as_ref();
        decision.is_some_and(|decision| !decision.is_approved())
    }

    pub(super) fn decide(&mut self, decision: Decision) {
        self.decision = Some(decision);
        self.is_standing = false;
    }

    /// Takes a standing decision, unless there is one on this call alone.
    pub(super) fn decide_standing(&mut self, decision: &Decision) {
        if self.is_needed && (self.decision.is_none() || self.is_standing) {
            self.decision = Some(decision.clone());
            self.is_standing = true;
        }
    }
}

/// The approval of a tool call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallApproval {
    /// The index of the call.
    pub(crate) at: usize,
    /// Set if the tool is an agent.
    pub(crate) is_agent: bool,
    pub(crate) approval: Approval,
}

impl CallApproval {
    pub(super) fn kind(&self) -> InterruptionKind {
        tool_kind(self.is_agent)
    }
}

/// The kind of a tool of the application.
pub(crate) fn tool_kind(is_agent: bool) -> InterruptionKind {
    if is_agent {
        InterruptionKind::AgentTool
    } else {
        InterruptionKind::Tool
    }
}

/// A run inside a tool call, in which calls wait.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InnerRun {
    /// The index of the call.
    pub(crate) at: usize,
    pub(crate) run: Box<Run>,
}

/// A call that the provider asks about before it runs it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HostedRequest {
    pub(crate) item: Item,
    pub(crate) approval: Approval,
    /// Set once the answer is among the items of the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_answered: bool,
}

impl HostedRequest {
    pub(crate) fn new(item: Item) -> Self {
        Self {
            item,
            approval: Approval {
                is_needed: true,
                ..Approval::default()
            },
            is_answered: false,
        }
    }

    pub(crate) fn tool(&self) -> Arc<str> {
        self.item.name().unwrap_or_default().as_ref().into()
    }

    pub(crate) fn kind(&self) -> InterruptionKind {
        let server = self.server();
        InterruptionKind::HostedTool { server }
    }

    pub(crate) fn server(&self) -> Arc<str> {
        let label = self.item.field("server_label").and_then(unquote);
        label.unwrap_or_default().as_ref().into()
    }

    /// The answer for the provider, once there is a decision.
    fn answer(&self) -> Option<Item> {
        let decision = self.approval.decision.as_ref()?;
        let id = self.item.id().unwrap_or_default();
        let reason = decision.message_text().map(|reason| &**reason);
        Some(Item::mcp_approval_response(
            &id,
            decision.is_approved(),
            reason,
        ))
    }

    pub(super) fn interruption(&self, agent: &Arc<str>) -> Interruption {
        Interruption {
            kind: self.kind(),
            agent: agent.clone(),
            tool: self.tool(),
            call_id: self.item.id().unwrap_or_default().as_ref().into(),
            arguments: self.item.arguments().unwrap_or_default().as_ref().into(),
            inside: Vec::new(),
        }
    }
}

/// Lookups by the index of a call. All lists are in the order of the calls.
impl ToolTurn {
    pub(crate) fn call_approval(&self, at: usize) -> Option<&CallApproval> {
        let known = self.approvals.binary_search_by_key(&at, |known| known.at);
        self.approvals.get(known.ok()?)
    }

    pub(crate) fn done_at(&self, at: usize) -> Option<&RanTool> {
        let ran = self.done.binary_search_by_key(&at, |ran| ran.at);
        self.done.get(ran.ok()?)
    }

    pub(crate) fn approval(&self, at: usize) -> Option<&Approval> {
        Some(&self.call_approval(at)?.approval)
    }

    pub(super) fn approval_mut(&mut self, at: usize) -> Option<&mut Approval> {
        let known = self.approvals.binary_search_by_key(&at, |known| known.at);
        Some(&mut self.approvals[known.ok()?].approval)
    }

    pub(crate) fn inner_run(&self, at: usize) -> Option<&Run> {
        let inner = self.inner_runs.binary_search_by_key(&at, |inner| inner.at);
        Some(&self.inner_runs[inner.ok()?].run)
    }

    pub(crate) fn is_done(&self, at: usize) -> bool {
        self.done_at(at).is_some()
    }

    /// Returns `true` if the call waits, or one inside it.
    pub(crate) fn call_is_waiting(&self, at: usize) -> bool {
        self.approval(at).is_some_and(Approval::is_waiting)
            || self.inner_run(at).is_some_and(Run::is_waiting)
    }

    /// Returns `true` if calls wait, and nothing can be done before a decision.
    pub(crate) fn is_waiting(&self) -> bool {
        if self.approvals.is_empty() && self.inner_runs.is_empty() && self.requests.is_empty() {
            return false;
        }
        let requests = self.requests.iter();
        let mut requests = requests.filter(|request| !request.is_answered);
        let is_blocked = |at: usize| self.is_done(at) || self.call_is_waiting(at);
        let calls = 0..self.calls.len();
        let waits =
            calls.clone().any(|at| self.call_is_waiting(at)) || requests.clone().next().is_some();
        waits
            && calls.into_iter().all(is_blocked)
            && requests.all(|request| request.approval.has_waited && request.approval.is_waiting())
    }
}

impl Turn {
    /// Returns `true` if the handoff waits.
    pub(crate) fn handoff_is_waiting(&self) -> bool {
        let approval = self.handoff_approval.as_ref();
        approval.is_some_and(|approval| approval.is_waiting())
    }
}

/// Waiting, and the transitions around it.
impl Run {
    /// Returns a copy of an interrupted run that can be resumed beside it: each state of a run can be
    /// resumed once, so that what was approved does not run twice, and a fork is a state of its own. Its calls
    /// have other [idempotency keys](crate::tool::ToolContext::idempotency_key), also those that wait. A run
    /// that waits in a stored conversation is forked with it, by
    /// [`Conversation::fork`](crate::conversation::Conversation::fork).
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut fork = self.clone();
        if fork.wait_id().is_some() {
            fork.begin_wait();
            fork.renew_ids();
        }
        fork
    }

    /// Gives the run and those inside it identifiers of their own.
    fn renew_ids(&mut self) {
        self.id = super::new_id();
        for inner in self.inner_runs_mut() {
            inner.renew_ids();
        }
    }

    /// Returns `true` if the run waits for decisions.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.step(), super::Step::AwaitDecision)
    }

    /// The identifier of the wait that the run is in, also once calls are decided.
    pub(crate) fn wait_id(&self) -> Option<&Arc<str>> {
        self.approvals.as_ref()?.wait.as_ref()
    }

    pub(crate) fn approvals_mut(&mut self) -> &mut ApprovalState {
        self.approvals.get_or_insert_default()
    }

    /// The standing decision on calls of a tool by the current agent.
    pub(crate) fn standing_decision(
        &self,
        kind: &InterruptionKind,
        tool: &str,
    ) -> Option<&Decision> {
        let mut standing = self.approvals.as_ref()?.standing.iter();
        let found = standing.find(|standing| {
            standing.inside.is_empty()
                && standing.agent == self.agent.key
                && standing.kind == *kind
                && *standing.tool == *tool
        });
        found.map(|standing| &standing.decision)
    }

    /// The standing decisions for the runs inside a tool.
    pub(crate) fn standing_inside(&self, tool: &str) -> Vec<StandingDecision> {
        let Some(state) = &self.approvals else {
            return Vec::new();
        };
        let inside = state.standing.iter().filter_map(|standing| {
            let (outer, rest) = standing.inside.split_first()?;
            (**outer == *tool).then(|| StandingDecision {
                inside: rest.to_vec(),
                ..standing.clone()
            })
        });
        inside.collect()
    }

    /// Takes over the standing decisions of the run around this one, which has all of them.
    pub(crate) fn inherit_standing(&mut self, standing: &[StandingDecision]) {
        if self.approvals.is_some() || !standing.is_empty() {
            self.approvals_mut().standing = standing.to_vec();
        }
    }

    /// Notes the need of a handoff's approval.
    pub(crate) fn handoff_needs_approval(&mut self, approval: Approval) {
        if let Phase::Handoff(turn) = &mut self.position.phase {
            turn.handoff_approval = Some(Box::new(approval));
        }
    }

    /// Notes the schema of the payload that a person is asked about.
    pub(crate) fn handoff_waits_with(&mut self, schema: String) {
        if let Phase::Handoff(turn) = &mut self.position.phase
            && let Some(approval) = &mut turn.handoff_approval
        {
            approval.schema = Some(schema.into());
        }
    }

    /// Notes that a decision on the handoff asks for a person's, unless there is one.
    pub(crate) fn ask_for_approval(&mut self) {
        let call = self.turn().and_then(|turn| turn.handoffs.first());
        let standing = call.and_then(|call| {
            let to = self.handoff_target(call);
            self.standing_decision(&InterruptionKind::Handoff { to }, &call.tool)
        });
        let standing = standing.cloned();
        if let Phase::Handoff(turn) = &mut self.position.phase {
            let approval = turn.handoff_approval.get_or_insert_default();
            approval.is_needed = true;
            if approval.decision.is_none() {
                approval.is_standing = standing.is_some();
                approval.decision = standing;
            }
        }
    }

    /// The agent that a handoff leads to: the one that the model asked for, or that a decision or a limit
    /// has named instead.
    pub(crate) fn handoff_target(&self, call: &HandoffCall) -> Arc<str> {
        let redirect = self.turn().and_then(|turn| turn.redirect.as_ref());
        redirect.map_or(&call.to, |redirect| &redirect.to).clone()
    }

    /// The payload that a redirect has given the handoff, in place of the model's.
    pub(crate) fn redirected_payload(&self) -> Option<&Value> {
        let redirect = self.turn()?.redirect.as_ref()?;
        redirect.payload.as_ref()
    }

    /// Returns `true` if a person has approved the handoff.
    pub(crate) fn handoff_is_approved(&self) -> bool {
        let approval = self.turn().and_then(|turn| turn.handoff_approval.as_ref());
        let decision = approval.and_then(|approval| approval.decision.as_ref());
        decision.is_some_and(Decision::is_approved)
    }

    /// Notes the approval of a call that the provider asks about.
    pub(crate) fn request_asked(&mut self, at: usize, approval: Approval) {
        if let Phase::Tools(turn) = &mut self.position.phase
            && let Some(request) = turn.tools_mut().requests.get_mut(at)
        {
            request.approval = approval;
        }
    }

    /// Begins to wait for decisions. The items of the turn so far become part of the record; the session
    /// gets them too, unless output guardrails have yet to pass a tool's result that may end the run.
    pub(crate) fn wait(&mut self, may_save: bool) {
        let mut phase = std::mem::take(&mut self.position.phase);
        if let Phase::Tools(turn) | Phase::Handoff(turn) = &mut phase {
            if let Some(tools) = &mut turn.tools {
                let mut approvals: Vec<&mut Approval> = tools
                    .approvals
                    .iter_mut()
                    .map(|known| &mut known.approval)
                    .collect();
                approvals.extend(
                    tools
                        .requests
                        .iter_mut()
                        .map(|request| &mut request.approval),
                );
                for approval in approvals {
                    approval.has_waited |= approval.is_waiting();
                }
            }
            if let Some(approval) = &mut turn.handoff_approval {
                approval.has_waited |= approval.is_waiting();
            }
            let new: Vec<RunItem> = turn.items[turn.recorded..].to_vec();
            turn.recorded = turn.items.len();
            if may_save {
                self.save_early(&new);
            }
            self.conversation.record.extend(new);
        }
        self.position.phase = phase;
        self.position.agent_started = false;
        self.begin_wait();
    }

    /// Gives the wait that the run is in an identifier of its own.
    pub(crate) fn begin_wait(&mut self) {
        self.approvals_mut().wait = Some(format!("{:032x}", fastrand::u128(..)).into());
    }

    /// Adds answers for the provider to the turn, where its requests are decided.
    pub(crate) fn answer_requests(&mut self, turn: &mut Turn) {
        let Some(tools) = &mut turn.tools else {
            return;
        };
        for request in &mut tools.requests {
            if !request.is_answered
                && let Some(answer) = request.answer()
            {
                request.is_answered = true;
                let number = self.next_item();
                let kind = RunItemKind::McpApprovalResponse;
                let made = RunItem::made(kind, self.agent.name.clone(), answer, number);
                turn.items.push(made);
            }
        }
    }
}
