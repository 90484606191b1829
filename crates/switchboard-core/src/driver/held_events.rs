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

    /// Returns the events that were held back, and goes on holding.
    fn drain(&self) -> Vec<StreamEvent> {
        let mut held = self.lock();
        let events = held.as_mut().and_then(|held| held.events.as_mut());
        events.map(std::mem::take).unwrap_or_default()
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
            Step::CallModel => true,
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

    /// Sends the text that was held back if all guardrails pass it as the beginning of an output. Only
    /// guardrails that judge parts are asked; with others, the text waits for its end.
    pub(super) async fn release_passed_part(&self, text: &str) -> Result<(), Error> {
        let judges_parts = self
            .output_guardrails()
            .all(|guardrail| guardrail.can_judge_parts());
        if !self.held.is_holding() || !judges_parts || self.agent.output_type().is_some() {
            return Ok(());
        }
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
        for event in self.held.drain() {
            self.send(event).await;
        }
        Ok(())
    }
}

/// Returns `true` if a piece of text ends a sentence, or a line.
pub(super) fn ends_sentence(piece: &str) -> bool {
    piece.contains(['.', '!', '?', '\n', '。', '！', '？', '…'])
}

/// The text in place of the result of a tool that is not shown.
pub(super) fn hidden_output(output: &FinalOutput) -> String {
    match output.to_value() {
        Value::String(text) => text,
        value => value.to_string(),
    }
}
