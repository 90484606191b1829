//! Files of routing tests.

use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_core::Agent;

use crate::context::flatten;
use crate::diagnostics::{Problem, Problems, Source};
use crate::document::{Kind, Node, Step, steps};
use crate::file_refs;
use crate::schema;
use crate::suggest::{did_you_mean, quoted_list};
use crate::team_file::TeamFile;
use crate::validate;

/// A routing test: messages to a team, and the agents that must get the conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Case {
    /// The name; the messages if the file gives none.
    pub name: String,
    /// The user's messages, in order.
    pub messages: Vec<String>,
    /// Values of the context to set, by path, for [`OpenOptions::context`](crate::OpenOptions::context).
    pub context: Vec<(String, String)>,
    /// The agent that gets the first message, if it is not the team's first one.
    pub agent: Option<String>,
    /// The agent that must have the conversation at the end.
    pub expect: Option<String>,
    /// Fields that the payload of the last handoff must have, among others.
    pub payload: Option<Value>,
    /// Agents that must not get the conversation.
    pub forbidden: Vec<String>,
    /// Agents that must have had the conversation, in this order.
    pub path: Vec<String>,
    /// Words that the answers must have, in any case of letters.
    pub says: Vec<String>,
    /// Words that the answers must not have.
    pub never_says: Vec<String>,
    /// Tools that must run, in this order, among others; if the list is empty, none may run.
    pub tools: Option<Vec<ExpectedCall>>,
    /// A guardrail that must fire: stop the run, refuse or change something.
    pub guardrail: Option<String>,
    /// The number of turns of all runs.
    pub turns: Option<u32>,
    /// The largest number of turns of all runs.
    pub max_turns: Option<u32>,
}

/// A tool call that a [`Case`] expects.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExpectedCall {
    /// The name of the tool.
    pub tool: String,
    /// Fields that its arguments must have, among others.
    pub arguments: Option<Value>,
}

/// A file of cases.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "file of cases")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for its schema; cases are read one by one")]
struct CasesSpec {
    /// The cases.
    #[serde(default)]
    cases: Vec<CaseSpec>,
}

/// A case.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "case")]
#[serde(deny_unknown_fields)]
struct CaseSpec {
    /// The name; without it, the messages.
    name: Option<String>,
    /// The user's message.
    message: Option<String>,
    /// The user's messages, in order.
    #[serde(default)]
    messages: Vec<String>,
    /// Values of the context to set.
    #[serde(default)]
    context: Map<String, Value>,
    /// The agent that gets the first message; without it, the team's first one.
    agent: Option<String>,
    /// The agent that must have the conversation at the end.
    expect: Option<String>,
    /// Fields that the payload of the last handoff must have, among others.
    payload: Option<Value>,
    /// Agents that must not get the conversation.
    #[serde(default)]
    forbidden: Vec<String>,
    /// Agents that must have had the conversation, in this order.
    #[serde(default)]
    path: Vec<String>,
    /// Words that the answers must have, in any case of letters.
    says: Option<WordsSpec>,
    /// Words that the answers must not have.
    never_says: Option<WordsSpec>,
    /// Tools that must run, in this order, among others; if the list is empty, none may run.
    tools: Option<Vec<CallSpec>>,
    /// A guardrail that must fire: stop the run, refuse or change something.
    guardrail: Option<String>,
    /// The number of turns of all runs.
    turns: Option<u32>,
    /// The largest number of turns of all runs.
    max_turns: Option<u32>,
}

/// Words: one text or several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "words")]
#[serde(untagged)]
enum WordsSpec {
    One(String),
    Several(Vec<String>),
}

impl WordsSpec {
    fn list(words: Option<Self>) -> Vec<String> {
        match words {
            None => Vec::new(),
            Some(Self::One(text)) => vec![text],
            Some(Self::Several(texts)) => texts,
        }
    }
}

/// A tool call: its tool, or a table with its arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "call")]
#[serde(untagged)]
enum CallSpec {
    Tool(String),
    Call(CallTableSpec),
}

/// A tool call with arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "call with arguments")]
#[serde(deny_unknown_fields)]
struct CallTableSpec {
    /// The name of the tool.
    tool: String,
    /// Fields that its arguments must have, among others.
    arguments: Option<Map<String, Value>>,
}

impl From<CallSpec> for ExpectedCall {
    fn from(spec: CallSpec) -> Self {
        match spec {
            CallSpec::Tool(tool) => Self {
                tool,
                arguments: None,
            },
            CallSpec::Call(call) => Self {
                tool: call.tool,
                arguments: call.arguments.map(Value::Object),
            },
        }
    }
}

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::generate::<CasesSpec>);
static CASE_SCHEMA: LazyLock<Value> = LazyLock::new(schema::generate::<CaseSpec>);

