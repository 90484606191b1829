//! A team file, parsed, validated and resolved.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use switchboard_core::Team;
use switchboard_core::team::{Finding, FindingCode};

use crate::context::Context;
use crate::cycle_bounds::{Bound, Paths};
use crate::diagnostics::{Problem, Problems, Severity, Source};
use crate::document::{Node, steps};
use crate::file_refs::{self, FileSource};
use crate::guardrail_coverage;
use crate::missing_programs;
use crate::open_team::{self, OpenOptions, OpenTeam};
use crate::resolve::ResolvedTeam;
use crate::schema::SCHEMA;
use crate::types::{ActiveAgentSpec, TeamSpec};
use crate::unanswerable_people;
use crate::validate::{valid_parts, validate};

/// A team described in a file.
///
/// A file whose name ends in `.json` is JSON, any other is TOML. [`TeamFile::schema`] describes its
/// format for editors, and `docs/team-files.md` for people. These rules hold for every file:
///
/// - Environment variables are read only where the file says `{ env = "NAME" }`, for models called
///   `openai/…` and `chat/…` (`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID`,
///   `OPENAI_PROJECT_ID`), and for the variables that a command lists. Text is never searched for them.
/// - A command is started without a shell, if the file's allow-list has it. A value that a model sends
///   stays within one argument, and cannot be an option.
/// - A value that a model sends is escaped in a URL, and cannot choose the server.
pub struct TeamFile {
    path: PathBuf,
    folder: PathBuf,
    root: Node,
    pub(crate) resolved: ResolvedTeam,
    /// Warnings and notes.
    warnings: Problems,
    /// The team without models and secrets, for inspection.
    inspection: OpenTeam,
}

