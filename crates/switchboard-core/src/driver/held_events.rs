//! Events that wait for the verdict of output guardrails.

use std::sync::{Mutex, MutexGuard};

use futures_util::future::try_join_all;
use serde_json::Value;

use super::guardrails::refuse_replacement;
use super::{Driver, user_error};
use crate::agent::ToolUseBehaviorKind;
use crate::callback::call;
use crate::error::Error;
use crate::guardrail::GuardrailKind;
use crate::items::{Item, RunItemKind};
use crate::lock::lock;
use crate::output::FinalOutput;
use crate::run::Step;
use crate::runner::StreamedOutput;
use crate::stream::{EventKind, StreamEvent};

/// Events that wait for a verdict; nothing for a run that is not streamed.
#[derive(Debug, Default)]
pub(super) struct HeldEvents(Option<Box<Mutex<Held>>>);

#[derive(Debug, Default)]
struct Held {
    /// The events in order; `None` while events are sent at once.
    events: Option<Vec<StreamEvent>>,
    /// The output that guardrails have refused.
    refused: Option<Vec<Item>>,
}

impl HeldEvents {
    /// The events of a streamed run.
    pub(super) fn of_stream() -> Self {
        Self(Some(Box::default()))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Held>> {
        self.0.as_ref().map(|held| lock(held))
    }

    /// Holds an event back. Returns it if events are sent at once.
    pub(super) fn hold(&self, event: Box<StreamEvent>) -> Option<Box<StreamEvent>> {
        let mut held = self.lock();
        match held.as_mut().and_then(|held| held.events.as_mut()) {
            Some(events) => {
                events.push(*event);
                None
            }
            None => Some(event),
        }
    }

    fn begin(&self) {
        if let Some(mut held) = self.lock() {
            held.events.get_or_insert_default();
        }
    }

    /// Sends events at once from now on. Returns those that were held back.
    fn end(&self) -> Vec<StreamEvent> {
        let events = self.lock().and_then(|mut held| held.events.take());
        events.unwrap_or_default()
    }

    /// Returns the events that were held back without the last `kept` bytes of their text, and goes on
    /// holding the rest.
    fn drain(&self, kept: usize) -> Vec<StreamEvent> {
        let mut held = self.lock();
        let events = held.as_mut().and_then(|held| held.events.as_mut());
        let Some(events) = events else {
            return Vec::new();
        };
        let rest = split_off_text(events, kept);
        std::mem::replace(events, rest)
    }

    fn is_holding(&self) -> bool {
        self.lock().is_some_and(|held| held.events.is_some())
    }

    /// Notes the output that guardrails have refused.
    pub(super) fn refuse(&self, output: Vec<Item>) {
        if let Some(mut held) = self.lock() {
            held.refused = Some(output);
        }
    }

    /// Takes the output that guardrails have refused.
    pub(super) fn take_refused(&self) -> Option<Vec<Item>> {
        self.lock().and_then(|mut held| held.refused.take())
    }
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// Holds events back from now on, if they may show an output that guardrails have not passed.
    pub(super) fn hold_output_back(&self) {
        let shows_at_once = self.config.streamed_output == StreamedOutput::AtOnce;
        if self.events.is_none() || shows_at_once || !self.has_output_guardrails() {
            return;
        }
        let may_end = match self.run.step() {
            Step::CallModel | Step::TakeAnswer(_) => true,
            Step::RunTools(_) => !matches!(
                self.agent.def.tool_use.0,
                ToolUseBehaviorKind::RunModelAgain
            ),
            Step::Conclude(_) | Step::DecideToolUse(_) => true,
            _ => false,
        };
        if may_end {
            self.held.begin();
        }
    }

    /// Returns `true` if events wait.
    pub(super) fn holds_output_back(&self) -> bool {
        self.held.is_holding()
    }

    /// Sends what was held back, unless guardrails have yet to pass the output.
    pub(super) async fn release_unless_output(&self) {
        if !matches!(self.run.step(), Step::Conclude(_) | Step::DecideToolUse(_)) {
            self.release_held().await;
        }
    }

    /// Sends everything that was held back.
    pub(super) async fn release_held(&self) {
        for event in self.held.end() {
            self.send(event).await;
        }
    }

    /// Sends what was held back without the output that guardrails have not passed. The tool that made
    /// it has `text` instead; if it is not known which one did, all of them.
    pub(super) async fn release_without_output(&self, refused: Option<&FinalOutput>, text: &str) {
        let events = self.held.end();
        let refused = refused.map(FinalOutput::to_value);
        let is_refused = |output: &Value| refused.as_ref() == Some(output);
        let mut ended = events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolEnded { output, .. } => Some(output),
            _ => None,
        });
        let is_known = ended.any(is_refused);
        for mut event in events {
            match &mut event.kind {
                EventKind::ToolEnded {
                    output,
                    data,
                    error,
                    ..
                } if !is_known || is_refused(output) => {
                    *output = text.into();
                    *data = None;
                    *error = None;
                }
                EventKind::Item { item, .. } => match item.kind() {
                    RunItemKind::ToolCallOutput { output } if is_known && !is_refused(output) => {}
                    RunItemKind::MessageOutput
                    | RunItemKind::Reasoning
                    | RunItemKind::ToolCallOutput { .. } => continue,
                    _ => {}
                },
                EventKind::TextDelta { .. }
                | EventKind::ReasoningDelta { .. }
                | EventKind::ArgumentsDelta { .. }
                | EventKind::Raw { .. } => continue,
                _ => {}
            }
            self.send(event).await;
        }
    }

    async fn send(&self, event: StreamEvent) {
        if let Some(events) = &self.events {
            events.send(Box::new(event), &self.run).await;
        }
    }

    /// Sends the text of an output that has replaced the one that was held back.
    pub(super) async fn report_replacement(&self, output: &str) {
        let Some(turn) = self.run.turn() else {
            return;
        };
        let message = turn.items.iter().rev();
        let message = message.filter_map(|made| made.item().id()).next();
        let item = message.unwrap_or_default().into();
        let text = output.to_owned();
        self.emit(|| EventKind::TextDelta { item, text }).await;
    }

    /// Returns `true` if the text that is held back can be judged sentence by sentence. If a guardrail
    /// does not judge parts, the text waits for its end.
    pub(super) fn judges_parts(&self) -> bool {
        self.held.is_holding()
            && self.agent.output_type().is_none()
            && self
                .output_guardrails()
                .all(|guardrail| guardrail.can_judge_parts())
    }

    /// Sends the whole sentences that were held back if all guardrails pass them as the beginning of an
    /// output.
    pub(super) async fn release_passed_part(&self, text: &JudgedText) -> Result<(), Error> {
        let (text, kept) = text.split();
        let part = FinalOutput::Text(text.into());
        let checks = self.output_guardrails().map(|guardrail| {
            let (ctx, agent, part) = (self.ctx(), self.agent.clone(), part.clone());
            async move {
                let verdict = call(|| (guardrail.check)(ctx, agent, part)).await;
                let decision =
                    verdict.and_then(|verdict| verdict.into_decision(refuse_replacement));
                let name = guardrail.name_arc();
                let what = format!("the guardrail \"{name}\"");
                let decision = decision.map_err(|error| user_error(&what, error))?;
                Ok::<_, Error>(decision.into_result(name, self.agent.name_arc()))
            }
        });
        let results = try_join_all(checks).await?;
        let passed = self.check_trip(GuardrailKind::Output, &results).await;
        passed.inspect_err(|_| self.held.refuse(vec![Item::assistant(text)]))?;
        for event in self.held.drain(kept.len()) {
            self.send(event).await;
        }
        Ok(())
    }
}

