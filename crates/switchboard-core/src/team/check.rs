//! Checks a team for mistakes before it runs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::connections::{Connection, Connections, Offered};
use super::cycles::cycles;
use crate::agent::Agent;
use crate::condition::Enabled;
use crate::handoff::{MAX_NAME_LEN, ToolNames, default_tool_description};

/// A mistake in a team, or something that looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of mistake, for programs.
    pub code: FindingCode,
    /// The severity.
    pub severity: Severity,
    /// The agent it is about.
    pub agent: String,
    /// The tool or handoff it is about, by the name that the model sees.
    pub tool: Option<String>,
    /// A description of the mistake.
    pub message: String,
    /// A way to correct it.
    pub advice: String,
    /// The agents of a cycle; empty for other findings.
    pub cycle: Vec<String>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// It may be intended.
    Note,
    /// It is probably not intended.
    Warning,
    /// It cannot work.
    Error,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingCode {
    /// Tools or handoffs of one agent share a name, or different agents do.
    NameCollision,
    /// A tool's name is longer than providers accept.
    NameTooLong,
    /// A tool's name has characters that providers do not accept.
    NameInvalid,
    /// Neither handoffs nor tools lead to the agent from the first one.
    Unreachable,
    /// The agent can be reached, but has no handoff.
    DeadEnd,
    /// Agents hand off to each other in a cycle that only the limit on turns ends.
    UnboundedCycle,
    /// A payload, an output or arguments have a schema that providers reject.
    BadSchema,
    /// A handoff does not tell the model when to use it.
    EmptyDescription,
    /// An agent and one it hands off to answer in different types.
    MixedOutputs,
    /// A tool has a timeout that cannot interrupt it, because its code is not async.
    BlockingTool,
    /// A person has tools, instructions or other settings of models, which have no effect.
    IgnoredByPerson,
}

impl FindingCode {
    /// Returns the code as text: `name-collision`, `dead-end`, ...
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NameCollision => "name-collision",
            Self::NameTooLong => "name-too-long",
            Self::NameInvalid => "name-invalid",
            Self::Unreachable => "unreachable",
            Self::DeadEnd => "dead-end",
            Self::UnboundedCycle => "unbounded-cycle",
            Self::BadSchema => "bad-schema",
            Self::EmptyDescription => "empty-description",
            Self::MixedOutputs => "mixed-outputs",
            Self::BlockingTool => "blocking-tool",
            Self::IgnoredByPerson => "ignored-by-person",
        }
    }

    const fn severity(self) -> Severity {
        match self {
            Self::NameTooLong | Self::NameInvalid | Self::BadSchema => Severity::Error,
            Self::NameCollision
            | Self::Unreachable
            | Self::EmptyDescription
            | Self::BlockingTool
            | Self::IgnoredByPerson => Severity::Warning,
            Self::DeadEnd | Self::UnboundedCycle | Self::MixedOutputs => Severity::Note,
        }
    }

    /// Returns a finding about an agent.
    fn at<C>(self, agent: &Agent<C>, message: impl Into<String>, advice: &str) -> Finding {
        Finding {
            code: self,
            severity: self.severity(),
            agent: agent.name().to_owned(),
            tool: None,
            message: message.into(),
            advice: advice.to_owned(),
            cycle: Vec::new(),
        }
    }
}

impl Finding {
    fn tool(mut self, name: &str) -> Self {
        self.tool = Some(name.to_owned());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let (code, agent) = (self.code.as_str(), &self.agent);
        write!(f, "{severity}[{code}] agent \"{agent}\"")?;
        if let Some(tool) = &self.tool {
            write!(f, ", \"{tool}\"")?;
        }
        write!(f, ": {}; {}", self.message, self.advice)
    }
}

/// Returns all findings, the most severe first.
pub(super) fn check<C>(team: &Connections<C>, names: ToolNames) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in &team.agents {
        let handoff_names = names.names_of(agent.handoffs());
        check_names(agent, &handoff_names, &mut findings);
        check_schemas(agent, &handoff_names, &mut findings);
        check_descriptions(agent, &handoff_names, &mut findings);
        check_blocking(agent, &mut findings);
        check_person(agent, &mut findings);
    }
    check_agent_names(team, &mut findings);
    check_outputs(team, &mut findings);
    check_reachability(team, &mut findings);
    check_cycles(team, &mut findings);
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}

