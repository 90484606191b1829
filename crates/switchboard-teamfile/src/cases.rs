//! Files of routing tests: what is said, and where it must lead.

use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::document::{Node, Step, way};
use crate::file::TeamFile;
use crate::named_files;
use crate::problem::{Problem, Problems, Source};
use crate::schema;
use crate::suggest::{did_you_mean, listed};
use crate::validate;

/// A routing test: what is said to a team, and where it must lead.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Case {
    /// Its name, or else what is said.
    pub name: String,
    /// What is said, one after the other.
    pub messages: Vec<String>,
    /// Values of the context that are set for it, by path, as [`Opening::context`](crate::Opening::context)
    /// takes them.
    pub context: Vec<(String, String)>,
    /// Who must have the conversation at the end.
    pub expect: Option<String>,
    /// What the last handoff must bring, among other things.
    pub payload: Option<Value>,
    /// Who must not get the conversation.
    pub forbidden: Vec<String>,
    /// Who must have had it, in this order.
    pub path: Vec<String>,
}

/// Cases of a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "file of cases")]
#[serde(deny_unknown_fields)]
struct CasesShape {
    /// The cases.
    #[serde(default)]
    cases: Vec<CaseShape>,
}

/// A case.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "case")]
#[serde(deny_unknown_fields)]
struct CaseShape {
    /// What it is called instead of what is said.
    name: Option<String>,
    /// What is said.
    message: Option<String>,
    /// What is said, one after the other.
    #[serde(default)]
    messages: Vec<String>,
    /// Values of the context that are set for it.
    #[serde(default)]
    context: Map<String, Value>,
    /// Who must have the conversation at the end.
    expect: Option<String>,
    /// What the last handoff must bring, among other things.
    payload: Option<Value>,
    /// Who must not get the conversation.
    #[serde(default)]
    forbidden: Vec<String>,
    /// Who must have had it, in this order.
    #[serde(default)]
    path: Vec<String>,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<CasesShape>);

impl Case {
    /// Reads the cases of a file, for this team.
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
    /// All that is wrong with the file, agents that the team does not have among it.
    pub fn parse_all(
        text: &str,
        path: impl AsRef<Path>,
        team: &TeamFile,
    ) -> Result<Vec<Self>, Problems> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Source::new(path.as_ref(), text);
        let mut problems = Problems::new(source.clone());
        let root = Node::read(&source).map_err(|problem| {
            problems.add(*problem);
            problems.clone()
        })?;
        validate::check(&root, &SCHEMA, &mut problems);
        let mut problems = problems.or_errors()?;
        let shape: CasesShape = serde_json::from_value(root.to_value()).map_err(|error| {
            Problems::one(Problem::of_file("form", path.as_ref(), error.to_string()))
        })?;
        if shape.cases.is_empty() {
            let problem = Problem::of_file("no-cases", path.as_ref(), "there are no cases");
            problems.add(problem.help("add one: [[cases]] with message and expect"));
        }
        let mut reader = Reader {
            root: &root,
            team,
            problems: &mut problems,
        };
        let cases = shape.cases.iter().enumerate();
        let cases = cases.map(|(at, case)| reader.case(at, case)).collect();
        problems.ok_unless_errors()?;
        Ok(cases)
    }

    /// The same of a file on the disk.
    ///
    /// # Errors
    /// All that is wrong with the file, agents that the team does not have among it.
    pub fn read_all(path: impl AsRef<Path>, team: &TeamFile) -> Result<Vec<Self>, Problems> {
        let path = path.as_ref();
        let text = named_files::text(path).map_err(|(message, help)| {
            let help = if path.exists() {
                help
            } else {
                "give the path of a file of cases; `switchboard init` writes one"
            };
            Problems::one(Problem::elsewhere("unreadable-file", message).help(help))
        })?;
        Self::parse_all(&text, path, team)
    }
}

/// Reads cases, and notes what is wrong with them.
struct Reader<'a> {
    root: &'a Node,
    team: &'a TeamFile,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn case(&mut self, at: usize, shape: &CaseShape) -> Case {
        let messages = match (&shape.message, shape.messages.as_slice()) {
            (Some(message), []) => vec![message.clone()],
            (None, []) => {
                let help = "give it message = \"…\", or messages = […] for several";
                self.wrong(at, "the case says nothing", help);
                Vec::new()
            }
            (None, several) => several.to_vec(),
            (Some(_), _) => {
                self.wrong(
                    at,
                    "the case has both message and messages",
                    "keep one of them",
                );
                Vec::new()
            }
        };
        let asks = shape.expect.is_some()
            || shape.payload.is_some()
            || !shape.forbidden.is_empty()
            || !shape.path.is_empty();
        if !asks {
            let help = "give it expect, path, forbidden or payload";
            self.wrong(at, "the case asks for nothing, so it could not fail", help);
        }
        if let Some(name) = &shape.expect {
            self.check_agent(way!["cases", at, "expect"], name);
        }
        for (list, names) in [("forbidden", &shape.forbidden), ("path", &shape.path)] {
            for (number, name) in names.iter().enumerate() {
                self.check_agent(way!["cases", at, list, number], name);
            }
        }
        let mut context = Vec::new();
        flatten("", &shape.context, &mut context);
        for (key, text) in &context {
            if let Err(message) = self.team.plan.context.clone().set(key, text) {
                let span = self.root.span_of(way!["cases", at, "context"]);
                let problem = self.problems.source().problem("bad-context", span, message);
                self.problems.add(problem);
            }
        }
        Case {
            name: shape.name.clone().unwrap_or_else(|| messages.join(" / ")),
            messages,
            context,
            expect: shape.expect.clone(),
            payload: shape.payload.clone(),
            forbidden: shape.forbidden.clone(),
            path: shape.path.clone(),
        }
    }

    fn wrong(&mut self, at: usize, message: &str, help: &str) {
        let span = self.root.span_of(way!["cases", at]);
        let problem = self.problems.source().problem("bad-case", span, message);
        self.problems.add(problem.help(help));
    }

    fn check_agent(&mut self, at: &[Step<'_>], name: &str) {
        if self.team.team().get(name).is_some() {
            return;
        }
        let span = self.root.span_of(at);
        let message = format!("the team has no agent {name:?}");
        let problem = self
            .problems
            .source()
            .problem("unknown-agent", span, message);
        let known = || {
            self.team
                .team()
                .agents()
                .iter()
                .map(switchboard_core::Agent::name)
        };
        let suggestion = did_you_mean(name, known());
        let help = format!("its agents are {}", listed(known()));
        self.problems.add(problem.suggestion(suggestion).help(help));
    }
}

/// The values of a table with the paths that lead to them: `customer.tier`.
fn flatten(before: &str, table: &Map<String, Value>, into: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let key = match before {
            "" => key.clone(),
            before => format!("{before}.{key}"),
        };
        match value {
            Value::Object(table) => flatten(&key, table, into),
            Value::String(text) => into.push((key, text.clone())),
            other => into.push((key, other.to_string())),
        }
    }
}
