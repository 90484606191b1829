//! The rows of a recording: one for each span.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_core::Item;
use switchboard_core::model::Usage;
use switchboard_core::stream::HandoffStatus;
use switchboard_core::trace::{Span, SpanData};

use super::millis;

/// The longest summary, in characters.
const MAX_SUMMARY: usize = 160;

/// A part of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// Its number in the recording, from 1.
    pub(crate) id: u64,
    /// The row that it is a part of.
    pub(crate) parent: Option<u64>,
    /// `run`, `agent`, `turn`, `model`, `tool`, `handoff`, `guardrail` or `custom`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// The agent that has the conversation.
    pub(crate) agent: Option<String>,
    pub(crate) turn: Option<u32>,
    /// `running`, `ok`, `failed`, `refused`, `ignored`, `redirected`, `fanned_out`, `waiting` or `tripped`.
    pub(crate) status: &'static str,
    /// Milliseconds since 1970.
    pub(crate) started: f64,
    /// The time that it took; null while it goes on.
    pub(crate) seconds: Option<f64>,
    pub(crate) tokens: Option<Tokens>,
    /// The cost, where the price of the model is known.
    pub(crate) cost: Option<f64>,
    /// The number of times that the request was sent again.
    pub(crate) retries: u32,
    /// A short text of what came of it.
    pub(crate) summary: Option<String>,
    pub(crate) error: Option<String>,
    /// The number of the change that made the row what it is.
    pub(crate) seq: u64,
}

/// Numbers of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

impl From<&Usage> for Tokens {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            cached: usage.cached_tokens,
            output: usage.output_tokens,
            reasoning: usage.reasoning_tokens,
        }
    }
}

impl Tokens {
    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl Row {
    /// The row of a span that begins.
    pub(super) fn begin(id: u64, parent: Option<&Self>, span: &Span, seq: u64) -> Self {
        let (kind, name) = name(&span.data);
        let mut row = Self {
            id,
            parent: parent.map(|parent| parent.id),
            kind,
            name,
            agent: parent.and_then(|parent| parent.agent.clone()),
            turn: parent.and_then(|parent| parent.turn),
            status: "running",
            started: millis(span.started),
            seconds: None,
            tokens: None,
            cost: None,
            retries: 0,
            summary: None,
            error: None,
            seq,
        };
        match &span.data {
            SpanData::Agent { name, .. } => row.agent = Some(name.to_string()),
            SpanData::Turn { turn, agent, .. } => {
                row.turn = Some(*turn);
                row.agent = Some(agent.to_string());
            }
            _ => {}
        }
        row
    }

    /// Sets everything that is known at the end of the span.
    pub(super) fn finish(&mut self, span: &Span, cost: Option<f64>, seq: u64) {
        (self.kind, self.name) = name(&span.data);
        self.seconds = span.ended.map(|ended| {
            let time = ended.duration_since(span.started);
            time.unwrap_or_default().as_secs_f64()
        });
        self.cost = cost;
        self.seq = seq;
        self.error = span.error.as_ref().map(|error| error.message.clone());
        self.status = if self.error.is_some() { "failed" } else { "ok" };
        match &span.data {
            SpanData::Task { usage, .. } | SpanData::Turn { usage, .. } => {
                self.tokens = Some(usage.into());
            }
            SpanData::Generation { usage, output, .. } => {
                self.tokens = Some(usage.into());
                let output = output.as_deref().unwrap_or_default();
                let parts: Vec<String> = output.iter().filter_map(item_summary).collect();
                self.summary = shortened(&parts.join(" · "));
            }
            SpanData::Function { output, .. } => {
                self.summary = output.as_deref().and_then(shortened);
            }
            SpanData::Handoff {
                payload, details, ..
            } => {
                self.status = handoff_status(details.outcome, self.error.is_some());
                if details.redirected_from.is_some() && self.status == "ok" {
                    self.status = "redirected";
                }
                let payload = payload.as_ref().map(ToString::to_string);
                let text = details.reason.clone().or(payload);
                self.summary = text.as_deref().and_then(shortened);
            }
            SpanData::Guardrail {
                triggered, outcome, ..
            } => {
                if *triggered {
                    self.status = "tripped";
                }
                self.summary = Some(outcome.as_str().to_owned());
            }
            _ => {}
        }
    }
}

/// The kind and the name of a row.
fn name(data: &SpanData) -> (&'static str, String) {
    match data {
        SpanData::Task { name, .. } => ("run", name.to_string()),
        SpanData::Agent { name, .. } => ("agent", name.to_string()),
        SpanData::Turn { turn, .. } => ("turn", turn.to_string()),
        SpanData::Generation { model, .. } => ("model", model.to_string()),
        SpanData::Function { name, .. } => ("tool", name.to_string()),
        SpanData::Handoff { from, to, .. } => {
            let to = to.as_deref().unwrap_or("?");
            ("handoff", format!("{from} → {to}"))
        }
        SpanData::Guardrail { name, .. } => ("guardrail", name.to_string()),
        SpanData::Custom { name, .. } => ("custom", name.to_string()),
        _ => ("custom", data.kind().to_owned()),
    }
}

fn handoff_status(outcome: Option<HandoffStatus>, has_error: bool) -> &'static str {
    match outcome {
        Some(HandoffStatus::Taken) => "ok",
        Some(HandoffStatus::Refused) => "refused",
        Some(HandoffStatus::Ignored) => "ignored",
        Some(HandoffStatus::FannedOut) => "fanned_out",
        Some(_) => "failed",
        None if has_error => "failed",
        None => "waiting",
    }
}

/// A short text for an item of a response.
fn item_summary(item: &Item) -> Option<String> {
    if let Some(text) = item.text().or_else(|| item.refusal()) {
        return Some(text.into_owned()).filter(|text| !text.is_empty());
    }
    let name = item.name()?;
    let arguments = item.arguments().unwrap_or_default();
    Some(format!("{name}({arguments})"))
}

/// The beginning of a text, on one line; `None` if it is empty.
pub(crate) fn shortened(text: &str) -> Option<String> {
    cut(text, MAX_SUMMARY)
}

/// At most this number of characters of a text, on one line; `None` if it is empty.
pub(crate) fn cut(text: &str, most: usize) -> Option<String> {
    let mut short = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if !short.is_empty() {
            short.push(' ');
            count += 1;
        }
        for character in word.chars().filter(|character| !character.is_control()) {
            if count >= most {
                short.push('…');
                return Some(short);
            }
            short.push(character);
            count += 1;
        }
    }
    (!short.is_empty()).then_some(short)
}