fn check_names<C>(agent: &Agent<C>, handoff_names: &[Arc<str>], findings: &mut Vec<Finding>) {
    let mut add = |code: FindingCode, name: &str, message: String, advice| {
        findings.push(code.at(agent, message, advice).tool(name));
    };
    for (name, owners) in owners_by_name(agent, handoff_names) {
        if owners.len() > 1 {
            let message = format!("{} have this name, and one gets all calls", list(&owners));
            let advice = "give each its own name";
            add(FindingCode::NameCollision, name, message, advice);
        }
        if name.len() > MAX_NAME_LEN {
            let length = name.len();
            let message =
                format!("the name has {length} characters, providers accept {MAX_NAME_LEN}");
            let advice = "give it a shorter one with tool_name, or use ToolNames::Readable";
            add(FindingCode::NameTooLong, name, message, advice);
        }
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(is_valid) {
            let message = "providers accept letters, digits, _ and - in a name".to_owned();
            add(FindingCode::NameInvalid, name, message, "change the name");
        }
    }
}

/// Returns the names that the agent's model may be offered, in order, each with all its owners.
fn owners_by_name<'a, C>(
    agent: &'a Agent<C>,
    handoff_names: &'a [Arc<str>],
) -> Vec<(&'a str, Vec<String>)> {
    // The model calls a tool that the provider runs by its type.
    let tools = agent
        .tools()
        .iter()
        .filter(|tool| tool.as_hosted().is_none());
    let tools = tools.map(|tool| (tool.name(), tool.enabled(), "a tool".to_owned()));
    let handoffs = agent.handoffs().iter().zip(handoff_names);
    let handoffs = handoffs.filter(|(handoff, _)| !handoff.is_hidden());
    let handoffs = handoffs.map(|(handoff, name)| {
        let owner = format!("the handoff to \"{}\"", handoff.agent_name());
        (&**name, handoff.enabled(), owner)
    });
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, enabled, owner) in tools.chain(handoffs) {
        if matches!(enabled, Enabled::Never) {
            continue;
        }
        let index = *indexes.entry(name).or_insert_with(|| {
            names.push((name, Vec::new()));
            names.len() - 1
        });
        names[index].1.push(owner);
    }
    names
}

/// Finds agents that share a name: a member, and others that are used as tools.
fn check_agent_names<C>(team: &Connections<C>, findings: &mut Vec<Finding>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for agent in &team.agents {
        *counts.entry(agent.name()).or_default() += 1;
    }
    for agent in &team.agents {
        let Some(count @ 2..) = counts.remove(agent.name()) else {
            continue;
        };
        let message = format!(
            "{count} different agents have this name, some of them used as tools; traces and \
             transcripts cannot tell them apart"
        );
        let advice = "give each its own name, or use the same agent";
        findings.push(FindingCode::NameCollision.at(agent, message, advice));
    }
}

fn check_schemas<C>(agent: &Agent<C>, names: &[Arc<str>], findings: &mut Vec<Finding>) {
    for problem in agent.problems(names) {
        let mut finding = FindingCode::BadSchema.at(agent, problem.what, "change the type");
        finding.tool = problem.owner.map(|(_, name)| name.to_string());
        findings.push(finding);
    }
}

fn check_descriptions<C>(agent: &Agent<C>, names: &[Arc<str>], findings: &mut Vec<Finding>) {
    for (handoff, name) in agent.handoffs().iter().zip(names) {
        // A person is shown whom it can hand off to, and a way back describes itself.
        if agent.is_person() || handoff.returning().is_some() {
            continue;
        }
        let target = handoff.agent_name();
        if handoff.is_hidden()
            || handoff.has_given_description()
            || handoff.tool_description() != default_tool_description(target, None)
        {
            continue;
        }
        let message = format!("the model is not told when to hand off to \"{target}\"");
        let advice = "give the target a handoff_description, or the handoff a tool_description";
        findings.push(
            FindingCode::EmptyDescription
                .at(agent, message, advice)
                .tool(name),
        );
    }
}

/// Finds tools whose timeout cannot interrupt them.
fn check_blocking<C>(agent: &Agent<C>, findings: &mut Vec<Finding>) {
    for tool in agent.tools().iter().filter(|tool| tool.ignores_timeout()) {
        let message = "its code is not async, so it blocks the run and its timeout cannot end it";
        let advice = "finish the tool with run_blocking, or make its code async";
        findings.push(
            FindingCode::BlockingTool
                .at(agent, message, advice)
                .tool(tool.name()),
        );
    }
}

/// Finds settings of people that have no effect.
fn check_person<C>(agent: &Agent<C>, findings: &mut Vec<Finding>) {
    let ignored = agent.ignored_by_person();
    if !ignored.is_empty() {
        let message = format!("it is a person, so {} have no effect", ignored.join(", "));
        let advice = "leave them out, or use an agent with a model";
        findings.push(FindingCode::IgnoredByPerson.at(agent, message, advice));
    }
}

