//! Problems of a file, with their positions, and how they are printed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::{Serialize, Serializer};

/// A diagnostic: an error, a warning or a note about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// The severity.
    pub severity: Severity,
    /// A machine-readable code: `unknown-agent`, `dead-end`.
    pub code: &'static str,
    /// A description of the problem.
    pub message: String,
    /// Advice on how to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The file; `None` if the problem is in no file, such as a missing environment variable.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_path"
    )]
    pub file: Option<PathBuf>,
    /// The line, from 1; `None` if the problem concerns the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The first column, in characters from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The bytes of the file that the problem is about.
    #[serde(skip)]
    span: Option<Range<usize>>,
    /// The line and column after the last character.
    #[serde(skip)]
    end: Option<(usize, usize)>,
    /// A suggestion, printed at the position: `did you mean "Billing"?`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// It may be intended.
    Note,
    /// It is probably not intended.
    Warning,
    /// The file cannot be used.
    Error,
}

/// Serializes a path that need not be UTF-8.
fn serialize_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    let path = path.as_deref().unwrap_or(Path::new(""));
    to.collect_str(&path.display())
}

impl Problem {
    /// An error that concerns a whole file.
    pub(crate) fn in_file(code: &'static str, file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: Some(file.to_owned()),
            ..Self::without_file(code, message)
        }
    }

    /// An error that is in no file.
    pub(crate) fn without_file(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            help: None,
            file: None,
            line: None,
            column: None,
            span: None,
            end: None,
            suggestion: None,
        }
    }

    /// The line and the column after the last character of the problem, both from 1.
    pub fn end(&self) -> Option<(usize, usize)> {
        self.end
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

/// The problems of a file, in its order. At most 200 are kept; the rest are counted.
///
/// `Display` prints each with its source line; `{:#}` adds terminal colours.
#[derive(Clone)]
pub struct Problems {
    list: Vec<Problem>,
    /// The number of problems that were not kept.
    more: usize,
    source: Source,
    labels: Box<Labels>,
}

/// The words in front of problems and advice.
#[derive(Clone)]
struct Labels {
    error: Cow<'static, str>,
    warning: Cow<'static, str>,
    note: Cow<'static, str>,
    help: Cow<'static, str>,
}

impl Labels {
    const ENGLISH: Self = Self {
        error: Cow::Borrowed("error"),
        warning: Cow::Borrowed("warning"),
        note: Cow::Borrowed("note"),
        help: Cow::Borrowed("help"),
    };
}

const MAX_PROBLEMS: usize = 200;

/// The text of a file, with an index of its lines.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) path: Arc<Path>,
    pub(crate) text: Arc<str>,
    line_starts: Arc<[usize]>,
}

impl Source {
    pub(crate) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
            line_starts: [0]
                .into_iter()
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
        }
    }

    /// Returns the number of the line that holds a byte, from 0, and the line's start.
    fn line(&self, at: usize) -> (usize, usize) {
        let after = self.line_starts.partition_point(|start| *start <= at);
        let line = after.saturating_sub(1);
        (line, self.line_starts.get(line).copied().unwrap_or(0))
    }

    /// An error at a span of this text.
    pub(crate) fn problem(
        &self,
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Problem {
        self.locate(Problem::without_file(code, message), span)
    }

    /// Gives a problem its position in this text.
    pub(crate) fn locate(&self, problem: Problem, span: Range<usize>) -> Problem {
        let start = floor_char_boundary(&self.text, span.start);
        let end = floor_char_boundary(&self.text, span.end).max(start);
        let (line, line_start) = self.line(start);
        let (end_line, end_line_start) = self.line(end);
        let end_column = self.text[end_line_start..end].chars().count() + 1;
        Problem {
            end: Some((end_line + 1, end_column)),
            line: Some(line + 1),
            column: Some(self.text[line_start..start].chars().count() + 1),
            span: Some(start..end),
            file: Some(self.path.to_path_buf()),
            ..problem
        }
    }
}

