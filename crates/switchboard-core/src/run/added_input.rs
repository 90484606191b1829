//! Input that is added to a run while it waits for a decision.

use super::{Phase, Run};
use crate::approval::DecisionError;
use crate::items::{Input, Item, RunItem, RunItemKind};

impl Run {
    /// Adds input for the next model call of an interrupted run: what the user wrote in the meantime. It
    /// comes after the outputs of the calls that wait, and input guardrails check it when the run is
    /// resumed. If the run waits for a person, that makes it part of the conversation, and the run waits
    /// on; together with the person's answer, it comes before that.
    ///
    /// # Errors
    /// An error if the run is not interrupted, or the result of a tool may end it, so that no model
    /// would be asked.
    pub fn add_input(&mut self, input: impl Into<Input>) -> Result<(), DecisionError> {
        let refused =
            |problem: &str| Err(DecisionError(format!("no input can be added: {problem}")));
        let asks_person = matches!(self.position.phase, Phase::Person(_));
        let turn = self.turn();
        if self.wait_id().is_none() || turn.is_none() && !asks_person {
            return refused("the run is not interrupted; begin a new run with it");
        }
        if turn.is_some_and(|turn| turn.tools().may_end_run && turn.handoffs.is_empty()) {
            return refused("the result of a tool may end the run; resume it, and begin a new one");
        }
        let items = input.into().items();
        let state = self.approvals_mut();
        state.added_input.extend(items.iter().cloned());
        state.input_is_checked = false;
        Ok(())
    }

    /// Removes the input that was added and that no model has seen, and returns it.
    pub fn take_added_input(&mut self) -> Vec<Item> {
        match &mut self.approvals {
            Some(state) => std::mem::take(&mut state.added_input),
            None => Vec::new(),
        }
    }

    /// The input that was added and that no model has seen.
    pub(crate) fn added_input(&self) -> &[Item] {
        let state = self.approvals.as_ref();
        state.map_or(&[], |state| &state.added_input)
    }

    /// Returns `true` if input was added that guardrails have yet to check.
    pub(crate) fn has_unchecked_input(&self) -> bool {
        let state = self.approvals.as_ref();
        state.is_some_and(|state| !state.added_input.is_empty() && !state.input_is_checked)
    }

    /// Guardrails have passed the added input, as this.
    pub(crate) fn added_input_passed(&mut self, input: Vec<Item>) {
        let state = self.approvals_mut();
        state.added_input = input;
        state.input_is_checked = true;
    }

    /// Makes the added input part of the conversation.
    pub(crate) fn admit_input(&mut self) {
        let added = self.take_added_input();
        if added.is_empty() {
            return;
        }
        let items = added.into_iter().map(|item| {
            let number = self.next_item();
            RunItem::made(RunItemKind::Input, self.agent.name.clone(), item, number)
        });
        let items = items.collect();
        self.commit(items, 0);
    }
}
