//! Who did what in a run.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::{describe_item, of_agent};
use crate::items::{RunItem, RunItemKind, RunItems};
use crate::model::ModelRequest;
use crate::output::FinalOutput;
use crate::run::{HandoffOutcome, HandoffRecord, Run, RunResult, Step};

/// Who did what in a run, in order. It prints as a transcript, one line a step, that can be kept
/// and compared with; line breaks in what was said are written as `\\n`.
///
/// Its assertions can be chained; where one does not hold, it says what was found instead and how
/// the run went.
#[derive(Debug, Clone)]
pub struct Report {
    made: RunItems,
    first: String,
    trail: Vec<HandoffRecord>,
    output: Option<FinalOutput>,
    requests: Vec<ModelRequest>,
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
        Self {
            first: run.first_agent().to_owned(),
            trail: run.handoffs().to_vec(),
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

    /// What an agent's model was shown, request by request, each item [in short](describe_item). It is
    /// known only to a report [with requests](Self::with_requests).
    pub fn shown_to(&self, agent: &str) -> Vec<Vec<String>> {
        let requests = of_agent(&self.requests, agent);
        let shown = |request: &ModelRequest| request.input.iter().map(describe_item).collect();
        requests.iter().map(shown).collect()
    }

    /// The agents that had the conversation, in order, the first one included.
    pub fn agents(&self) -> Vec<&str> {
        let targets = self.taken().map(|taken| &*taken.to);
        std::iter::once(self.first.as_str())
            .chain(targets)
            .collect()
    }

    /// The handoffs that took place.
    pub fn handoffs(&self) -> Vec<HandoffRecord> {
        self.taken().cloned().collect()
    }

    /// The handoffs that were refused.
    pub fn refused(&self) -> Vec<HandoffRecord> {
        let refused = self.trail.iter();
        let refused = refused.filter(|asked| asked.outcome != HandoffOutcome::Taken);
        refused.cloned().collect()
    }

    fn taken(&self) -> impl Iterator<Item = &HandoffRecord> {
        let asked = self.trail.iter();
        asked.filter(|asked| asked.outcome == HandoffOutcome::Taken)
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
            writeln!(f, "{}", on_one_line(&step(made)))?;
        }
        Ok(())
    }
}

/// What a run item tells, in words.
fn step(made: &RunItem) -> String {
    let (agent, item) = (made.agent(), made.item());
    match made.kind() {
        RunItemKind::MessageOutput => format!("{agent}: {}", item.text().unwrap_or_default()),
        RunItemKind::ToolCall | RunItemKind::HandoffCall => {
            let (name, arguments) = (item.name(), item.arguments());
            let (name, arguments) = (name.unwrap_or_default(), arguments.unwrap_or_default());
            format!("{agent} calls {name} {arguments}")
        }
        RunItemKind::ToolCallOutput { .. } => {
            format!("{agent} is told {}", item.output().unwrap_or_default())
        }
        RunItemKind::HandoffOutput { source, target } => format!("{source} → {target}"),
        other => format!("{agent} ({})", other.as_str()),
    }
}

/// Text with its line breaks written out.
fn on_one_line(text: &str) -> Cow<'_, str> {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    if !text.contains(is_break) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_break(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    Cow::Owned(out)
}
