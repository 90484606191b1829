//! Looking a team over before it talks to anybody.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::agent::Agent;
use crate::handoff::{LONGEST_NAME, Target, ToolNames};

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
    /// The tool or handoff it is about, by its tool name.
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
    /// Tools or handoffs of one agent share a name.
    NameCollision,
    /// A tool's name is longer than providers take.
    NameTooLong,
    /// A tool's name has characters that providers do not take.
    NameInvalid,
    /// No handoff leads to the agent from the first one.
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

/// All findings, the worst first.
pub(super) fn check<C>(
    agents: &[Agent<C>],
    by_name: &HashMap<Arc<str>, usize>,
    names: ToolNames,
) -> Vec<Finding> {
    let leads_to = edges(agents, by_name);
    let mut findings = Vec::new();
    for agent in agents {
        check_names(agent, names, &mut findings);
        check_schemas(agent, &mut findings);
        check_descriptions(agent, agents, by_name, &mut findings);
    }
    check_reach(agents, &leads_to, &mut findings);
    check_cycles(agents, &leads_to, &mut findings);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// For each agent, the agents its handoffs lead to, and whether each has a condition.
fn edges<C>(agents: &[Agent<C>], by_name: &HashMap<Arc<str>, usize>) -> Vec<Vec<(usize, bool)>> {
    let of = |agent: &Agent<C>| {
        let mut targets = Vec::new();
        for handoff in agent.handoffs() {
            let conditional = handoff.is_conditional();
            match handoff.target() {
                Target::Custom(custom) => {
                    let candidates = custom.candidates().iter();
                    let places = candidates.filter_map(|agent| by_name.get(agent.name_arc()));
                    targets.extend(places.map(|at| (*at, true)));
                }
                _ => {
                    let at = by_name.get(&handoff.spec().agent_name);
                    targets.extend(at.map(|at| (*at, conditional)));
                }
            }
        }
        targets
    };
    agents.iter().map(of).collect()
}

fn check_names<C>(agent: &Agent<C>, names: ToolNames, findings: &mut Vec<Finding>) {
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
    let handoffs = names.names_of(agent.handoffs());
    let tools = agent.tools().iter().map(|tool| tool.name());
    let mut seen = HashSet::new();
    for name in tools.chain(handoffs.iter().map(|name| &**name)) {
        if !seen.insert(name) {
            let message =
                "several tools or handoffs have this name, and one gets all calls".to_owned();
            add(
                FindingCode::NameCollision,
                Severity::Warning,
                name,
                message,
                "give each its own name",
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

fn check_schemas<C>(agent: &Agent<C>, findings: &mut Vec<Finding>) {
    if let Some(problem) = agent.problem() {
        findings.push(Finding {
            code: FindingCode::BadSchema,
            severity: Severity::Error,
            agent: agent.name().to_owned(),
            tool: None,
            message: problem,
            advice: "change the type".to_owned(),
        });
    }
}

fn check_descriptions<C>(
    agent: &Agent<C>,
    agents: &[Agent<C>],
    by_name: &HashMap<Arc<str>, usize>,
    findings: &mut Vec<Finding>,
) {
    for handoff in agent.handoffs() {
        let target = by_name.get(&handoff.spec().agent_name);
        let target = target.and_then(|at| agents.get(*at));
        let is_described = target
            .and_then(Agent::description)
            .is_some_and(|text| !text.is_empty());
        if !is_described && !handoff.has_given_description() {
            findings.push(Finding {
                code: FindingCode::EmptyDescription,
                severity: Severity::Warning,
                agent: agent.name().to_owned(),
                tool: Some(handoff.tool_name().to_owned()),
                message: format!(
                    "the model is not told when to hand off to \"{}\"",
                    handoff.agent_name()
                ),
                advice: "give the target a handoff_description, or the handoff a tool_description"
                    .to_owned(),
            });
        }
    }
}

fn check_reach<C>(
    agents: &[Agent<C>],
    leads_to: &[Vec<(usize, bool)>],
    findings: &mut Vec<Finding>,
) {
    let mut reached = vec![false; agents.len()];
    let mut waiting: Vec<usize> = (!agents.is_empty()).then_some(0).into_iter().collect();
    while let Some(at) = waiting.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            waiting.extend(leads_to[at].iter().map(|(to, _)| *to));
        }
    }
    for (at, agent) in agents.iter().enumerate() {
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
            let message = format!("no handoff leads to it from \"{}\"", agents[0].name());
            let advice = "hand off to it, or leave it out";
            add(FindingCode::Unreachable, Severity::Warning, message, advice);
        } else if at > 0 && leads_to[at].is_empty() {
            let message = "it hands off to nobody, so the conversation stays with it".to_owned();
            let advice = "give it a way back if a customer may need somebody else";
            add(FindingCode::DeadEnd, Severity::Note, message, advice);
        }
    }
}

/// Circles in which no handoff has a condition, each told of once.
fn check_cycles<C>(
    agents: &[Agent<C>],
    leads_to: &[Vec<(usize, bool)>],
    findings: &mut Vec<Finding>,
) {
    let free: Vec<Vec<usize>> = leads_to
        .iter()
        .map(|edges| {
            edges
                .iter()
                .filter(|(_, conditional)| !conditional)
                .map(|(to, _)| *to)
                .collect()
        })
        .collect();
    let mut done = vec![false; agents.len()];
    for start in 0..agents.len() {
        if done[start] {
            continue;
        }
        // Agents that lead to each other, found by going both ways from the first of them.
        let forward = reach(start, &free);
        let circle: Vec<usize> = (0..agents.len())
            .filter(|at| forward[*at] && reach(*at, &free)[start])
            .collect();
        for at in &circle {
            done[*at] = true;
        }
        if circle.is_empty() {
            continue;
        }
        let names: Vec<String> = circle
            .iter()
            .map(|at| format!("\"{}\"", agents[*at].name()))
            .collect();
        findings.push(Finding {
            code: FindingCode::UnboundedCycle,
            severity: Severity::Note,
            agent: agents[start].name().to_owned(),
            tool: None,
            message: format!(
                "{} can hand the conversation round; only max_turns ends that",
                names.join(", ")
            ),
            advice: "give one of the handoffs a condition, or keep max_turns low".to_owned(),
        });
    }
}

/// What can be reached from `start` in one step or more.
fn reach(start: usize, leads_to: &[Vec<usize>]) -> Vec<bool> {
    let mut reached = vec![false; leads_to.len()];
    let mut waiting = leads_to[start].clone();
    while let Some(at) = waiting.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            waiting.extend(&leads_to[at]);
        }
    }
    reached
}
