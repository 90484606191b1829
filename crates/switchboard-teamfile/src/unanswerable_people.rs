//! People whose conversations end with the program, so that nobody can answer them later.

use crate::diagnostics::{Problem, Severity};
use crate::document::{Node, steps};
use crate::resolve::ResolvedTeam;
use crate::suggest::quoted_list;
use crate::types::ValueSpec;

/// Returns a warning if the team has people and keeps its conversations in memory: a run that waits for a person is
/// gone when the program ends.
pub(crate) fn warnings(team: &ResolvedTeam, root: &Node) -> Vec<(Problem, std::ops::Range<usize>)> {
    let is_in_memory = matches!(
        &team.conversations.store,
        Some(ValueSpec::Text(address)) if address == "memory:"
    );
    let people = team.agents.iter().filter(|agent| agent.spec.person);
    let people: Vec<&str> = people.map(|agent| agent.name.as_str()).collect();
    if !is_in_memory || people.is_empty() {
        return Vec::new();
    }
    let message = format!(
        "nobody can answer for {} once the program has ended: conversations are kept in memory",
        quoted_list(people.into_iter())
    );
    let help =
        "name a store that lasts, as in store = \"sqlite:conversations.db\", or leave it out";
    let problem = Problem::without_file("unanswerable-person", message)
        .severity(Severity::Warning)
        .help(help);
    vec![(problem, root.span_of(steps!["conversations", "store"]))]
}
