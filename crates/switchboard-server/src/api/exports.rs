//! A conversation as a file: JSON, Markdown, its recordings, or a routing test.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::Item;
use switchboard_core::conversation::{Entry, EntryContent, to_millis};

use crate::error::{ServiceError, ServiceErrorKind};
use crate::http::{PathOf, QueryOf, text};
use crate::service::{Caller, Service};

/// A form of an exported conversation.
#[derive(Debug, Deserialize)]
pub(super) struct ExportParameters {
    #[serde(default)]
    format: ExportFormat,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExportFormat {
    #[default]
    Json,
    Markdown,
    Trace,
    Case,
}

pub(super) async fn export(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(parameters): QueryOf<ExportParameters>,
) -> Result<Response, ServiceError> {
    let entries = service.all_entries(&caller, &id).await?;
    let (content_type, ending, content) = match parameters.format {
        ExportFormat::Json => {
            let conversation = service.conversation(&caller, &id)?;
            let exported = conversation.export().await;
            let exported = exported.map_err(|error| ServiceError::of_store(&error))?;
            let json = serde_json::to_string(&exported).map_err(|error| internal(&error))?;
            ("application/json", "json", json)
        }
        ExportFormat::Markdown => {
            let markdown = markdown(&id, &entries);
            ("text/markdown; charset=utf-8", "md", markdown)
        }
        ExportFormat::Trace => {
            let lines = trace(&service, &caller, &id);
            ("application/x-ndjson", "jsonl", lines)
        }
        ExportFormat::Case => {
            let case = case(&service, &caller, &id, &entries).await?;
            ("application/toml; charset=utf-8", "toml", case)
        }
    };
    let mut response = text(content_type, content);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = id
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(80)
        .collect();
    let disposition = format!("attachment; filename=\"{name}.{ending}\"");
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

fn internal(error: &dyn std::fmt::Display) -> ServiceError {
    let message = format!("the conversation cannot be written: {error}");
    ServiceError::new(ServiceErrorKind::Internal, message)
}

/// The recordings of a conversation: one line for each row, with its details.
fn trace(service: &Service, caller: &Caller, id: &str) -> String {
    let mut lines = String::new();
    let recordings = service.inner().recordings.as_ref();
    let recordings = recordings.map(|all| all.of_conversation(&caller.tenant, id));
    for recording in recordings.unwrap_or_default() {
        for row in recording.rows(0, usize::MAX) {
            let Some((row, details)) = recording.details(row.id) else {
                continue;
            };
            let line = json!({"run": recording.run, "row": row, "details": details});
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "{line}");
        }
    }
    lines
}

/// The conversation as Markdown. Texts are quoted, so that nothing in them is taken for a heading or a link of
/// the document.
fn markdown(id: &str, entries: &[Entry]) -> String {
    let mut out = format!("# {}\n", escaped(id));
    let mut agent: Option<&str> = None;
    for entry in entries {
        let _ = match &entry.content {
            EntryContent::Refused(_) => writeln!(out, "\n*A guardrail refused a message.*"),
            EntryContent::Item(item) => {
                if let Some(name) = entry.agent.as_deref()
                    && agent != Some(name)
                {
                    agent = Some(name);
                    let _ = writeln!(out, "\n## {}", escaped(name));
                }
                write_item(&mut out, item)
            }
            _ => Ok(()),
        };
    }
    if let Some(last) = entries.last() {
        let _ = writeln!(out, "\n<!-- until {} -->", to_millis(last.time));
    }
    out
}

fn write_item(out: &mut String, item: &Item) -> std::fmt::Result {
    if let Some(text) = item.text().or_else(|| item.refusal()) {
        let role = item.role();
        let who = match role.as_deref() {
            Some("user") => "**User**",
            Some("assistant") => "**Answer**",
            _ => "**Note**",
        };
        return writeln!(out, "\n{who}\n\n{}", quoted(&text));
    }
    if let Some(output) = item.output_text() {
        return writeln!(out, "\n*Output*\n\n{}", fenced(&output));
    }
    if let Some(name) = item.name() {
        let arguments = item.arguments().unwrap_or_default();
        return writeln!(
            out,
            "\n*Call of {}*\n\n{}",
            escaped(&name),
            fenced(&arguments)
        );
    }
    Ok(())
}

/// A text as a quotation.
fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| format!("> {}", escaped(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A text as code, in a fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", without_controls(text))
}

/// A text in which Markdown and HTML have no meaning.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in without_controls(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '!' | '>' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}

/// A text without control characters, which a terminal would obey.
fn without_controls(text: &str) -> String {
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_kept).collect()
}

/// A case that the conversation passes.
#[cfg(feature = "team-files")]
async fn case(
    service: &Service,
    caller: &Caller,
    id: &str,
    entries: &[Entry],
) -> Result<String, ServiceError> {
    use serde_json::Value;
    use switchboard_teamfile::RecordedCase;

    let conversation = service.conversation(caller, id)?;
    let head = conversation.head().await;
    let head = head.map_err(|error| ServiceError::of_store(&error))?;
    let details = head.as_ref().and_then(|head| head.details.as_deref());
    let details = crate::service::ConversationDetails::read(details);
    let mut case = RecordedCase::new(id);
    case.context = details.context;
    let mut turns = std::collections::HashSet::new();
    for entry in entries {
        let EntryContent::Item(item) = &entry.content else {
            continue;
        };
        if let Some(agent) = entry.agent.as_deref() {
            turns.insert((entry.run.clone(), entry.turn));
            if case.path.last().map(String::as_str) != Some(agent) {
                case.path.push(agent.to_owned());
            }
        } else if item.role().as_deref() == Some("user") {
            let text = item.text().filter(|text| !text.is_empty());
            case.messages.extend(text.map(|text| text.into_owned()));
        }
    }
    let team = service.team_of(caller, &conversation).await.ok();
    let names = team.as_ref().map(|team| team.handoff_tools());
    let names = names.unwrap_or_default();
    let agents = team.map(|team| team.agents()).unwrap_or_default();
    let start = agents.iter().find(|agent| agent.is_start);
    case.agent = case
        .path
        .first()
        .filter(|first| start.is_none_or(|start| *start.name != ***first))
        .cloned();
    for entry in entries.iter().filter(|entry| entry.agent.is_some()) {
        let Some(item) = entry.content.item() else {
            continue;
        };
        if item.kind().output_kind().is_none() {
            continue;
        }
        let Some(name) = item.name() else { continue };
        let arguments = item.arguments().unwrap_or_default();
        let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
        let is_handoff =
            names.iter().any(|known| *known == *name) || name.starts_with("transfer_to_");
        if is_handoff {
            case.payload = Some(arguments).filter(Value::is_object);
        } else {
            case.calls.push((name.into_owned(), arguments));
        }
    }
    if let Some(agent) = head.and_then(|head| head.agent)
        && case.path.last().map(String::as_str) != Some(&*agent)
    {
        case.path.push(agent.to_string());
    }
    case.turns = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    if case.messages.is_empty() {
        let message = "the conversation has no message of the user in words";
        return Err(ServiceError::new(ServiceErrorKind::Conflict, message));
    }
    Ok(case.to_toml())
}

#[cfg(not(feature = "team-files"))]
async fn case(
    _service: &Service,
    _caller: &Caller,
    _id: &str,
    _entries: &[Entry],
) -> Result<String, ServiceError> {
    Err(ServiceError::not_found(
        "the service is built without team files",
    ))
}
