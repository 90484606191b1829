//! Resolves a valid file: checks references, reads referenced files, and parses conditions, patterns
//! and templates. Everything that fails is a problem with a position.

mod agents;
mod budgets;
mod commands;
mod conversations;
mod guardrails;
mod policies;
mod schemas;
mod tools;
mod unused;

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::Value;
use switchboard_core::agent::Knowledge;

use crate::approve::Approve;
use crate::condition::{ArgumentNames, Condition};
use crate::context::Context;
use crate::diagnostics::{ExpressionError, Problem, Problems};
use crate::document::{Node, Step, steps};
use crate::file_refs::FileSource;
use crate::guardrails::Guardrail;
use crate::handoff_rules::HandoffRules;
use crate::models;
use crate::suggest::{did_you_mean, quoted_list};
use crate::tools::ResolvedTool;
use crate::types::{
    AgentSpec, ApproveSpec, ConversationsSpec, FilterSpec, HandoffTableSpec, ModelSpec, PriceSpec,
    RedactPiiSpec, RunSpec, SettingsSpec, TeamSpec,
};

/// The problem of a redaction without effect.
const HIDES_NOTHING: &str = "this hides nothing";

/// A team whose references are resolved.
#[derive(Debug)]
pub(crate) struct ResolvedTeam {
    pub(crate) description: Option<String>,
    pub(crate) start: String,
    pub(crate) model: Option<String>,
    pub(crate) settings: SettingsSpec,
    pub(crate) context: Context,
    pub(crate) agents: Vec<ResolvedAgent>,
    pub(crate) tools: IndexMap<String, ResolvedTool>,
    pub(crate) guardrails: IndexMap<String, Guardrail>,
    pub(crate) models: IndexMap<String, ModelSpec>,
    pub(crate) prices: IndexMap<String, PriceSpec>,
    pub(crate) run: RunSpec,
    pub(crate) name: Option<String>,
    pub(crate) conversations: ConversationsSpec,
}

#[derive(Debug)]
pub(crate) struct ResolvedAgent {
    pub(crate) name: String,
    pub(crate) spec: AgentSpec,
    pub(crate) instructions: Option<String>,
    pub(crate) knowledge: Vec<Knowledge>,
    /// The JSON Schema of its final answer.
    pub(crate) output: Option<Value>,
    pub(crate) handoffs: Vec<ResolvedHandoff>,
}

#[derive(Debug)]
pub(crate) struct ResolvedHandoff {
    pub(crate) spec: HandoffTableSpec,
    pub(crate) payload: Option<Value>,
    pub(crate) when: Option<Condition>,
    pub(crate) approve: Option<Approve>,
    pub(crate) rules: Option<HandoffRules>,
    /// The JSON Schema of the result with which it is handed back.
    pub(crate) returns: Option<Value>,
    pub(crate) before_turn: Option<Condition>,
    pub(crate) after_turn: Option<Condition>,
}

impl ResolvedTeam {
    /// Resolves a valid file. If it adds errors to `problems`, the team is incomplete.
    ///
    /// `removed` holds the names of parts that were removed as invalid.
    pub(crate) fn new(
        spec: TeamSpec,
        root: &Node,
        files: FileSource<'_>,
        removed: HashSet<String>,
        problems: &mut Problems,
    ) -> Self {
        let context = Context::new(spec.context.clone());
        let mut resolver = Resolver {
            spec: &spec,
            root,
            files,
            removed,
            context: &context,
            redirected_to: redirected_to(&spec),
            problems,
        };
        resolver.check_context_names();
        let start = resolver.start();
        resolver.check_team_fields();
        resolver.check_conversations();
        let guardrails = resolver.guardrails();
        let tools = resolver.tools();
        let agents = resolver.agents();
        resolver.check_policies();
        resolver.check_budgets();
        resolver.check_redirects();
        resolver.warn_of_unused();
        Self {
            start,
            agents,
            tools,
            guardrails,
            context,
            description: spec.description,
            model: spec.model,
            settings: spec.settings,
            models: spec.models,
            prices: spec.prices,
            run: spec.run,
            name: spec.name,
            conversations: spec.conversations,
        }
    }

    /// The agent of this name.
    pub(crate) fn agent(&self, name: &str) -> Option<&ResolvedAgent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The name of an agent's model.
    pub(crate) fn model_of<'a>(&'a self, agent: &'a ResolvedAgent) -> &'a str {
        if agent.spec.a2a.is_some() {
            return models::REMOTE;
        }
        let model = agent.spec.model.as_deref().or(self.model.as_deref());
        model.unwrap_or(models::OFFLINE)
    }
}

struct Resolver<'a> {
    spec: &'a TeamSpec,
    root: &'a Node,
    files: FileSource<'a>,
    /// Names of parts that were removed as invalid. References to them are not reported.
    removed: HashSet<String>,
    context: &'a Context,
    /// The agents that rules redirect to.
    redirected_to: HashSet<&'a str>,
    problems: &'a mut Problems,
}

