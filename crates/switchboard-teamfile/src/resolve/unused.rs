//! Warnings for parts of a file that nothing refers to.

use std::collections::HashSet;

use super::Resolver;
use crate::diagnostics::Severity;
use crate::document::{Step, steps};
use crate::types::FilterSpec;

impl Resolver<'_> {
    /// Warns of tools, guardrails, models and allowed programs that are not used.
    pub(super) fn warn_of_unused(&mut self) {
        let spec = self.spec;
        let run = &spec.run;
        let agents = || spec.agents.values();
        let handoffs = || agents().flat_map(|agent| agent.handoff_tables());

        let tools = agents().flat_map(|agent| &agent.tools).collect();
        self.warn_unless_used("tools", "tool", spec.tools.keys(), &tools);

        let guardrails = agents()
            .flat_map(|agent| [&agent.input_guardrails, &agent.output_guardrails])
            .chain(handoffs().map(|handoff| &handoff.guardrails))
            .chain([
                &run.input_guardrails,
                &run.output_guardrails,
                &run.handoff_guardrails,
            ])
            .flatten()
            .collect();
        self.warn_unless_used(
            "guardrails",
            "guardrail",
            spec.guardrails.keys(),
            &guardrails,
        );

        let filters = handoffs().filter_map(|handoff| handoff.filters.as_ref());
        let summary_models = filters
            .chain([&run.filters])
            .flatten()
            .filter_map(|filter| match filter {
                FilterSpec::Summarize(summary) => Some(&summary.model),
                _ => None,
            });
        let models = agents()
            .filter_map(|agent| agent.model.as_ref())
            .chain(summary_models)
            .chain(&spec.model)
            .collect();
        self.warn_unless_used("models", "model", spec.models.keys(), &models);

        let commands = spec.tools.values().filter_map(|tool| tool.command.as_ref());
        let programs: HashSet<&String> =
            commands.filter_map(|command| command.run.first()).collect();
        for (index, name) in spec.commands.allow.iter().enumerate() {
            if !programs.contains(name) {
                self.warn(steps!["commands", "allow", index], "program", name);
            }
        }
    }

    fn warn_unless_used<'n>(
        &mut self,
        table: &str,
        kind: &str,
        names: impl Iterator<Item = &'n String>,
        used: &HashSet<&String>,
    ) {
        for name in names.filter(|name| !used.contains(name)) {
            self.warn(steps![table, name], kind, name);
        }
    }

    fn warn(&mut self, path: &[Step<'_>], kind: &str, name: &str) {
        let message = format!("nothing uses the {kind} {name:?}");
        let problem = self.name_problem("unused", path, message);
        let help = "name it where it is to be used, or remove it";
        self.problems
            .add(problem.severity(Severity::Warning).help(help));
    }
}
