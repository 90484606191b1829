//! Files of routing tests.

use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_core::Agent;

use crate::context::flatten;
use crate::diagnostics::{Problem, Problems, Source};
use crate::document::{Node, Step, steps};
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
    /// The agent that must have the conversation at the end.
    pub expect: Option<String>,
    /// Fields that the payload of the last handoff must have, among others.
    pub payload: Option<Value>,
    /// Agents that must not get the conversation.
    pub forbidden: Vec<String>,
    /// Agents that must have had the conversation, in this order.
    pub path: Vec<String>,
}

/// A file of cases.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "file of cases")]
#[serde(deny_unknown_fields)]
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
}

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::generate::<CasesSpec>);

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
        let source = Source::new(path.as_ref(), file_refs::without_bom(text));
        let mut problems = Problems::new(source.clone());
        let root = Node::parse(&source).map_err(|problem| {
            problems.add(*problem);
            problems.clone()
        })?;
        validate::validate(&root, &SCHEMA, &mut problems);
        let mut problems = problems.or_errors()?;
        let spec: CasesSpec = serde_json::from_value(root.to_value()).map_err(|error| {
            Problems::one(Problem::in_file("form", path.as_ref(), error.to_string()))
        })?;
        if spec.cases.is_empty() {
            let problem = Problem::in_file("no-cases", path.as_ref(), "there are no cases");
            problems.add(problem.help("add one: [[cases]] with message and expect"));
        }
        let mut resolver = CaseResolver {
            root: &root,
            team,
            problems: &mut problems,
        };
        let cases = spec.cases.into_iter().enumerate();
        let cases = cases
            .map(|(index, case)| resolver.case(index, case))
            .collect();
        problems.or_errors()?;
        Ok(cases)
    }

    /// Reads a file of cases for a team.
    ///
    /// # Errors
    /// All problems of the file, such as agents that the team does not have.
    pub fn read_all(path: impl AsRef<Path>, team: &TeamFile) -> Result<Vec<Self>, Problems> {
        let path = path.as_ref();
        let text = file_refs::read_text(path).map_err(|problem| {
            Problems::one(if path.exists() {
                *problem
            } else {
                problem.help("give the path of a file of cases; `switchboard init` writes one")
            })
        })?;
        Self::parse_all(&text, path, team)
    }
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
        let has_names = !spec.forbidden.is_empty() || !spec.path.is_empty();
        if spec.expect.is_none() && spec.payload.is_none() && !has_names {
            let message = "the case expects nothing, so it cannot fail";
            let problem = Problem::without_file("bad-case", message);
            let help = "give it expect, path, forbidden or payload";
            self.add_at(problem.help(help), at);
        }
        if let Some(name) = &spec.expect {
            self.check_agent(steps!["cases", index, "expect"], name);
        }
        for (field, names) in [("forbidden", &spec.forbidden), ("path", &spec.path)] {
            for (position, name) in names.iter().enumerate() {
                self.check_agent(steps!["cases", index, field, position], name);
            }
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
            expect: spec.expect,
            payload: spec.payload,
            forbidden: spec.forbidden,
            path: spec.path,
        }
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