/// Finds agents that hand off to agents with other output types.
fn check_outputs<C>(team: &Connections<C>, findings: &mut Vec<Finding>) {
    let output = |index: usize| {
        let output = team.agents[index].output_type();
        output.map_or("text", |output| output.name())
    };
    for (index, agent) in team.agents.iter().enumerate() {
        let edges = team.outgoing[index].iter();
        let edges = edges.filter(|edge| edge.is_enabled_handoff());
        let others = edges.filter(|edge| output(edge.to) != output(index));
        let mut others: Vec<String> = others
            .map(|edge| format!("\"{}\" ({})", team.agents[edge.to].name(), output(edge.to)))
            .collect();
        others.sort_unstable();
        others.dedup();
        if others.is_empty() {
            continue;
        }
        let message = format!(
            "it answers with {}, and it hands off to {}",
            output(index),
            list(&others)
        );
        let advice = "read the final output by the agent that gave it, or give all the same type";
        findings.push(FindingCode::MixedOutputs.at(agent, message, advice));
    }
}

fn check_reachability<C>(team: &Connections<C>, findings: &mut Vec<Finding>) {
    let reached = reachable(team, Connection::is_enabled);
    let reached_by_handoff = reachable(team, Connection::is_enabled_handoff);
    for (index, agent) in team.agents.iter().enumerate() {
        let has_handoff = team.outgoing[index]
            .iter()
            .any(Connection::is_enabled_handoff);
        if !reached[index] {
            let first = team.agents[0].name();
            let message = format!("no handoff and no tool leads to it from \"{first}\"");
            let advice = "hand off to it, or leave it out";
            findings.push(FindingCode::Unreachable.at(agent, message, advice));
        } else if agent.is_person() && reached_by_handoff[index] && !has_handoff {
            let message = "it is a person that can hand the conversation to nobody";
            let advice = "give it a handoff if an agent is to take over";
            findings.push(FindingCode::DeadEnd.at(agent, message, advice));
        } else if index > 0 && reached_by_handoff[index] && !has_handoff {
            let message = "it has no handoff, so the conversation stays with it";
            let advice = "give it a handoff back if a customer may need another agent";
            findings.push(FindingCode::DeadEnd.at(agent, message, advice));
        }
    }
}

/// Returns for each agent if such connections lead to it from the first one, which is included.
fn reachable<C>(team: &Connections<C>, follows: impl Fn(&Connection) -> bool) -> Vec<bool> {
    let mut reached = vec![false; team.agents.len()];
    let mut queue: Vec<usize> = (0..reached.len()).take(1).collect();
    while let Some(index) = queue.pop() {
        if !std::mem::replace(&mut reached[index], true) {
            let followed = team.outgoing[index].iter().filter(|edge| follows(edge));
            queue.extend(followed.map(|edge| edge.to));
        }
    }
    reached
}

/// Finds cycles in which no handoff has a condition.
fn check_cycles<C>(team: &Connections<C>, findings: &mut Vec<Finding>) {
    let is_unconditional =
        |edge: &&Connection| edge.is_enabled_handoff() && edge.offered == Offered::Always;
    let successors = team
        .outgoing
        .iter()
        .zip(&team.agents)
        .map(|(edges, agent)| {
            // A person ends a cycle by doing something else.
            let edges = if agent.is_person() { &[] } else { &**edges };
            let unconditional = edges.iter().filter(is_unconditional);
            unconditional.map(|edge| edge.to).collect()
        });
    for cycle in cycles(&successors.collect::<Vec<_>>()) {
        let names = cycle.iter().map(|index| team.agents[*index].name());
        let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        let message = format!(
            "{} can hand off in a cycle; only max_turns ends it",
            list(&names)
        );
        let advice = "give one of the handoffs a condition, or keep max_turns low";
        let first = &team.agents[cycle[0]];
        let names = cycle
            .iter()
            .map(|index| team.agents[*index].name().to_owned());
        findings.push(Finding {
            cycle: names.collect(),
            ..FindingCode::UnboundedCycle.at(first, message, advice)
        });
    }
}

/// Lists up to eight items, and the number of the others.
fn list(items: &[String]) -> String {
    const MAX_LISTED: usize = 8;
    match items.split_at_checked(MAX_LISTED) {
        Some((listed, [_, ..])) => {
            let others = items.len() - MAX_LISTED;
            format!("{} and {others} more", listed.join(", "))
        }
        _ => items.join(", "),
    }
}
