//! The positions of a drawing of a team: agents in columns by their distance from the first one, the
//! connections as curves between the columns.

mod columns;
mod routes;

use serde::Serialize;

use super::text_size::{width, wrapped};
use super::{Graph, GraphAgent, GraphEdgeKind};
use columns::Columns;

/// The font size of an agent's name.
pub(super) const NAME_SIZE: f64 = 14.0;
/// The font size of labels and tools.
pub(super) const LABEL_SIZE: f64 = 11.0;
/// The height of a line of a label.
const LINE_HEIGHT: f64 = 13.0;
/// The space around the drawing.
const MARGIN: f64 = 24.0;
/// The space between agents of a column.
const AGENT_GAP: f64 = 26.0;
/// The largest number of columns of a line of a label.
const MAX_LABEL_COLUMNS: usize = 34;
/// The largest number of columns of an agent's name on one line.
const MAX_NAME_COLUMNS: usize = 24;

/// A drawing of a team: boxes, lines and texts with their positions, in pixels from the upper left corner.
///
/// ```
/// use switchboard_core::{Agent, Team};
///
/// let team: Team = Team::new()
///     .agent(Agent::new("Triage").handoff("Billing"))
///     .agent(Agent::new("Billing"))
///     .build()?;
/// let layout = team.graph().layout();
/// assert_eq!(layout.agents[0].name, ["Triage"]);
/// assert!(layout.agents[0].x < layout.agents[1].x);
/// # Ok::<(), switchboard_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GraphLayout {
    /// The width of the drawing.
    pub width: f64,
    /// The height of the drawing.
    pub height: f64,
    /// The agents, in the order of [`Graph::agents`].
    pub agents: Vec<AgentBox>,
    /// The connections, in the order of [`Graph::edges`].
    pub edges: Vec<EdgeLine>,
}

/// An agent of a [`GraphLayout`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AgentBox {
    /// The left edge.
    pub x: f64,
    /// The upper edge.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
    /// The lines of its name.
    pub name: Vec<String>,
    /// The names of its tools, one a line.
    pub tools: Vec<String>,
    /// Set if it is a person.
    pub is_person: bool,
    /// Set if it gets the conversation first.
    pub is_start: bool,
}

/// A connection of a [`GraphLayout`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EdgeLine {
    /// The index of the agent that it leads from.
    pub from: usize,
    /// The index of the agent that it leads to.
    pub to: usize,
    /// The line in the syntax of SVG paths. It ends at the agent that it leads to.
    pub path: String,
    /// The lines of its label.
    pub label: Vec<LabelLine>,
    /// The kind of connection.
    pub kind: GraphEdgeKind,
    /// Set unless the model is always offered it.
    pub is_conditional: bool,
    /// Set if it leads to an agent of the same or an earlier column, as in a cycle.
    pub is_back: bool,
}

/// A line of a label.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LabelLine {
    /// The end of the text on the side of the agent that the connection leads from.
    pub x: f64,
    /// The baseline.
    pub y: f64,
    /// Set if the text ends at `x`, and does not begin there.
    pub ends_at_x: bool,
    /// The text.
    pub text: String,
}

/// Computes the positions.
pub(super) fn layout(graph: &Graph) -> GraphLayout {
    let columns = Columns::of(graph);
    let labels: Vec<Vec<String>> = graph
        .edges
        .iter()
        .map(|edge| {
            let parts = edge.label.iter();
            parts
                .flat_map(|part| wrapped(part, MAX_LABEL_COLUMNS))
                .collect()
        })
        .collect();
    let mut boxes: Vec<AgentBox> = graph.agents.iter().enumerate().map(agent_box).collect();
    routes::place(graph, &columns, &labels, &mut boxes)
}