/// `str::floor_char_boundary`, which needs Rust 1.91.
fn floor_char_boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len()))
        .rfind(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

impl Problems {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            list: Vec::new(),
            more: 0,
            source,
            labels: Box::new(Labels::ENGLISH),
        }
    }

    /// Returns the problems with every text replaced by what `text` returns for it: messages, advice,
    /// suggestions, and the words `error`, `warning`, `note` and `help` in front of them.
    #[must_use]
    pub fn translated(&self, text: impl Fn(&str) -> String) -> Self {
        let problem = |problem: &Problem| Problem {
            message: text(&problem.message),
            help: problem.help.as_deref().map(&text),
            suggestion: problem.suggestion.as_deref().map(&text),
            ..problem.clone()
        };
        let label = |label: &str| Cow::Owned(text(label));
        Self {
            list: self.list.iter().map(problem).collect(),
            labels: Box::new(Labels {
                error: label("error"),
                warning: label("warning"),
                note: label("note"),
                help: label("help"),
            }),
            ..self.clone()
        }
    }

    /// A single problem that has no position.
    pub(crate) fn one(problem: Problem) -> Self {
        Self {
            list: vec![problem],
            ..Self::new(Source::new(Path::new(""), ""))
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.list.push(problem);
        }
    }

    /// Adds a problem and gives it a position in the source.
    pub(crate) fn add_at(&mut self, problem: Problem, span: Range<usize>) {
        self.add(self.source.locate(problem, span));
    }

    /// The number of problems, kept or not.
    pub(crate) fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// Returns `true` if further problems are only counted, so that their text is not needed.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    /// Returns the problems as `Err`, sorted, if one of them is an error.
    pub(crate) fn or_errors(self) -> Result<Self, Self> {
        match self.worst() {
            Some(Severity::Error) => Err(self.sorted()),
            _ => Ok(self),
        }
    }

    /// Sorts by position and removes duplicates.
    pub(crate) fn sorted(mut self) -> Self {
        self.list.sort_by_key(|problem| {
            let start = problem.span.as_ref().map_or(0, |span| span.start);
            (start, std::cmp::Reverse(problem.severity))
        });
        self.list.dedup();
        self
    }

    /// Iterates over the problems that were kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// The number of problems that [`Problems::iter`] leaves out.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Returns `true` if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The highest severity.
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
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let level = match problem.severity {
                Severity::Error => Level::ERROR.with_name(&*self.labels.error),
                Severity::Warning => Level::WARNING.with_name(&*self.labels.warning),
                Severity::Note => Level::NOTE.with_name(&*self.labels.note),
            };
            let path = problem.file.as_deref().unwrap_or(Path::new(""));
            let path = printable(&path.display().to_string());
            let title = level
                .primary_title(printable(&problem.message))
                .id(problem.code);
            let group = match &problem.span {
                Some(span) => {
                    let label = problem.suggestion.as_deref().map(printable);
                    // The renderer scans all the text it is given: pass only the lines of the span.
                    let (line, start) = self.source.line(span.start);
                    let after = &self.source.text[span.end..];
                    let end = span.end + after.find('\n').unwrap_or(after.len());
                    // The renderer escapes C0 control characters but not C1. The replacement is as
                    // long in UTF-8, so the span stays valid.
                    let is_c1 = |c: char| ('\u{80}'..'\u{a0}').contains(&c);
                    let lines = self.source.text[start..end].replace(is_c1, "·");
                    let annotation =
                        AnnotationKind::Primary.span(span.start - start..span.end - start);
                    title.element(
                        Snippet::source(lines)
                            .line_start(line + 1)
                            .path(path)
                            .annotation(annotation.label(label)),
                    )
                }
                None if problem.file.is_some() => {
                    title.element(annotate_snippets::Origin::path(path))
                }
                None => annotate_snippets::Group::with_title(title),
            };
            // Without a position, the suggestion has no place but this one.
            let group = match &problem.suggestion {
                Some(suggestion) if problem.span.is_none() => {
                    let level = Level::HELP.with_name(&*self.labels.help);
                    group.element(level.message(printable(suggestion)))
                }
                _ => group,
            };
            let group = match &problem.help {
                Some(help) => {
                    let level = Level::HELP.with_name(&*self.labels.help);
                    group.element(level.message(printable(help)))
                }
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

/// Escapes control characters. The renderer does so for source lines only.
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

/// An error within an expression of the file: a condition or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpressionError {
    /// The bytes within the expression.
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
    pub(crate) help: Option<String>,
}

impl ExpressionError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            suggestion: None,
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