impl Case {
    /// Parses cases for a team.
    ///
    /// ```
    /// use switchboard_teamfile::{Case, TeamFile};
    ///
    /// let team = TeamFile::parse("[agents.Triage]\nhandoffs = ['Billing']\n[agents.Billing]", "team.toml")?;
    /// let cases = "[[cases]]\nmessage = 'My bill is wrong'\nexpect = 'Billing'";
    /// let cases = Case::parse_all(cases, "cases.toml", &team)?;
    /// assert_eq!(cases[0].expect.as_deref(), Some("Billing"));
    /// # Ok::<(), switchboard_teamfile::Problems>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the file, such as agents that the team does not have.
    pub fn parse_all(
        text: &str,
        path: impl AsRef<Path>,
        team: &TeamFile,
    ) -> Result<Vec<Self>, Problems> {
        let cases = Self::parse_each(text, path.as_ref(), team)?;
        let source = Source::new(path.as_ref(), file_refs::without_bom(text));
        let mut problems = Problems::new(source);
        let mut valid = Vec::new();
        for case in cases {
            match case {
                Ok(case) => valid.push(case),
                Err(invalid) => invalid
                    .iter()
                    .for_each(|problem| problems.add(problem.clone())),
            }
        }
        problems.or_errors()?;
        Ok(valid)
    }

    /// Parses cases for a team, each by itself: the problems of one do not concern the others.
    ///
    /// # Errors
    /// Problems of the file outside its cases, such as invalid syntax.
    pub fn parse_each(
        text: &str,
        path: impl AsRef<Path>,
        team: &TeamFile,
    ) -> Result<Vec<Result<Self, Problems>>, Problems> {
        let path = path.as_ref();
        let source = Source::new(path, file_refs::without_bom(text));
        let mut problems = Problems::new(source.clone());
        let root = Node::parse(&source).map_err(|problem| {
            problems.add(*problem);
            problems.clone()
        })?;
        let items = match root.field("cases").map(|entry| &entry.value.kind) {
            Some(Kind::List(items)) => items.as_slice(),
            _ => &[],
        };
        // Checks all but the cases, which may be invalid each.
        let mut rest = root.clone();
        if let Kind::Table(entries) = &mut rest.kind {
            for entry in entries.iter_mut().filter(|entry| entry.name == "cases") {
                if let Kind::List(items) = &mut entry.value.kind {
                    items.clear();
                }
            }
        }
        validate::validate(&rest, &SCHEMA, &mut problems);
        let mut problems = problems.or_errors()?;
        if items.is_empty() {
            let problem = Problem::in_file("no-cases", path, "there are no cases");
            problems.add(problem.help("add one: [[cases]] with message and expect"));
            return Err(problems);
        }
        let parse = |(index, item): (usize, &Node)| {
            let mut problems = Problems::new(source.clone());
            validate::validate(item, &CASE_SCHEMA, &mut problems);
            let mut problems = problems.or_errors()?;
            let spec: CaseSpec = serde_json::from_value(item.to_value()).map_err(|error| {
                Problems::one(Problem::in_file("form", path, error.to_string()))
            })?;
            let mut resolver = CaseResolver {
                root: &root,
                team,
                problems: &mut problems,
            };
            let case = resolver.case(index, spec);
            problems.or_errors()?;
            Ok(case)
        };
        Ok(items.iter().enumerate().map(parse).collect())
    }

    /// Reads a file of cases for a team.
    ///
    /// # Errors
    /// All problems of the file, such as agents that the team does not have.
    pub fn read_all(path: impl AsRef<Path>, team: &TeamFile) -> Result<Vec<Self>, Problems> {
        let path = path.as_ref();
        Self::parse_all(&read(path)?, path, team)
    }

    /// Reads a file of cases for a team, each by itself.
    ///
    /// # Errors
    /// Problems of the file outside its cases.
    pub fn read_each(
        path: impl AsRef<Path>,
        team: &TeamFile,
    ) -> Result<Vec<Result<Self, Problems>>, Problems> {
        let path = path.as_ref();
        Self::parse_each(&read(path)?, path, team)
    }
}

fn read(path: &Path) -> Result<String, Problems> {
    file_refs::read_text(path).map_err(|problem| {
        Problems::one(if path.exists() {
            *problem
        } else {
            problem.help("give the path of a file of cases; `switchboard init` writes one")
        })
    })
}

struct CaseResolver<'a> {
    root: &'a Node,
    team: &'a TeamFile,
    problems: &'a mut Problems,
}

