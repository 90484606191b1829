//! Who did what in a run.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::{in_short, of_agent};
use crate::items::{RunItem, RunItemKind, RunItems};
use crate::model::ModelRequest;
use crate::output::FinalOutput;
use crate::run::{Run, RunResult, Step};

/// Who did what in a run, in order. It prints as a transcript, one line a step, that can be kept
/// and compared with.
///
/// Its assertions can be chained; where one does not hold, it says what was found instead and how
/// the run went.
#[derive(Debug, Clone)]
pub struct Report {
    made: RunItems,
    first: String,
    output: Option<FinalOutput>,
    requests: Vec<ModelRequest>,
}

/// A handoff that took place.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HandoffTaken {
    /// The agent that had the conversation.
    pub from: String,
    /// The agent that got it.
    pub to: String,
    /// What the model sent along; an empty object where it sent nothing, and its text where that is
    /// not JSON.
    pub payload: Value,
}

/// A tool that was called, and what it answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolUsed {
    /// The agent whose model called it.
    pub agent: String,
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What it returned; absent where the call was not answered.
    pub output: Option<Value>,
}

impl Report {
    /// A report of a result.
    pub fn of<C>(result: &RunResult<C>) -> Self {
        Self::of_run(result.run())
    }

    /// A report of a run, also of one that failed.
    pub fn of_run(run: &Run) -> Self {
        let first = run.new_items().iter().next();
        Self {
            first: first.map_or_else(|| run.agent().to_owned(), |made| made.agent().to_owned()),
            made: run.new_items().clone(),
            output: match run.step() {
                Step::Done(output) => Some(output.clone()),
                _ => None,
            },
            requests: Vec::new(),
        }
    }

    /// The same report, knowing what the models were asked: what
    /// [`ScriptedModel::requests`](super::ScriptedModel::requests) or
    /// [`Recorder::requests`](super::Recorder::requests) has kept.
    #[must_use]
    pub fn with_requests(mut self, requests: impl IntoIterator<Item = ModelRequest>) -> Self {
        self.requests.extend(requests);
        self
    }

    /// The final output as text; `None` where the run has none.
    pub fn output(&self) -> Option<Cow<'_, str>> {
        self.output.as_ref().map(FinalOutput::text)
    }

    /// What an agent's model was shown, request by request, each item [in short](in_short). It is
    /// known only to a report [with requests](Self::with_requests).
    pub fn shown_to(&self, agent: &str) -> Vec<Vec<String>> {
        let requests = of_agent(&self.requests, agent);
        let shown = |request: &ModelRequest| request.input.iter().map(in_short).collect();
        requests.iter().map(shown).collect()
    }

    /// The agents that had the conversation, in order, the first one included. A handoff that a
    /// filter took out of the record ([`remove_all_tools`](crate::filters::remove_all_tools) does) is
    /// not told of, here and below.
    pub fn agents(&self) -> Vec<&str> {
        let targets = self.made.iter().filter_map(|made| match made.kind() {
            RunItemKind::HandoffOutput { target, .. } => Some(&**target),
            _ => None,
        });
        std::iter::once(self.first.as_str())
            .chain(targets)
            .collect()
    }

    /// The handoffs that took place.
    pub fn handoffs(&self) -> Vec<HandoffTaken> {
        let taken = self.made.iter().filter_map(|made| match made.kind() {
            RunItemKind::HandoffOutput { source, target } => Some(HandoffTaken {
                from: source.to_string(),
                to: target.to_string(),
                payload: self.call_of(made).map_or(Value::Null, arguments_of),
            }),
            _ => None,
        });
        taken.collect()
    }

    /// The tools that were called, with what they answered.
    pub fn tools(&self) -> Vec<ToolUsed> {
        let calls = self.made.iter();
        let calls = calls.filter(|made| *made.kind() == RunItemKind::ToolCall);
        let used = calls.map(|made| ToolUsed {
            agent: made.agent().to_owned(),
            tool: made.item().name().unwrap_or_default().into_owned(),
            arguments: arguments_of(made),
            output: self.output_of(made),
        });
        used.collect()
    }

    /// What an agent said, message by message.
    pub fn said_by(&self, agent: &str) -> Vec<String> {
        let messages = self
            .made
            .iter()
            .filter(|made| made.agent() == agent && *made.kind() == RunItemKind::MessageOutput);
        let texts = messages.filter_map(|made| made.item().text());
        texts.map(|text| text.into_owned()).collect()
    }

    fn call_of(&self, output: &RunItem) -> Option<&RunItem> {
        let wanted = output.item().identity();
        self.made
            .iter()
            .find(|made| wanted != 0 && made.item().output_identity() == wanted)
    }

    fn output_of(&self, call: &RunItem) -> Option<Value> {
        let wanted = call.item().output_identity();
        self.made.iter().find_map(|made| match made.kind() {
            RunItemKind::ToolCallOutput { output } if made.item().identity() == wanted => {
                Some(output.clone())
            }
            _ => None,
        })
    }
}

fn arguments_of(call: &RunItem) -> Value {
    let arguments = call.item().arguments().unwrap_or_default();
    let parsed = serde_json::from_str(&arguments);
    parsed.unwrap_or_else(|_| Value::String(arguments.into_owned()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for made in &self.made {
            let (agent, item) = (made.agent(), made.item());
            match made.kind() {
                RunItemKind::MessageOutput => {
                    writeln!(f, "{agent}: {}", item.text().unwrap_or_default())?;
                }
                RunItemKind::ToolCall | RunItemKind::HandoffCall => {
                    let name = item.name().unwrap_or_default();
                    writeln!(
                        f,
                        "{agent} calls {name} {}",
                        item.arguments().unwrap_or_default()
                    )?;
                }
                RunItemKind::ToolCallOutput { .. } => {
                    writeln!(f, "{agent} is told {}", item.output().unwrap_or_default())?;
                }
                RunItemKind::HandoffOutput { source, target } => {
                    writeln!(f, "{source} → {target}")?;
                }
                other => writeln!(f, "{agent} ({})", other.as_str())?,
            }
        }
        Ok(())
    }
}
