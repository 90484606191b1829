//! Files of rules that decide calls which wait for approval.

use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use switchboard_core::Agent;
use switchboard_core::approval::{Decision, Interruption};

use crate::condition::{ArgumentNames, Condition};
use crate::context::Context;
use crate::diagnostics::{Problem, Problems, Source};
use crate::document::{Node, Step, steps};
use crate::file_refs;
use crate::schema;
use crate::suggest::{did_you_mean, quoted_list};
use crate::team_file::TeamFile;
use crate::validate;

/// Rules that decide calls which wait for approval, in place of a person. The first rule that fits a
/// call decides it; a call that no rule fits waits on.
///
/// ```
/// use switchboard_teamfile::{ApprovalRules, TeamFile};
///
/// let team = "
///     [agents.Desk]
///     tools = ['refund']
///     [tools.refund]
///     description = 'Pays back.'
///     approve = true
///     parameters = { properties = { amount = { type = 'number' } } }
///     http.url = 'https://api.example.com/refunds/{amount}'
/// ";
/// let team = TeamFile::parse(team, "team.toml")?;
/// let rules = "
///     [[rules]]
///     tool = 'refund'
///     when = 'arguments.amount <= 100'
///     decision = 'approve'
///
///     [[rules]]
///     decision = 'reject'
///     message = 'A manager must do this.'
/// ";
/// let rules = ApprovalRules::parse(rules, "rules.toml", &team)?;
/// # drop(rules);
/// # Ok::<(), switchboard_teamfile::Problems>(())
/// ```
#[derive(Debug, Clone)]
pub struct ApprovalRules(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    agent: Option<String>,
    tool: Option<String>,
    when: Option<Condition>,
    decision: Decision,
}

/// A file of rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "file of rules")]
#[serde(deny_unknown_fields)]
struct RulesSpec {
    /// The rules, in order.
    #[serde(default)]
    rules: Vec<RuleSpec>,
}

/// A rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "rule")]
#[serde(deny_unknown_fields)]
struct RuleSpec {
    /// The agent whose model made the call. Without it, any.
    agent: Option<String>,
    /// The tool, or the tool of the handoff. Without it, any.
    tool: Option<String>,
    /// A condition on the context and the arguments, such as `arguments.amount <= 100`.
    when: Option<String>,
    /// The decision.
    decision: DecisionSpec,
    /// The text that the model gets instead of the tool's output. Only for `reject`.
    message: Option<String>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "decision")]
#[serde(rename_all = "snake_case")]
enum DecisionSpec {
    /// The call runs.
    Approve,
    /// The call does not run, and the model is told.
    Reject,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::generate::<RulesSpec>);

impl ApprovalRules {
    /// Reads a file of rules for a team.
    ///
    /// # Errors
    /// All problems of the file, such as tools that the team does not have.
    pub fn read(path: impl AsRef<Path>, team: &TeamFile) -> Result<Self, Problems> {
        let path = path.as_ref();
        let text = file_refs::read_text(path).map_err(|problem| {
            Problems::one(if path.exists() {
                *problem
            } else {
                problem.help("give the path of a file of rules, or ask, all or none")
            })
        })?;
        Self::parse(&text, path, team)
    }

    /// Parses rules for a team.
    ///
    /// # Errors
    /// All problems of the file, such as tools that the team does not have.
    pub fn parse(text: &str, path: impl AsRef<Path>, team: &TeamFile) -> Result<Self, Problems> {
        let path = path.as_ref();
        let source = Source::new(path, file_refs::without_bom(text));
        let mut problems = Problems::new(source.clone());
        let root = Node::parse(&source).map_err(|problem| {
            problems.add(*problem);
            problems.clone()
        })?;
        validate::validate(&root, &SCHEMA, &mut problems);
        let mut problems = problems.or_errors()?;
        let spec: RulesSpec = serde_json::from_value(root.to_value())
            .map_err(|error| Problems::one(Problem::in_file("form", path, error.to_string())))?;
        if spec.rules.is_empty() {
            let problem = Problem::in_file("no-rules", path, "there are no rules");
            problems.add(problem.help("add one: [[rules]] with tool and decision"));
        }
        let mut resolver = RuleResolver {
            root: &root,
            team,
            problems: &mut problems,
        };
        let rules = spec.rules.into_iter().enumerate();
        let rules = rules.map(|(index, rule)| resolver.rule(index, rule));
        let rules = rules.collect();
        problems.or_errors()?;
        Ok(Self(rules))
    }

    /// Decides a call by the first rule that fits it. `None` if no rule fits, or if the condition of a
    /// rule before it cannot be decided, as an argument is absent or of another type.
    pub fn decide(&self, call: &Interruption, context: &Context) -> Option<Decision> {
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == name)
        };
        let arguments: Option<Value> = match call.arguments.trim() {
            "" => Some(Value::Object(Map::new())),
            text => serde_json::from_str(text).ok(),
        };
        for rule in &self.0 {
            if !is(&rule.agent, &call.agent) || !is(&rule.tool, &call.tool) {
                continue;
            }
            let holds = match &rule.when {
                None => true,
                Some(when) => when.decide(context, arguments.as_ref()?)?,
            };
            if holds {
                return Some(rule.decision.clone());
            }
        }
        None
    }
}

