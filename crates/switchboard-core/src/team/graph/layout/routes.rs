//! The places of boxes, and the lines between them.
//!
//! Every line has a port of its own at both ends, so that labels, which are at the ports where lines leave,
//! do not overlap. Beside each column is a strip as wide as its widest label that lines cross straight.

use std::fmt::Write as _;

use super::super::Graph;
use super::super::text_size::width;
use super::{
    AGENT_GAP, AgentBox, Columns, EdgeLine, GraphLayout, LABEL_SIZE, LINE_HEIGHT, LabelLine, MARGIN,
};

/// The height of a slot that lets a line pass.
const PASSING_HEIGHT: f64 = 10.0;
/// The height of a port without a label.
const PORT_HEIGHT: f64 = 15.0;
/// The number of times that boxes are moved towards what they are connected to.
const PASSES: usize = 12;

/// The side of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The end of a line at a box.
struct Port {
    edge: usize,
    is_source: bool,
    /// Sorts the ports of a side from top to bottom.
    order: (i32, usize, usize),
    height: f64,
}

/// The ports of an agent.
#[derive(Default)]
struct Ports {
    left: Vec<Port>,
    right: Vec<Port>,
}

impl Ports {
    fn side(&mut self, side: Side) -> &mut Vec<Port> {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }
}

fn total_height(ports: &[Port]) -> f64 {
    ports.iter().map(|port| port.height).sum()
}

/// Places the boxes and draws the lines.
pub(super) fn place(
    graph: &Graph,
    columns: &Columns,
    labels: &[Vec<String>],
    boxes: &mut [AgentBox],
) -> GraphLayout {
    let ports = ports(graph, columns, labels);
    for (agent, ports) in boxes.iter_mut().zip(&ports) {
        let needed = total_height(&ports.left).max(total_height(&ports.right)) + 12.0;
        agent.height = agent.height.max(needed);
    }
    let centers = centers(columns, boxes);
    for (agent, center) in boxes.iter_mut().zip(&centers) {
        agent.y = center - agent.height / 2.0;
    }
    let strips = Strips::of(graph, columns, labels, boxes);
    for (agent, column) in boxes.iter_mut().zip(&columns.column_of) {
        agent.x = strips.columns[*column].x;
        agent.width = strips.columns[*column].width;
    }
    let mut ends = vec![[0.0; 2]; graph.edges.len()];
    for (agent, ports) in boxes.iter().zip(&ports) {
        for side in [&ports.left, &ports.right] {
            let mut y = agent.y + (agent.height - total_height(side)) / 2.0;
            for port in side {
                y += port.height;
                // The line is below its label.
                ends[port.edge][usize::from(!port.is_source)] = y - PORT_HEIGHT / 2.0 + 2.0;
            }
        }
    }
    let edges = graph.edges.iter().enumerate().map(|(index, edge)| {
        let chain = &columns.chains[index];
        let from = columns.column_of[edge.from];
        let to = columns.column_of[edge.to];
        let [start, end] = ends[index];
        let leaves = if to < from { Side::Left } else { Side::Right };
        let x = strips.edge_of(from, leaves);
        let label = labels[index].iter().rev().enumerate().map(|(line, text)| {
            let lines = f64::from(u32::try_from(line).unwrap_or(u32::MAX));
            LabelLine {
                x: if leaves == Side::Left {
                    x - 8.0
                } else {
                    x + 8.0
                },
                y: start - 4.0 - lines * LINE_HEIGHT,
                ends_at_x: leaves == Side::Left,
                text: text.clone(),
            }
        });
        EdgeLine {
            from: edge.from,
            to: edge.to,
            path: strips.path(chain, columns, &centers, [start, end], index),
            label: label.collect(),
            kind: edge.kind,
            is_conditional: edge.is_conditional,
            is_back: to <= from,
        }
    });
    let edges = edges.collect();
    let bottom = boxes.iter().map(|agent| agent.y + agent.height);
    let passing = centers.iter().map(|center| center + PASSING_HEIGHT);
    GraphLayout {
        width: strips.width,
        height: bottom.chain(passing).fold(0.0, f64::max) + MARGIN,
        agents: boxes.to_vec(),
        edges,
    }
}

