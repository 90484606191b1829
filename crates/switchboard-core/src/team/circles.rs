//! Finding circles.

/// The sets of places that lead to each other, or to themselves: each in order, and the one with
/// the earliest place first.
///
/// This is Tarjan's algorithm with a path of its own: it takes time in proportion to the number of
/// places and edges, and no depth overflows the stack.
pub(super) fn circles(leads_to: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        leads_to,
        entered: vec![0; leads_to.len()],
        earliest: vec![0; leads_to.len()],
        is_open: vec![false; leads_to.len()],
        count: 0,
        open: Vec::new(),
        path: Vec::new(),
        found: Vec::new(),
    };
    for start in 0..leads_to.len() {
        if search.entered[start] == 0 {
            search.explore(start);
        }
    }
    search.found.sort_unstable();
    search.found
}

struct Search<'a> {
    leads_to: &'a [Vec<usize>],
    /// As the how-manieth each place was entered; 0 where it was not yet.
    entered: Vec<usize>,
    /// The earliest number of an open place that each is known to lead to.
    earliest: Vec<usize>,
    /// Places whose set is not known yet, in the order they were entered.
    open: Vec<usize>,
    is_open: Vec<bool>,
    count: usize,
    /// The way to where the search is, and how many edges of each place were followed.
    path: Vec<(usize, usize)>,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn explore(&mut self, start: usize) {
        self.enter(start);
        while let Some((at, followed)) = self.path.last_mut() {
            let at = *at;
            let Some(&to) = self.leads_to[at].get(*followed) else {
                self.leave(at);
                continue;
            };
            *followed += 1;
            if self.entered[to] == 0 {
                self.enter(to);
            } else if self.is_open[to] {
                self.earliest[at] = self.earliest[at].min(self.entered[to]);
            }
        }
    }

    fn enter(&mut self, at: usize) {
        self.count += 1;
        self.entered[at] = self.count;
        self.earliest[at] = self.count;
        self.is_open[at] = true;
        self.open.push(at);
        self.path.push((at, 0));
    }

    fn leave(&mut self, at: usize) {
        self.path.pop();
        if let Some((before, _)) = self.path.last() {
            self.earliest[*before] = self.earliest[*before].min(self.earliest[at]);
        }
        if self.earliest[at] == self.entered[at] {
            self.close_from(at);
        }
    }

    /// Nothing before `at` is led to from it, so what was opened since is a set.
    fn close_from(&mut self, at: usize) {
        let start = self.open.iter().rposition(|open| *open == at);
        let mut circle = self.open.split_off(start.unwrap_or_default());
        for place in &circle {
            self.is_open[*place] = false;
        }
        if circle.len() > 1 || self.leads_to[at].contains(&at) {
            circle.sort_unstable();
            self.found.push(circle);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    /// The same by going both ways from every place.
    fn circles_slowly(leads_to: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let reached: Vec<Vec<bool>> = (0..leads_to.len()).map(|at| reach(at, leads_to)).collect();
        let mut found: Vec<Vec<usize>> = (0..leads_to.len())
            .map(|at| {
                let both_ways = |to: &usize| reached[at][*to] && reached[*to][at];
                (0..leads_to.len()).filter(both_ways).collect()
            })
            .filter(|circle: &Vec<usize>| !circle.is_empty())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    proptest! {
        #[test]
        fn circles_are_what_leads_there_and_back(
            leads_to in (1_usize..12).prop_flat_map(|places| {
                prop::collection::vec(prop::collection::vec(0..places, 0..4), places)
            })
        ) {
            prop_assert_eq!(circles(&leads_to), circles_slowly(&leads_to));
        }
    }

    #[test]
    fn depth_does_not_matter() {
        let places = 1_000_000;
        let mut chain: Vec<Vec<usize>> = (1..=places).map(|next| vec![next]).collect();
        chain.push(Vec::new());
        assert_eq!(circles(&chain), [[0; 0]; 0]);
        chain[places] = vec![0];
        assert_eq!(circles(&chain), [(0..=places).collect::<Vec<_>>()]);
    }
}
