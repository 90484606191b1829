//! Reading a team file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use switchboard_core::{Finding, FindingCode, Team};

use crate::context::Context;
use crate::document::{Node, way};
use crate::named_files::{self, Files};
use crate::open::{OpenTeam, Opening};
use crate::problem::{Problem, Problems, Severity, Source};
use crate::resolve::{AgentPlan, Plan};
use crate::schema::SCHEMA;
use crate::types::TeamShape;
use crate::validate;

/// A team described in a file, read and understood.
///
/// A file whose name ends in `.json` is JSON, any other is TOML. [`TeamFile::schema`] describes its
/// form for editors, and `docs/team-files.md` for people. What holds for every file:
///
/// - Variables of the environment are looked up only where the file says `{ env = "NAME" }`, for
///   models called `openai/…` and `chat/…` (`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID`,
///   `OPENAI_PROJECT_ID`), and for the variables a command is given. Text is never searched for them.
/// - A command is started without a shell, if the file's allow-list has it. What a model sends stays
///   within the argument it was put into, and is no option.
/// - What a model sends is escaped where it becomes part of an address, and cannot choose the server.
pub struct TeamFile {
    path: PathBuf,
    folder: PathBuf,
    root: Node,
    pub(crate) plan: Plan,
    /// What was found that does not keep the team from running.
    found: Problems,
    /// The team with nothing of the environment, to be looked at.
    sight: OpenTeam,
}