/// The ports of each agent, from top to bottom.
fn ports(graph: &Graph, columns: &Columns, labels: &[Vec<String>]) -> Vec<Ports> {
    let places = columns.places();
    let mut all: Vec<Ports> = graph.agents.iter().map(|_| Ports::default()).collect();
    for (index, edge) in graph.edges.iter().enumerate() {
        let chain = &columns.chains[index];
        let from = columns.column_of[edge.from];
        let to = columns.column_of[edge.to];
        let lines = f64::from(u32::try_from(labels[index].len()).unwrap_or(u32::MAX));
        let mut add = |agent: usize, side: Side, other: usize, is_source: bool| {
            // Lines within a column go around what is between their ends.
            let group = match places[other].cmp(&places[agent]) {
                _ if from != to => 0,
                std::cmp::Ordering::Less => -1,
                _ => 1,
            };
            let height = if is_source {
                PORT_HEIGHT + lines * LINE_HEIGHT
            } else {
                PORT_HEIGHT
            };
            all[agent].side(side).push(Port {
                edge: index,
                is_source,
                order: (group, places[other], index * 2 + usize::from(is_source)),
                height,
            });
        };
        let (leaves, arrives) = match from.cmp(&to) {
            std::cmp::Ordering::Less => (Side::Right, Side::Left),
            std::cmp::Ordering::Greater => (Side::Left, Side::Right),
            std::cmp::Ordering::Equal => (Side::Right, Side::Right),
        };
        add(edge.from, leaves, chain[1], true);
        add(edge.to, arrives, chain[chain.len() - 2], false);
    }
    for ports in &mut all {
        ports.left.sort_by_key(|port| port.order);
        ports.right.sort_by_key(|port| port.order);
    }
    all
}

/// The vertical middle of each slot. Each is moved towards what it is connected to.
fn centers(columns: &Columns, boxes: &[AgentBox]) -> Vec<f64> {
    let height = |slot: usize| boxes.get(slot).map_or(PASSING_HEIGHT, |agent| agent.height);
    let gap = |slot: usize| {
        if slot < boxes.len() {
            AGENT_GAP
        } else {
            AGENT_GAP / 2.0
        }
    };
    let mut centers = vec![0.0; columns.column_of.len()];
    for column in &columns.columns {
        let mut y = MARGIN;
        for slot in column {
            centers[*slot] = y + height(*slot) / 2.0;
            y += height(*slot) + gap(*slot);
        }
    }
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); columns.column_of.len()];
    for pair in columns.chains.iter().flat_map(|chain| chain.windows(2)) {
        if columns.column_of[pair[0]] != columns.column_of[pair[1]] {
            neighbours[pair[0]].push(pair[1]);
            neighbours[pair[1]].push(pair[0]);
        }
    }
    for _ in 0..PASSES {
        for column in &columns.columns {
            let wanted: Vec<f64> = column
                .iter()
                .map(|slot| match neighbours[*slot].len() {
                    0 => centers[*slot],
                    count => {
                        let sum: f64 = neighbours[*slot].iter().map(|other| centers[*other]).sum();
                        sum / f64::from(u32::try_from(count).unwrap_or(u32::MAX))
                    }
                })
                .collect();
            // Packed from above and from below; the middle of both keeps the distances.
            let distance =
                |above: usize, below: usize| height(above) / 2.0 + gap(above) + height(below) / 2.0;
            let mut from_above = wanted.clone();
            for index in 1..column.len() {
                let least = from_above[index - 1] + distance(column[index - 1], column[index]);
                from_above[index] = from_above[index].max(least);
            }
            let mut from_below = wanted;
            for index in (1..column.len()).rev() {
                let most = from_below[index] - distance(column[index - 1], column[index]);
                from_below[index - 1] = from_below[index - 1].min(most);
            }
            for (index, slot) in column.iter().enumerate() {
                centers[*slot] = f64::midpoint(from_above[index], from_below[index]);
            }
        }
    }
    let tops = centers.iter().enumerate();
    let top = tops
        .map(|(slot, center)| center - height(slot) / 2.0)
        .fold(f64::INFINITY, f64::min);
    if top.is_finite() {
        for center in &mut centers {
            *center += MARGIN - top;
        }
    }
    centers
}

/// The horizontal extent of a column, and of the strips for labels beside it.
struct Strip {
    x: f64,
    width: f64,
    left: f64,
    right: f64,
}

/// The columns from left to right.
struct Strips {
    columns: Vec<Strip>,
    width: f64,
}

