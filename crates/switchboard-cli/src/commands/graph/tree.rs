//! A team as a tree of text. Each agent is drawn with its handoffs once, where the fewest handoffs lead
//! to it; elsewhere it is only named.

use std::collections::VecDeque;
use std::io::{self, Write};

use switchboard_core::team::{Graph, GraphEdge, GraphEdgeKind};
use unicode_width::UnicodeWidthStr as _;

use crate::screen::style::{self, DIM, Look};
use crate::screen::wrap::{one_line, wrapped};

/// Writes the tree.
pub(crate) fn write<W: Write + ?Sized>(graph: &Graph, look: Look, out: &mut W) -> io::Result<()> {
    let (roots, expands) = spanning_tree(graph);
    let mut tree = Tree {
        graph,
        expands,
        ancestors: Vec::new(),
        look,
        out,
    };
    for root in roots {
        let name = tree.name(root);
        writeln!(tree.out, "{name}")?;
        tree.below(root, "")?;
    }
    tree.legend()
}

/// Finds the agents that are drawn first, and the edges below which an agent is drawn.
fn spanning_tree(graph: &Graph) -> (Vec<usize>, Vec<bool>) {
    let mut roots = Vec::new();
    let mut expands = vec![false; graph.edges.len()];
    let mut is_found = vec![false; graph.agents.len()];
    for first in 0..graph.agents.len() {
        if is_found[first] {
            continue;
        }
        is_found[first] = true;
        roots.push(first);
        let mut open = VecDeque::from([first]);
        while let Some(agent) = open.pop_front() {
            for (index, edge) in graph.edges.iter().enumerate() {
                if edge.from == agent && !is_found[edge.to] {
                    is_found[edge.to] = true;
                    expands[index] = true;
                    open.push_back(edge.to);
                }
            }
        }
    }
    (roots, expands)
}

struct Tree<'a, W: ?Sized> {
    graph: &'a Graph,
    /// Set for the edges below which their agent is drawn.
    expands: Vec<bool>,
    ancestors: Vec<usize>,
    look: Look,
    out: &'a mut W,
}

impl<W: Write + ?Sized> Tree<'_, W> {
    /// Draws the tools and handoffs of an agent, each line after `prefix`.
    fn below(&mut self, agent: usize, prefix: &str) -> io::Result<()> {
        self.ancestors.push(agent);
        let edges = self.graph.edges.iter().enumerate();
        let edges: Vec<(usize, &GraphEdge)> =
            edges.filter(|(_, edge)| edge.from == agent).collect();
        let tools = &self.graph.agents[agent].tools;
        if !tools.is_empty() {
            let bar = if edges.is_empty() { "  " } else { "│ " };
            let tools: Vec<String> = tools
                .iter()
                .map(|tool| format!("{}()", one_line(tool)))
                .collect();
            let indent = prefix.width() + 2;
            let tools = wrapped(&tools.join("  "), self.look.width, indent, indent);
            for line in tools.lines() {
                let line = self.look.paint(DIM, line.trim_start());
                writeln!(self.out, "{prefix}{bar}{line}")?;
            }
        }
        let count = edges.len();
        for (position, (index, edge)) in edges.into_iter().enumerate() {
            let is_last = position + 1 == count;
            let (branch, bar) = if is_last {
                ("└", "   ")
            } else {
                ("├", "│  ")
            };
            let arrow = match (edge.kind, edge.is_conditional) {
                (GraphEdgeKind::AgentAsTool, _) => "─○",
                (_, true) => "┄▶",
                _ => "─▶",
            };
            let mark = if self.expands[index] {
                ""
            } else if self.ancestors.contains(&edge.to) {
                " ↺"
            } else {
                " …"
            };
            let name = self.name(edge.to);
            let label = one_line(&edge.label.join(", ")).into_owned();
            let column =
                prefix.width() + 4 + self.graph.agents[edge.to].name.width() + mark.width();
            let label = if label.is_empty() {
                label
            } else {
                let indent = prefix.width() + 6;
                let lines = wrapped(&label, self.look.width, column + 2, indent);
                let spaces = format!("\n{:indent$}", "");
                let lines = self.look.paint(DIM, &lines);
                format!(
                    "  {}",
                    lines.replace(&spaces, &format!("\n{prefix}{bar}   "))
                )
            };
            writeln!(self.out, "{prefix}{branch}{arrow} {name}{mark}{label}")?;
            if self.expands[index] {
                self.below(edge.to, &format!("{prefix}{bar}"))?;
            }
        }
        self.ancestors.pop();
        Ok(())
    }

    fn name(&self, agent: usize) -> String {
        let node = &self.graph.agents[agent];
        let name = self
            .look
            .paint(style::of_agent(agent), &one_line(&node.name));
        if node.is_person {
            format!("{name} {}", self.look.language.choose("(person)", "（人）"))
        } else {
            name
        }
    }

    /// Explains the marks that were used.
    fn legend(&mut self) -> io::Result<()> {
        let language = self.look.language;
        let edges = &self.graph.edges;
        let is_any = |wanted: &dyn Fn(&GraphEdge) -> bool| edges.iter().any(wanted);
        let mut marks = Vec::new();
        if is_any(&|edge| edge.kind == GraphEdgeKind::Handoff && edge.is_conditional) {
            marks.push(language.choose("┄▶ under a condition", "┄▶ 有条件"));
        }
        if is_any(&|edge| edge.kind == GraphEdgeKind::AgentAsTool) {
            marks.push(language.choose("─○ asked as a tool", "─○ 作为工具询问"));
        }
        if self.expands.contains(&false) {
            marks.push(language.choose("↺ back to an agent above it", "↺ 回到上级成员"));
            marks.push(language.choose("… drawn elsewhere", "… 在别处画出"));
        }
        if marks.is_empty() {
            return Ok(());
        }
        let text = wrapped(&marks.join(" · "), self.look.width, 0, 0);
        writeln!(self.out, "\n{}", self.look.paint(DIM, &text))
    }
}