/// Text that guardrails judge sentence by sentence.
///
/// A sentence or a line is whole at its end. A full stop ends a sentence only if a space follows, as a
/// number or an address may go on after it.
#[derive(Debug, Default)]
pub(super) struct JudgedText {
    text: String,
    /// The end of the last whole sentence.
    end: usize,
    /// Set if the text ends with a full stop, perhaps with quotes or brackets after it.
    is_after_stop: bool,
}

impl JudgedText {
    /// Adds a piece. Returns `true` if a sentence is whole now.
    pub(super) fn push(&mut self, piece: &str) -> bool {
        let (start, end_before) = (self.text.len(), self.end);
        self.text.push_str(piece);
        // Only the piece is looked at: a text may have no sentences at all.
        for (index, character) in piece.char_indices() {
            let after = start + index + character.len_utf8();
            match character {
                '\n' | '。' | '！' | '？' => self.end = after,
                _ if character.is_whitespace() && self.is_after_stop => self.end = after,
                '.' | '!' | '?' | '…' => {
                    self.is_after_stop = true;
                    continue;
                }
                '"' | '\'' | ')' | ']' | '»' | '”' | '’' => continue,
                _ => {}
            }
            self.is_after_stop = false;
        }
        self.end > end_before
    }

    /// The whole sentences, and the beginning of the next one.
    fn split(&self) -> (&str, &str) {
        self.text.split_at(self.end)
    }
}

/// Takes the last `bytes` of the text out of the events, with everything after their beginning.
fn split_off_text(events: &mut Vec<StreamEvent>, bytes: usize) -> Vec<StreamEvent> {
    let (mut left, mut sent) = (bytes, 0);
    let mut index = events.len();
    while left > 0 && index > 0 {
        index -= 1;
        if let EventKind::TextDelta { text, .. } = &events[index].kind {
            sent = text.len().saturating_sub(left);
            left = left.saturating_sub(text.len());
        }
    }
    let first = index;
    // The provider's event of a piece comes before it, and holds all of it.
    while bytes > 0 && index > 0 && matches!(events[index - 1].kind, EventKind::Raw { .. }) {
        index -= 1;
    }
    let mut rest = events.split_off(index);
    if sent > 0
        && let Some(event) = rest.get_mut(first - index)
        && let EventKind::TextDelta { item, text } = &mut event.kind
    {
        let tail = text.split_off(sent);
        let text = std::mem::replace(text, tail);
        let item = item.clone();
        let kind = EventKind::TextDelta { item, text };
        events.push(StreamEvent::new(kind, event.agent.clone(), event.turn));
    }
    rest
}

/// The text in place of the result of a tool that is not shown.
pub(super) fn hidden_output(output: &FinalOutput) -> String {
    match output.to_value() {
        Value::String(text) => text,
        value => value.to_string(),
    }
}
