//! Replacing the user's words or the final output.

use super::machine::{Phase, Run};
use super::recovery::Fallback;
use super::turn::Turn;
use crate::items::{Input, Item, RunItem, RunItemKind};
use crate::model::ModelResponse;
use crate::output::{FinalOutput, OutputType};

/// Replaces the text of the last message of the user. Returns `false` if there is none.
fn replace_text<'a>(items: impl Iterator<Item = &'a mut Item>, text: &str) -> bool {
    let messages = items.filter(|item| item.role().as_deref() == Some("user"));
    let Some(message) = messages.last() else {
        return false;
    };
    *message = message.with_text(text);
    true
}

impl Run {
    /// Replaces the text of the user's last message among the new input, also in what the session
    /// gets. Returns `false` if no new message is the user's.
    #[must_use]
    pub(super) fn replace_input(&mut self, text: &str) -> bool {
        let conversation = &mut self.conversation;
        let is_replaced = match &mut conversation.input {
            Input::Text(input) => {
                *input = text.into();
                true
            }
            Input::Items(items) => {
                let mut all: Vec<Item> = items.iter().cloned().collect();
                let stored = conversation.stored_input.min(all.len());
                let merged = &conversation.merged_from_session;
                let is_new = |at: usize| match merged.get(at) {
                    Some(is_stored) => !is_stored,
                    None => at >= stored,
                };
                let new = all.iter_mut().enumerate().filter(|(at, _)| is_new(*at));
                let is_replaced = replace_text(new.map(|(_, item)| item), text);
                *items = all.into();
                is_replaced
            }
        };
        conversation.model_input = None;
        // Before the first response, all unsaved items are new input.
        replace_text(self.session.unsaved.iter_mut(), text);
        is_replaced
    }

    /// Returns `true` if the run is about to end with the result of a tool.
    pub(super) fn ends_at_tool(&self) -> bool {
        matches!(&self.position.phase, Phase::Output(turn, _) if turn.ends_at_tool)
    }

    /// Replaces the final output, also in the items of the turn.
    pub(super) fn replace_output(&mut self, output: FinalOutput, output_type: Option<&OutputType>) {
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
    pub(super) fn recover(
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

    /// The message with which the model would have given an output.
    fn output_message(
        &mut self,
        output: &FinalOutput,
        output_type: Option<&OutputType>,
    ) -> RunItem {
        let text = match output_type {
            Some(output_type) => output_type.to_model_text(output),
            None => output.text().into_owned(),
        };
        let number = self.next_item();
        let item = Item::output_message(&format!("msg_run_{number}"), &text);
        RunItem::made(
            RunItemKind::MessageOutput,
            self.agent.name.clone(),
            item,
            number,
        )
    }
}
