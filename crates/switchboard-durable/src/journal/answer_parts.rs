//! Events that a step sends before it is recorded: parts of a model's answer, and reports of a tool.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_core::journal::{StepKey, StepKind};

/// The step that an event is part of.
pub(super) enum StepOfEvent {
    /// The model call of a turn, counted from 1, in the run inside a tool call where there is one.
    Model { call: Option<String>, turn: u32 },
    /// A tool call.
    Tool { call: String },
}

/// The events whose steps are not recorded.
#[derive(Default)]
pub(super) struct AnswerParts {
    parts: Vec<AnswerPart>,
    /// The number of events so far, of all kinds.
    events: u64,
}

struct AnswerPart {
    position: u64,
    /// The number of events before it.
    number: u64,
    step: StepOfEvent,
}

impl AnswerParts {
    pub(super) fn add(&mut self, position: u64, step: StepOfEvent) {
        self.parts.push(AnswerPart {
            position,
            number: self.events,
            step,
        });
        self.events += 1;
    }

    /// Takes note of an event that is not part of a step.
    pub(super) fn add_other(&mut self) {
        self.events += 1;
    }

    /// Keeps the events of a step that is recorded.
    pub(super) fn recorded(&mut self, key: &StepKey) {
        self.parts.retain(|part| !part.step.is_step(key));
    }

    /// Keeps the events of steps that are recorded, and that were stored after the outcome: a tool does not wait until its
    /// reports are taken, and a guardrail may hold an answer back.
    pub(super) fn keep_late_parts<'a>(
        &mut self,
        recorded: impl Iterator<Item = &'a StepKey> + Clone,
    ) {
        self.parts
            .retain(|part| !recorded.clone().any(|key| part.step.is_step(key)));
    }

    /// Forgets events that were retracted.
    pub(super) fn retracted(&mut self, from: u64, to: u64) {
        self.parts
            .retain(|part| !(from..to).contains(&part.position));
    }

    /// The positions that are left, as ranges without other events.
    pub(super) fn take_ranges(&mut self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut next = None;
        for part in self.parts.drain(..) {
            let end = part.position + 1;
            match ranges.last_mut() {
                Some((_, to)) if next == Some(part.number) => *to = end,
                _ => ranges.push((part.position, end)),
            }
            next = Some(part.number + 1);
        }
        ranges
    }
}

impl StepOfEvent {
    /// The step that an event is part of; `None` for an event that is sent once the outcome of its step is recorded.
    pub(super) fn of(event: &str) -> Option<Self> {
        Self::of_part(serde_json::from_str(event).ok()?, None)
    }

    fn of_part(part: Part<'_>, inside: Option<String>) -> Option<Self> {
        match &*part.kind {
            "inner" => {
                let event: Part<'_> = serde_json::from_str(part.event?.get()).ok()?;
                Self::of_part(event, Some(part.call_id?.into_owned()))
            }
            "tool_progress" => Some(Self::Tool {
                call: part.call_id?.into_owned(),
            }),
            "raw" | "model_retry" => Some(Self::Model {
                call: inside,
                turn: part.turn,
            }),
            kind if kind.ends_with("_delta") => Some(Self::Model {
                call: inside,
                turn: part.turn,
            }),
            _ => None,
        }
    }

    pub(super) fn is_step(&self, key: &StepKey) -> bool {
        match self {
            Self::Model { call, turn } => {
                let is_inside = || match call {
                    None => key.path.is_empty(),
                    Some(call) => key.path.ends_with(&format!(".{call}/")),
                };
                key.kind == StepKind::Model && key.turn + 1 == *turn && is_inside()
            }
            Self::Tool { call } => {
                let name = key.name.strip_suffix(call.as_str());
                key.kind == StepKind::Tool && name.is_some_and(|name| name.ends_with(' '))
            }
        }
    }
}

/// The fields of an event that tell its step.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    turn: u32,
    #[serde(default, borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    event: Option<&'a RawValue>,
}
