//! Guardrails that check only some of the agents that can have the conversation.

use crate::cycle_bounds::Paths;
use crate::diagnostics::{Problem, Severity};
use crate::document::{Node, Step, steps};
use crate::resolve::{ResolvedAgent, ResolvedTeam};
use crate::suggest::quoted_list;
use crate::types::ActiveAgentSpec;

/// The messages that a guardrail checks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    Input,
    Output,
}

impl Checked {
    fn field(self) -> &'static str {
        match self {
            Self::Input => "input_guardrails",
            Self::Output => "output_guardrails",
        }
    }

    fn names(self, agent: &ResolvedAgent) -> &[String] {
        match self {
            Self::Input => &agent.spec.input_guardrails,
            Self::Output => &agent.spec.output_guardrails,
        }
    }
}

/// Returns a warning for each guardrail that is on some agents and not on others that can get a message
/// of the user, or give the answer.
pub(crate) fn warnings(team: &ResolvedTeam, root: &Node) -> Vec<(Problem, std::ops::Range<usize>)> {
    let mut warnings = Vec::new();
    let reached = Paths::of(team).agents_with_conversation();
    let reached = |agent: &&ResolvedAgent| reached.contains(agent.name.as_str());
    for checked in [Checked::Input, Checked::Output] {
        let relevant: Vec<&ResolvedAgent> = team
            .agents
            .iter()
            .filter(reached)
            .filter(|agent| checked == Checked::Output || gets_messages(team, agent))
            .collect();
        let of_run = match checked {
            Checked::Input => &team.run.input_guardrails,
            Checked::Output => &team.run.output_guardrails,
        };
        for guardrail in team.guardrails.keys() {
            let has = |agent: &&&ResolvedAgent| checked.names(agent).contains(guardrail);
            let Some(first) = relevant.iter().find(has) else {
                continue;
            };
            let without = relevant.iter().filter(|agent| !has(agent));
            let without: Vec<&str> = without.map(|agent| agent.name.as_str()).collect();
            if without.is_empty() || of_run.contains(guardrail) {
                continue;
            }
            let (verb, others) = match checked {
                Checked::Input => ("what is said to", "can get a message as well"),
                Checked::Output => ("the answers of", "can answer as well"),
            };
            let message = format!(
                "the guardrail {guardrail:?} checks {verb} {:?}, and {} {others}",
                first.name,
                quoted_list(without.into_iter())
            );
            let field = checked.field();
            let help =
                format!("put it on the run: [run] {field} = [{guardrail:?}]; or on each agent");
            let problem = Problem::without_file("partial-guardrail", message);
            let names = checked.names(first);
            let index = names.iter().position(|name| name == guardrail);
            let path: &[Step<'_>] = steps!["agents", &first.name, field, index.unwrap_or_default()];
            let problem = problem.severity(Severity::Warning).help(help);
            warnings.push((problem, root.span_of(path)));
        }
    }
    warnings
}

/// Returns `true` if a message of the user can go to the agent: it is the first one, or keeps the
/// conversation after its answer.
fn gets_messages(team: &ResolvedTeam, agent: &ResolvedAgent) -> bool {
    let of_team = team.conversations.active_agent;
    let policy = agent.spec.active_agent.unwrap_or(of_team);
    agent.name == team.start || policy == ActiveAgentSpec::Stay
}
