//! The places that teams are read from, such as files.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ServiceError;
use crate::service::Service;
use crate::team::ServedTeam;

/// The place that a team is read from.
///
/// `TeamFileSource` (feature `team-files`) is one for team files. Its methods are called on a thread that may
/// wait.
pub trait TeamSource: Send + Sync + 'static {
    /// The name for people: that of the file, without its folder.
    fn name(&self) -> String;

    /// The language of the text: `toml` or `json`.
    fn format(&self) -> &'static str;

    /// Returns `true` if [`TeamSource::write`] is allowed.
    fn is_editable(&self) -> bool;

    /// Reads the text.
    ///
    /// # Errors
    /// An error that says why it cannot be read.
    fn read(&self) -> Result<String, ServiceError>;

    /// Replaces the text as a whole, or leaves it as it is.
    ///
    /// # Errors
    /// An error that says why it cannot be written.
    fn write(&self, text: &str) -> Result<(), ServiceError>;

    /// Looks a text over.
    fn check(&self, text: &str) -> Vec<SourceProblem>;

    /// Makes the team of a text.
    ///
    /// # Errors
    /// The problems of the text.
    fn open(&self, text: &str) -> Result<ServedTeam, Vec<SourceProblem>>;

    /// The completions at a place of a text: a line and a column from 1, in characters.
    fn complete(&self, text: &str, line: usize, column: usize) -> Completions;
}

/// A problem of a text, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SourceProblem {
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// A code for machines.
    pub code: String,
    /// The problem.
    pub message: String,
    /// Advice on how to mend it.
    pub help: Option<String>,
    /// A suggestion for its place.
    pub suggestion: Option<String>,
    /// The name of the file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The first column, in characters from 1.
    pub column: Option<usize>,
    /// The line of the end.
    pub end_line: Option<usize>,
    /// The column after the last.
    pub end_column: Option<usize>,
}

impl SourceProblem {
    /// An error without a place.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: "error".to_owned(),
            code: code.into(),
            message: message.into(),
            help: None,
            suggestion: None,
            file: None,
            line: None,
            column: None,
            end_line: None,
            end_column: None,
        }
    }

    /// Returns `true` if the text cannot be used because of it.
    pub fn is_error(&self) -> bool {
        self.severity == "error"
    }
}

/// The completions at a place of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Completions {
    /// The column from which to the cursor the text is replaced.
    pub start_column: usize,
    /// The completions.
    pub items: Vec<Completion>,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Completion {
    /// The text to show.
    pub label: String,
    /// The text to insert.
    pub insert: String,
    /// The type of the value.
    pub detail: String,
    /// The description.
    pub documentation: Option<String>,
}

/// A source whose team was read again.
pub(crate) struct Reloaded {
    pub(crate) team: ServedTeam,
    /// Warnings and notes.
    pub(crate) problems: Vec<SourceProblem>,
    /// The version of the text.
    pub(crate) version: String,
}

/// A source whose team could not be read again.
#[derive(Debug)]
pub(crate) enum ReloadError {
    Service(ServiceError),
    Problems(Vec<SourceProblem>),
}

impl From<ServiceError> for ReloadError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl Service {
    /// Reads a team again from its source. Runs under way go on with the team that they began with.
    ///
    /// # Errors
    /// An error if there is no team of that name, if it has no source, or if that cannot be used any more; the
    /// team then stays as it is.
    pub fn reload_team(&self, name: &str) -> Result<(), ServiceError> {
        let teams = self.all_teams();
        let team = teams.iter().find(|team| team.name() == name);
        let team = team.ok_or_else(|| ServiceError::not_found("there is no such team"))?;
        match self.reload(team) {
            Ok(_) => Ok(()),
            Err(ReloadError::Service(error)) => Err(error),
            Err(ReloadError::Problems(problems)) => {
                let problem = problems.iter().find(|problem| problem.is_error());
                let problem = problem.map_or_else(String::new, |problem| problem.message.clone());
                Err(ServiceError::invalid(problem))
            }
        }
    }

    /// Reads all teams again that have a source. Those that cannot be read stay as they are, and are logged.
    pub fn reload_teams(&self) {
        for team in self.all_teams() {
            if team.team_source().is_none() {
                continue;
            }
            match self.reload_team(team.name()) {
                Ok(()) => tracing::info!(team = team.name(), "the team was read again"),
                Err(error) => {
                    tracing::error!(team = team.name(), %error, "the team stays as it is");
                }
            }
        }
    }

    /// Reads a team again from its source.
    pub(crate) fn reload(&self, team: &ServedTeam) -> Result<Reloaded, ReloadError> {
        let text = source_of(team)?.read()?;
        self.use_text(team, &text)
    }

    /// Replaces the text of a team's source and reads it again, if it has no errors and the source has the text
    /// with this version.
    pub(crate) fn save(
        &self,
        team: &ServedTeam,
        text: &str,
        version: &str,
    ) -> Result<Reloaded, ReloadError> {
        use crate::error::ServiceErrorKind::{Conflict, Forbidden};
        let source = source_of(team)?;
        if !source.is_editable() {
            let message = "the team file cannot be changed here";
            return Err(ServiceError::new(Forbidden, message).into());
        }
        // Two who save at once must not overwrite each other.
        let _guard = self.lock_sources();
        if text_version(&source.read()?) != version {
            let message = "the team file was changed meanwhile; read it again";
            return Err(ServiceError::new(Conflict, message).into());
        }
        let opened = source.open(text).map_err(ReloadError::Problems)?;
        check_name(team, &opened)?;
        source.write(text)?;
        self.use_text(team, text)
    }

    fn use_text(&self, team: &ServedTeam, text: &str) -> Result<Reloaded, ReloadError> {
        let source = source_of(team)?;
        let opened = source.open(text).map_err(ReloadError::Problems)?;
        check_name(team, &opened)?;
        let version = text_version(text);
        let opened = opened.source(source.clone()).read_from(&version);
        self.replace_team(opened.clone());
        Ok(Reloaded {
            team: opened,
            problems: source.check(text),
            version,
        })
    }
}

fn source_of(team: &ServedTeam) -> Result<&std::sync::Arc<dyn TeamSource>, ServiceError> {
    let source = team.team_source();
    source.ok_or_else(|| ServiceError::not_found("the team is from no file"))
}

/// Conversations belong to a team by its name.
fn check_name(team: &ServedTeam, opened: &ServedTeam) -> Result<(), ReloadError> {
    if team.name() == opened.name() {
        return Ok(());
    }
    let message = format!(
        "the team is served as {:?}, and its new name would be {:?}; conversations belong to a team by its name",
        team.name(),
        opened.name()
    );
    Err(ReloadError::Problems(vec![SourceProblem::error(
        "renamed-team",
        message,
    )]))
}

/// The version of a text: its hash.
pub(crate) fn text_version(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let hash = hash.as_ref().iter().take(16);
    hash.map(|byte| format!("{byte:02x}")).collect()
}
