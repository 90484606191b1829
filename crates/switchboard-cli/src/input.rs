//! The messages of `switchboard run`: from the command line, a pipe, or a file.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use serde_json::Value;

use crate::bounded_read;
use crate::failure::Failure;
use crate::json_error;

/// Returns the messages, of which there is at least one.
pub(crate) fn messages(
    message: Option<String>,
    file: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let nothing = |what: &str| {
        Failure::usage(
            format!("there is nothing to say: {what}"),
            "give a message, as in `switchboard run team.toml \"Hi\"`, pipe one in, or name a file \
             with --input; `switchboard chat team.toml` is for talking",
        )
    };
    if let Some(message) = message {
        return match message.trim() {
            "" => Err(nothing("the message is empty")),
            _ => Ok(vec![message]),
        };
    }
    let messages = match file {
        None if io::stdin().is_terminal() => return Err(nothing("no message was given")),
        // The text of a pipe is one message.
        None => {
            let text = stdin()?;
            let text = text.trim();
            Vec::from_iter((!text.is_empty()).then(|| text.to_owned()))
        }
        Some(path) if path == Path::new("-") => plain_lines(&stdin()?),
        Some(path) => {
            let text =
                bounded_read::file(path).map_err(|error| Failure::unreadable(path, &error))?;
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("jsonl" | "ndjson" | "json") => json_lines(&text, path)?,
                _ => plain_lines(&text),
            }
        }
    };
    match (messages.is_empty(), file) {
        (false, _) => Ok(messages),
        (true, Some(path)) if path != Path::new("-") => {
            Err(nothing(&format!("{} is empty", path.display())))
        }
        (true, _) => Err(nothing("standard input is empty")),
    }
}

fn stdin() -> Result<String, Failure> {
    let text = bounded_read::text(io::stdin().lock());
    text.map_err(|error| Failure::unreadable(Path::new("standard input"), &error))
}

/// Returns the lines that are not empty.
fn plain_lines(text: &str) -> Vec<String> {
    text.strip_prefix('\u{feff}')
        .unwrap_or(text)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Reads a line as JSON: a string, or an object with a `message`; `None` if it is plain text.
pub(crate) fn json_message(line: &str) -> Option<Result<String, String>> {
    let line = line.trim();
    line.starts_with(['"', '{']).then(|| parse_message(line))
}

fn parse_message(line: &str) -> Result<String, String> {
    let text = match serde_json::from_str(line) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(mut fields)) => match fields.remove("message") {
            Some(Value::String(text)) => text,
            _ => return Err("has no text in \"message\"".to_owned()),
        },
        Ok(_) => return Err("is neither a string nor an object".to_owned()),
        Err(error) => return Err(format!("is not JSON: {}", json_error::describe(&error))),
    };
    match text.trim() {
        "" => Err("has an empty message".to_owned()),
        _ => Ok(text),
    }
}

/// Parses lines that are each a JSON string or an object with a `message`.
fn json_lines(text: &str, path: &Path) -> Result<Vec<String>, Failure> {
    let lines = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .lines()
        .enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let messages = lines.map(|(at, line)| {
        let message = parse_message(line);
        message.map_err(|problem| {
            Failure::usage(
                format!("{}:{}: the line {problem}", path.display(), at + 1),
                "write \"My bill is wrong\" or {\"message\": \"My bill is wrong\"}; a file with \
                 another ending than .jsonl holds plain lines",
            )
        })
    });
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_that_is_not_empty_is_a_message() {
        assert_eq!(
            plain_lines("\u{feff}Hi\r\n\n  My bill \n"),
            ["Hi", "My bill"]
        );
    }

    #[test]
    fn a_line_of_json_is_a_string_or_has_a_message() {
        let text = "\"Hi\"\n\n{\"message\": \"My bill\", \"id\": 3}\n";
        let read = json_lines(text, Path::new("in.jsonl")).unwrap();
        assert_eq!(read, ["Hi", "My bill"]);
    }

    #[test]
    fn a_line_without_a_message_is_named() {
        let error = json_lines("\"Hi\"\n{\"text\": 1}", Path::new("in.jsonl")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("error: in.jsonl:2: the line has no text in \"message\"\n  help: "),
            "{error}"
        );
    }
}
