//! `--record`: makes a case out of a recorded conversation.

use std::io::{self, Write as _};
use std::path::Path;

use switchboard_teamfile::{Case, RecordedCase, TeamFile};

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
    let mut case = RecordedCase::new(name);
    case.messages = observed.messages.iter().flatten().cloned().collect();
    case.path.clone_from(&observed.path);
    case.payload.clone_from(&observed.payload);
    case.calls = observed
        .calls
        .iter()
        .map(|call| (call.tool.clone(), call.arguments.clone()))
        .collect();
    case.guardrail = observed.guardrails.first().cloned();
    case.turns = observed.turns;
    case.to_toml()
}
