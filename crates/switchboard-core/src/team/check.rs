//! Looking a team over before it talks to anybody.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::circles::circles;
use super::map::{Map, Offered, Way};
use crate::agent::Agent;
use crate::enabled::Enabled;
use crate::handoff::{LONGEST_NAME, ToolNames, default_tool_description};

/// Something about a team that is wrong, or looks so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What kind of thing it is, for machines.
    pub code: FindingCode,
    /// How bad it is.
    pub severity: Severity,
    /// The agent it is about.
    pub agent: String,
    /// The tool or handoff it is about, by the name its model is given.
    pub tool: Option<String>,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// It may be meant.
    Note,
    /// It probably is not meant.
    Warning,
    /// It cannot work.
    Error,
}

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingCode {
    /// Tools or handoffs of one agent share a name, or different agents do.
    NameCollision,
    /// A tool's name is longer than providers take.
    NameTooLong,
    /// A tool's name has characters that providers do not take.
    NameInvalid,
    /// Neither handoffs nor tools lead to the agent from the first one.
    Unreachable,
    /// The agent can be reached, and leads nowhere.
    DeadEnd,
    /// Agents lead to each other in a circle that nothing but the number of turns ends.
    UnboundedCycle,
    /// A payload, an answer or arguments have a schema that providers refuse.
    BadSchema,
    /// The model is told nothing of when to hand off.
    EmptyDescription,
}

impl FindingCode {
    /// The code as text: `name-collision`, `dead-end`, ...
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
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        write!(
            f,
            "{severity}[{}] agent \"{}\"",
            self.code.as_str(),
            self.agent
        )?;
        if let Some(tool) = &self.tool {
            write!(f, ", \"{tool}\"")?;
        }
        write!(f, ": {}; {}", self.message, self.advice)
    }
}

/// How many agents of a circle, or tools of a name, a finding names.
const NAMED_AT_MOST: usize = 8;

/// All findings, the worst first.
pub(super) fn check<C>(map: &Map<C>, names: ToolNames) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in &map.agents {
        let handoffs = names.names_of(agent.handoffs());
        check_names(agent, &handoffs, &mut findings);
        check_schemas(agent, names, &mut findings);
        check_descriptions(agent, &handoffs, &mut findings);
    }
    check_agents(map, &mut findings);
    check_reach(map, &mut findings);
    check_circles(map, &mut findings);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn check_names<C>(agent: &Agent<C>, handoffs: &[Arc<str>], findings: &mut Vec<Finding>) {
    let mut add = |code, severity, name: &str, message: String, advice: &str| {
        findings.push(Finding {
            code,
            severity,
            agent: agent.name().to_owned(),
            tool: Some(name.to_owned()),
            message,
            advice: advice.to_owned(),
        });
    };
    for (name, owners) in owners_of_names(agent, handoffs) {
        if owners.len() > 1 {
            let message = format!(
                "{} have this name, and one gets all calls",
                listed(&owners, ToString::to_string)
            );
            let advice = "give each its own name";
            add(
                FindingCode::NameCollision,
                Severity::Warning,
                name,
                message,
                advice,
            );
        }
        if name.len() > LONGEST_NAME {
            let message = format!(
                "the name has {} characters, providers take {LONGEST_NAME}",
                name.len()
            );
            let advice = "give it a shorter one with tool_name, or use ToolNames::Readable";
            add(
                FindingCode::NameTooLong,
                Severity::Error,
                name,
                message,
                advice,
            );
        }
        let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(is_fine) {
            let message = "providers take letters, digits, _ and - in a name".to_owned();
            add(
                FindingCode::NameInvalid,
                Severity::Error,
                name,
                message,
                "change the name",
            );
        }
    }
}

/// What a name of an agent's tools and handoffs stands for, in words.
enum Owner<'a> {
    Tool,
    HandoffTo(&'a str),
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool => f.write_str("a tool"),
            Self::HandoffTo(agent) => write!(f, "the handoff to \"{agent}\""),
        }
    }
}