/// The agents that the rules of handoffs redirect to.
fn redirected_to(spec: &TeamSpec) -> HashSet<&str> {
    let handoffs = spec.agents.values().flat_map(AgentSpec::handoff_tables);
    let rules = handoffs.flat_map(|handoff| &handoff.rules);
    rules.filter_map(|rule| rule.redirect.as_deref()).collect()
}

impl Resolver<'_> {
    /// A problem with the value at a path.
    fn problem(
        &self,
        code: &'static str,
        path: &[Step<'_>],
        message: impl Into<String>,
    ) -> Problem {
        let span = self.root.span_of(path);
        self.problems.source().problem(code, span, message)
    }

    /// A problem with the name of the field at a path.
    fn name_problem(
        &self,
        code: &'static str,
        path: &[Step<'_>],
        message: impl Into<String>,
    ) -> Problem {
        let span = self.root.name_span_of(path);
        self.problems.source().problem(code, span, message)
    }

    /// Adds an error with the value at a path.
    fn report(
        &mut self,
        code: &'static str,
        path: &[Step<'_>],
        message: impl Into<String>,
        help: &str,
    ) {
        let problem = self.problem(code, path, message);
        self.problems.add(problem.help(help));
    }

    /// Adds an error with the name of the field at a path.
    fn report_name(
        &mut self,
        code: &'static str,
        path: &[Step<'_>],
        message: impl Into<String>,
        help: &str,
    ) {
        let problem = self.name_problem(code, path, message);
        self.problems.add(problem.help(help));
    }

    /// Adds a problem and gives it the position of the value at a path.
    fn add_at(&mut self, problem: Problem, path: &[Step<'_>]) {
        self.problems.add_at(problem, self.root.span_of(path));
    }

    /// Adds an error within the expression at a path.
    fn add_expression_error(
        &mut self,
        code: &'static str,
        path: &[Step<'_>],
        expression: &str,
        error: ExpressionError,
    ) {
        let mut span = self.root.span_of(path);
        let source = self.problems.source();
        // An expression with escapes does not occur in the file literally; then mark all of it.
        let literal = source.text.get(span.clone()).unwrap_or_default();
        if let Some(offset) = literal.find(expression)
            && !expression.is_empty()
        {
            let start = span.start + offset;
            span = start + error.span.start..start + error.span.end;
        }
        let mut problem = source.problem(code, span, error.message);
        problem.help = error.help;
        problem.suggestion = error.suggestion;
        self.problems.add(problem);
    }

    /// Reports a name that is not one of `known`. `kind` says what it should name.
    fn check_name<'n>(
        &mut self,
        code: &'static str,
        path: &[Step<'_>],
        kind: &str,
        name: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) {
        if self.removed.contains(name) || known.clone().any(|known| known == name) {
            return;
        }
        if self.problems.is_full() {
            self.problems.add(self.problem(code, path, ""));
            return;
        }
        let help = match known.clone().next() {
            Some(_) => format!("there are {}", quoted_list(known.clone())),
            None => format!("the file describes no {kind}s"),
        };
        self.problems.add(
            self.problem(code, path, format!("there is no {kind} {name:?}"))
                .suggestion(did_you_mean(name, known))
                .help(help),
        );
    }

    fn check_model(&mut self, path: &[Step<'_>], name: &str) {
        if let Err(problem) = models::check_name(name, &self.spec.models) {
            self.add_at(*problem, path);
        }
    }

    /// Reports keys of the context that conditions and templates cannot refer to.
    fn check_context_names(&mut self) {
        const RESERVED: [&str; 7] = ["and", "or", "not", "in", "true", "false", "context"];
        let is_start = |c: char| c.is_alphabetic() || c == '_';
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let context = &self.spec.context;
        let nested = context.values().filter_map(Value::as_object);
        for name in context.keys().chain(nested.flat_map(|table| table.keys())) {
            let is_name = name.starts_with(is_start) && name.chars().all(is_part);
            if !is_name || RESERVED.contains(&name.as_str()) {
                let message = format!("a value of the context cannot be called {name:?}");
                let help = "begin with a letter; use letters, digits, _ and -, and no keyword of conditions";
                self.report_name("bad-name", steps!["context", name], message, help);
            }
        }
    }

    fn start(&mut self) -> String {
        let agents = self.spec.agents.keys();
        let first = agents.clone().next();
        if first.is_none() {
            let help = "describe one: [agents.Triage]";
            self.report_name("no-agents", steps!["agents"], "there are no agents", help);
        }
        if let Some(start) = &self.spec.start {
            let known = agents.map(String::as_str);
            self.check_name("unknown-agent", steps!["start"], "agent", start, known);
        }
        self.spec
            .start
            .as_ref()
            .or(first)
            .cloned()
            .unwrap_or_default()
    }

    fn check_team_fields(&mut self) {
        let spec = self.spec;
        if let Some(model) = &spec.model {
            self.check_model(steps!["model"], model);
        }
        for name in spec.models.keys() {
            if name == models::OFFLINE || name.contains('/') {
                let message = format!("a model of your own cannot be called {name:?}");
                let help = "choose a name without a /, other than offline";
                self.report_name("bad-name", steps!["models", name], message, help);
            }
        }
        for (index, filter) in spec.run.filters.iter().enumerate() {
            self.check_filter(steps!["run", "filters", index], filter);
        }
        self.check_filter_order(steps!["run", "filters"], &spec.run.filters);
        for (index, program) in spec.commands.allow.iter().enumerate() {
            if program.is_empty() || program.contains(['{', '}', '\0']) {
                let path = steps!["commands", "allow", index];
                let message = "this is not the name of a program";
                self.problems.add(self.problem("bad-name", path, message));
            }
        }
    }

    fn check_filter(&mut self, at: &[Step<'_>], filter: &FilterSpec) {
        match filter {
            FilterSpec::Redact(redaction) => {
                if redaction.patterns.is_empty() {
                    let path = [at, steps!["redact"]].concat();
                    let help = "give it patterns, each with a text in its place";
                    self.warn_at("no-effect", &path, HIDES_NOTHING, help);
                }
                for pattern in redaction.patterns.keys() {
                    let mut single = redaction.clone();
                    single.patterns.retain(|other, _| other == pattern);
                    if let Err(error) = crate::filters::pattern_redaction(&single) {
                        let path = [at, steps!["redact", "patterns", pattern]].concat();
                        let error = error.to_string();
                        let reason = error.lines().last().unwrap_or_default();
                        let message = format!("this pattern cannot be used: {}", reason.trim());
                        self.problems
                            .add(self.name_problem("bad-pattern", &path, message));
                    }
                }
            }
            FilterSpec::RedactPiiWith(redaction) => self.check_redaction(at, redaction),
            FilterSpec::Summarize(summary) => {
                let path = [at, steps!["summarize", "model"]].concat();
                self.check_model(&path, &summary.model);
            }
            _ => {}
        }
    }

    /// Warns of a summary before a redaction: filters run in their order, and the model that writes the
    /// summary gets everything.
    fn check_filter_order(&mut self, at: &[Step<'_>], filters: &[FilterSpec]) {
        let is_redaction = |filter: &FilterSpec| {
            matches!(
                filter,
                FilterSpec::RedactPii | FilterSpec::RedactPiiWith(_) | FilterSpec::Redact(_)
            )
        };
        let last = filters.iter().rposition(is_redaction);
        for (index, filter) in filters.iter().enumerate().take(last.unwrap_or(0)) {
            if matches!(filter, FilterSpec::Summarize(_)) {
                let path = [at, steps![index]].concat();
                let message = "the model of this summary gets what a later filter hides";
                let help = "move the redaction in front of it";
                self.warn_at("late-redaction", &path, message, help);
            }
        }
    }

    /// Warns of a redaction of personal data that hides nothing, and of placeholders for what it does not hide.
    fn check_redaction(&mut self, at: &[Step<'_>], redaction: &RedactPiiSpec) {
        let (hidden, placeholders) = crate::filters::hidden_classes(redaction);
        if hidden.is_empty() {
            let path = [at, steps!["redact_pii"]].concat();
            let help = "name a class in only, or leave fewer out with without";
            self.warn_at("no-effect", &path, HIDES_NOTHING, help);
            return;
        }
        for class in placeholders {
            if !hidden.contains(&class) {
                let path = [at, steps!["redact_pii", "placeholders", class]].concat();
                let message = format!("this has no effect: {class:?} is not hidden");
                let help = "remove it, or hide the class";
                self.warn_at("no-effect", &path, message, help);
            }
        }
    }

    fn condition(&mut self, path: &[Step<'_>], text: Option<&String>) -> Option<Condition> {
        let text = text?;
        Condition::parse(text, self.context)
            .map_err(|error| self.add_expression_error("bad-condition", path, text, error))
            .ok()
    }

    /// Resolves the rule by which calls wait for a decision.
    fn approve(
        &mut self,
        path: &[Step<'_>],
        spec: Option<&ApproveSpec>,
        arguments: ArgumentNames<'_>,
    ) -> Option<Approve> {
        match spec? {
            ApproveSpec::Always(false) => None,
            ApproveSpec::Always(true) => Some(Approve::Always),
            ApproveSpec::When(text) => {
                match Condition::parse_with(text, self.context, Some(arguments)) {
                    Ok(condition) => Some(Approve::When(condition)),
                    Err(error) => {
                        self.add_expression_error("bad-condition", path, text, error);
                        None
                    }
                }
            }
        }
    }

    /// Reports the problem of a referenced file. `path` leads to the reference.
    fn file_content<T>(
        &mut self,
        path: &[Step<'_>],
        content: Result<T, Box<Problem>>,
    ) -> Option<T> {
        content.map_err(|problem| self.add_at(*problem, path)).ok()
    }
}
