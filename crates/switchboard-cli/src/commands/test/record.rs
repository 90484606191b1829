//! `--record`: makes a case out of a recorded conversation.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::Value;
use switchboard_teamfile::{Case, TeamFile};

use super::observed::Observed;
use crate::atomic_write;
use crate::bounded_read;
use crate::commands::replay::Cut;
use crate::event_line::EventLine;
use crate::failure::{Exit, Failure};
use crate::screen::style::Look;

/// Adds a case to the file of cases, which is created if it does not exist.
pub(super) fn run(
    recording: &Path,
    cases: &Path,
    team: &TeamFile,
    look: Look,
) -> Result<Exit, Failure> {
    let is_json = cases.extension().is_some_and(|ending| ending == "json");
    if is_json {
        return Err(Failure::usage(
            format!(
                "{} is JSON, and cases are added to TOML files",
                cases.display()
            ),
            "name a file that ends in .toml",
        ));
    }
    let observed = read(recording)?;
    let name = recording.file_stem().unwrap_or_default().to_string_lossy();
    let case = toml(&name, &observed);
    let before = match bounded_read::file(cases) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::unreadable(cases, &error)),
    };
    let text = match before.trim_end() {
        "" => case,
        before => format!("{before}\n\n{case}"),
    };
    // A recording of another team has agents and tools that this one does not have.
    Case::parse_each(&text, cases, team)?
        .pop()
        .transpose()
        .map_err(Failure::from)?;
    atomic_write::write(&[(cases.to_owned(), text.as_bytes())])?;
    let (path, messages) = (cases.display(), observed.messages.len());
    let text = look.language.choose(
        match messages {
            1 => format!("a case of one message was added to {path}"),
            _ => format!("a case of {messages} messages was added to {path}"),
        },
        format!("已向 {path} 添加一个用例（{messages} 条消息）"),
    );
    writeln!(anstream::stdout(), "{text}")?;
    Ok(Exit::Ok)
}

/// Reads the events of a recording.
fn read(path: &Path) -> Result<Observed, Failure> {
    let text = bounded_read::file(path).map_err(|error| Failure::unreadable(path, &error))?;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let event = EventLine::parse(line.as_bytes()).map_err(|error| {
            Failure::usage(
                format!(
                    "{}:{}: this is not an event: {error}",
                    path.display(),
                    index + 1
                ),
                "record a chat with /save FILE, or a run with --json",
            )
        })?;
        lines.push(event);
    }
    let Some(first) = lines.first() else {
        return Err(Failure::usage(
            format!("{} is empty", path.display()),
            "record a chat with /save FILE, or a run with --json",
        ));
    };
    let mut cut = Cut::No;
    lines.iter().for_each(|line| cut.see(&line.event.kind));
    if cut != Cut::No {
        return Err(Failure::usage(
            format!(
                "{} is cut: it ends before its last run does",
                path.display()
            ),
            "record a chat with /save FILE, or a run with --json",
        ));
    }
    let observed = Observed::new(first.event.agent.to_string(), &lines);
    if observed.messages.iter().any(Option::is_none) || observed.messages.is_empty() {
        return Err(Failure::usage(
            format!("{} does not have all messages of the user", path.display()),
            "messages that a guardrail has refused are not recorded; write the case by hand",
        ));
    }
    Ok(observed)
}

/// The case that a conversation passes.
fn toml(name: &str, observed: &Observed) -> String {
    let mut out = String::from("[[cases]]\n");
    let mut field = |name: &str, value: &Value| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name} = {}", toml_value(value));
    };
    field("name", &name.into());
    let messages: Vec<&str> = observed
        .messages
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    match messages.as_slice() {
        [message] => field("message", &(*message).into()),
        messages => field("messages", &messages.to_vec().into()),
    }
    if let Some(last) = observed.path.last() {
        field("expect", &last.as_str().into());
    }
    field("path", &observed.path.clone().into());
    if let Some(payload @ Value::Object(fields)) = &observed.payload
        && !fields.is_empty()
    {
        field("payload", payload);
    }
    let tools = observed.calls.iter().map(|call| match &call.arguments {
        Value::Object(fields) if !fields.is_empty() => {
            serde_json::json!({"tool": call.tool, "arguments": call.arguments})
        }
        _ => call.tool.as_str().into(),
    });
    field("tools", &tools.collect());
    if let Some(guardrail) = observed.guardrails.first() {
        field("guardrail", &guardrail.as_str().into());
    }
    field("max_turns", &observed.turns.into());
    out
}

/// A value in TOML, which has no null: fields and items that are null are left out.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null()).map(toml_value);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields =
                fields.map(|(name, value)| format!("{} = {}", toml_text(name), toml_value(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => toml_text(text),
        other => other.to_string(),
    }
}

/// A text as a basic string of TOML. The escapes of JSON are those of TOML, but DEL needs one.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
