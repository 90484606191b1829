//! The final output of a run: finding, replacing and withholding it, and ending the run with it.

use super::model_response::{EmptyOutput, ResponseRules};
use super::turn::Turn;
use super::{Phase, Run};
use crate::error::{Error, ErrorKind, excerpt, model_error};
use crate::items::{Item, RunItem, RunItemKind};
use crate::model::ModelResponse;
use crate::output::{FinalOutput, OutputType};
use crate::runner::Fallback;

impl Run {
    /// Returns `true` if the run is about to end with the result of a tool.
    pub(crate) fn ends_at_tool(&self) -> bool {
        matches!(&self.position.phase, Phase::Output(turn, _) if turn.ends_at_tool)
    }

    /// Replaces the final output, also in the items of the turn.
    pub(crate) fn replace_output(&mut self, output: FinalOutput, output_type: Option<&OutputType>) {
        let message = (!self.ends_at_tool()).then(|| self.output_message(&output, output_type));
        let Phase::Output(turn, was) = &mut self.position.phase else {
            return;
        };
        let was = std::mem::replace(was, output.clone());
        match message {
            Some(message) => {
                turn.remove_messages();
                turn.items.push(message);
            }
            None => turn.replace_tool_output(&was, &output),
        }
    }

    /// Ends the run with a fallback output, after `items` of a turn that failed, whose response was
    /// rejected.
    pub(crate) fn recover(
        &mut self,
        fallback: Fallback,
        output_type: Option<&OutputType>,
        mut items: Vec<RunItem>,
        rejected: Option<ModelResponse>,
    ) {
        self.responses.extend(rejected);
        // The rejected items have the next numbers.
        for _ in &items {
            self.next_item();
        }
        if fallback.is_in_history {
            items.push(self.output_message(&fallback.output, output_type));
        }
        let turn = Turn {
            items,
            is_fallback: true,
            ..Turn::default()
        };
        self.position.phase = Phase::Output(turn, fallback.output);
    }

    /// Ends the run with an output of the application, between two turns.
    pub(crate) fn finish_with(&mut self, output: FinalOutput) {
        let message = self.output_message(&output, None);
        let turn = Turn {
            items: vec![message],
            is_fallback: true,
            ..Turn::default()
        };
        self.position.phase = Phase::Output(turn, output);
    }

    /// The message with which the model would have given an output.
    pub(crate) fn output_message(
        &mut self,
        output: &FinalOutput,
        output_type: Option<&OutputType>,
    ) -> RunItem {
        let text = match output_type {
            Some(output_type) => output_type.to_model_text(output),
            None => output.text().into_owned(),
        };
        let number = self.next_item();
        // A person's words in several runs of a conversation are no repetitions of each other.
        let item = if self.position.is_person {
            Item::assistant(text)
        } else {
            Item::output_message(&format!("msg_run_{number}"), &text)
        };
        RunItem::made(
            RunItemKind::MessageOutput,
            self.agent.name.clone(),
            item,
            number,
        )
    }

    /// Hooks were notified of the agent's end.
    pub(crate) fn end_reported(&mut self) {
        if let Phase::Output(turn, _) = &mut self.position.phase {
            turn.end_reported = true;
        }
    }

    /// Ends the run with its final output.
    pub(crate) fn conclude(&mut self) {
        if let Phase::Output(turn, output) = std::mem::take(&mut self.position.phase) {
            // No model is asked any more.
            self.conversation.model_input = None;
            self.commit(turn.items, turn.recorded);
            self.position.phase = match self.handoff_after_reply(&output) {
                Some(turn) => Phase::Handoff(turn),
                None => Phase::Done(output),
            };
        }
    }

    /// Withholds a final output, made by a tool, that a guardrail rejected: the run itself does not
    /// hold it any more, and the session gets the calls without it.
    pub(crate) fn withhold_output(&mut self, text: &str) {
        let Phase::Output(turn, output) = &mut self.position.phase else {
            return;
        };
        if !turn.ends_at_tool {
            return;
        }
        if self.session.is_attached && self.session.saved_early.is_empty() {
            self.session
                .unsaved
                .extend(turn.with_outputs_withheld(text));
            if let Some(state) = &mut self.session.conversation {
                state.has_turn = true;
                state.turn_agent = Some(self.agent.name.clone());
            }
        }
        self.conversation
            .forget_recorded(std::mem::take(&mut turn.recorded));
        *output = turn.withhold_outputs(text);
        if self.session.is_attached {
            self.session.saved_early = turn.items.iter().map(RunItem::key).collect();
        }
    }
}

/// The final output of a turn without tools to run; `None` if the model must be asked again.
pub(crate) fn final_output(
    turn: &Turn,
    skipped_calls: bool,
    rules: ResponseRules<'_>,
) -> Result<Option<FinalOutput>, Error> {
    let message = turn
        .items
        .iter()
        .rev()
        .find(|made| *made.kind() == RunItemKind::MessageOutput);
    if message.is_none() && (turn.used_tools || skipped_calls) {
        return Ok(None);
    }
    if let Some(refusal) = message.and_then(|made| made.item().refusal()) {
        let message = format!("the model refused to answer: {}", excerpt(&refusal));
        return Err(Error::new(ErrorKind::ModelRefusal, message));
    }
    let text = message.and_then(|made| made.item().text());
    let text = text.filter(|text| rules.output_type.is_none() || !text.is_empty());
    match (rules.output_type, text) {
        (None, text) => {
            let text = text.unwrap_or_default();
            Ok(Some(FinalOutput::Text(text.as_ref().into())))
        }
        (Some(output), None) => match rules.empty_output {
            EmptyOutput::AskAgain => Ok(None),
            EmptyOutput::Reject => {
                let message = format!(
                    "the model's answer is empty, and its output type asks for a {}",
                    output.name()
                );
                Err(model_error(message))
            }
        },
        (Some(output), Some(text)) => output.validate(&text).map(Some).map_err(|error| {
            let message = format!(
                "the model's answer is not a {}, which its output type asks for: {error}",
                output.name()
            );
            model_error(message).caused_by(error)
        }),
    }
}
