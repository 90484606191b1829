//! A team as a drawing.

use std::fmt::Write as _;

use super::map::{By, Map, Offered, Way};
use crate::agent::Agent;
use crate::handoff::{Handoff, ToolNames};
use crate::tool::Tool;

/// A team as a drawing: agents, the handoffs between them, and their tools.
///
/// A handoff is an arrow; where it depends on a condition or on code, the arrow is dashed. An agent
/// that another uses as a tool has a line with a dot at its end.
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
    kind: EdgeKind,
    /// Whether it is there only sometimes, or only where code picks it.
    is_dashed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeKind {
    Handoff,
    AgentAsTool,
}

impl Graph {
    pub(super) fn of<C>(map: &Map<C>, names: ToolNames) -> Self {
        let places = map.agents.iter().zip(&map.ways).enumerate();
        let edges = places.flat_map(|(from, (agent, ways))| {
            let handoffs = names.names_of(agent.handoffs());
            let edge = move |way: &Way| {
                let (kind, label) = match way.by {
                    By::Handoff(at) => (
                        EdgeKind::Handoff,
                        label_of_handoff(&agent.handoffs()[at], &handoffs[at], names, way.offered),
                    ),
                    By::Tool(at) => (
                        EdgeKind::AgentAsTool,
                        label_of_tool(&agent.tools()[at], way.offered),
                    ),
                };
                Edge {
                    from,
                    to: way.to,
                    label,
                    kind,
                    is_dashed: way.offered != Offered::Always,
                }
            };
            ways.iter().map(edge)
        });
        Self {
            agents: map.agents.iter().map(Node::of).collect(),
            edges: edges.collect(),
        }
    }

    /// The drawing for Mermaid, which many viewers of Markdown show.
    pub fn to_mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        // Writing to a String cannot fail.
        for (at, agent) in self.agents.iter().enumerate() {
            let _ = writeln!(out, "    a{at}([{}])", mermaid(&agent.name));
            for (n, tool) in agent.tools.iter().enumerate() {
                let _ = writeln!(out, "    a{at}t{n}[/{}/]", mermaid(tool));
                let _ = writeln!(out, "    a{at} --- a{at}t{n}");
            }
        }
        for edge in &self.edges {
            let (from, to) = (edge.from, edge.to);
            let line = match (edge.kind, edge.is_dashed) {
                (EdgeKind::Handoff, false) => "-->",
                (EdgeKind::Handoff, true) => "-.->",
                (EdgeKind::AgentAsTool, false) => "--o",
                (EdgeKind::AgentAsTool, true) => "-.-o",
            };
            let label = match edge.label.as_str() {
                "" => String::new(),
                label => format!("|{}|", mermaid(label)),
            };
            let _ = writeln!(out, "    a{from} {line}{label} a{to}");
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
            let head = match edge.kind {
                EdgeKind::Handoff => "",
                EdgeKind::AgentAsTool => ", arrowhead=odot",
            };
            let _ = writeln!(
                out,
                "    a{from} -> a{to} [label={label}, style={style}{head}];"
            );
        }
        out.push_str("}\n");
        out
    }
}

impl Node {
    /// An agent with its tools, without those that are agents.
    fn of<C>(agent: &Agent<C>) -> Self {
        let tools = agent.tools().iter().filter(|tool| tool.agent().is_none());
        Self {
            name: agent.name().to_owned(),
            tools: tools.map(|tool| tool.name().to_owned()).collect(),
        }
    }
}

/// What is worth saying on an edge: a name that the agent's own does not tell, a payload, a
/// condition.
fn label_of_handoff<C>(
    handoff: &Handoff<C>,
    name: &str,
    names: ToolNames,
    offered: Offered,
) -> String {
    let mut said = Vec::new();
    if handoff.has_given_name() || name != names.default_name(handoff.agent_name()) {
        said.push(name.to_owned());
    }
    if let Some(payload) = handoff.payload_name() {
        said.push(format!("with {payload}"));
    }
    if handoff.is_conditional() {
        said.push(format!(
            "if {}",
            handoff.condition_name().unwrap_or("allowed")
        ));
    } else if offered == Offered::Never {
        said.push("never".to_owned());
    }
    said.join(", ")
}

fn label_of_tool<C>(tool: &Tool<C>, offered: Offered) -> String {
    let name = tool.name();
    match offered {
        Offered::Always => name.to_owned(),
        Offered::Sometimes => format!("{name}, if allowed"),
        Offered::Never => format!("{name}, never"),
    }
}

/// A quoted text of Mermaid. Inside quotes brackets and words like `end` mean nothing special;
/// what does is written as an entity.
fn mermaid(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in one_kind_of_line_break(text) {
        match c {
            '"' => out.push_str("#quot;"),
            '&' => out.push_str("#amp;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '\n' => out.push_str("<br/>"),
            // An entity, Markdown, a directive, and `\n`, in the order of these characters.
            '#' | '`' | '%' | '\\' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    if text.is_empty() {
        out.push(' ');
    }
    out.push('"');
    // Lines with these words are taken for a statement, quotes or not.
    out.replace("direction ", "direction#32;")
}

/// A quoted string of Graphviz.
fn dot(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in one_kind_of_line_break(text) {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The characters of a text, with `\n` for every line break and a space for what cannot be seen.
fn one_kind_of_line_break(text: &str) -> impl Iterator<Item = char> {
    let mut last = ' ';
    text.chars().filter_map(move |c| {
        let before = std::mem::replace(&mut last, c);
        match c {
            '\n' if before == '\r' => None,
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
            c if c.is_control() => Some(' '),
            c => Some(c),
        }
    })
}