/// The names the agent's model may be offered, in their order, with all that have them.
fn owners_of_names<'a, C>(
    agent: &'a Agent<C>,
    handoffs: &'a [Arc<str>],
) -> Vec<(&'a str, Vec<Owner<'a>>)> {
    let tools = agent.tools().iter();
    let tools = tools.map(|tool| (tool.name(), tool.enabled(), Owner::Tool));
    let edges = agent.handoffs().iter().zip(handoffs);
    let edges =
        edges.map(|(edge, name)| (&**name, edge.enabled(), Owner::HandoffTo(edge.agent_name())));
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<(&str, Vec<Owner<'_>>)> = Vec::new();
    for (name, enabled, owner) in tools.chain(edges) {
        if matches!(enabled, Enabled::Never) {
            continue;
        }
        let at = *place.entry(name).or_insert_with(|| {
            names.push((name, Vec::new()));
            names.len() - 1
        });
        names[at].1.push(owner);
    }
    names
}

/// Agents of one name: a member and others that are used as tools.
fn check_agents<C>(map: &Map<C>, findings: &mut Vec<Finding>) {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for agent in &map.agents {
        *count.entry(agent.name()).or_default() += 1;
    }
    for agent in &map.agents {
        let Some(count) = count.remove(agent.name()).filter(|count| *count > 1) else {
            continue;
        };
        findings.push(Finding {
            code: FindingCode::NameCollision,
            severity: Severity::Warning,
            agent: agent.name().to_owned(),
            tool: None,
            message: format!(
                "{count} different agents have this name, some of them used as tools; traces and \
                 transcripts cannot tell them apart"
            ),
            advice: "give each its own name, or use the same agent".to_owned(),
        });
    }
}

fn check_schemas<C>(agent: &Agent<C>, names: ToolNames, findings: &mut Vec<Finding>) {
    for problem in agent.problems(names) {
        findings.push(Finding {
            code: FindingCode::BadSchema,
            severity: Severity::Error,
            agent: agent.name().to_owned(),
            tool: problem.owner.map(|(_, name)| name.to_string()),
            message: problem.what,
            advice: "change the type".to_owned(),
        });
    }
}

fn check_descriptions<C>(agent: &Agent<C>, names: &[Arc<str>], findings: &mut Vec<Finding>) {
    for (handoff, name) in agent.handoffs().iter().zip(names) {
        let says_nothing = default_tool_description(handoff.agent_name(), None);
        if handoff.has_given_description() || handoff.tool_description() != says_nothing {
            continue;
        }
        findings.push(Finding {
            code: FindingCode::EmptyDescription,
            severity: Severity::Warning,
            agent: agent.name().to_owned(),
            tool: Some(name.to_string()),
            message: format!(
                "the model is not told when to hand off to \"{}\"",
                handoff.agent_name()
            ),
            advice: "give the target a handoff_description, or the handoff a tool_description"
                .to_owned(),
        });
    }
}

fn check_reach<C>(map: &Map<C>, findings: &mut Vec<Finding>) {
    let reached = reach(map, Way::is_open);
    let talks = reach(map, Way::hands_off);
    for (at, agent) in map.agents.iter().enumerate() {
        let mut add = |code, severity, message: String, advice: &str| {
            findings.push(Finding {
                code,
                severity,
                agent: agent.name().to_owned(),
                tool: None,
                message,
                advice: advice.to_owned(),
            });
        };
        if !reached[at] {
            let first = map.agents[0].name();
            let message = format!("no handoff and no tool leads to it from \"{first}\"");
            let advice = "hand off to it, or leave it out";
            add(FindingCode::Unreachable, Severity::Warning, message, advice);
        } else if at > 0 && talks[at] && !map.ways[at].iter().any(Way::hands_off) {
            let message = "it hands off to nobody, so the conversation stays with it".to_owned();
            let advice = "give it a way back if a customer may need somebody else";
            add(FindingCode::DeadEnd, Severity::Note, message, advice);
        }
    }
}

/// What the first agent leads to by ways of this kind, itself included.
fn reach<C>(map: &Map<C>, counts: impl Fn(&Way) -> bool) -> Vec<bool> {
    let mut reached = vec![false; map.agents.len()];
    let mut waiting: Vec<usize> = (!reached.is_empty()).then_some(0).into_iter().collect();
    while let Some(at) = waiting.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            let ways = map.ways[at].iter().filter(|way| counts(way));
            waiting.extend(ways.map(|way| way.to));
        }
    }
    reached
}

/// Circles in which no handoff has a condition, each told of once.
fn check_circles<C>(map: &Map<C>, findings: &mut Vec<Finding>) {
    let is_free = |way: &&Way| way.hands_off() && way.offered == Offered::Always;
    let free = map.ways.iter();
    let free = free.map(|ways| ways.iter().filter(is_free).map(|way| way.to).collect());
    for circle in circles(&free.collect::<Vec<_>>()) {
        let agents: Vec<&str> = circle.iter().map(|at| map.agents[*at].name()).collect();
        findings.push(Finding {
            code: FindingCode::UnboundedCycle,
            severity: Severity::Note,
            agent: agents[0].to_owned(),
            tool: None,
            message: format!(
                "{} can hand the conversation round; only max_turns ends that",
                listed(&agents, |name| format!("\"{name}\""))
            ),
            advice: "give one of the handoffs a condition, or keep max_turns low".to_owned(),
        });
    }
}

/// The first of these, and how many there are besides.
fn listed<T>(all: &[T], tell: impl Fn(&T) -> String) -> String {
    let named: Vec<String> = all.iter().take(NAMED_AT_MOST).map(tell).collect();
    let named = named.join(", ");
    match all.len().saturating_sub(NAMED_AT_MOST) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
