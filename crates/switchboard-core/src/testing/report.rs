//! A report of what each agent did in a run.

use std::borrow::Cow;
use std::{fmt, iter};

use serde_json::Value;

use super::{describe_item, requests_of};
use crate::items::{ItemKind, RunItem, RunItemKind, RunItems};
use crate::model::ModelRequest;
use crate::output::FinalOutput;
use crate::run::{HandoffOutcome, HandoffRecord, Run, RunResult, Step};

/// A report of what each agent did in a run, in order. It prints as a transcript with one line per
/// step, which can be compared with a golden file; line breaks in messages are printed as `\\n`.
///
/// Its assertions can be chained. An assertion that fails prints what was found instead, and the
/// transcript.
#[derive(Debug, Clone)]
pub struct Report {
    items: RunItems,
    first_agent: String,
    /// The handoffs that were taken or refused.
    handoffs: Vec<HandoffRecord>,
    output: Option<FinalOutput>,
    requests: Vec<ModelRequest>,
}

/// A call of a tool, and its output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolUsed {
    /// The agent whose model called it.
    pub agent: String,
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Its output; `None` if the call was not answered.
    pub output: Option<Value>,
}

impl Report {
    /// Creates the report of a result.
    pub fn of<C>(result: &RunResult<C>) -> Self {
        Self::of_run(result.run())
    }

    /// Creates the report of a run, which may have failed.
    pub fn of_run(run: &Run) -> Self {
        Self {
            items: run.new_items().clone(),
            first_agent: run.first_agent().to_owned(),
            handoffs: run.handoffs().to_vec(),
            output: match run.step() {
                Step::Done(output) => Some(output.clone()),
                _ => None,
            },
            requests: Vec::new(),
        }
    }

    /// Adds the requests that the models got, from
    /// [`ScriptedModel::requests`](super::ScriptedModel::requests) or
    /// [`Recorder::requests`](super::Recorder::requests).
    #[must_use]
    pub fn with_requests(mut self, requests: impl IntoIterator<Item = ModelRequest>) -> Self {
        self.requests.extend(requests);
        self
    }

    /// Returns the final output as text; `None` if the run has none.
    pub fn output(&self) -> Option<Cow<'_, str>> {
        self.output.as_ref().map(FinalOutput::text)
    }

    /// Returns the input of each request for an agent, its items [in short](describe_item). The
    /// report must have been given [the requests](Self::with_requests).
    pub fn shown_to(&self, agent: &str) -> Vec<Vec<String>> {
        let describe = |request: &ModelRequest| request.input.iter().map(describe_item).collect();
        requests_of(&self.requests, agent)
            .iter()
            .map(describe)
            .collect()
    }

    /// Returns the agents that had the conversation, in order, beginning with the first.
    pub fn agents(&self) -> Vec<&str> {
        let targets = self.taken().map(|taken| &*taken.to);
        iter::once(&*self.first_agent).chain(targets).collect()
    }

    /// Returns the handoffs that took place.
    pub fn handoffs(&self) -> Vec<HandoffRecord> {
        self.taken().cloned().collect()
    }

    /// Returns the handoffs that were refused.
    pub fn refused(&self) -> Vec<HandoffRecord> {
        let is_refused =
            |handoff: &&HandoffRecord| matches!(handoff.outcome, HandoffOutcome::Refused(_));
        self.handoffs.iter().filter(is_refused).cloned().collect()
    }

    fn taken(&self) -> impl Iterator<Item = &HandoffRecord> {
        let is_taken = |handoff: &&HandoffRecord| handoff.outcome == HandoffOutcome::Taken;
        self.handoffs.iter().filter(is_taken)
    }

    /// Returns the calls of tools, with their outputs.
    pub fn tools(&self) -> Vec<ToolUsed> {
        self.items
            .iter()
            .filter(|made| *made.kind() == RunItemKind::ToolCall)
            .map(|call| ToolUsed {
                agent: call.agent().to_owned(),
                tool: call.item().name().unwrap_or_default().into_owned(),
                arguments: arguments_of(call),
                output: self.output_of(call),
            })
            .collect()
    }

    /// Returns the texts of an agent's messages.
    pub fn said_by(&self, agent: &str) -> Vec<String> {
        self.items
            .iter()
            .filter(|made| made.agent() == agent && *made.kind() == RunItemKind::MessageOutput)
            .filter_map(|message| Some(message.item().text()?.into_owned()))
            .collect()
    }

    fn output_of(&self, call: &RunItem) -> Option<Value> {
        let identity = call.item().output_identity();
        self.items.iter().find_map(|made| match made.kind() {
            RunItemKind::ToolCallOutput { output } if made.item().identity() == identity => {
                Some(output.clone())
            }
            _ => None,
        })
    }
}

fn arguments_of(call: &RunItem) -> Value {
    let arguments = call.item().arguments().unwrap_or_default();
    if call.item().kind() == ItemKind::CustomToolCall {
        return Value::String(arguments.into_owned());
    }
    serde_json::from_str(&arguments).unwrap_or_else(|_| Value::String(arguments.into_owned()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            writeln!(f, "{}", escape_line_breaks(&describe_step(item)))?;
        }
        Ok(())
    }
}

/// Returns the transcript's line for a run item.
fn describe_step(run_item: &RunItem) -> String {
    let (agent, item) = (run_item.agent(), run_item.item());
    match run_item.kind() {
        RunItemKind::MessageOutput => format!("{agent}: {}", item.text().unwrap_or_default()),
        RunItemKind::ToolCall | RunItemKind::HandoffCall => {
            let name = item.name().unwrap_or_default();
            let arguments = item.arguments().unwrap_or_default();
            format!("{agent} calls {name} {arguments}")
        }
        RunItemKind::ToolCallOutput { .. } => {
            format!("{agent} is told {}", item.output_text().unwrap_or_default())
        }
        RunItemKind::HandoffOutput { from, to } => format!("{from} → {to}"),
        other => format!("{agent} ({})", other.as_str()),
    }
}

fn escape_line_breaks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}
