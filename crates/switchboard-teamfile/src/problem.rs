//! What is wrong with a file, and how it is told.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;

/// One thing wrong with a file, or about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is, for machines: `unknown-agent`, `dead-end`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The file it is in; absent where it is in none, as with a variable of the environment.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown_path")]
    pub file: Option<PathBuf>,
    /// The line it is at, from 1; absent where the whole file is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column it begins at, in characters from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The bytes of the file it is about.
    #[serde(skip)]
    span: Option<Range<usize>>,
    /// What to say right at the place: a suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// It may be meant.
    Note,
    /// It probably is not meant.
    Warning,
    /// It cannot work.
    Error,
}

/// A path as text, whatever its bytes.
fn shown_path<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    let path = path.as_deref().unwrap_or(Path::new(""));
    to.collect_str(&path.display())
}

impl Problem {
    /// An error that concerns a file as a whole.
    pub(crate) fn of_file(code: &'static str, file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: Some(file.to_owned()),
            ..Self::elsewhere(code, message)
        }
    }

    /// An error that is in no file.
    pub(crate) fn elsewhere(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            help: None,
            file: None,
            line: None,
            column: None,
            span: None,
            suggestion: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn suggestion(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    pub(crate) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

/// What was found in a file, in its order; of very many, the first that were found.
///
/// `Display` draws each with the line it is about; `{:#}` does so in the colours of a terminal.
#[derive(Clone)]
pub struct Problems {
    list: Vec<Problem>,
    /// How many are not in the list.
    more: usize,
    source: Source,
}

/// How many problems are kept: nobody reads more, and each costs a line to draw.
const MOST: usize = 200;

/// The text that problems are about.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) path: Arc<Path>,
    pub(crate) text: Arc<str>,
    /// Where its lines begin.
    lines: Arc<[usize]>,
}

impl Source {
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
            lines: [0]
                .into_iter()
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
        }
    }

    /// The line of a byte, from 0, and where it begins.
    fn line(&self, at: usize) -> (usize, usize) {
        let line = self
            .lines
            .partition_point(|start| *start <= at)
            .saturating_sub(1);
        (line, self.lines.get(line).copied().unwrap_or(0))
    }

    /// An error at these bytes.
    pub(crate) fn problem(
        &self,
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Problem {
        let start = floor(&self.text, span.start);
        // An empty stretch, such as the end of the file, is shown as one place.
        let end = floor(&self.text, span.end).max(start);
        let (line, line_start) = self.line(start);
        Problem {
            line: Some(line + 1),
            column: Some(self.text[line_start..start].chars().count() + 1),
            span: Some(start..end),
            ..Problem::of_file(code, &self.path, message)
        }
    }
}

/// The character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Problems {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            list: Vec::new(),
            more: 0,
            source,
        }
    }

    /// The only problem there is: a file that cannot be read.
    pub(crate) fn one(problem: Problem) -> Self {
        Self {
            source: Source::new(Path::new(""), ""),
            list: vec![problem],
            more: 0,
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        if self.is_full() {
            self.more += 1
        } else {
            self.list.push(problem)
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// Whether what is added now is only counted, so that nothing need be thought of to say of it.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// These as an error, in the order of the file, if there is one among them.
    pub(crate) fn ok_unless_errors(mut self) -> Result<(), Self> {
        match self.worst() {
            Some(Severity::Error) => {
                self.sort();
                Err(self)
            }
            _ => Ok(()),
        }
    }

    /// These, unless there is an error among them.
    pub(crate) fn or_errors(self) -> Result<Self, Self> {
        self.clone().ok_unless_errors().map(|()| self)
    }

    pub(crate) fn sorted(mut self) -> Self {
        self.sort();
        self
    }

    pub(crate) fn sort(&mut self) {
        self.list.sort_by_key(|problem| {
            let start = problem.span.as_ref().map_or(0, |span| span.start);
            (start, std::cmp::Reverse(problem.severity))
        });
        self.list.dedup();
    }

    /// One by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// How many more there are than [`Problems::iter`] tells of.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How bad the worst of them is.
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|problem| problem.severity).max()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let renderer = if f.alternate() {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        for (at, problem) in self.list.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            let level = match problem.severity {
                Severity::Error => Level::ERROR,
                Severity::Warning => Level::WARNING,
                Severity::Note => Level::NOTE,
            };
            let path = problem.file.as_deref().unwrap_or(Path::new(""));
            let path = printable(&path.display().to_string());
            let title = level
                .primary_title(printable(&problem.message))
                .id(problem.code);
            let group = match &problem.span {
                Some(span) => {
                    let label = problem.suggestion.as_deref().map(printable);
                    // Only the lines it is about, so that drawing costs what is drawn.
                    let (line, from) = self.source.line(span.start);
                    let to = self.source.text[span.end..].find('\n');
                    let to = to.map_or(self.source.text.len(), |at| span.end + at);
                    // The renderer makes the older control characters visible, and not these, which some
                    // terminals act on; what stands for them is as long, so that places stay.
                    let is_control = |c: char| ('\u{80}'..'\u{a0}').contains(&c);
                    let shown = self.source.text[from..to].replace(is_control, "·");
                    let place = span.start - from..span.end - from;
                    let mark = AnnotationKind::Primary.span(place).label(label);
                    title.element(
                        Snippet::source(shown)
                            .line_start(line + 1)
                            .path(path)
                            .annotation(mark),
                    )
                }
                None if problem.file.is_some() => {
                    title.element(annotate_snippets::Origin::path(path))
                }
                None => annotate_snippets::Group::with_title(title),
            };
            let group = match &problem.help {
                Some(help) => group.element(Level::HELP.message(printable(help))),
                None => group,
            };
            writeln!(f, "{}", renderer.render(&[group]))?;
        }
        if self.more > 0 {
            writeln!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// Text without what a terminal would act on. The lines of the file itself are made safe by the
/// renderer.
fn printable(text: &str) -> String {
    let escape = |c: char| match c {
        '\n' | '\t' => vec![' '],
        c if c.is_control() => c.escape_default().collect(),
        c => vec![c],
    };
    text.chars().flat_map(escape).collect()
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl std::error::Error for Problems {}
