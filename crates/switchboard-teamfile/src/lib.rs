//! Teams of agents described in a file.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use switchboard_core::{Agent, RunConfig, Runner, Team, WithContext, ModelHandle};

/// What the application knows: the file's `[context]`, with what was set over it. Conditions read it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context(Map<String, Value>);

impl Context {
    /// The value of a key; `customer.tier` reaches into a table.
    pub fn get(&self, path: &str) -> Option<&Value> { self.0.get(path) }
}

/// A team described in a file: read, with no mistakes found in it.
pub struct TeamFile { path: PathBuf }

impl TeamFile {
    /// Reads a file (`.json` as JSON, all others as TOML), and the files it names.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Problems> { Ok(Self { path: path.as_ref().to_owned() }) }
    /// The same from text; files it names are looked for in the folder of `path`, which need not exist.
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Self, Problems> { let _ = text; Self::read(path) }
    /// What looks wrong and does not keep the team from running, with what the team's own checks find.
    pub fn check(&self) -> Problems { Problems::default() }
    /// The file.
    pub fn path(&self) -> &Path { &self.path }
    /// What the team is for, if the file says it.
    pub fn description(&self) -> Option<&str> { None }
    /// Makes the team: looks up environment variables that the file names.
    pub fn open(&self) -> Result<OpenTeam, Problems> { self.opening().open() }
    /// The same with something set differently.
    pub fn opening(&self) -> Opening<'_> { Opening { file: self } }
    /// The JSON Schema of team files.
    pub fn schema() -> Value { Value::Null }
}

/// How a team is opened; see [`TeamFile::opening`].
pub struct Opening<'a> { file: &'a TeamFile }

impl Opening<'_> {
    /// This model answers for all agents. Variables that only other models need are not looked up.
    pub fn model(self, model: impl Into<ModelHandle>) -> Self { let _ = model.into(); self }
    /// Sets a value of the context over the file's, as text that is read by the type of the file's value.
    /// `customer.tier` reaches into a table.
    pub fn context(self, key: &str, value: &str) -> Result<Self, String> { let _ = (key, value); Ok(self) }
    /// Looks up variables here instead of in the environment.
    pub fn vars(self, var: impl Fn(&str) -> Option<String> + 'static) -> Self { let _ = var; self }
    /// The team.
    pub fn open(self) -> Result<OpenTeam, Problems> { let _ = self.file; Err(Problems::default()) }
}

/// A team that can talk.
pub struct OpenTeam { team: Team<Context>, start: Agent<Context>, config: RunConfig<Context>, context: Context }

impl OpenTeam {
    /// Its agents.
    pub fn team(&self) -> &Team<Context> { &self.team }
    /// The agent that gets the conversation first.
    pub fn start(&self) -> &Agent<Context> { &self.start }
    /// The settings of its runs; `RunConfig` is clonable, add hooks, tracer and session to a clone.
    pub fn config(&self) -> &RunConfig<Context> { &self.config }
    /// The context of its runs.
    pub fn context(&self) -> &Context { &self.context }
    /// A runner with all of it, from the first agent.
    pub fn runner(&self) -> Runner<Context, WithContext<Context>> { self.runner_from(&self.start) }
    /// A runner with all of it, from this agent.
    pub fn runner_from(&self, agent: &Agent<Context>) -> Runner<Context, WithContext<Context>> { Runner::new(agent).context(self.context.clone()) }
    /// The name of the model of this agent, to be shown.
    pub fn model_name(&self, agent: &str) -> Option<&str> { let _ = agent; None }
}

/// One thing wrong with a file, or about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Error, warning or note.
    pub severity: Severity,
    /// What kind of thing it is, for machines: `unknown-agent`, `dead-end`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The file it is in.
    pub file: PathBuf,
    /// Line, from 1; absent where the whole file is meant.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// The bytes of the file it is about.
    #[serde(skip)]
    pub span: Range<usize>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It may be meant.
    Note,
    /// It probably is not meant.
    Warning,
    /// It cannot work.
    Error,
}

/// All that was found, in the order of the file. `Display` draws each with the line it is about.
#[derive(Debug, Clone, Default)]
pub struct Problems { list: Vec<Problem> }

impl Problems {
    /// One by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> { self.list.iter() }
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool { self.list.is_empty() }
    /// The worst of them.
    pub fn worst(&self) -> Option<Severity> { self.list.iter().map(|p| p.severity).max() }
    /// As `Display`, with colours of a terminal.
    pub fn in_colour(&self) -> String { self.to_string() }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.list { writeln!(f, "{}", problem.message)?; }
        Ok(())
    }
}

impl std::error::Error for Problems {}
