//! What guardrails mean, and whether everything that is described is used.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::Planner;
use crate::document::{Step, way};
use crate::guard::{Guard, pattern, word_patterns};
use crate::problem::Severity;
use crate::types::{DenyShape, FilterShape, GuardrailShape, HandoffShape, ThenShape};

impl Planner<'_> {
    pub(super) fn guards(&mut self) -> IndexMap<String, Guard> {
        let shape = self.shape;
        let mut guards = IndexMap::new();
        for (name, guardrail) in &shape.guardrails {
            if let Some(guard) = self.guard(name, guardrail) {
                guards.insert(name.clone(), guard);
            }
        }
        let run = &shape.run;
        self.check_guardrails(way!["run", "input_guardrails"], &run.input_guardrails);
        self.check_guardrails(way!["run", "output_guardrails"], &run.output_guardrails);
        self.check_edge_guardrails(way!["run", "handoff_guardrails"], &run.handoff_guardrails);
        guards
    }

    fn guard(&mut self, name: &str, shape: &GuardrailShape) -> Option<Guard> {
        let mut patterns = Vec::new();
        for (number, text) in shape.patterns.iter().enumerate() {
            match pattern(text) {
                Ok(_) => patterns.push(text.clone()),
                Err(error) => {
                    let way = way!["guardrails", name, "patterns", number];
                    let message = format!("this pattern cannot be used: {}", last_line(&error));
                    let problem = self.problem("bad-pattern", way, message);
                    let help =
                        "patterns are regular expressions; in TOML write them in 'single quotes'";
                    self.problems.add(problem.help(help));
                }
            }
        }
        let words = match &shape.deny {
            Some(DenyShape::Words(words)) => words.clone(),
            Some(DenyShape::File(file)) => {
                let read = self.files.text(&file.file);
                let read = self.named(way!["guardrails", name, "deny", "file"], read)?;
                read.lines().map(str::to_owned).collect()
            }
            None => Vec::new(),
        };
        let words = words.iter().map(|word| word.trim());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        patterns.extend(word_patterns(&words));
        if patterns.is_empty() && shape.patterns.is_empty() && shape.max_length.is_none() {
            let message = format!("the guardrail {name:?} looks for nothing");
            let problem =
                self.problem_of_name("empty-guardrail", way!["guardrails", name], message);
            let problem = problem.help("give it patterns, deny or max_length");
            self.problems.add(problem);
        }
        let message = shape.message.as_deref();
        match Guard::new(name, &patterns, shape.max_length, shape.then, message) {
            Ok(guard) => Some(guard),
            Err(error) => {
                let message = format!("its patterns cannot be used: {}", last_line(&error));
                let way = way!["guardrails", name];
                let problem = self.problem_of_name("bad-pattern", way, message);
                self.problems.add(problem.help("use fewer or shorter ones"));
                None
            }
        }
    }

    pub(super) fn check_guardrails(&mut self, at: &[Step<'_>], names: &[String]) {
        let known = self.shape.guardrails.keys().map(String::as_str);
        for (number, name) in names.iter().enumerate() {
            let way = [at, way![number]].concat();
            if !self.shape.guardrails.contains_key(name) {
                self.check_name("unknown-guardrail", &way, "guardrail", name, known.clone());
            }
        }
    }

    /// The same for handoffs, where nothing can be hidden.
    pub(super) fn check_edge_guardrails(&mut self, at: &[Step<'_>], names: &[String]) {
        self.check_guardrails(at, names);
        for (number, name) in names.iter().enumerate() {
            let guardrail = self.shape.guardrails.get(name);
            if guardrail.is_some_and(|guardrail| guardrail.then == ThenShape::Redact) {
                let way = [at, way![number]].concat();
                let message =
                    format!("{name:?} hides what it finds, which a handoff's guardrail cannot");
                let problem = self.problem("bad-guardrail", &way, message);
                let help =
                    "use a filter: filters = [\"redact_pii\"], or one with patterns of your own";
                self.problems.add(problem.help(help));
            }
        }
    }

    /// Warns of tools and guardrails that nothing uses.
    pub(super) fn check_used(&mut self) {
        let shape = self.shape;
        let agents = || shape.agents.values();
        let edges = || {
            let handoffs = agents().flat_map(|agent| &agent.handoffs);
            handoffs.filter_map(|handoff| match handoff {
                HandoffShape::Edge(edge) => Some(&**edge),
                HandoffShape::To(_) => None,
            })
        };
        let tools: HashSet<&String> = agents().flat_map(|agent| &agent.tools).collect();
        for name in shape.tools.keys().filter(|name| !tools.contains(name)) {
            self.unused(way!["tools", name], "tool", name);
        }
        let run = &shape.run;
        let of_run = [
            &run.input_guardrails,
            &run.output_guardrails,
            &run.handoff_guardrails,
        ];
        let guardrails: HashSet<&String> = agents()
            .flat_map(|agent| {
                agent
                    .input_guardrails
                    .iter()
                    .chain(&agent.output_guardrails)
            })
            .chain(edges().flat_map(|edge| &edge.guardrails))
            .chain(of_run.into_iter().flatten())
            .collect();
        for name in shape
            .guardrails
            .keys()
            .filter(|name| !guardrails.contains(name))
        {
            self.unused(way!["guardrails", name], "guardrail", name);
        }
    }

    /// The same for models and for programs that may be started.
    pub(super) fn check_used_by_tools(&mut self) {
        let shape = self.shape;
        let of_agents = shape
            .agents
            .values()
            .filter_map(|agent| agent.model.as_ref());
        let edges = shape.agents.values().flat_map(|agent| &agent.handoffs);
        let filters = edges.filter_map(|handoff| match handoff {
            HandoffShape::Edge(edge) => edge.filters.as_ref(),
            HandoffShape::To(_) => None,
        });
        let filters = filters.flatten().chain(&shape.run.filters);
        let of_filters = filters.filter_map(|filter| match filter {
            FilterShape::Summarize(summary) => Some(&summary.model),
            _ => None,
        });
        let models: HashSet<&String> = of_agents.chain(of_filters).chain(&shape.model).collect();
        for name in shape.models.keys().filter(|name| !models.contains(name)) {
            self.unused(way!["models", name], "model", name);
        }
        let tools = shape
            .tools
            .values()
            .filter_map(|tool| tool.command.as_ref());
        let programs: HashSet<&String> = tools.filter_map(|command| command.run.first()).collect();
        for (number, name) in shape.commands.allow.iter().enumerate() {
            if !programs.contains(name) {
                self.unused(way!["commands", "allow", number], "program", name);
            }
        }
    }

    fn unused(&mut self, way: &[Step<'_>], what: &str, name: &str) {
        let message = format!("nothing uses the {what} {name:?}");
        let problem = self.problem_of_name("unused", way, message);
        let problem = problem.severity(Severity::Warning);
        self.problems
            .add(problem.help("name it where it is to be used, or leave it out"));
    }
}

/// The line of a regular expression's error that says what is wrong; those before it draw it.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
