//! What a file means: its names lead somewhere, the files it names are read, its conditions, patterns
//! and templates are understood. What does not hold is a problem with its place.

mod agents;
mod guardrails;
mod programs;
mod schemas;
mod tools;

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::Value;
use switchboard_core::Knowledge;

use crate::condition::Condition;
use crate::context::Context;
use crate::document::{Node, Step, way};
use crate::guard::Guard;
use crate::mistake::Mistake;
use crate::models;
use crate::named_files::Files;
use crate::problem::{Problem, Problems};
use crate::suggest::{did_you_mean, listed};
use crate::tools::ToolPlan;
use crate::types::{
    AgentShape, EdgeShape, FilterShape, ModelShape, RunShape, SettingsShape, TeamShape,
};

/// A team as its file means it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) description: Option<String>,
    pub(crate) start: String,
    pub(crate) model: Option<String>,
    pub(crate) settings: SettingsShape,
    pub(crate) context: Context,
    pub(crate) agents: Vec<AgentPlan>,
    pub(crate) tools: IndexMap<String, ToolPlan>,
    pub(crate) guards: IndexMap<String, Guard>,
    pub(crate) models: IndexMap<String, ModelShape>,
    pub(crate) run: RunShape,
}

#[derive(Debug)]
pub(crate) struct AgentPlan {
    pub(crate) name: String,
    pub(crate) shape: AgentShape,
    pub(crate) instructions: Option<String>,
    pub(crate) knowledge: Vec<Knowledge>,
    pub(crate) handoffs: Vec<EdgePlan>,
}

#[derive(Debug)]
pub(crate) struct EdgePlan {
    pub(crate) shape: EdgeShape,
    pub(crate) payload: Option<Value>,
    pub(crate) when: Option<Condition>,
}

impl AgentPlan {
    /// The name of the agent's model.
    pub(crate) fn model<'a>(&'a self, plan: &'a Plan) -> &'a str {
        let own = self.shape.model.as_deref();
        own.or(plan.model.as_deref()).unwrap_or(models::OFFLINE)
    }
}

impl Plan {
    /// Reads the meaning of a file of the right form. Where there are problems, the plan has gaps.
    pub(crate) fn new(
        shape: TeamShape,
        root: &Node,
        files: Files<'_>,
        left_out: HashSet<String>,
        problems: &mut Problems,
    ) -> Self {
        let context = Context::new(shape.context.clone());
        let mut planner = Planner {
            shape: &shape,
            root,
            files,
            left_out,
            context: &context,
            problems,
        };
        planner.check_context();
        let start = planner.start();
        planner.check_top();
        let guards = planner.guards();
        let tools = planner.tools();
        let agents = planner.agents();
        planner.check_used();
        planner.check_used_by_tools();
        Self {
            start,
            agents,
            tools,
            guards,
            context,
            description: shape.description,
            model: shape.model,
            settings: shape.settings,
            models: shape.models,
            run: shape.run,
        }
    }
}

/// Reads a file's meaning, and notes what is wrong with it.
struct Planner<'a> {
    shape: &'a TeamShape,
    root: &'a Node,
    files: Files<'a>,
    /// Names that lead to something whose form is wrong, which is told already.
    left_out: HashSet<String>,
    context: &'a Context,
    problems: &'a mut Problems,
}

