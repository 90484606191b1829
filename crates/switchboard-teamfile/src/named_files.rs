//! Files that a team file names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value};
use switchboard_core::Knowledge;

use crate::document::Node;
use crate::problem::{Problem, Source};

/// The largest file that is read.
const LARGEST: u64 = 8 << 20;

/// What is wrong with a file, and what to do.
pub(crate) type Unreadable = (String, &'static str);

/// Where the files are that a team file names.
#[derive(Clone, Copy)]
pub(crate) enum Files<'a> {
    /// On the disk, from this folder.
    In(&'a Path),
    /// In the program, by name.
    Within(&'a [(&'a str, &'a str)]),
}

impl Files<'_> {
    /// The folder on the disk; the current one for files in the program.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Self::In(folder) => folder,
            Self::Within(_) => Path::new(""),
        }
    }

    /// The text of a file.
    pub(crate) fn text(&self, name: &str) -> Result<String, Unreadable> {
        match self {
            Self::In(folder) => text(&folder.join(name)),
            Self::Within(files) => match files.iter().find(|(known, _)| ptr_eq(known, name)) {
                Some((_, text)) => Ok((*text).to_owned()),
                None => Err((
                    format!("{name} is not among the files of the team"),
                    "give it along with the team file",
                )),
            },
        }
    }

    /// The table in a file of JSON or TOML.
    pub(crate) fn table(&self, name: &str) -> Result<Map<String, Value>, Unreadable> {
        table(name, &self.text(name)?)
    }

    /// What a Markdown file tells: each heading is a title, what follows it is what to say.
    pub(crate) fn knowledge(&self, name: &str) -> Result<Vec<Knowledge>, Unreadable> {
        knowledge(name, &self.text(name)?)
    }
}

/// Whether both are names of one file.
fn ptr_eq(known: &str, name: &str) -> bool {
    let plain = |name: &str| name.trim_start_matches("./").to_owned();
    plain(known) == plain(name)
}

/// The text of a file of the disk.
pub(crate) fn text(path: &Path) -> Result<String, Unreadable> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "files are looked for from the folder of the team file",
            std::io::ErrorKind::PermissionDenied => "allow it to be read",
            _ => "give the path of a file of text",
        };
        (format!("{shown} cannot be read: {}", plain(&error)), help)
    };
    // Looked at first: opening a pipe would wait for somebody to write into it.
    let kind = std::fs::metadata(path).map_err(unreadable)?;
    if !kind.is_file() {
        let what = if kind.is_dir() {
            "a folder"
        } else {
            "not a file"
        };
        return Err((
            format!("{shown} is {what}"),
            "give the path of a file of text",
        ));
    }
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST {
        let message = format!("{shown} is larger than {} MiB", LARGEST >> 20);
        return Err((message, "split it, or let a tool look things up in it"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| (format!("{shown} is not text in UTF-8"), "save it as UTF-8"))?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}

/// What the system says, without its number.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn table(name: &str, text: &str) -> Result<Map<String, Value>, Unreadable> {
    let node = Node::read(&Source::new(Path::new(name), text));
    let node = node.map_err(|problem| {
        let Problem { message, line, .. } = *problem;
        let line = line.unwrap_or(1);
        (format!("{name}:{line}: {message}"), "correct that file")
    })?;
    match node.to_value() {
        Value::Object(table) => Ok(table),
        _ => Err((
            format!("{name} does not hold a table"),
            "write the fields within { and }",
        )),
    }
}

fn knowledge(name: &str, text: &str) -> Result<Vec<Knowledge>, Unreadable> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let heading = line.trim_start_matches('#');
        let hashes = line.len() - heading.len();
        if !in_code && (1..=6).contains(&hashes) && heading.starts_with([' ', '\t']) {
            found.push((heading.trim().to_owned(), String::new()));
        } else if let Some((_, text)) = found.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let found = found
        .into_iter()
        .filter(|(_, text)| !text.trim().is_empty());
    let found: Vec<Knowledge> = found
        .map(|(title, text)| Knowledge::new(title, text.trim().to_owned()))
        .collect();
    if found.is_empty() {
        Err((
            format!("{name} has no heading with text under it"),
            "write \"# A question\" and the answer under it",
        ))
    } else {
        Ok(found)
    }
}
