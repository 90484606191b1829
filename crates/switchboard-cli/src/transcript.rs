//! Transcripts of stored conversations: who said what, tool calls, and handoffs.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use serde::Serialize;
use serde_json::Value;
use switchboard_core::Item;
use switchboard_core::conversation::{Entry, EntryContent};
use switchboard_core::items::ItemKind;
use switchboard_core::trace::rfc3339;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::style::{self, BOLD, DIM, Look, NOTICE, USER};
use crate::screen::wrap::{one_line, padded, wrapped};

/// The largest width of the column of names.
const MAX_NAME_WIDTH: usize = 18;

/// The entries of a conversation as people read them.
#[derive(Debug, PartialEq)]
pub(crate) struct Transcript {
    lines: Vec<TranscriptLine>,
}

/// A line of a transcript. `docs/program.md` describes the JSON form.
#[derive(Debug, PartialEq, Serialize)]
struct TranscriptLine {
    /// The position of the entry in the record.
    position: u64,
    time: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    /// A message of the user, of an agent, or of the application.
    Message {
        role: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        text: String,
    },
    /// A tool call with its output, if there is one.
    ToolCall {
        agent: Option<Arc<str>>,
        tool: String,
        arguments: Value,
        output: Option<String>,
    },
    /// A handoff that was taken.
    Handoff {
        from: Option<Arc<str>>,
        to: String,
        payload: Value,
    },
    /// Words that a guardrail refused.
    Refused { guardrail: String, on: String },
    /// Any other item, such as reasoning.
    Item {
        agent: Option<Arc<str>>,
        kind: String,
        text: String,
    },
}

impl Transcript {
    /// Creates the transcript of the entries of a record.
    pub(crate) fn new(entries: &[Entry]) -> Self {
        let outputs = outputs_by_call(entries);
        let mut lines: Vec<TranscriptLine> = Vec::new();
        let mut previous: Option<(&Arc<str>, Arc<str>)> = None;
        let mut announced: Option<String> = None;
        for entry in entries {
            let Some(content) = content(entry, &outputs) else {
                continue;
            };
            let line = |content| TranscriptLine {
                position: entry.position,
                time: rfc3339(entry.time),
                content,
            };
            // A handoff that a condition makes is in no item: the next one is another agent's.
            if let (Some((run, from)), Some(agent)) = (&previous, &entry.agent)
                && **run == entry.run
                && *from != *agent
                && announced.as_deref() != Some(&**agent)
            {
                lines.push(line(Content::Handoff {
                    from: Some(from.clone()),
                    to: agent.to_string(),
                    payload: Value::Null,
                }));
            }
            if let Some(agent) = &entry.agent {
                previous = Some((&entry.run, agent.clone()));
            }
            if let Content::Handoff { to, .. } = &content {
                announced = Some(to.clone());
            }
            lines.push(line(content));
        }
        Self { lines }
    }

    /// Removes all but the last lines.
    pub(crate) fn keep_last(&mut self, count: usize) {
        let first = self.lines.len().saturating_sub(count);
        self.lines.drain(..first);
    }

    /// Returns `true` if nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Writes each entry as a line of JSON.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.lines {
            writeln!(out, "{}", serde_json::to_string(line)?)?;
        }
        Ok(())
    }

    /// Writes the transcript for people.
    pub(crate) fn write(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let user = look.language.user();
        let mut agents: Vec<&str> = Vec::new();
        for agent in self.lines.iter().filter_map(TranscriptLine::agent) {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        let widths = agents.iter().map(|name| one_line(name).width());
        let widest = widths.filter(|width| *width <= MAX_NAME_WIDTH).max();
        let column = widest.unwrap_or(0).max(user.width());
        let indent = column + 2;
        for line in &self.lines {
            let plain = Style::new();
            let (author, style, text_style, text) = match &line.content {
                Content::Message { role, text, .. } if role == "user" => {
                    (user, USER, plain, text.clone())
                }
                Content::Message { agent, role, text } => {
                    let author = agent.as_deref().unwrap_or(role);
                    (author, style_of(author, &agents), plain, text.clone())
                }
                Content::Handoff { from, to, payload } => {
                    let author = from.as_deref().unwrap_or_default();
                    let text = match payload {
                        Value::Object(fields) if !fields.is_empty() => format!("→ {to} {payload}"),
                        _ => format!("→ {to}"),
                    };
                    (author, style_of(author, &agents), BOLD, text)
                }
                Content::ToolCall {
                    agent,
                    tool,
                    arguments,
                    output,
                } => {
                    let author = agent.as_deref().unwrap_or_default();
                    let output = output.as_deref().map(|output| format!("\n= {output}"));
                    let text = format!("{tool} {arguments}{}", output.unwrap_or_default());
                    (author, style_of(author, &agents), DIM, text)
                }
                Content::Refused { guardrail, .. } => {
                    (user, USER, NOTICE, look.language.refused_by(guardrail))
                }
                Content::Item { agent, kind, text } => {
                    let author = agent.as_deref().unwrap_or_default();
                    let text = format!("({kind}) {text}");
                    (author, style_of(author, &agents), DIM, text)
                }
            };
            let author = one_line(author);
            let text = wrapped(text.trim(), look.width, indent, indent);
            let text = look.paint(text_style, &text);
            if author.width() > column {
                let author = look.paint(style, &author);
                writeln!(out, "{author}\n{:indent$}{text}", "")?;
            } else {
                let author = look.paint(style, &padded(&author, column));
                writeln!(out, "{author}  {text}")?;
            }
        }
        Ok(())
    }
}