impl Planner<'_> {
    /// A problem with the value at the end of a way.
    fn problem(&self, code: &'static str, way: &[Step<'_>], message: impl Into<String>) -> Problem {
        let span = self.root.span_of(way);
        self.problems.source().problem(code, span, message)
    }

    /// A problem with the name of the field at the end of a way.
    fn problem_of_name(
        &self,
        code: &'static str,
        way: &[Step<'_>],
        message: impl Into<String>,
    ) -> Problem {
        let span = self.root.name_span_of(way);
        self.problems.source().problem(code, span, message)
    }

    /// A mistake within the text at the end of a way.
    fn mistake(&mut self, code: &'static str, way: &[Step<'_>], text: &str, mistake: Mistake) {
        let span = self.root.span_of(way);
        let source = self.problems.source();
        // Where the text stands in the file as it is, the mistake has a place of its own.
        let written = source.text.get(span.clone()).unwrap_or_default();
        let span = match written.find(text) {
            Some(start) if !text.is_empty() => {
                let start = span.start + start;
                start + mistake.span.start..start + mistake.span.end
            }
            _ => span,
        };
        let mut problem = source
            .problem(code, span, mistake.message)
            .suggestion(mistake.suggestion);
        problem.help = mistake.help;
        self.problems.add(problem);
    }

    /// A name that must be one of `known`.
    fn check_name<'n>(
        &mut self,
        code: &'static str,
        way: &[Step<'_>],
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) {
        if self.left_out.contains(name) || known.clone().any(|known| known == name) {
            return;
        }
        if self.problems.is_full() {
            self.problems.add(self.problem(code, way, ""));
            return;
        }
        let suggestion = did_you_mean(name, known.clone());
        let problem = self.problem(code, way, format!("there is no {what} {name:?}"));
        let known: Vec<&str> = known.collect();
        let problem = match (&suggestion, known.is_empty()) {
            (_, true) => problem.help(format!("the file describes no {what}s")),
            (_, false) => problem.help(format!("there are {}", listed(known))),
        };
        self.problems.add(problem.suggestion(suggestion));
    }

    fn check_model(&mut self, way: &[Step<'_>], name: &str) {
        if let Err((message, suggestion, help)) = models::check(name, &self.shape.models) {
            let problem = self.problem("unknown-model", way, message);
            self.problems.add(problem.suggestion(suggestion).help(help));
        }
    }

    /// Keys of the context that conditions and templates could not name.
    fn check_context(&mut self) {
        let nested = self.shape.context.values().filter_map(Value::as_object);
        let nested = nested.flat_map(|table| table.keys());
        for name in self.shape.context.keys().chain(nested) {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let is_taken =
                ["and", "or", "not", "in", "true", "false", "context"].contains(&name.as_str());
            let begins = name
                .chars()
                .next()
                .is_some_and(|c| c.is_alphabetic() || c == '_');
            if !begins || !name.chars().all(is_word) || is_taken {
                let message = format!("a value of the context cannot be called {name:?}");
                let problem = self.problem_of_name("bad-name", way!["context", name], message);
                let problem = problem.help(
                    "begin with a letter; use letters, digits, _ and -, and no word of conditions",
                );
                self.problems.add(problem);
            }
        }
    }

    fn start(&mut self) -> String {
        let first = self.shape.agents.keys().next();
        if first.is_none() {
            let problem = self.problem_of_name("no-agents", way!["agents"], "there are no agents");
            let problem = problem.help("describe one: [agents.Triage]");
            self.problems.add(problem);
        }
        match &self.shape.start {
            Some(start) => {
                let known = self.shape.agents.keys().map(String::as_str);
                self.check_name("unknown-agent", way!["start"], "agent", start, known);
                start.clone()
            }
            None => first.cloned().unwrap_or_default(),
        }
    }

    fn check_top(&mut self) {
        let shape = self.shape;
        if let Some(model) = &shape.model {
            self.check_model(way!["model"], model);
        }
        for name in shape.models.keys() {
            if name == models::OFFLINE || name.contains('/') {
                let message = format!("a model of your own cannot be called {name:?}");
                let problem = self.problem_of_name("bad-name", way!["models", name], message);
                let problem = problem.help("choose a name without a /, other than offline");
                self.problems.add(problem);
            }
        }
        for (at, filter) in shape.run.filters.iter().enumerate() {
            self.check_filter(way!["run", "filters", at], filter);
        }
        for (at, program) in shape.commands.allow.iter().enumerate() {
            if program.is_empty() || program.contains(['{', '}', '\0']) {
                let message = "this is not the name of a program";
                let problem = self.problem("bad-name", way!["commands", "allow", at], message);
                self.problems.add(problem);
            }
        }
    }

    fn check_filter(&mut self, at: &[Step<'_>], filter: &FilterShape) {
        match filter {
            FilterShape::Redact(redaction) => {
                for pattern in redaction.patterns.keys() {
                    let mut alone = redaction.clone();
                    alone.patterns.retain(|other, _| other == pattern);
                    if let Err(error) = crate::filters::redaction(&alone) {
                        let way = [at, way!["redact", "patterns", pattern]].concat();
                        let error = error.to_string();
                        let last = error.lines().last().unwrap_or_default();
                        let message = format!("this pattern cannot be used: {}", last.trim());
                        let problem = self.problem_of_name("bad-pattern", &way, message);
                        self.problems.add(problem);
                    }
                }
            }
            FilterShape::Summarize(summary) => {
                let way = [at, way!["summarize", "model"]].concat();
                self.check_model(&way, &summary.model);
            }
            _ => {}
        }
    }

    fn condition(&mut self, way: &[Step<'_>], text: Option<&String>) -> Option<Condition> {
        let text = text?;
        match Condition::parse(text, self.context) {
            Ok(condition) => Some(condition),
            Err(mistake) => {
                self.mistake("bad-condition", way, text, mistake);
                None
            }
        }
    }

    /// What a file gave that is named at the end of a way.
    fn named<T>(&mut self, way: &[Step<'_>], read: Result<T, (String, &'static str)>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err((message, help)) => {
                let problem = self.problem("unreadable-file", way, message).help(help);
                self.problems.add(problem);
                None
            }
        }
    }
}