/// The box of an agent, with the size of its texts, at the origin.
fn agent_box((index, agent): (usize, &GraphAgent)) -> AgentBox {
    let mut name = wrapped(&agent.name, MAX_NAME_COLUMNS);
    if agent.is_person {
        name.push("(person)".to_owned());
    }
    let names = name.iter().map(|line| width(line, NAME_SIZE) * 1.08);
    let tools = agent
        .tools
        .iter()
        .map(|tool| width(tool, LABEL_SIZE) + 16.0);
    let widest = names.chain(tools).fold(60.0, f64::max);
    let lines = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let height = 20.0 + lines(name.len()) * 18.0 + lines(agent.tools.len()) * 15.0;
    AgentBox {
        x: 0.0,
        y: 0.0,
        width: widest + 28.0,
        height,
        name,
        tools: agent.tools.clone(),
        is_person: agent.is_person,
        is_start: index == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphEdge, GraphEdgeKind};
    use super::*;

    fn graph(agents: usize, edges: &[(usize, usize, &str)]) -> Graph {
        Graph {
            agents: (0..agents)
                .map(|index| GraphAgent {
                    name: format!("Agent {index}"),
                    is_person: false,
                    tools: vec![format!("tool_{index}"); index % 3],
                })
                .collect(),
            edges: edges
                .iter()
                .map(|(from, to, label)| GraphEdge {
                    from: *from,
                    to: *to,
                    label: Vec::from_iter((!label.is_empty()).then(|| (*label).to_owned())),
                    kind: GraphEdgeKind::Handoff,
                    is_conditional: false,
                })
                .collect(),
        }
    }

    /// A team in which everybody hands over to some others, also back.
    fn large() -> Graph {
        let mut edges = Vec::new();
        for from in 0..15_usize {
            for step in [1, 4, 7] {
                edges.push((
                    from,
                    (from * 2 + step) % 15,
                    "with a payload, if the customer asks",
                ));
            }
        }
        graph(15, &edges)
    }

    #[test]
    fn boxes_do_not_overlap_and_are_within_the_drawing() {
        for graph in [
            graph(2, &[(0, 1, ""), (1, 0, "back")]),
            graph(1, &[(0, 0, "again")]),
            graph(3, &[]),
            large(),
        ] {
            let layout = graph.layout();
            for (index, a) in layout.agents.iter().enumerate() {
                assert!(a.x >= 0.0 && a.y >= 0.0, "{a:?}");
                assert!(a.x + a.width <= layout.width && a.y + a.height <= layout.height);
                for b in &layout.agents[index + 1..] {
                    let is_apart = a.x + a.width <= b.x
                        || b.x + b.width <= a.x
                        || a.y + a.height <= b.y
                        || b.y + b.height <= a.y;
                    assert!(is_apart, "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn labels_overlap_neither_each_other_nor_boxes() {
        let layout = large().layout();
        let labels = layout.edges.iter().flat_map(|edge| &edge.label);
        let rectangles: Vec<[f64; 4]> = labels
            .map(|line| {
                let size = width(&line.text, LABEL_SIZE);
                let x = if line.ends_at_x {
                    line.x - size
                } else {
                    line.x
                };
                [x, line.y - LABEL_SIZE + 1.0, x + size, line.y]
            })
            .collect();
        let apart = |a: &[f64; 4], b: &[f64; 4]| {
            a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1]
        };
        assert!(rectangles.len() >= 45);
        for (index, a) in rectangles.iter().enumerate() {
            for b in &rectangles[index + 1..] {
                assert!(apart(a, b), "{a:?} {b:?}");
            }
            for agent in &layout.agents {
                let (right, bottom) = (agent.x + agent.width, agent.y + agent.height);
                assert!(
                    apart(a, &[agent.x, agent.y, right, bottom]),
                    "{a:?} {agent:?}"
                );
            }
        }
    }

    #[test]
    fn connections_to_earlier_agents_are_marked() {
        let layout = graph(3, &[(0, 1, ""), (1, 2, ""), (2, 0, "")]).layout();
        let back: Vec<bool> = layout.edges.iter().map(|edge| edge.is_back).collect();
        assert_eq!(back, [false, false, true]);
    }
}