impl Strips {
    fn of(graph: &Graph, columns: &Columns, labels: &[Vec<String>], boxes: &[AgentBox]) -> Self {
        let count = columns.columns.len();
        let mut strips: Vec<Strip> = Vec::with_capacity(count);
        let mut left = vec![0.0_f64; count];
        let mut right = vec![0.0_f64; count];
        // The number of lines in the space to the right of each column.
        let mut lines = vec![0_u32; count];
        for (index, edge) in graph.edges.iter().enumerate() {
            let (from, to) = (columns.column_of[edge.from], columns.column_of[edge.to]);
            let widths = labels[index].iter().map(|line| width(line, LABEL_SIZE));
            let widest = widths.fold(0.0, f64::max) + 16.0;
            let side = if to < from { &mut left } else { &mut right };
            side[from] = side[from].max(widest);
            let (first, last) = (from.min(to), from.max(to));
            for count in &mut lines[first..last.max(first + 1)] {
                *count += 1;
            }
        }
        let mut x = MARGIN;
        for (column, slots) in columns.columns.iter().enumerate() {
            let agents = slots.iter().filter_map(|slot| boxes.get(*slot));
            let width = agents.map(|agent| agent.width).fold(60.0, f64::max);
            x += left[column];
            strips.push(Strip {
                x,
                width,
                left: left[column],
                right: right[column],
            });
            let curves = match lines[column] {
                0 => 0.0,
                lines => (36.0 + f64::from(lines) * 6.0).min(180.0),
            };
            x += width + right[column] + curves;
        }
        Self {
            columns: strips,
            width: x + MARGIN,
        }
    }

    /// The left or right edge of the boxes of a column.
    fn edge_of(&self, column: usize, side: Side) -> f64 {
        let strip = &self.columns[column];
        match side {
            Side::Left => strip.x,
            Side::Right => strip.x + strip.width,
        }
    }

    /// The line of an edge through these slots, between the ports at these heights.
    fn path(
        &self,
        chain: &[usize],
        columns: &Columns,
        centers: &[f64],
        [start, end]: [f64; 2],
        edge: usize,
    ) -> String {
        let last = chain.len() - 1;
        let y_of = |index: usize| match index {
            0 => start,
            index if index == last => end,
            index => centers[chain[index]],
        };
        let mut path = String::new();
        for index in 0..last {
            let (from, to) = (
                columns.column_of[chain[index]],
                columns.column_of[chain[index + 1]],
            );
            let (y1, y2) = (y_of(index), y_of(index + 1));
            let (leaves, arrives) = match from.cmp(&to) {
                std::cmp::Ordering::Less => (Side::Right, Side::Left),
                std::cmp::Ordering::Greater => (Side::Left, Side::Right),
                std::cmp::Ordering::Equal => (Side::Right, Side::Right),
            };
            let strip_end = |column: usize, side: Side| match side {
                Side::Left => self.edge_of(column, side) - self.columns[column].left,
                Side::Right => self.edge_of(column, side) + self.columns[column].right,
            };
            let (x1, x2) = (self.edge_of(from, leaves), self.edge_of(to, arrives));
            let (a, b) = (strip_end(from, leaves), strip_end(to, arrives));
            // Writing to a String cannot fail.
            if index == 0 {
                let _ = write!(path, "M{x1:.1},{y1:.1}");
            }
            if from == to {
                // Around what is between, further out the further away it is, and not on the same line.
                let offset = f64::from(u32::try_from(edge % 5).unwrap_or_default()) * 8.0;
                let bend = 18.0 + (y2 - y1).abs().min(240.0) / 8.0 + offset;
                let (y1, y2) = (y1, if (y2 - y1).abs() < 1.0 { y2 + 1.0 } else { y2 });
                let out = a + bend;
                let _ = write!(
                    path,
                    " H{a:.1} C{out:.1},{y1:.1} {out:.1},{y2:.1} {b:.1},{y2:.1}"
                );
            } else {
                let middle = f64::midpoint(a, b);
                let _ = write!(
                    path,
                    " H{a:.1} C{middle:.1},{y1:.1} {middle:.1},{y2:.1} {b:.1},{y2:.1}"
                );
            }
            let _ = write!(path, " H{x2:.1}");
            if index + 1 < last {
                // Through the column, to its other side.
                let other = self.edge_of(to, leaves);
                let _ = write!(path, " H{other:.1}");
            }
        }
        path
    }
}
