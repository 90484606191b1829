//! Checking a stored run against the agents that are to go on with it.

use std::fmt;
use std::sync::Arc;

use super::{RunConfig, Runner, SeveralHandoffs};
use crate::agent::Agent;
use crate::driver::ways_back;
use crate::error::{Error, ErrorKind, excerpt};
use crate::handoff::{Handoff, ToolNames, target};
use crate::run::approvals::Approval;
use crate::run::turn::{ToolCall, ToolTurn, Turn};
use crate::run::{Run, Step, agent_keys};
use crate::schema::fingerprint;
use crate::tool::Tool;

/// The reasons why a run cannot go on with the agents of a runner: the agents have changed since it was
/// stored. The cause of the error of [`Runner::resume`].
///
/// ```
/// use switchboard_core::Error;
/// use switchboard_core::run::{StateProblem, StateProblemKind, StateProblems};
///
/// fn tools_that_are_gone(error: &Error) -> Vec<&StateProblem> {
///     let cause = error.cause().and_then(|cause| cause.downcast_ref::<StateProblems>());
///     let problems = cause.map(StateProblems::problems).unwrap_or_default();
///     problems.iter().filter(|problem| problem.kind == StateProblemKind::UnknownTool).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateProblems(Vec<StateProblem>);

/// A reason why a run cannot go on with the agents of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateProblem {
    /// The kind of problem.
    pub kind: StateProblemKind,
    /// The key of the agent that has the conversation: its name, or `name#2` for the second of that name.
    pub agent: Arc<str>,
    /// The name of the tool, or of the handoff's tool, where the problem is about one.
    pub tool: Option<Arc<str>>,
    /// The identifier of its call.
    pub call_id: Option<Arc<str>>,
    /// The names of the agents used as tools that the run lies inside of, outermost first.
    pub inside: Vec<Arc<str>>,
    /// The agents, tools or handoffs that there are instead.
    known: Vec<Arc<str>>,
    /// The agent that the search began with.
    start: Arc<str>,
}

/// The kind of a [`StateProblem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateProblemKind {
    /// The agent that has the conversation is not among those that the runner's agent leads to. Give the run
    /// to another one with [`Run::map_agent`] or [`Runner::stored_agent`].
    UnknownAgent,
    /// The agent has no tool of the name that was called. Give the call to another tool with
    /// [`Run::map_tool`], or reject it.
    UnknownTool,
    /// The agent has no handoff of the name that was called. Give the call to another handoff with
    /// [`Run::map_tool`], or reject it.
    UnknownHandoff,
    /// The agent that the handoff was redirected to cannot be reached. Name another one with
    /// [`Run::map_agent`].
    UnknownTarget,
    /// The tool or handoff takes other arguments than when a person was asked about the call. Reject the
    /// call, or accept the change with [`Run::accept_schema_changes`].
    OtherSchema,
    /// The tool has a run inside it, and is no agent any more. Give the call to another agent used as a tool
    /// with [`Run::map_tool`].
    NoAgentTool,
}

impl StateProblems {
    /// The problems, in the order of the calls; at least one.
    pub fn problems(&self) -> &[StateProblem] {
        &self.0
    }
}

impl fmt::Display for StateProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for StateProblems {}

impl fmt::Display for StateProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = excerpt(&self.agent);
        let tool = excerpt(self.tool.as_deref().unwrap_or_default());
        let call = excerpt(self.call_id.as_deref().unwrap_or_default());
        if !self.inside.is_empty() {
            let inside = self.inside.join(" > ");
            write!(f, "inside the tool {}: ", excerpt(&inside))?;
        }
        match self.kind {
            StateProblemKind::UnknownAgent => write!(
                f,
                "the run to resume is with agent \"{agent}\", which \"{}\" does not lead to; resume it \
                 with the agents it was begun with (an agent that a custom handoff picks is found only \
                 if it is listed with candidate), or give it to one of the agents that there are with \
                 Run::map_agent",
                self.start
            ),
            StateProblemKind::UnknownTool => write!(
                f,
                "the model called the tool \"{tool}\" (call {call}), and the agent \"{agent}\" that the \
                 run was resumed with has none of that name; reject the call, or give it to another \
                 tool with Run::map_tool"
            ),
            StateProblemKind::UnknownHandoff => write!(
                f,
                "the model asked for the handoff \"{tool}\" (call {call}), and the agent \"{agent}\" \
                 that the run was resumed with has none of that name; reject the call, or give it to \
                 another handoff with Run::map_tool"
            ),
            StateProblemKind::UnknownTarget => write!(
                f,
                "the handoff \"{tool}\" (call {call}) was redirected to \"{agent}\", which \"{}\" does \
                 not lead to; name another agent with Run::map_agent",
                self.start
            ),
            StateProblemKind::OtherSchema => write!(
                f,
                "\"{tool}\" of the agent \"{agent}\" takes other arguments than when a person was asked \
                 about call {call}; reject the call, or accept the change with \
                 Run::accept_schema_changes"
            ),
            StateProblemKind::NoAgentTool => write!(
                f,
                "the tool \"{tool}\" of the agent \"{agent}\" (call {call}) has a run inside it, and is \
                 no agent any more; give the call to another agent used as a tool with Run::map_tool"
            ),
        }?;
        if self.known.is_empty() {
            return Ok(());
        }
        write!(f, " (there are: {})", excerpt(&self.known.join(", ")))
    }
}

