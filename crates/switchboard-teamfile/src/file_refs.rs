//! The files that a team file refers to.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path};

use serde_json::{Map, Value};
use switchboard_core::agent::Knowledge;

use crate::diagnostics::{Problem, Source};
use crate::document::Node;

/// The maximum size of a file.
const MAX_BYTES: u64 = 8 << 20;

/// The error for a file that cannot be used; it has no position.
fn unreadable(message: impl Into<String>, help: &str) -> Box<Problem> {
    Box::new(Problem::without_file("unreadable-file", message).help(help))
}

/// A reference to a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileRef<'a> {
    /// The path, relative to the folder of the team file.
    pub(crate) name: &'a str,
    /// Set if the file may be outside that folder.
    pub(crate) is_outside_allowed: bool,
}

/// The location of referenced files.
#[derive(Clone, Copy)]
pub(crate) enum FileSource<'a> {
    /// A folder on disk.
    Folder(&'a Path),
    /// Names and texts that are part of the program.
    Embedded(&'a [(&'a str, &'a str)]),
}

impl FileSource<'_> {
    /// The folder on disk; the current one for embedded files.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::Embedded(_) => Path::new(""),
        }
    }

    pub(crate) fn read_text(&self, file: FileRef<'_>) -> Result<String, Box<Problem>> {
        let name = file.name;
        let files = match self {
            Self::Folder(folder) => {
                if !file.is_outside_allowed {
                    check_inside(folder, name)?;
                }
                return read_text(&folder.join(name));
            }
            Self::Embedded(files) => files,
        };
        let plain = |name: &str| name.trim_start_matches("./").to_owned();
        let file = files.iter().find(|(known, _)| plain(known) == plain(name));
        match file {
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err(unreadable(
                format!("{name} is not among the files of the team"),
                "give it along with the team file",
            )),
        }
    }

    /// Reads the table in a JSON or TOML file.
    pub(crate) fn read_table(&self, file: FileRef<'_>) -> Result<Map<String, Value>, Box<Problem>> {
        parse_table(file.name, &self.read_text(file)?)
    }

    /// Reads knowledge entries from a Markdown file: each heading is a title, followed by its text.
    pub(crate) fn read_knowledge(&self, file: FileRef<'_>) -> Result<Vec<Knowledge>, Box<Problem>> {
        parse_knowledge(file.name, &self.read_text(file)?)
    }
}

/// Checks that a file is below the folder of the team file, also where it is a link.
fn check_inside(folder: &Path, name: &str) -> Result<(), Box<Problem>> {
    let leads_out = |component| !matches!(component, Component::Normal(_) | Component::CurDir);
    let outside = |message: String| {
        let help = "move the file there, or allow it with outside = true beside file";
        Err(Box::new(
            Problem::without_file("outside-file", message).help(help),
        ))
    };
    if Path::new(name).components().any(leads_out) {
        return outside(format!("{name} is outside the folder of the team file"));
    }
    let current = Path::new(".");
    let folder = if folder.as_os_str().is_empty() {
        current
    } else {
        folder
    };
    // A file that does not exist is reported when it is read.
    let (Ok(root), Ok(target)) = (folder.canonicalize(), folder.join(name).canonicalize()) else {
        return Ok(());
    };
    if target.starts_with(&root) {
        return Ok(());
    }
    let target = target.display();
    outside(format!(
        "{name} is a link to {target}, outside the folder of the team file"
    ))
}

/// Returns `true` for files that the system makes up as they are read: they may hold secrets of this
/// process, or block.
fn is_made_up(path: &Path) -> bool {
    let folders = ["/proc", "/sys", "/dev"];
    let target = path.canonicalize();
    cfg!(unix) && target.is_ok_and(|target| folders.iter().any(|folder| target.starts_with(folder)))
}

/// Reads a file from disk.
pub(crate) fn read_text(path: &Path) -> Result<String, Box<Problem>> {
    let shown = path.display();
    let io_error = |error: std::io::Error| {
        let (reason, help) = match error.kind() {
            ErrorKind::NotFound => (
                "there is no such file".to_owned(),
                "files are looked for from the folder of the team file",
            ),
            ErrorKind::PermissionDenied => ("permission denied".to_owned(), "allow it to be read"),
            _ => (error.to_string(), "give the path of a text file"),
        };
        unreadable(format!("{shown} cannot be read: {reason}"), help)
    };
    // Checked before opening: opening a pipe blocks until it has a writer.
    let metadata = std::fs::metadata(path).map_err(io_error)?;
    if !metadata.is_file() || is_made_up(path) {
        let kind = if metadata.is_dir() {
            "a folder"
        } else {
            "not a file"
        };
        let message = format!("{shown} is {kind}");
        return Err(unreadable(message, "give the path of a text file"));
    }
    let file = File::open(path).map_err(io_error)?;
    let mut bytes = Vec::new();
    // Not more than its size: a file that is made up as it is read has none, and may never end.
    let size = metadata.len().min(MAX_BYTES + 1);
    file.take(size).read_to_end(&mut bytes).map_err(io_error)?;
    if metadata.len() > MAX_BYTES {
        let message = format!("{shown} is larger than {} MiB", MAX_BYTES >> 20);
        let help = "split it, or let a tool look things up in it";
        return Err(unreadable(message, help));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable(format!("{shown} is not text in UTF-8"), "save it as UTF-8"))?;
    Ok(without_bom(&text).to_owned())
}

/// Removes a byte order mark.
pub(crate) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn parse_table(name: &str, text: &str) -> Result<Map<String, Value>, Box<Problem>> {
    let node = Node::parse(&Source::new(Path::new(name), text)).map_err(|problem| {
        let line = problem.line.unwrap_or(1);
        let message = format!("{name}:{line}: {}", problem.message);
        unreadable(message, "correct that file")
    })?;
    match node.to_value() {
        Value::Object(table) => Ok(table),
        _ => Err(unreadable(
            format!("{name} does not hold a table"),
            "write the fields within { and }",
        )),
    }
}

fn parse_knowledge(name: &str, text: &str) -> Result<Vec<Knowledge>, Box<Problem>> {
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let heading = line.trim_start_matches('#');
        let hashes = line.len() - heading.len();
        if !in_code && (1..=6).contains(&hashes) && heading.starts_with([' ', '\t']) {
            sections.push((heading.trim().to_owned(), String::new()));
        } else if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let entries: Vec<Knowledge> = sections
        .into_iter()
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(title, text)| Knowledge::new(title, text.trim().to_owned()))
        .collect();
    if entries.is_empty() {
        return Err(unreadable(
            format!("{name} has no heading with text under it"),
            "write \"# A question\" and the answer under it",
        ));
    }
    Ok(entries)
}