impl TeamFile {
    /// Reads a file, and the files it names.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Problems> {
        let path = path.as_ref();
        let text = named_files::text(path).map_err(|(message, help)| {
            let inside = path.join("team.toml");
            let help: Cow<'_, str> = match path.exists() {
                true if inside.is_file() => format!("did you mean {}?", inside.display()).into(),
                true => help.into(),
                false => {
                    "give the path of a team file; `switchboard init` writes one to start from"
                        .into()
                }
            };
            Problems::one(Problem::elsewhere("unreadable-file", message).help(help))
        })?;
        Self::parse(&text, path)
    }

    /// The same from text. Files that it names are looked for in the folder of `path`, where the file
    /// itself need not be.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Self, Problems> {
        let path = path.as_ref();
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::understand(text, path, Files::In(folder))
    }

    /// The same from texts that are part of the program: the team file, and then the files it names. Its
    /// commands run in the current folder.
    ///
    /// ```
    /// use switchboard_teamfile::TeamFile;
    ///
    /// // include_str! in a real program
    /// let team = "[agents.Desk]\ninstructions = { file = \"desk.md\" }";
    /// let file = TeamFile::within(&[("team.toml", team), ("desk.md", "You are the desk.")])?;
    /// # Ok::<(), switchboard_teamfile::Problems>(())
    /// ```
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn within(files: &[(&str, &str)]) -> Result<Self, Problems> {
        match files {
            [(name, text), named @ ..] => {
                Self::understand(text, Path::new(name), Files::Within(named))
            }
            [] => Err(Problems::one(Problem::elsewhere(
                "unreadable-file",
                "there is no team file",
            ))),
        }
    }

    fn understand(text: &str, path: &Path, files: Files<'_>) -> Result<Self, Problems> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Source::new(path, text);
        let mut problems = Problems::new(source.clone());
        let root = match Node::read(&source) {
            Ok(root) => root,
            Err(problem) => {
                problems.add(*problem);
                return Err(problems);
            }
        };
        validate::check(&root, &SCHEMA, &mut problems);
        // What a file of wrong form means is looked at as far as that can be told.
        let (root, left_out) = if problems.is_empty() {
            (root, HashSet::new())
        } else {
            match validate::fitting(&root, &source) {
                Some(fitting) => (fitting.root, fitting.left_out),
                None => return Err(problems.sorted()),
            }
        };
        let shape: TeamShape = match serde_json::from_value(root.to_value()) {
            Ok(shape) => shape,
            // The check above knows the same form; this is for what it should have found.
            Err(error) => {
                problems.add(Problem::of_file("form", path, error.to_string()));
                return Err(problems.sorted());
            }
        };
        let plan = Plan::new(shape, &root, files, left_out, &mut problems);
        let mut found = problems.or_errors()?;
        let sight = OpenTeam::in_sight(&plan).map_err(|problem| {
            found.add(*problem);
            found.clone()
        })?;
        Ok(Self {
            path: path.to_owned(),
            folder: files.folder().to_owned(),
            root,
            plan,
            found,
            sight,
        })
    }

    /// What looks wrong and does not keep the team from running: what the file describes and does not
    /// use, and what [`Team::check`] finds.
    pub fn check(&self) -> Problems {
        let mut problems = self.found.clone();
        for finding in self.sight.team().check() {
            let problem = self.located(&finding);
            problems.add(problem);
        }
        problems.sort();
        problems
    }

    /// A finding, with the place in the file that it is about.
    fn located(&self, finding: &Finding) -> Problem {
        let agent = finding.agent.as_str();
        let mut span = self.root.name_span_of(way!["agents", agent]);
        if let Some(tool) = &finding.tool {
            let plan = self.plan.agents.iter().find(|plan| plan.name == agent);
            if let Some(plan) = plan {
                span = self.tool_span(plan, tool).unwrap_or(span);
            }
        }
        let message = format!("agent {agent:?}: {}", finding.message);
        let message = match &finding.tool {
            Some(tool) => format!("{tool:?} of {message}"),
            None => message,
        };
        let code = finding.code.as_str();
        let problem = self.found.source().problem(code, span, message);
        problem
            .help(advice(finding))
            .severity(match finding.severity {
                switchboard_core::Severity::Error => Severity::Error,
                switchboard_core::Severity::Warning => Severity::Warning,
                _ => Severity::Note,
            })
    }

    /// Where an agent's tool or handoff of this name is written.
    fn tool_span(&self, plan: &AgentPlan, tool: &str) -> Option<std::ops::Range<usize>> {
        let name = &plan.name;
        if let Some(at) = plan.shape.tools.iter().position(|own| own == tool) {
            return Some(self.root.span_of(way!["agents", name, "tools", at]));
        }
        let agent = self.sight.team().get(name)?;
        let at = agent
            .handoffs()
            .iter()
            .position(|handoff| handoff.tool_name() == tool)?;
        Some(self.root.span_of(way!["agents", name, "handoffs", at]))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the team is for, if the file says it.
    pub fn description(&self) -> Option<&str> {
        self.plan.description.as_deref()
    }

    /// The team to be looked at and drawn: nothing of the environment was needed for it, so its agents
    /// have no models but the offline one, and its tools no secrets.
    pub fn team(&self) -> &Team<Context> {
        self.sight.team()
    }

    /// Makes the team.
    ///
    /// # Errors
    /// Variables of the environment that the file names and nobody has set, and models that cannot be
    /// used as they are set up.
    pub fn open(&self) -> Result<OpenTeam, Problems> {
        self.opening().open()
    }

    /// The same with something set in another way.
    pub fn opening(&self) -> Opening<'_> {
        Opening::new(self)
    }

    /// The JSON Schema of team files.
    pub fn schema() -> &'static Value {
        &SCHEMA
    }

    /// The folder of its programs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    pub(crate) fn source(&self) -> &Source {
        self.found.source()
    }
}

/// What to do about a finding, in the words of a file.
fn advice(finding: &Finding) -> String {
    match finding.code {
        FindingCode::EmptyDescription => {
            "give the agent it leads to a description, or the handoff one of its own".to_owned()
        }
        FindingCode::NameTooLong | FindingCode::NameInvalid => {
            "give the handoff a tool_name, or the tool another name, of letters, digits, _ and -"
                .to_owned()
        }
        FindingCode::UnboundedCycle => {
            "give one of the handoffs a condition with when, or keep max_turns of [run] low"
                .to_owned()
        }
        _ => finding.advice.clone(),
    }
}

impl fmt::Debug for TeamFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TeamFile({})", self.path.display())
    }
}
