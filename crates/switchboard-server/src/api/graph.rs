//! The drawing of a team as numbers, for pages that draw it themselves.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use switchboard_core::team::{Graph, GraphEdgeKind};

use super::types::FindingBody;
use crate::agent_details::HandoffDetails;
use crate::team::ServedTeam;

/// A team, laid out as `switchboard graph` draws it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GraphBody {
    width: f64,
    height: f64,
    agents: Vec<AgentBox>,
    edges: Vec<Edge>,
    findings: Vec<FindingBody>,
}

/// An agent of the drawing.
#[derive(Debug, Serialize, JsonSchema)]
struct AgentBox {
    name: String,
    /// The name, broken into lines.
    lines: Vec<String>,
    /// The left edge.
    x: f64,
    /// The upper edge.
    y: f64,
    width: f64,
    height: f64,
    tools: Vec<String>,
    is_person: bool,
    is_start: bool,
}

/// A connection of the drawing.
#[derive(Debug, Serialize, JsonSchema)]
struct Edge {
    from: String,
    to: String,
    /// The data of an SVG path.
    path: String,
    label: Vec<LabelLine>,
    /// `handoff` or `agent_as_tool`.
    kind: String,
    is_conditional: bool,
    /// It leads back.
    is_back: bool,
    tool: Option<String>,
    condition: Option<String>,
    /// The JSON Schema of the payload.
    payload: Option<Value>,
    guardrails: Vec<String>,
    filters: Vec<String>,
    /// `never`, `always` or `sometimes`.
    needs_approval: String,
}

/// A line of a label.
#[derive(Debug, Serialize, JsonSchema)]
struct LabelLine {
    x: f64,
    y: f64,
    /// The text ends at `x` instead of beginning there.
    ends_at_x: bool,
    text: String,
}

impl GraphBody {
    pub(super) fn new(team: &ServedTeam, graph: &Graph) -> Self {
        let layout = graph.layout();
        let agents = layout.agents.iter().zip(&graph.agents);
        let agents = agents.map(|(place, agent)| AgentBox {
            name: agent.name.clone(),
            lines: place.name.clone(),
            x: place.x,
            y: place.y,
            width: place.width,
            height: place.height,
            tools: agent.tools.clone(),
            is_person: place.is_person,
            is_start: place.is_start,
        });
        let name = |at: usize| {
            let agent = graph.agents.get(at);
            agent.map(|agent| agent.name.clone()).unwrap_or_default()
        };
        // Several handoffs between two agents are told apart by their order.
        let mut used: Vec<(usize, usize)> = Vec::new();
        let mut handoff = |from: usize, to: usize| -> Option<HandoffDetails> {
            let details = team.agent_details(&name(from))?;
            let target = name(to);
            let earlier = used.iter().filter(|edge| **edge == (from, to)).count();
            used.push((from, to));
            let mut matching = details
                .handoffs
                .into_iter()
                .filter(|handoff| handoff.to == target);
            matching.nth(earlier)
        };
        let mut edges = Vec::new();
        for line in &layout.edges {
            let is_handoff = line.kind == GraphEdgeKind::Handoff;
            let details = if is_handoff {
                handoff(line.from, line.to)
            } else {
                None
            };
            let labels = line.label.iter().map(|label| LabelLine {
                x: label.x,
                y: label.y,
                ends_at_x: label.ends_at_x,
                text: label.text.clone(),
            });
            let kind = if is_handoff {
                "handoff"
            } else {
                "agent_as_tool"
            };
            edges.push(Edge {
                from: name(line.from),
                to: name(line.to),
                path: line.path.clone(),
                label: labels.collect(),
                kind: kind.to_owned(),
                is_conditional: line.is_conditional,
                is_back: line.is_back,
                tool: details.as_ref().map(|details| details.tool.clone()),
                condition: details
                    .as_ref()
                    .and_then(|details| details.condition.clone()),
                payload: details.as_ref().and_then(|details| details.payload.clone()),
                guardrails: details
                    .as_ref()
                    .map(|details| details.guardrails.clone())
                    .unwrap_or_default(),
                filters: details
                    .as_ref()
                    .map(|details| details.filters.clone())
                    .unwrap_or_default(),
                needs_approval: details
                    .as_ref()
                    .map_or("never", |details| details.needs_approval)
                    .to_owned(),
            });
        }
        Self {
            width: layout.width,
            height: layout.height,
            agents: agents.collect(),
            edges,
            findings: team.check().iter().map(FindingBody::from).collect(),
        }
    }
}
