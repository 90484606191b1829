//! Giving a stored run to agents and tools that have other names or schemas than when it was stored.

use std::sync::Arc;

use super::Run;
use super::approvals::Approval;
use super::turn::Turn;
use super::{Phase, agent_keys::AgentRef};

impl Run {
    /// Gives the run to another agent, for a team in which `from` has another name or is gone: the
    /// conversation, if `from` has it, and what was decided for it, also in runs inside tools. The items
    /// that `from` has made stay its own. Both are keys: the name of an agent, or `name#2` for the second of
    /// that name.
    ///
    /// The tools and handoffs whose calls have yet to be carried out must exist for that agent too; see
    /// [`Run::map_tool`] and [`Runner::check_state`](crate::Runner::check_state). Returns `false` if the run
    /// knows no such agent; it is then unchanged.
    pub fn map_agent(&mut self, from: &str, to: &str) -> bool {
        let to: Arc<str> = to.into();
        let mut is_found = false;
        let mut map = |key: &mut Arc<str>| {
            if **key == *from {
                *key = to.clone();
                is_found = true;
            }
        };
        for agent in [&mut self.agent, &mut self.first_agent] {
            let mut key = agent.key.clone();
            map(&mut key);
            if key != agent.key {
                let name = key.clone();
                *agent = AgentRef { key, name };
            }
        }
        if let Some(state) = &mut self.approvals {
            for standing in &mut state.standing {
                map(&mut standing.agent);
            }
        }
        if let Some(way_back) = &mut self.way_back {
            let priors = way_back.0.iter_mut();
            priors.for_each(|prior| map(&mut prior.from));
        }
        if let Some(turn) = self.turn_mut() {
            if let Some(redirect) = &mut turn.redirect {
                map(&mut redirect.to);
            }
            turn.picked.iter_mut().for_each(|picked| map(picked));
        }
        if self.position.tool_users.remove(from) {
            self.position.tool_users.insert(to.clone());
            is_found = true;
        }
        for inner in self.inner_runs_mut() {
            is_found |= inner.map_agent(from, &to);
        }
        is_found
    }

    /// Gives the calls of a tool or a handoff that have yet to be carried out to another one, for a team in
    /// which it has another name or is gone: those of the agent with this key, also in runs inside tools,
    /// with the decisions on them. The model is still shown the call that it made. Returns `false` if no such
    /// call has yet to be carried out; the run is then unchanged.
    ///
    /// The other tool must take the same arguments, where a person was asked about the call; see
    /// [`Run::accept_schema_changes`].
    pub fn map_tool(&mut self, agent: &str, from: &str, to: &str) -> bool {
        let to: Arc<str> = to.into();
        let mut is_found = false;
        let mut map = |tool: &mut Arc<str>| {
            if **tool == *from {
                *tool = to.clone();
                is_found = true;
            }
        };
        if *self.agent.key == *agent
            && let Some(turn) = self.turn_mut()
        {
            if let Some(tools) = &mut turn.tools {
                tools.calls.iter_mut().for_each(|call| map(&mut call.tool));
            }
            let handoffs = turn.handoffs.iter_mut();
            handoffs.for_each(|call| map(&mut call.tool));
        }
        for inner in self.inner_runs_mut() {
            is_found |= inner.map_tool(agent, from, &to);
        }
        if is_found && let Some(state) = &mut self.approvals {
            for standing in &mut state.standing {
                if *standing.agent == *agent && *standing.tool == *from {
                    standing.tool = to.clone();
                }
            }
        }
        is_found
    }

    /// Lets calls that a person was asked about go on with tools and handoffs that take other arguments now.
    /// The arguments are still validated before a tool runs or a handoff is made: a model is told of
    /// arguments that do not fit.
    pub fn accept_schema_changes(&mut self) {
        if let Some(turn) = self.turn_mut() {
            let tools = turn.tools.iter_mut();
            let tools = tools.flat_map(|tools| &mut tools.approvals);
            let tools = tools.map(|known| &mut known.approval);
            let handoff = turn
                .handoff_approval
                .iter_mut()
                .map(|approval| &mut **approval);
            let all: Vec<&mut Approval> = tools.chain(handoff).collect();
            for approval in all {
                approval.schema = None;
            }
        }
        for inner in self.inner_runs_mut() {
            inner.accept_schema_changes();
        }
    }

    fn turn_mut(&mut self) -> Option<&mut Turn> {
        match &mut self.position.phase {
            Phase::Tools(turn)
            | Phase::ToolUse(turn)
            | Phase::Handoff(turn)
            | Phase::Output(turn, _) => Some(turn),
            Phase::Model | Phase::Person(_) | Phase::Done(_) => None,
        }
    }

    /// The runs inside tools in which calls wait.
    pub(super) fn inner_runs_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        let turn = self.turn_mut();
        let tools = turn.and_then(|turn| turn.tools.as_deref_mut());
        let inner = tools.map(|tools| tools.inner_runs.iter_mut());
        inner.into_iter().flatten().map(|inner| &mut *inner.run)
    }
}
