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

/// The text of a file.
///
/// # Errors
/// What is wrong with it and what to do, in two sentences' halves.
pub(crate) fn text(path: &Path) -> Result<String, (String, &'static str)> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "files are looked for from the folder of the team file",
            std::io::ErrorKind::PermissionDenied => "allow it to be read",
            _ => "give the path of a file of text",
        };
        (format!("{shown} cannot be read: {}", plain(&error)), help)
    };
    let file = File::open(path).map_err(unreadable)?;
    let kind = file.metadata().map_err(unreadable)?;
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
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST {
        let message = format!("{shown} is larger than {} MiB", LARGEST >> 20);
        return Err((message, "split it, or let a tool look things up in it"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| (format!("{shown} is not text in UTF-8"), "store it as UTF-8"))?;
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

/// The table in a file of JSON or TOML.
pub(crate) fn table(path: &Path) -> Result<Map<String, Value>, (String, &'static str)> {
    let text = text(path)?;
    let node = Node::read(&Source::new(path, &text));
    let node = node.map_err(|problem| {
        let Problem { message, line, .. } = *problem;
        let line = line.unwrap_or(1);
        (
            format!("{}:{line}: {message}", path.display()),
            "correct that file",
        )
    })?;
    match node.to_value() {
        Value::Object(table) => Ok(table),
        _ => Err((
            format!("{} does not hold a table", path.display()),
            "write the fields within { and }",
        )),
    }
}

/// What a Markdown file tells: each heading is a title, what follows it is what to say.
pub(crate) fn knowledge(path: &Path) -> Result<Vec<Knowledge>, (String, &'static str)> {
    let text = text(path)?;
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
    match found.is_empty() {
        true => Err((
            format!("{} has no heading with text under it", path.display()),
            "write \"# A question\" and the answer under it",
        )),
        false => Ok(found),
    }
}
