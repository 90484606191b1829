//! What the application puts in place of what was said.

use std::sync::Arc;

use super::machine::{Phase, Run, next_occurrence};
use super::turn::Turn;
use crate::items::{Input, Item, RunItem, RunItemKind};
use crate::output::{FinalOutput, OutputType};

/// Puts other words in place of what the user said last. Whether there was anything.
fn replace_words(items: &mut [Item], words: &str) -> bool {
    let said = items.iter_mut().rfind(|item| item.is_of_user());
    said.map(|said| *said = said.with_text(words)).is_some()
}

impl Run {
    /// Puts other words in place of what the user said last in what is new, also in what the session
    /// is to get. Whether there was anything.
    #[must_use]
    pub(super) fn replace_input(&mut self, words: &str) -> bool {
        let is_replaced = match &mut self.input {
            Input::Text(text) => {
                *text = words.into();
                true
            }
            Input::Items(items) => {
                let mut all: Vec<Item> = items.iter().cloned().collect();
                let old = self.stored_input.min(all.len());
                let is_replaced = replace_words(&mut all[old..], words);
                *items = all.into();
                is_replaced
            }
        };
        // Before the first answer, all that the session has not got is new.
        replace_words(&mut self.unsaved, words);
        self.view = None;
        is_replaced
    }

    /// Whether the run is about to end with what a tool returned.
    pub(super) fn ends_at_tool(&self) -> bool {
        matches!(&self.phase, Phase::Output(turn, _) if turn.ends_at_tool)
    }

    /// Puts another answer in place of the final output, also in what the run has made.
    pub(super) fn replace_output(
        &mut self,
        output: FinalOutput,
        kind: Option<&OutputType>,
        agent: &Arc<str>,
    ) {
        let is_tools = self.ends_at_tool();
        let message = (!is_tools).then(|| self.message(&output, kind, agent));
        let Phase::Output(turn, was) = &mut self.phase else {
            return;
        };
        let was = std::mem::replace(was, output.clone());
        match message {
            Some(message) => {
                turn.leave_messages_out();
                turn.items.push(message);
            }
            None => turn.replace_tool_output(&was, &output),
        }
    }

    /// Ends the run with an output that is not the model's, after `items` of a turn that failed.
    pub(super) fn recovered(
        &mut self,
        output: FinalOutput,
        kind: Option<&OutputType>,
        items: Vec<RunItem>,
        agent: &Arc<str>,
    ) {
        let mut turn = Turn {
            items,
            ..Turn::default()
        };
        turn.items.push(self.message(&output, kind, agent));
        self.phase = Phase::Output(turn, output);
    }

    /// An output as the message with which the model would have given it.
    fn message(
        &mut self,
        output: &FinalOutput,
        kind: Option<&OutputType>,
        agent: &Arc<str>,
    ) -> RunItem {
        let text = match kind {
            Some(kind) => kind.written(output),
            None => output.text().into_owned(),
        };
        self.made_items = next_occurrence(self.made_items);
        let item = Item::output_message(&format!("msg_run_{}", self.made_items), &text);
        RunItem::made(
            RunItemKind::MessageOutput,
            agent.clone(),
            item,
            self.made_items,
        )
    }
}