impl<C: Send + Sync + 'static, S> Runner<C, S> {
    /// Checks that a stored run can go on with the agents of the runner: that the agent that has the
    /// conversation exists, that it has the tools and handoffs whose calls have yet to be carried out, and
    /// that those that a person was asked about take the same arguments as then. Nothing runs.
    ///
    /// [`Runner::resume`], [`Runner::resume_stream`] and [`Runner::step`] check it before anything else, and
    /// fail with the same problems. A call that was rejected needs no tool.
    ///
    /// ```
    /// use switchboard_core::run::StateProblemKind;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Run, Runner, tool};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let desk = |tool_name: &str| -> Agent {
    ///     Agent::new("Desk").tool(tool(tool_name).needs_approval().run(|_ctx, (): ()| "refunded"))
    /// };
    /// let model = ScriptedModel::new().call("refund", "{}").say("Done.");
    /// let result = Runner::new(&desk("refund")).model(model.clone()).run("My money!").await?;
    /// let stored = serde_json::to_string(result.run()).unwrap();
    ///
    /// // Days later, the tool has another name.
    /// let mut run: Run = serde_json::from_str(&stored).unwrap();
    /// let runner = Runner::new(&desk("pay_back")).model(model);
    /// let problems = runner.check_state(&run).unwrap_err();
    /// assert_eq!(problems.problems()[0].kind, StateProblemKind::UnknownTool);
    /// assert!(run.map_tool("Desk", "refund", "pay_back"));
    /// runner.check_state(&run).unwrap();
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// Everything of the run that the agents do not have.
    pub fn check_state(&self, run: &Run) -> Result<(), StateProblems> {
        self.agent_of(run).map(drop)
    }

    /// The agent that has the conversation of a run that is resumed, once the run is checked.
    pub(super) fn take_over(&self, run: &mut Run) -> Result<Agent<C>, Error> {
        let agent = self.agent_of(run).map_err(|problems| {
            Error::new(ErrorKind::Configuration, problems.to_string()).caused_by(problems)
        })?;
        let key = self.key_in(run);
        if key != run.agent.key {
            run.map_agent(&run.agent.key.clone(), &key);
        }
        Ok(agent)
    }

    /// The key of the agent that has the conversation: another one where the agent is gone, and the runner
    /// names who gets its conversations.
    fn key_in(&self, run: &Run) -> Arc<str> {
        let key = &run.agent.key;
        let mut renamed = self.config.stored_agents.iter().rev();
        let renamed = renamed.find(|(from, _)| from == key);
        match renamed {
            Some((_, to)) if agent_keys::find(&self.agent, key).is_none() => to.clone(),
            _ => key.clone(),
        }
    }

    fn agent_of(&self, run: &Run) -> Result<Agent<C>, StateProblems> {
        let mut check = StateCheck {
            config: &self.config,
            inside: Vec::new(),
            problems: Vec::new(),
        };
        let agent = check.run(&self.agent, &self.key_in(run), run);
        match agent {
            Some(agent) if check.problems.is_empty() => Ok(agent),
            _ => Err(StateProblems(check.problems)),
        }
    }
}

/// The check of a run, and of the runs inside it.
struct StateCheck<'a, C> {
    config: &'a RunConfig<C>,
    inside: Vec<Arc<str>>,
    problems: Vec<StateProblem>,
}

impl<C: Send + Sync + 'static> StateCheck<'_, C> {
    /// Checks a run that began with `start` and is with the agent of this key, which is returned.
    fn run(&mut self, start: &Agent<C>, key: &Arc<str>, run: &Run) -> Option<Agent<C>> {
        let Some(agent) = agent_keys::find(start, key) else {
            let known = agent_keys::keys(start);
            self.add(StateProblemKind::UnknownAgent, start, key, None, known);
            return None;
        };
        let Some(turn) = run.turn() else {
            return Some(agent);
        };
        let names = self.config.tool_names;
        let in_place = ways_back::agent_in_place(run, start, &agent, names);
        let in_place = in_place.as_ref().unwrap_or(&agent);
        match run.step() {
            Step::FanOut(_) | Step::AwaitDecision if turn.is_fanned_out() => {
                self.branches(in_place, key, turn.tools());
            }
            Step::RunTools(_) | Step::AwaitDecision => {
                self.tools(&agent, key, turn.tools());
                self.handoff(start, in_place, key, turn);
            }
            Step::TakeHandoff(_) => self.handoff(start, in_place, key, turn),
            _ => {}
        }
        Some(agent)
    }

