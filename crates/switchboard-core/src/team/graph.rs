//! A team as a drawing.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::agent::Agent;
use crate::handoff::{Handoff, Target};

/// A team as a drawing: agents, the handoffs between them, and their tools.
///
/// ```
/// use switchboard_core::{Agent, Team};
///
/// let team: Team = Team::new()
///     .agent(Agent::new("Triage").handoff("Billing"))
///     .agent(Agent::new("Billing"))
///     .build()?;
/// assert_eq!(
///     team.graph().to_mermaid(),
///     "flowchart LR\n    a0([\"Triage\"])\n    a1([\"Billing\"])\n    a0 --> a1\n"
/// );
/// # Ok::<(), switchboard_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    agents: Vec<Node>,
    edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    name: String,
    tools: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
    /// Whether it is there only sometimes, or only where code picks it.
    is_dashed: bool,
}

impl Graph {
    pub(super) fn of<C>(
        agents: &[Agent<C>],
        by_name: &HashMap<std::sync::Arc<str>, usize>,
    ) -> Self {
        let mut edges = Vec::new();
        for (from, agent) in agents.iter().enumerate() {
            for handoff in agent.handoffs() {
                let label = label_of(handoff);
                let is_conditional = handoff.is_conditional();
                let mut lead_to = |to: usize, is_dashed| {
                    let label = label.clone();
                    edges.push(Edge {
                        from,
                        to,
                        label,
                        is_dashed,
                    });
                };
                match handoff.target() {
                    Target::Custom(custom) => {
                        let candidates = custom.candidates().iter();
                        let places = candidates.filter_map(|agent| by_name.get(agent.name_arc()));
                        places.for_each(|to| lead_to(*to, true));
                    }
                    _ => {
                        let to = by_name.get(&handoff.spec().agent_name);
                        to.into_iter().for_each(|to| lead_to(*to, is_conditional));
                    }
                }
            }
        }
        let node = |agent: &Agent<C>| Node {
            name: agent.name().to_owned(),
            tools: agent
                .tools()
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
        };
        Self {
            agents: agents.iter().map(node).collect(),
            edges,
        }
    }

    /// The drawing for Mermaid, which many viewers of Markdown show.
    pub fn to_mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        // Writing to a String cannot fail.
        for (at, agent) in self.agents.iter().enumerate() {
            let _ = writeln!(out, "    a{at}([\"{}\"])", mermaid(&agent.name));
            for (n, tool) in agent.tools.iter().enumerate() {
                let _ = writeln!(out, "    a{at}t{n}[/\"{}\"/]", mermaid(tool));
                let _ = writeln!(out, "    a{at} --- a{at}t{n}");
            }
        }
        for edge in &self.edges {
            let (from, to) = (edge.from, edge.to);
            let arrow = if edge.is_dashed { "-.->" } else { "-->" };
            let label = match edge.label.as_str() {
                "" => String::new(),
                label => format!("|\"{}\"|", mermaid(label)),
            };
            let _ = writeln!(out, "    a{from} {arrow}{label} a{to}");
        }
        out
    }

    /// The drawing in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph team {\n    rankdir=LR;\n");
        for (at, agent) in self.agents.iter().enumerate() {
            let _ = writeln!(out, "    a{at} [label={}];", dot(&agent.name));
            for (n, tool) in agent.tools.iter().enumerate() {
                let _ = writeln!(out, "    a{at}t{n} [label={}, shape=box];", dot(tool));
                let _ = writeln!(out, "    a{at} -> a{at}t{n} [arrowhead=none];");
            }
        }
        for edge in &self.edges {
            let (from, to) = (edge.from, edge.to);
            let style = if edge.is_dashed { "dashed" } else { "solid" };
            let label = dot(&edge.label);
            let _ = writeln!(out, "    a{from} -> a{to} [label={label}, style={style}];");
        }
        out.push_str("}\n");
        out
    }
}

/// What is worth saying on an edge: a name of its own, a payload, a condition.
fn label_of<C>(handoff: &Handoff<C>) -> String {
    let mut said = Vec::new();
    if handoff.has_given_name() {
        said.push(handoff.tool_name().to_owned());
    }
    if let Some(payload) = handoff.payload_name() {
        said.push(format!("with {payload}"));
    }
    if handoff.is_conditional() {
        said.push("if allowed".to_owned());
    }
    said.join(", ")
}

/// Text inside quotes in Mermaid.
fn mermaid(text: &str) -> String {
    let escape = |c: char| match c {
        '"' => "#quot;".to_owned(),
        '#' => "#35;".to_owned(),
        '<' => "#lt;".to_owned(),
        '>' => "#gt;".to_owned(),
        '\n' | '\r' => " ".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// A quoted string of Graphviz.
fn dot(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace(['\n', '\r'], " "))
}
