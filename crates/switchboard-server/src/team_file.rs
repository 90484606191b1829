//! Teams of team files: read, checked, changed, and read again.

mod completions;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_core::RunConfig;
use switchboard_teamfile::{Context, OpenTeam, Problem, Problems, Severity, TeamFile};

use crate::error::{ServiceError, ServiceErrorKind};
use crate::team::{ServedTeam, TeamContext};
use crate::team_source::{Completions, SourceProblem, TeamSource, text_version};

/// The largest team file.
const MAX_BYTES: usize = 4 << 20;

/// Makes a served team of a team file.
type Open = dyn Fn(&TeamFile) -> Result<ServedTeam, Vec<SourceProblem>> + Send + Sync;

/// A team file as the [`TeamSource`] of a team.
pub struct TeamFileSource {
    files: Files,
    is_editable: bool,
    open: Box<Open>,
}

/// The place of a team file.
enum Files {
    Path(PathBuf),
    /// Files that are part of the program, the team file first.
    Embedded(&'static [(&'static str, &'static str)]),
}

impl TeamFileSource {
    /// A source that reads the file at `path` and makes the team of it with `open`.
    pub fn new(
        path: impl Into<PathBuf>,
        open: impl Fn(&TeamFile) -> Result<ServedTeam, Vec<SourceProblem>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            files: Files::Path(path.into()),
            is_editable: false,
            open: Box::new(open),
        }
    }

    /// A source of files that are part of the program, the team file first. It cannot be changed.
    pub fn embedded(
        files: &'static [(&'static str, &'static str)],
        open: impl Fn(&TeamFile) -> Result<ServedTeam, Vec<SourceProblem>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            files: Files::Embedded(files),
            is_editable: false,
            open: Box::new(open),
        }
    }

    /// Allows clients to change the file.
    #[must_use]
    pub fn editable(mut self) -> Self {
        self.is_editable = matches!(self.files, Files::Path(_));
        self
    }

    /// Makes this the source of a team that was made of it.
    pub fn attach_to(self, team: ServedTeam) -> ServedTeam {
        let version = self.read().map(|text| text_version(&text));
        let team = team.source(Arc::new(self));
        match version {
            Ok(version) => team.read_from(&version),
            Err(_) => team,
        }
    }

    fn parse(&self, text: &str) -> Result<TeamFile, Problems> {
        match &self.files {
            Files::Path(path) => TeamFile::parse(text, path),
            Files::Embedded([(name, _), others @ ..]) => {
                let files: Vec<(&str, &str)> = std::iter::once((*name, text))
                    .chain(others.iter().copied())
                    .collect();
                TeamFile::from_embedded(&files)
            }
            Files::Embedded([]) => TeamFile::from_embedded(&[]),
        }
    }

    fn path(&self) -> &Path {
        match &self.files {
            Files::Path(path) => path,
            Files::Embedded(files) => Path::new(files.first().map_or("", |(name, _)| *name)),
        }
    }
}

impl std::fmt::Debug for TeamFileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TeamFileSource({})", self.path().display())
    }
}

impl TeamSource for TeamFileSource {
    fn name(&self) -> String {
        let name = self.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn format(&self) -> &'static str {
        let is_json = self
            .path()
            .extension()
            .is_some_and(|ending| ending == "json");
        if is_json { "json" } else { "toml" }
    }

    fn is_editable(&self) -> bool {
        self.is_editable
    }

    fn read(&self) -> Result<String, ServiceError> {
        let path = match &self.files {
            Files::Path(path) => path,
            Files::Embedded(files) => {
                let text = files.first().map(|(_, text)| *text);
                return Ok(text.unwrap_or_default().to_owned());
            }
        };
        std::fs::read_to_string(path).map_err(|error| {
            let message = format!("the team file cannot be read: {error}");
            ServiceError::new(ServiceErrorKind::Conflict, message)
        })
    }

