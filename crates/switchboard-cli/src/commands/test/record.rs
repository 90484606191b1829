//! `--record`: makes a case out of a recorded conversation.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value};
use switchboard_core::EventKind;
use switchboard_core::stream::HandoffStatus;
use switchboard_teamfile::{Case, RecordedCase, TeamFile};

use super::expectations;
use super::observed::Observed;
use crate::approvals::is_person;
use crate::atomic_write;
use crate::bounded_read;
use crate::event_line::EventLine;
use crate::failure::{Exit, Failure};
use crate::json_error;
use crate::recording::{Cuts, check_version};
use crate::screen::style::Look;
use crate::screen::wrap::one_line;

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
    let Recording {
        observed,
        context,
        lines,
    } = read(recording)?;
    let name = recording.file_stem().unwrap_or_default().to_string_lossy();
    let mut case = recorded_case(&name, &observed);
    case.context = context;
    case.agent = observed.path.first().cloned();
    // It is left out where it is the team's first one.
    if case.agent.as_deref() == Some(team.start()) {
        case.agent = None;
    }
    let case = case.to_toml();
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
    let case = Case::parse_each(&text, cases, team)?.pop().transpose()?;
    let failures = case.map(|case| expectations::failures(&case, &observed));
    if let Some(problem) = problem(&lines, team).or_else(|| failures.unwrap_or_default().pop()) {
        return Err(Failure::usage(
            format!(
                "{} cannot become a case that passes: {problem}",
                recording.display()
            ),
            "record a chat without that, or write the case by hand",
        ));
    }
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
fn read(path: &Path) -> Result<Recording, Failure> {
    let text = bounded_read::file(path).map_err(|error| Failure::unreadable(path, &error))?;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let event = EventLine::parse(line.as_bytes()).map_err(|error| {
            Failure::usage(
                format!(
                    "{}:{}: this is not an event: {}",
                    path.display(),
                    index + 1,
                    json_error::describe(&error)
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
    let name = path.display().to_string();
    let mut cuts = Cuts::default();
    for line in &lines {
        check_version(&line.event.kind, &name)?;
        cuts.see(&line.event);
    }
    if let Some(cut) = cuts.describe(&name).into_iter().next() {
        return Err(Failure::usage(
            cut,
            "record a chat with /save FILE, or a run with --json",
        ));
    }
    let context = first.context.clone();
    let observed = Observed::new(first.event.agent.to_string(), &lines);
    if observed.messages.iter().any(Option::is_none) || observed.messages.is_empty() {
        return Err(Failure::usage(
            format!("{} does not have all messages of the user", path.display()),
            "messages that a guardrail has refused are not recorded; write the case by hand",
        ));
    }
    Ok(Recording {
        observed,
        context,
        lines,
    })
}

/// A recorded conversation.
struct Recording {
    observed: Observed,
    /// The values of the context that were set.
    context: Map<String, Value>,
    lines: Vec<EventLine>,
}

/// The reason why no case can have what the recording has.
fn problem(lines: &[EventLine], team: &TeamFile) -> Option<String> {
    let first = lines.first()?;
    let mut agent = first.event.agent.clone();
    let mut ended: Option<&EventKind> = None;
    for line in lines {
        let event = &line.event;
        match &event.kind {
            EventKind::RunStarted { input, .. } => {
                let is_first = ended.is_none();
                match ended.take() {
                    None | Some(EventKind::RunFinished { .. }) => {}
                    Some(EventKind::RunInterrupted { interruptions, .. })
                        if input.is_none() && !interruptions.iter().any(is_person) =>
                    {
                        continue;
                    }
                    Some(EventKind::RunInterrupted { .. }) => {
                        return Some("it goes on after it waited for an answer".to_owned());
                    }
                    Some(_) => return Some("it goes on after a run that failed".to_owned()),
                }
                if !is_first && *event.agent != *team.next_agent(&agent) {
                    return Some(format!(
                        "the conversation was given to {} between two messages",
                        event.agent
                    ));
                }
                if line.context != first.context {
                    return Some("the context was changed between two messages".to_owned());
                }
            }
            EventKind::Handoff(handoff) if handoff.status == HandoffStatus::Taken => {
                agent = handoff.to.clone();
            }
            EventKind::RunStopped { .. } => return Some("a run was stopped".to_owned()),
            EventKind::RunFinished { .. }
            | EventKind::RunInterrupted { .. }
            | EventKind::RunFailed { .. } => ended = Some(&event.kind),
            _ => {}
        }
    }
    match ended {
        Some(EventKind::RunInterrupted { interruptions, .. }) => {
            let call = interruptions.iter().find(|call| !is_person(call))?;
            Some(format!(
                "{} waits for a decision at its end",
                one_line(&call.tool)
            ))
        }
        _ => None,
    }
}

/// The case that a conversation passes.
fn recorded_case(name: &str, observed: &Observed) -> RecordedCase {
    let mut case = RecordedCase::new(name);
    case.messages = observed.messages.iter().flatten().cloned().collect();
    case.path.clone_from(&observed.path);
    case.payload.clone_from(&observed.payload);
    case.calls = observed
        .calls
        .iter()
        .map(|call| (call.tool.clone(), call.arguments.clone()))
        .collect();
    // The one that has stopped a run must be expected.
    let stopped = observed
        .errors
        .iter()
        .find_map(|error| error.guardrail.clone());
    case.guardrail = stopped.or_else(|| observed.guardrails.first().cloned());
    case.turns = observed.turns;
    case
}