impl CaseResolver<'_> {
    fn case(&mut self, index: usize, spec: CaseSpec) -> Case {
        let at = steps!["cases", index];
        let messages = match (spec.message, spec.messages) {
            (Some(message), messages) if messages.is_empty() => vec![message],
            (None, messages) if messages.is_empty() => {
                let problem = Problem::without_file("bad-case", "the case has no message");
                let help = "give it message = \"…\", or messages = […] for several";
                self.add_at(problem.help(help), at);
                messages
            }
            (None, messages) => messages,
            (Some(_), _) => {
                let message = "the case has both message and messages";
                let problem = Problem::without_file("bad-case", message);
                self.add_at(problem.help("keep one of them"), at);
                Vec::new()
            }
        };
        let expects_something = spec.expect.is_some()
            || spec.payload.is_some()
            || !spec.forbidden.is_empty()
            || !spec.path.is_empty()
            || spec.says.is_some()
            || spec.never_says.is_some()
            || spec.tools.is_some()
            || spec.guardrail.is_some()
            || spec.turns.is_some()
            || spec.max_turns.is_some();
        if !expects_something {
            let message = "the case expects nothing, so it cannot fail";
            let problem = Problem::without_file("bad-case", message);
            let help = "give it expect, path, forbidden, payload, says, never_says, tools, guardrail, \
                        turns or max_turns";
            self.add_at(problem.help(help), at);
        }
        for (field, name) in [("agent", &spec.agent), ("expect", &spec.expect)] {
            if let Some(name) = name {
                self.check_agent(steps!["cases", index, field], name);
            }
        }
        for (field, names) in [("forbidden", &spec.forbidden), ("path", &spec.path)] {
            for (position, name) in names.iter().enumerate() {
                self.check_agent(steps!["cases", index, field, position], name);
            }
        }
        let tools = spec.tools.map(|tools| {
            let calls = tools.into_iter().map(ExpectedCall::from);
            calls.collect::<Vec<_>>()
        });
        for (position, call) in tools.iter().flatten().enumerate() {
            let known = self.team.resolved.tools.keys().map(String::as_str);
            let path = steps!["cases", index, "tools", position];
            self.check_known(path, "tool", &call.tool, known);
        }
        if let Some(guardrail) = &spec.guardrail {
            let known = self.team.resolved.guardrails.keys().map(String::as_str);
            let path = steps!["cases", index, "guardrail"];
            self.check_known(path, "guardrail", guardrail, known);
        }
        let context: Vec<(String, String)> = flatten(&spec.context)
            .into_iter()
            .map(|(path, value)| match value {
                Value::String(text) => (path, text.clone()),
                other => (path, other.to_string()),
            })
            .collect();
        for (key, text) in &context {
            if let Err(message) = self.team.resolved.context.clone().set(key, text) {
                let path = steps!["cases", index, "context"];
                self.add_at(Problem::without_file("bad-context", message), path);
            }
        }
        Case {
            name: spec.name.unwrap_or_else(|| messages.join(" / ")),
            messages,
            context,
            agent: spec.agent,
            expect: spec.expect,
            payload: spec.payload,
            forbidden: spec.forbidden,
            path: spec.path,
            says: WordsSpec::list(spec.says),
            never_says: WordsSpec::list(spec.never_says),
            tools,
            guardrail: spec.guardrail,
            turns: spec.turns,
            max_turns: spec.max_turns,
        }
    }

    /// Reports a tool or a guardrail that the team does not have.
    fn check_known<'n>(
        &mut self,
        path: &[Step<'_>],
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) {
        if known.clone().any(|known| known == name) {
            return;
        }
        let code = if kind == "tool" {
            "unknown-tool"
        } else {
            "unknown-guardrail"
        };
        let message = format!("the team has no {kind} {name:?}");
        let mut problem =
            Problem::without_file(code, message).suggestion(did_you_mean(name, known.clone()));
        if known.clone().next().is_some() {
            problem = problem.help(format!("its {kind}s are {}", quoted_list(known)));
        }
        self.add_at(problem, path);
    }

    fn add_at(&mut self, problem: Problem, path: &[Step<'_>]) {
        self.problems.add_at(problem, self.root.span_of(path));
    }

    fn check_agent(&mut self, path: &[Step<'_>], name: &str) {
        let team = self.team.team();
        if team.get(name).is_some() {
            return;
        }
        let known = || team.agents().iter().map(Agent::name);
        let message = format!("the team has no agent {name:?}");
        let problem = Problem::without_file("unknown-agent", message)
            .suggestion(did_you_mean(name, known()))
            .help(format!("its agents are {}", quoted_list(known())));
        self.add_at(problem, path);
    }
}