    fn write(&self, text: &str) -> Result<(), ServiceError> {
        if text.len() > MAX_BYTES {
            let message = format!("the team file is larger than {MAX_BYTES} bytes");
            return Err(ServiceError::new(ServiceErrorKind::TooLarge, message));
        }
        write_atomically(self.path(), text.as_bytes()).map_err(|error| {
            let message = format!("the team file cannot be written: {error}");
            ServiceError::new(ServiceErrorKind::Internal, message)
        })
    }

    fn check(&self, text: &str) -> Vec<SourceProblem> {
        match self.parse(text) {
            Ok(file) => problems(&file.check()),
            Err(found) => problems(&found),
        }
    }

    fn open(&self, text: &str) -> Result<ServedTeam, Vec<SourceProblem>> {
        let file = self.parse(text).map_err(|found| problems(&found))?;
        (self.open)(&file)
    }

    fn complete(&self, text: &str, line: usize, column: usize) -> Completions {
        if self.format() == "json" {
            return Completions {
                start_column: column,
                items: Vec::new(),
            };
        }
        completions::at(text, line, column)
    }
}

/// Writes a file as a whole, with the permissions that it has: under another name, which then becomes its own.
fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Through a link, the file itself is replaced and not the link.
    let path = std::fs::canonicalize(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = (|| {
        let permissions = std::fs::metadata(&path)?.permissions();
        let mut file = std::fs::File::create(&part)?;
        file.write_all(bytes)?;
        file.set_permissions(permissions)?;
        file.sync_all()?;
        std::fs::rename(&part, &path)
    })();
    if written.is_err() {
        // It may not exist.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn problems(found: &Problems) -> Vec<SourceProblem> {
    found.iter().map(problem).collect()
}

impl From<&Problem> for SourceProblem {
    fn from(found: &Problem) -> Self {
        problem(found)
    }
}

fn problem(problem: &Problem) -> SourceProblem {
    let severity = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        _ => "note",
    };
    let file = problem.file.as_deref().and_then(Path::file_name);
    let end = problem.end();
    SourceProblem {
        severity: severity.to_owned(),
        help: problem.help.clone(),
        suggestion: problem.suggestion.clone(),
        file: file.map(|name| name.to_string_lossy().into_owned()),
        line: problem.line,
        column: problem.column,
        end_line: end.map(|(line, _)| line),
        end_column: end.map(|(_, column)| column),
        ..SourceProblem::error(problem.code, problem.message.clone())
    }
}

impl ServedTeam {
    /// Serves the team of a team file under a name, with the settings of its runs. Conversations may set the
    /// values of the file's context.
    pub fn of_team_file(
        name: impl Into<Arc<str>>,
        open: &OpenTeam,
        config: impl Into<Arc<RunConfig<Context>>>,
    ) -> Self {
        let values = FileContext {
            name: name.into(),
            open: open.clone(),
            config: config.into(),
        };
        values.team(open).context(values)
    }
}

/// The context of a team file.
struct FileContext {
    name: Arc<str>,
    open: OpenTeam,
    config: Arc<RunConfig<Context>>,
}

impl FileContext {
    fn team(&self, open: &OpenTeam) -> ServedTeam {
        let (team, context) = (open.shared_team(), open.context().clone());
        let served = ServedTeam::with_config(self.name.clone(), team, context, self.config.clone());
        served.start(open.start().name())
    }
}

impl TeamContext for FileContext {
    fn values(&self) -> Vec<(String, Value)> {
        self.open.context().values()
    }

    fn with(&self, values: &Map<String, Value>) -> Result<ServedTeam, String> {
        let mut context = self.open.context().clone();
        for (path, value) in values {
            context = match value {
                Value::String(text) => context.parse_value(path, text)?,
                other => context.with(path, other.clone())?,
            };
        }
        Ok(self.team(&self.open.with_context(context)))
    }
}
