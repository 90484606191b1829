//! Cycles in a directed graph.

/// Returns the cycles: strongly connected components of more than one node, and single nodes with
/// an edge to themselves. Each component is sorted, and so is the list of components.
///
/// Tarjan's algorithm with an explicit path: linear in nodes and edges, and no depth overflows the
/// stack.
pub(super) fn cycles(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        successors,
        index: vec![0; successors.len()],
        low_link: vec![0; successors.len()],
        is_on_stack: vec![false; successors.len()],
        visited: 0,
        stack: Vec::new(),
        path: Vec::new(),
        cycles: Vec::new(),
    };
    for start in 0..successors.len() {
        if search.index[start] == 0 {
            search.explore(start);
        }
    }
    search.cycles.sort_unstable();
    search.cycles
}

struct Search<'a> {
    successors: &'a [Vec<usize>],
    /// The position of each node in the order of visits, from 1; 0 for a node not visited yet.
    index: Vec<usize>,
    /// The smallest index of a node on the stack that each node is known to reach.
    low_link: Vec<usize>,
    /// Visited nodes whose component is not complete, in the order of visits.
    stack: Vec<usize>,
    is_on_stack: Vec<bool>,
    visited: usize,
    /// The path to the current node, with the number of edges followed from each node.
    path: Vec<(usize, usize)>,
    cycles: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn explore(&mut self, start: usize) {
        self.enter(start);
        while let Some((node, followed)) = self.path.last_mut() {
            let node = *node;
            let Some(&next) = self.successors[node].get(*followed) else {
                self.leave(node);
                continue;
            };
            *followed += 1;
            if self.index[next] == 0 {
                self.enter(next);
            } else if self.is_on_stack[next] {
                self.low_link[node] = self.low_link[node].min(self.index[next]);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.visited += 1;
        self.index[node] = self.visited;
        self.low_link[node] = self.visited;
        self.is_on_stack[node] = true;
        self.stack.push(node);
        self.path.push((node, 0));
    }

    fn leave(&mut self, node: usize) {
        self.path.pop();
        if let Some((parent, _)) = self.path.last() {
            self.low_link[*parent] = self.low_link[*parent].min(self.low_link[node]);
        }
        if self.low_link[node] == self.index[node] {
            self.complete_component(node);
        }
    }

    /// Takes the component whose first visited node is `root` off the stack.
    fn complete_component(&mut self, root: usize) {
        let start = self.stack.iter().rposition(|node| *node == root);
        let mut component = self.stack.split_off(start.unwrap_or_default());
        for node in &component {
            self.is_on_stack[*node] = false;
        }
        if component.len() > 1 || self.successors[root].contains(&root) {
            component.sort_unstable();
            self.cycles.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns for each node if it can be reached from `start` in one step or more.
    fn reachable(start: usize, successors: &[Vec<usize>]) -> Vec<bool> {
        let mut reached = vec![false; successors.len()];
        let mut queue = successors[start].clone();
        while let Some(node) = queue.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                queue.extend(&successors[node]);
            }
        }
        reached
    }

    /// The plain version: compares what every pair of nodes can reach.
    fn cycles_by_pairs(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let nodes = 0..successors.len();
        let reached: Vec<_> = nodes
            .clone()
            .map(|node| reachable(node, successors))
            .collect();
        let component = |node: usize| -> Vec<usize> {
            let reach_each_other = |other: &usize| reached[node][*other] && reached[*other][node];
            nodes.clone().filter(reach_each_other).collect()
        };
        let mut found: Vec<_> = nodes.clone().map(component).collect();
        found.retain(|component| !component.is_empty());
        found.sort_unstable();
        found.dedup();
        found
    }

    proptest! {
        #[test]
        fn nodes_of_a_cycle_reach_each_other(
            successors in (1_usize..12).prop_flat_map(|nodes| {
                prop::collection::vec(prop::collection::vec(0..nodes, 0..4), nodes)
            })
        ) {
            prop_assert_eq!(cycles(&successors), cycles_by_pairs(&successors));
        }
    }

    #[test]
    fn a_deep_graph_does_not_overflow_the_stack() {
        let last = 1_000_000;
        let mut chain: Vec<Vec<usize>> = (1..=last).map(|next| vec![next]).collect();
        chain.push(Vec::new());
        assert_eq!(cycles(&chain), [[0; 0]; 0]);
        chain[last] = vec![0];
        assert_eq!(cycles(&chain), [(0..=last).collect::<Vec<_>>()]);
    }
}
