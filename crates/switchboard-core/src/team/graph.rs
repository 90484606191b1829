//! A team as a graph, in the languages of Mermaid and Graphviz, and as an SVG image.

mod layout;
mod svg;
mod text_size;

use std::fmt::Write as _;

use serde::Serialize;

use super::connections::{Connections, Offered, Via};
use crate::agent::Agent;
use crate::handoff::ways_back::HAND_BACK;
use crate::handoff::{Handoff, ToolNames};
use crate::tool::Tool;

pub use layout::{AgentBox, EdgeLine, GraphLayout, LabelLine};

/// A team as a graph: agents, the handoffs between them, and their tools.
///
/// A handoff is drawn as an arrow, dashed if it depends on a condition, on code or on how the
/// conversation came to the agent. The line to an agent that is used as a tool ends in a dot. People are
/// drawn as hexagons.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Graph {
    /// The agents, the one that starts first.
    pub agents: Vec<GraphAgent>,
    /// The connections between them.
    pub edges: Vec<GraphEdge>,
}

/// An agent of a [`Graph`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GraphAgent {
    /// Its name.
    pub name: String,
    /// Set if it is a person.
    pub is_person: bool,
    /// The names of its tools, without those that are agents.
    pub tools: Vec<String>,
}

/// A connection of a [`Graph`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GraphEdge {
    /// The index of the agent that it leads from.
    pub from: usize,
    /// The index of the agent that it leads to.
    pub to: usize,
    /// The name of the tool if it is not made from the agent's, the payload and the condition.
    pub label: Vec<String>,
    /// The kind of connection.
    pub kind: GraphEdgeKind,
    /// Set unless the model is always offered it.
    pub is_conditional: bool,
}

/// The kind of a [`GraphEdge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GraphEdgeKind {
    /// A handoff.
    Handoff,
    /// An agent that is used as a tool.
    AgentAsTool,
}

impl Graph {
    pub(super) fn of<C>(team: &Connections<C>, names: ToolNames) -> Self {
        let mut edges = Vec::new();
        for (from, (agent, connections)) in team.agents.iter().zip(&team.outgoing).enumerate() {
            let handoff_names = names.names_of(agent.handoffs());
            for connection in connections {
                let offered = connection.offered;
                let (kind, label) = match connection.via {
                    Via::Handoff(index) => {
                        let (handoff, name) = (&agent.handoffs()[index], &handoff_names[index]);
                        let label = handoff_label(handoff, name, names, offered);
                        (GraphEdgeKind::Handoff, label)
                    }
                    Via::Tool(index) => {
                        let label = tool_label(&agent.tools()[index], offered);
                        (GraphEdgeKind::AgentAsTool, label)
                    }
                    Via::WayBack(index) => {
                        let handoff = &team.agents[connection.to].handoffs()[index];
                        let way_back = handoff.way_back();
                        let label = way_back.map_or_else(Vec::new, |way_back| {
                            handoff_label(way_back, way_back.tool_name(), names, offered)
                        });
                        (GraphEdgeKind::Handoff, label)
                    }
                    Via::HandBack => (GraphEdgeKind::Handoff, vec![HAND_BACK.to_owned()]),
                };
                edges.push(GraphEdge {
                    from,
                    to: connection.to,
                    label,
                    kind,
                    is_conditional: offered != Offered::Always,
                });
            }
        }
        Self {
            agents: team.agents.iter().map(GraphAgent::of).collect(),
            edges,
        }
    }

    /// Returns the positions of a drawing, which [`Graph::to_svg`] draws.
    pub fn layout(&self) -> GraphLayout {
        layout::layout(self)
    }

    /// Returns the graph as an SVG image, drawn without another program. The connections of an agent have
    /// its colour; they leave it where their labels are.
    pub fn to_svg(&self) -> String {
        svg::draw(&self.layout())
    }