impl TranscriptLine {
    fn agent(&self) -> Option<&str> {
        match &self.content {
            Content::Message { agent, .. }
            | Content::ToolCall { agent, .. }
            | Content::Item { agent, .. } => agent.as_deref(),
            Content::Handoff { from, .. } => from.as_deref(),
            Content::Refused { .. } => None,
        }
    }
}

fn style_of(agent: &str, agents: &[&str]) -> Style {
    let position = agents.iter().position(|known| *known == agent);
    style::of_agent(position.unwrap_or(0))
}

/// The outputs of tool calls, by the calls' identifiers.
fn outputs_by_call(entries: &[Entry]) -> HashMap<String, String> {
    let items = entries.iter().filter_map(|entry| entry.content.item());
    let outputs = items.filter(|item| item.role().is_none() && item.kind().is_output());
    let output = |item: &Item| {
        let text = item.output_text().unwrap_or_default().into_owned();
        Some((item.call_id()?.into_owned(), text))
    };
    outputs.filter_map(output).collect()
}

/// The content of a line; `None` for entries that are part of another line.
fn content(entry: &Entry, outputs: &HashMap<String, String>) -> Option<Content> {
    let item = match &entry.content {
        EntryContent::Item(item) => item,
        EntryContent::Refused(json) => {
            let mark: Value = serde_json::from_str(json).unwrap_or_default();
            let text = |name: &str| mark[name].as_str().unwrap_or_default().to_owned();
            return Some(Content::Refused {
                guardrail: text("guardrail"),
                on: text("on"),
            });
        }
        _ => return None,
    };
    let agent = entry.agent.clone();
    let text = || item.text().unwrap_or_default().trim().to_owned();
    if let Some(role) = item.role() {
        let role = match role.as_ref() {
            "assistant" => "agent".to_owned(),
            role => role.to_owned(),
        };
        return Some(Content::Message {
            agent: agent.filter(|_| role == "agent"),
            role,
            text: text(),
        });
    }
    Some(match item.kind() {
        ItemKind::FunctionCall | ItemKind::CustomToolCall => {
            let arguments = item.arguments().unwrap_or_default();
            let arguments =
                serde_json::from_str(&arguments).unwrap_or_else(|_| Value::from(&*arguments));
            let call_id = item.call_id().unwrap_or_default();
            let output = outputs.get(&*call_id).cloned();
            match output.as_deref().and_then(handoff_target) {
                Some(to) => Content::Handoff {
                    from: agent,
                    to,
                    payload: arguments,
                },
                None => Content::ToolCall {
                    agent,
                    tool: item.name().unwrap_or_default().into_owned(),
                    arguments,
                    output,
                },
            }
        }
        kind if kind.is_output() => return None,
        _ => Content::Item {
            agent,
            kind: item.type_name().unwrap_or_default().into_owned(),
            text: text(),
        },
    })
}

/// The agent that got the conversation, if this is the output of a handoff.
fn handoff_target(output: &str) -> Option<String> {
    let output: Value = serde_json::from_str(output).ok()?;
    let fields = output.as_object()?;
    let is_handoff = fields
        .keys()
        .all(|key| key == "assistant" || key == "result");
    let to = fields.get("assistant").filter(|_| is_handoff)?;
    to.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::style::{Colours, Language};

    fn entry(item: Item, run: &str, agent: Option<&str>) -> Entry {
        let content = EntryContent::Item(item);
        Entry::new(content)
            .made_in(run, 1, 0)
            .made_by(agent.map(Arc::from))
    }

    fn text(entries: &[Entry]) -> String {
        let look = Look {
            width: Some(60),
            colours: Colours::Off,
            language: Language::En,
        };
        let mut out = Vec::new();
        Transcript::new(entries).write(look, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn handoffs_are_marked_with_their_payload_and_tools_with_their_output() {
        let entries = [
            entry(Item::user("My bill"), "r1", None),
            entry(
                Item::function_call("c1", "escalate", r#"{"reason":"angry"}"#),
                "r1",
                Some("Triage"),
            ),
            entry(
                Item::function_call_output("c1", r#"{"assistant": "Billing"}"#),
                "r1",
                Some("Triage"),
            ),
            entry(
                Item::function_call("c2", "find", r#"{"id":1}"#),
                "r1",
                Some("Billing"),
            ),
            entry(
                Item::function_call_output("c2", "found"),
                "r1",
                Some("Billing"),
            ),
            entry(Item::assistant("Here it is."), "r1", Some("Billing")),
        ];
        assert_eq!(
            text(&entries),
            "\
You      My bill
Triage   → Billing {\"reason\":\"angry\"}
Billing  find {\"id\":1}
         = found
Billing  Here it is.
"
        );
    }

    #[test]
    fn a_handoff_without_a_call_is_marked_and_a_message_to_another_agent_is_not_one() {
        let entries = [
            entry(Item::user("Hi"), "r1", None),
            entry(Item::assistant("Draft."), "r1", Some("Writer")),
            entry(Item::assistant("Reviewed."), "r1", Some("Reviewer")),
            entry(Item::user("Again"), "r2", None),
            entry(Item::assistant("Draft 2."), "r2", Some("Writer")),
        ];
        assert_eq!(
            text(&entries),
            "\
You       Hi
Writer    Draft.
Writer    → Reviewer
Reviewer  Reviewed.
You       Again
Writer    Draft 2.
"
        );
    }
}