impl TeamFile {
    /// Reads a file and the files it refers to.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Problems> {
        let path = path.as_ref();
        let text = file_refs::read_text(path).map_err(|problem| {
            let inside = path.join("team.toml");
            Problems::one(if !path.exists() {
                problem.help(
                    "give the path of a team file; `switchboard init` writes one to start from",
                )
            } else if inside.is_file() {
                problem.help(format!("did you mean {}?", inside.display()))
            } else {
                *problem
            })
        })?;
        Self::parse(&text, path)
    }

    /// Parses the text of a file. Files that it refers to are read from the folder of `path`; the team
    /// file itself need not exist.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Self, Problems> {
        let path = path.as_ref();
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::load(text, path, FileSource::Folder(folder))
    }

    /// Parses files that are part of the program, as names and texts: the team file first, then the
    /// files it refers to. Its commands run in the current folder.
    ///
    /// ```
    /// use switchboard_teamfile::TeamFile;
    ///
    /// // include_str! in a real program
    /// let team = "[agents.Desk]\ninstructions = { file = \"desk.md\" }";
    /// let file = TeamFile::from_embedded(&[("team.toml", team), ("desk.md", "You are the desk.")])?;
    /// # Ok::<(), switchboard_teamfile::Problems>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the files.
    pub fn from_embedded(files: &[(&str, &str)]) -> Result<Self, Problems> {
        let Some(((name, text), others)) = files.split_first() else {
            let problem = Problem::without_file("unreadable-file", "there is no team file");
            return Err(Problems::one(problem));
        };
        Self::load(text, Path::new(name), FileSource::Embedded(others))
    }

    fn load(text: &str, path: &Path, files: FileSource<'_>) -> Result<Self, Problems> {
        let source = Source::new(path, file_refs::without_bom(text));
        let mut problems = Problems::new(source.clone());
        let mut root = match Node::parse(&source) {
            Ok(root) => root,
            Err(problem) => {
                problems.add(*problem);
                return Err(problems);
            }
        };
        validate(&root, &SCHEMA, &mut problems);
        // The valid parts of an invalid file are resolved too, so that all problems are found.
        let mut removed = HashSet::new();
        if !problems.is_empty() {
            match valid_parts(&root, &source) {
                Some(valid) => (root, removed) = (valid.root, valid.removed),
                None => return Err(problems.sorted()),
            }
        }
        let spec: TeamSpec = match serde_json::from_value(root.to_value()) {
            Ok(spec) => spec,
            // Unreachable as long as the validation agrees with the types.
            Err(error) => {
                problems.add(Problem::in_file("form", path, error.to_string()));
                return Err(problems.sorted());
            }
        };
        let resolved = ResolvedTeam::new(spec, &root, files, removed, &mut problems);
        let mut warnings = problems.or_errors()?;
        let inspection = OpenTeam::for_inspection(&resolved, &root).map_err(|problems| {
            problems
                .iter()
                .for_each(|problem| warnings.add(problem.clone()));
            warnings.clone()
        })?;
        Ok(Self {
            path: path.to_owned(),
            folder: files.folder().to_owned(),
            root,
            resolved,
            warnings,
            inspection,
        })
    }

    /// Returns warnings and notes: parts of the file that nothing uses, guardrails that only some of the
    /// agents have, programs that are not on this machine, and the findings of [`Team::check`].
    pub fn check(&self) -> Problems {
        let mut problems = self.warnings.clone();
        let paths = Paths::of(&self.resolved);
        let reached = paths.reached_agents();
        for mut finding in self.team().check() {
            match finding.code {
                // Rules and limits lead to agents without a handoff of the model.
                FindingCode::Unreachable if reached.contains(finding.agent.as_str()) => continue,
                FindingCode::UnboundedCycle => match paths.bound_of(&finding.cycle) {
                    Bound::Firm => continue,
                    Bound::Progress => {
                        finding.message.push_str(" while tools run or agents speak");
                    }
                    Bound::None => finding.severity = switchboard_core::team::Severity::Warning,
                },
                _ => {}
            }
            problems.add(self.finding_problem(&finding));
        }
        let of_guardrails = guardrail_coverage::warnings(&self.resolved, &self.root);
        let of_programs = missing_programs::warnings(&self.resolved, &self.root, &self.folder);
        let of_people = unanswerable_people::warnings(&self.resolved, &self.root);
        for (problem, span) in of_guardrails
            .into_iter()
            .chain(of_programs)
            .chain(of_people)
        {
            problems.add_at(problem, span);
        }
        problems.sorted()
    }

    /// Converts a finding to a problem with a position in the file.
    fn finding_problem(&self, finding: &Finding) -> Problem {
        let agent = finding.agent.as_str();
        let (span, message) = match &finding.tool {
            Some(tool) => (
                self.tool_span(agent, tool),
                format!("{tool:?} of agent {agent:?}: {}", finding.message),
            ),
            None => (None, format!("agent {agent:?}: {}", finding.message)),
        };
        let span = span.unwrap_or_else(|| self.root.name_span_of(steps!["agents", agent]));
        self.source()
            .problem(finding.code.as_str(), span, message)
            .help(advice(finding))
            .severity(match finding.severity {
                switchboard_core::team::Severity::Error => Severity::Error,
                switchboard_core::team::Severity::Warning => Severity::Warning,
                _ => Severity::Note,
            })
    }

    /// Returns the span of an agent's tool or of the handoff with this tool.
    fn tool_span(&self, agent: &str, tool: &str) -> Option<Range<usize>> {
        let mut agents = self.resolved.agents.iter();
        let tools = &agents.find(|resolved| resolved.name == agent)?.spec.tools;
        if let Some(index) = tools.iter().position(|own| own == tool) {
            return Some(self.root.span_of(steps!["agents", agent, "tools", index]));
        }
        let mut handoffs = self.team().get(agent)?.handoffs().iter();
        let index = handoffs.position(|handoff| handoff.tool_name() == tool)?;
        Some(
            self.root
                .span_of(steps!["agents", agent, "handoffs", index]),
        )
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's description of the team.
    pub fn description(&self) -> Option<&str> {
        self.resolved.description.as_deref()
    }

    /// The team for inspection and graphs. It uses nothing of the environment: all agents have the
    /// offline model, and tools have no secrets.
    pub fn team(&self) -> &Team<Context> {
        self.inspection.team()
    }

    /// The name of the agent that gets the first message.
    pub fn start(&self) -> &str {
        &self.resolved.start
    }

    /// The name of the agent that gets the next message after this one has answered.
    pub fn next_agent<'a>(&'a self, last: &'a str) -> &'a str {
        let agents = &self.resolved.agents;
        let agent = agents.iter().find(|agent| agent.name == last);
        let policy = agent.and_then(|agent| agent.spec.active_agent);
        match policy.unwrap_or(self.resolved.conversations.active_agent) {
            ActiveAgentSpec::Stay => last,
            ActiveAgentSpec::ReturnToStart => self.start(),
        }
    }

    /// Creates the team.
    ///
    /// # Errors
    /// Environment variables that the file names and that are not set, and models that cannot be
    /// used.
    pub fn open(&self) -> Result<OpenTeam, Problems> {
        self.open_options().open()
    }

    /// Returns options to create the team with other models, context values or variables.
    pub fn open_options(&self) -> OpenOptions<'_> {
        OpenOptions::new(self)
    }

    /// The address of the store of conversations, if the file names one. It may hold a password.
    ///
    /// # Errors
    /// An environment variable that the file names for it and that is not set.
    pub fn store(&self) -> Result<Option<Arc<str>>, Problems> {
        open_team::store_address(self, &|name| std::env::var(name).ok())
    }

    /// The JSON Schema of team files.
    pub fn schema() -> &'static Value {
        &SCHEMA
    }

    /// The folder in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    pub(crate) fn source(&self) -> &Source {
        self.warnings.source()
    }
}

/// The advice of a finding, in terms of the file's fields.
fn advice(finding: &Finding) -> &str {
    match finding.code {
        FindingCode::EmptyDescription => {
            "give the agent it leads to a description, or the handoff one of its own"
        }
        FindingCode::NameTooLong | FindingCode::NameInvalid => {
            "give the handoff a tool_name, or the tool another name, of letters, digits, _ and -"
        }
        FindingCode::UnboundedCycle => {
            "set per_edge or handoffs of [run.loops], or give one of the handoffs a condition with when"
        }
        _ => &finding.advice,
    }
}

impl fmt::Debug for TeamFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TeamFile({})", self.path.display())
    }
}