    fn tools(&mut self, agent: &Agent<C>, key: &Arc<str>, tools: &ToolTurn) {
        for (at, call) in tools.calls.iter().enumerate() {
            let (approval, inner) = (tools.approval(at), tools.inner_run(at));
            let is_rejected = inner.is_none() && approval.is_some_and(Approval::is_rejected);
            if tools.is_done(at) || is_rejected {
                continue;
            }
            let mut owned = agent.tools().iter();
            let is_called = |tool: &&Tool<C>| *tool.name() == *call.tool;
            let found = owned.rfind(|tool| is_called(tool) && tool.as_hosted().is_none());
            let Some(tool) = found else {
                let named = agent.tools().iter().map(Tool::name_arc).cloned();
                let kind = StateProblemKind::UnknownTool;
                self.add(kind, agent, key, Some(call), named.collect());
                continue;
            };
            match (inner, tool.agent()) {
                (None, _) => {
                    let schema = approval.and_then(|approval| approval.schema.as_deref());
                    if schema.is_some_and(|schema| *schema != *tool.schema_fingerprint()) {
                        let kind = StateProblemKind::OtherSchema;
                        self.add(kind, agent, key, Some(call), Vec::new());
                    }
                }
                (Some(_), None) => {
                    let kind = StateProblemKind::NoAgentTool;
                    self.add(kind, agent, key, Some(call), Vec::new());
                }
                (Some(inner), Some(expert)) => {
                    self.inside.push(call.tool.clone());
                    let expert = expert.reached_in(agent.team());
                    self.run(&expert, &inner.agent.key, inner);
                    self.inside.pop();
                }
            }
        }
    }

    /// Checks handoffs that are made side by side.
    fn branches(&mut self, agent: &Agent<C>, key: &Arc<str>, tools: &ToolTurn) {
        for (at, call) in tools.calls.iter().enumerate() {
            if tools.is_done(at) {
                continue;
            }
            let Some(handoff) = self.handoff_named(agent, &call.tool) else {
                let names = self.config.tool_names.names_of(agent.handoffs());
                let kind = StateProblemKind::UnknownHandoff;
                self.add(kind, agent, key, Some(call), names);
                continue;
            };
            if let (Some(inner), Some(expert)) = (tools.inner_run(at), target(agent, handoff)) {
                self.inside.push(call.tool.clone());
                self.run(&expert, &inner.agent.key, inner);
                self.inside.pop();
            }
        }
    }

    fn handoff(&mut self, start: &Agent<C>, agent: &Agent<C>, key: &Arc<str>, turn: &Turn) {
        let Some(requested) = turn.handoffs.first() else {
            return;
        };
        let policy = &self.config.handoff_policy.several;
        let takes_one = matches!(policy, SeveralHandoffs::First | SeveralHandoffs::FanOut(_));
        let is_refused = turn.handoffs.len() > 1 && !takes_one;
        let approval = turn.handoff_approval.as_deref();
        if is_refused || approval.is_some_and(Approval::is_rejected) {
            return;
        }
        let call = &ToolCall {
            tool: requested.tool.clone(),
            call: requested.call.clone(),
        };
        if let Some(redirect) = &turn.redirect {
            if agent_keys::find(start, &redirect.to).is_none() {
                let (kind, known) = (StateProblemKind::UnknownTarget, agent_keys::keys(start));
                self.add(kind, start, &redirect.to, Some(call), known);
            }
            return;
        }
        let Some(handoff) = self.handoff_named(agent, &requested.tool) else {
            let names = self.config.tool_names.names_of(agent.handoffs());
            let kind = StateProblemKind::UnknownHandoff;
            self.add(kind, agent, key, Some(call), names);
            return;
        };
        let schema = approval.and_then(|approval| approval.schema.as_deref());
        let current = || fingerprint(handoff.spec().input_json_schema.get());
        if schema.is_some_and(|schema| *schema != *current()) {
            let kind = StateProblemKind::OtherSchema;
            self.add(kind, agent, key, Some(call), Vec::new());
        }
    }

    /// The handoff of a name. The settings of a run inside a tool may name handoffs in another way.
    fn handoff_named<'b>(&self, agent: &'b Agent<C>, name: &str) -> Option<&'b Handoff<C>> {
        let policies = [
            self.config.tool_names,
            ToolNames::Reference,
            ToolNames::Readable,
        ];
        policies.into_iter().find_map(|policy| {
            let names = policy.names_of(agent.handoffs());
            let at = names.iter().rposition(|known| **known == *name)?;
            agent.handoffs().get(at)
        })
    }

    fn add(
        &mut self,
        kind: StateProblemKind,
        start: &Agent<C>,
        agent: &Arc<str>,
        call: Option<&ToolCall>,
        known: Vec<Arc<str>>,
    ) {
        let call_id = |call: &ToolCall| call.call.call_id().unwrap_or_default().as_ref().into();
        self.problems.push(StateProblem {
            kind,
            agent: agent.clone(),
            tool: call.map(|call| call.tool.clone()),
            call_id: call.map(call_id),
            inside: self.inside.clone(),
            known,
            start: start.name_arc().clone(),
        });
    }
}
