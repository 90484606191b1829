//! Events that a step sends before it is recorded: parts of a model's answer, and reports of a tool.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_core::journal::{StepKey, StepKind};

/// The step that an event is part of.
pub(super) enum StepOfEvent {
    /// The model call of an agent in a turn, counted from 1, in a run inside a tool call where there is one.
    Model {
        call: Option<String>,
        turn: u32,
        agent: String,
    },
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
    /// reports are taken, and a guardrail may hold an answer back. A tool call may have several runs inside, whose answers cannot
    /// be told apart for certain.
    pub(super) fn keep_late_parts<'a>(
        &mut self,
        recorded: impl Iterator<Item = &'a StepKey> + Clone,
    ) {
        self.parts.retain(|part| {
            let is_inside = matches!(part.step, StepOfEvent::Model { call: Some(_), .. });
            is_inside || !recorded.clone().any(|key| part.step.is_step(key))
        });
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
            kind if kind == "raw" || kind == "model_retry" || kind.ends_with("_delta") => {
                Some(Self::Model {
                    call: inside,
                    turn: part.turn,
                    agent: part.agent.into_owned(),
                })
            }
            _ => None,
        }
    }

    pub(super) fn is_step(&self, key: &StepKey) -> bool {
        match self {
            Self::Model { call, turn, agent } => {
                let is_inside = || match call {
                    None => key.path.is_empty(),
                    Some(call) => key.path.ends_with(&format!(".{call}/")),
                };
                let is_model = key.kind == StepKind::Model && key.turn + 1 == *turn;
                is_model && *key.name == *agent.as_str() && is_inside()
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
    agent: Cow<'a, str>,
    #[serde(default, borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    event: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str, agent: &str) -> StepKey {
        let key = serde_json::json!({ "path": path, "turn": 0, "kind": "model", "name": agent });
        serde_json::from_value(key).unwrap()
    }

    fn parts(events: &[&str]) -> AnswerParts {
        let mut parts = AnswerParts::default();
        for (position, event) in (0..).zip(events) {
            parts.add(position, StepOfEvent::of(event).unwrap());
        }
        parts
    }

    const OWN: &str = r#"{"type":"text_delta","agent":"Desk","turn":1}"#;
    const INSIDE: &str = r#"{"type":"inner","agent":"Desk","turn":1,"call_id":"c1",
        "event":{"type":"text_delta","agent":"Writer","turn":1}}"#;

    #[test]
    fn parts_that_were_stored_after_the_answer_are_kept() {
        let mut parts = parts(&[OWN]);
        parts.keep_late_parts([key("", "Desk")].iter());
        assert_eq!(parts.take_ranges(), []);
    }

    #[test]
    fn parts_of_one_run_inside_a_call_are_not_taken_for_those_of_another() {
        let mut parts = parts(&[INSIDE, OWN]);
        let other = key("0.c1/", "Reader");
        parts.recorded(&other);
        parts.keep_late_parts([other].iter());
        assert_eq!(parts.take_ranges(), [(0, 2)]);
    }

    #[test]
    fn parts_before_the_outcome_are_kept() {
        let mut parts = parts(&[INSIDE, OWN]);
        parts.recorded(&key("0.c1/", "Writer"));
        assert_eq!(parts.take_ranges(), [(1, 2)]);
    }
}