    /// Returns the graph in the language of Mermaid, which many Markdown viewers draw.
    pub fn to_mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        // Writing to a String cannot fail.
        for (at, agent) in self.agents.iter().enumerate() {
            let name = quote_mermaid(&agent.label());
            let _ = if agent.is_person {
                writeln!(out, "    a{at}{{{{{name}}}}}")
            } else {
                writeln!(out, "    a{at}([{name}])")
            };
            for (n, tool) in agent.tools.iter().enumerate() {
                let _ = writeln!(out, "    a{at}t{n}[/{}/]", quote_mermaid(tool));
                let _ = writeln!(out, "    a{at} --- a{at}t{n}");
            }
        }
        for edge in &self.edges {
            let (from, to) = (edge.from, edge.to);
            let line = match (edge.kind, edge.is_conditional) {
                (GraphEdgeKind::Handoff, false) => "-->",
                (GraphEdgeKind::Handoff, true) => "-.->",
                (GraphEdgeKind::AgentAsTool, false) => "--o",
                (GraphEdgeKind::AgentAsTool, true) => "-.-o",
            };
            let label = match edge.label.join(", ").as_str() {
                "" => String::new(),
                label => format!("|{}|", quote_mermaid(label)),
            };
            let _ = writeln!(out, "    a{from} {line}{label} a{to}");
        }
        out
    }

    /// Returns the graph in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph team {\n    rankdir=LR;\n");
        for (at, agent) in self.agents.iter().enumerate() {
            let shape = if agent.is_person {
                ", shape=hexagon"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "    a{at} [label={}{shape}];",
                quote_dot(&agent.label())
            );
            for (n, tool) in agent.tools.iter().enumerate() {
                let _ = writeln!(out, "    a{at}t{n} [label={}, shape=box];", quote_dot(tool));
                let _ = writeln!(out, "    a{at} -> a{at}t{n} [arrowhead=none];");
            }
        }
        for edge in &self.edges {
            let (from, to) = (edge.from, edge.to);
            let style = if edge.is_conditional {
                "dashed"
            } else {
                "solid"
            };
            let label = quote_dot(&edge.label.join(", "));
            let head = match edge.kind {
                GraphEdgeKind::Handoff => "",
                GraphEdgeKind::AgentAsTool => ", arrowhead=odot",
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

impl GraphAgent {
    /// Returns an agent with its tools, except those that are agents: edges show these.
    fn of<C>(agent: &Agent<C>) -> Self {
        let tools = agent.tools().iter().filter(|tool| tool.agent().is_none());
        Self {
            name: agent.name().to_owned(),
            is_person: agent.is_person(),
            tools: tools.map(|tool| tool.name().to_owned()).collect(),
        }
    }

    /// The name as it is drawn.
    fn label(&self) -> String {
        if self.is_person {
            format!("{} (person)", self.name)
        } else {
            self.name.clone()
        }
    }
}

/// Returns the parts of the label of a handoff: its name if it is not made from the agent's, its payload and its
/// condition.
fn handoff_label<C>(
    handoff: &Handoff<C>,
    name: &str,
    names: ToolNames,
    offered: Offered,
) -> Vec<String> {
    let mut parts = Vec::new();
    if handoff.has_given_name() || name != names.default_name(handoff.agent_name()) {
        parts.push(name.to_owned());
    }
    if let Some(payload) = handoff.payload_name() {
        let fields = handoff.payload_fields();
        // A payload that is only JSON is told by its fields.
        parts.push(if payload == "JSON" && !fields.is_empty() {
            format!("with {}", fields.join(", "))
        } else {
            format!("with {payload}")
        });
    }
    if handoff.is_conditional() || handoff.is_hidden() {
        let condition = handoff.condition_name().unwrap_or("allowed");
        parts.push(format!("if {condition}"));
    } else if offered == Offered::Never {
        parts.push("never".to_owned());
    }
    parts
}

fn tool_label<C>(tool: &Tool<C>, offered: Offered) -> Vec<String> {
    let condition = match offered {
        Offered::Always => None,
        Offered::Sometimes => Some("if allowed"),
        Offered::Never => Some("never"),
    };
    let name = std::iter::once(tool.name());
    name.chain(condition).map(str::to_owned).collect()
}

/// Quotes text for Mermaid. Inside quotes, brackets and keywords such as `end` are plain text;
/// other special characters become entities.
fn quote_mermaid(text: &str) -> String {
    let escapes = [
        // This one begins an entity, so it comes first.
        ("#", "#35;"),
        ("\"", "#quot;"),
        ("&", "#amp;"),
        ("<", "#lt;"),
        (">", "#gt;"),
        ("`", "#96;"),
        ("%", "#37;"),
        ("\\", "#92;"),
        ("\n", "<br/>"),
        // Mermaid takes a line with this keyword for a statement, even inside quotes.
        ("direction ", "direction#32;"),
    ];
    quote(if text.is_empty() { " " } else { text }, &escapes)
}

/// Quotes text for Graphviz.
fn quote_dot(text: &str) -> String {
    let escapes = [
        ("\\", "\\\\"),
        ("\"", "\\\""),
        ("&", "&amp;"),
        ("\n", "\\n"),
    ];
    quote(text, &escapes)
}

/// Quotes text after applying the escapes in order, with `\n` for every line break and a space for
/// other control characters.
fn quote(text: &str, escapes: &[(&str, &str)]) -> String {
    let text = text.replace("\r\n", "\n");
    let chars = text.chars().map(|c| match c {
        '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
        c if c.is_control() => ' ',
        c => c,
    });
    let mut text: String = chars.collect();
    for (from, to) in escapes {
        text = text.replace(from, to);
    }
    format!("\"{text}\"")
}