/// The tools and handoffs of an agent, or of all, with the schemas of their arguments.
fn calls_of<'t>(team: &'t TeamFile, agent: Option<&str>) -> Vec<(&'t str, &'t RawValue)> {
    let agents = team.team().agents().iter();
    let agents = agents.filter(|known| agent.is_none_or(|agent| agent == known.name()));
    agents
        .flat_map(|agent| {
            let tools = agent.tools().iter();
            let tools = tools.map(|tool| (tool.name(), &*tool.spec().parameters));
            let handoffs = agent.handoffs().iter();
            let handoffs =
                handoffs.map(|handoff| (handoff.tool_name(), handoff.input_json_schema()));
            tools.chain(handoffs)
        })
        .collect()
}

/// The schema of the calls of this name; `None` if there are several, or the name is not known.
fn common_schema(calls: &[(&str, &RawValue)], name: Option<&str>) -> Option<Value> {
    let name = name?;
    let mut schemas = calls.iter().filter(|(known, _)| *known == name);
    let (_, first) = schemas.next()?;
    let is_same = schemas.all(|(_, other)| other.get() == first.get());
    is_same.then(|| serde_json::from_str(first.get()).ok())?
}

struct RuleResolver<'a> {
    root: &'a Node,
    team: &'a TeamFile,
    problems: &'a mut Problems,
}

impl RuleResolver<'_> {
    fn rule(&mut self, index: usize, spec: RuleSpec) -> Rule {
        let team = self.team.team();
        if let Some(name) = &spec.agent {
            let known: Vec<&str> = team.agents().iter().map(Agent::name).collect();
            let path = steps!["rules", index, "agent"];
            self.check_name("unknown-agent", path, "agent", name, &known);
        }
        // The tools of an agent that is not there are not known.
        let agent = spec.agent.as_deref();
        let agent = agent.filter(|name| team.agents().iter().any(|agent| agent.name() == *name));
        let calls = calls_of(self.team, agent);
        if let Some(name) = &spec.tool {
            self.check_tool(index, name, agent, &calls);
        }
        let schema = common_schema(&calls, spec.tool.as_deref());
        let when = spec.when.as_ref().and_then(|text| {
            let context = &self.team.resolved.context;
            let names = ArgumentNames::of_any_call(schema.as_ref());
            let parsed = Condition::parse_with(text, context, Some(names));
            parsed
                .map_err(|error| {
                    let path = steps!["rules", index, "when"];
                    let problem = Problem::without_file("bad-condition", error.message);
                    let problem = problem.suggestion(error.suggestion);
                    self.add_at(
                        match error.help {
                            Some(help) => problem.help(help),
                            None => problem,
                        },
                        path,
                    );
                })
                .ok()
        });
        let decision = match (spec.decision, spec.message) {
            (DecisionSpec::Approve, None) => Decision::approve(),
            (DecisionSpec::Approve, Some(_)) => {
                let message = "a call that is approved has no message for the model";
                let problem = Problem::without_file("bad-rule", message);
                let problem = problem.help("remove it, or write decision = \"reject\"");
                self.add_at(problem, steps!["rules", index, "message"]);
                Decision::approve()
            }
            (DecisionSpec::Reject, None) => Decision::reject(),
            (DecisionSpec::Reject, Some(message)) => Decision::reject().message(message),
        };
        Rule {
            agent: spec.agent,
            tool: spec.tool,
            when,
            decision,
        }
    }

    /// Checks that a tool is one of these, which are those of the agent, or of all.
    fn check_tool(
        &mut self,
        index: usize,
        name: &str,
        agent: Option<&str>,
        calls: &[(&str, &RawValue)],
    ) {
        let mut known: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        known.dedup();
        let path = steps!["rules", index, "tool"];
        let is_known = |calls: &[(&str, _)]| calls.iter().any(|(known, _)| *known == name);
        match agent {
            Some(agent) if !is_known(calls) && is_known(&calls_of(self.team, None)) => {
                let message = format!("the agent {agent:?} has no tool {name:?}");
                let problem = Problem::without_file("unknown-tool", message);
                let problem = match &*known {
                    [] => problem,
                    known => {
                        problem.help(format!("there are {}", quoted_list(known.iter().copied())))
                    }
                };
                self.add_at(problem, path);
            }
            _ => self.check_name("unknown-tool", path, "tool", name, &known),
        }
    }

    fn check_name(
        &mut self,
        code: &'static str,
        path: &[Step<'_>],
        kind: &str,
        name: &str,
        known: &[&str],
    ) {
        if known.contains(&name) {
            return;
        }
        let problem = Problem::without_file(code, format!("the team has no {kind} {name:?}"))
            .suggestion(did_you_mean(name, known.iter().copied()));
        let problem = match known {
            [] => problem,
            known => problem.help(format!("there are {}", quoted_list(known.iter().copied()))),
        };
        self.add_at(problem, path);
    }

    fn add_at(&mut self, problem: Problem, path: &[Step<'_>]) {
        self.problems.add_at(problem, self.root.span_of(path));
    }
}
