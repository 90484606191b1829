//! The columns of a drawing, and the order of agents within them.

use std::collections::VecDeque;

use super::super::Graph;

/// The number of times that the order is improved.
const SWEEPS: usize = 16;

/// The slots of each column, from top to bottom.
pub(super) struct Columns {
    /// The slots of each column, in order.
    pub(super) columns: Vec<Vec<usize>>,
    /// The column of each slot. The first slots are the agents; the others let a line pass.
    pub(super) column_of: Vec<usize>,
    /// The slots of each edge, from its source to its target; both in one column if it has two that are.
    pub(super) chains: Vec<Vec<usize>>,
}

impl Columns {
    /// Puts agents into columns by their distance from the first one, and orders them.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut column_of = distances(graph);
        let count = column_of.iter().max().map_or(0, |last| last + 1);
        let mut columns: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (agent, column) in column_of.iter().enumerate() {
            columns[*column].push(agent);
        }
        let mut chains = Vec::with_capacity(graph.edges.len());
        for edge in &graph.edges {
            let (from, to) = (column_of[edge.from], column_of[edge.to]);
            let mut chain = vec![edge.from];
            let between: Vec<usize> = if from < to {
                (from + 1..to).collect()
            } else {
                (to + 1..from).rev().collect()
            };
            for column in between {
                columns[column].push(column_of.len());
                chain.push(column_of.len());
                column_of.push(column);
            }
            chain.push(edge.to);
            chains.push(chain);
        }
        let mut columns = Self {
            columns,
            column_of,
            chains,
        };
        columns.reduce_crossings();
        columns
    }

    /// The place of each slot within its column.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.column_of.len()];
        for column in &self.columns {
            for (place, slot) in column.iter().enumerate() {
                places[*slot] = place;
            }
        }
        places
    }

    /// Orders each column by the middle of what its slots are connected to, and keeps the best order.
    fn reduce_crossings(&mut self) {
        let neighbours = self.neighbours();
        let mut best = (self.crossings(), self.columns.clone());
        for sweep in 0..SWEEPS {
            let last = self.columns.len().saturating_sub(1);
            let rightwards = sweep % 2 == 0;
            for step in 1..=last {
                let column = if rightwards { step } else { last - step };
                let towards = if rightwards { column - 1 } else { column + 1 };
                let places = self.places();
                let column_of = &self.column_of;
                let middle = |slot: &usize| {
                    let known = neighbours[*slot].iter();
                    let known: Vec<usize> = known
                        .filter(|other| column_of[**other] == towards)
                        .map(|other| places[*other] * 2)
                        .collect();
                    match known.len() {
                        // Without a connection it stays where it is.
                        0 => places[*slot] * 2,
                        count => known.iter().sum::<usize>() / count,
                    }
                };
                self.columns[column].sort_by_key(middle);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.columns.clone());
            }
        }
        self.columns = best.1;
    }

    /// The slots that each slot is connected to.
    fn neighbours(&self) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); self.column_of.len()];
        for pair in self.chains.iter().flat_map(|chain| chain.windows(2)) {
            neighbours[pair[0]].push(pair[1]);
            neighbours[pair[1]].push(pair[0]);
        }
        neighbours
    }

    /// The number of lines between neighbouring columns that cross.
    fn crossings(&self) -> usize {
        let places = self.places();
        let mut lines: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.columns.len()];
        for pair in self.chains.iter().flat_map(|chain| chain.windows(2)) {
            let (a, b) = (pair[0], pair[1]);
            match self.column_of[a].cmp(&self.column_of[b]) {
                std::cmp::Ordering::Less => lines[self.column_of[a]].push((places[a], places[b])),
                std::cmp::Ordering::Greater => {
                    lines[self.column_of[b]].push((places[b], places[a]));
                }
                std::cmp::Ordering::Equal => {}
            }
        }
        let cross =
            |(a, b): &(usize, usize), (c, d): &(usize, usize)| (a < c && b > d) || (a > c && b < d);
        lines
            .iter()
            .map(|lines| {
                let pairs = lines.iter().enumerate();
                let counts = pairs.map(|(index, line)| {
                    let later = lines[index + 1..].iter();
                    later.filter(|other| cross(line, other)).count()
                });
                counts.sum::<usize>()
            })
            .sum()
    }
}

/// The distance of each agent from the first one. Agents that nothing leads to are first ones as well.
fn distances(graph: &Graph) -> Vec<usize> {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); graph.agents.len()];
    for edge in &graph.edges {
        outgoing[edge.from].push(edge.to);
    }
    let mut distances: Vec<Option<usize>> = vec![None; graph.agents.len()];
    let mut open = VecDeque::new();
    for first in 0..graph.agents.len() {
        if distances[first].is_none() {
            distances[first] = Some(0);
            open.push_back((first, 0));
        }
        while let Some((agent, distance)) = open.pop_front() {
            for to in &outgoing[agent] {
                if distances[*to].is_none() {
                    distances[*to] = Some(distance + 1);
                    open.push_back((*to, distance + 1));
                }
            }
        }
    }
    distances
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect()
}
