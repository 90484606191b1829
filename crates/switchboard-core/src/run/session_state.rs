//! The items that the session of a run still has to get.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::conversation::ConversationState;
use super::turn::{Turn, tool_outputs};
use super::{Run, model_input};
use crate::handoff::Parts;
use crate::items::{Input, Item, ItemKind, Items, Pairing, RunItem};
use crate::tool::ToolOutput;

/// The answer of a call that waited for a decision when the next message came.
const UNDECIDED: &str =
    "This was not carried out: nobody has approved it before the next message came.";

/// The state of a run's session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SessionState {
    /// Set once the run has a session.
    pub(crate) is_attached: bool,
    /// Items that the session has not got yet.
    pub(crate) unsaved: Vec<Item>,
    /// Keys of items that were saved before the end of their turn.
    pub(crate) saved_early: Box<[usize]>,
    /// The state of the conversation, where the session keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<Box<ConversationState>>,
}

impl Run {
    /// Starts the run with the history of its session. With `is_truncated`, only the latest items
    /// were loaded.
    pub(crate) fn attach_session(&mut self, history: &Items, is_truncated: bool) {
        let new = self.conversation.input.items();
        let unsaved = new.iter().map(Item::without_internal_fields).collect();
        self.session.unsaved = model_input::deduplicated(unsaved);
        let (input, stored) = model_input::continued(history, &new, is_truncated);
        self.conversation.input = Input::Items(input);
        self.conversation.stored_input = stored;
        self.session.is_attached = true;
    }

    /// Puts answers before the input for the calls of a history that wait for a decision: the input was
    /// sent instead of one.
    pub(crate) fn answer_waiting_calls(&mut self, history: &Items) {
        let answered: FxHashSet<u64> = history.iter().map(Item::identity).collect();
        let answers = history.iter().filter_map(answer_undecided);
        let answers = answers.filter(|answer| !answered.contains(&answer.identity()));
        let answers: Vec<Item> = answers.collect();
        let new = self.conversation.input.items();
        let input = answers.into_iter().chain(new.iter().cloned()).collect();
        self.conversation.input = Input::Items(input);
    }

    /// Starts the run with what the application made of its session's history and the new input.
    pub(crate) fn attach_merged(&mut self, history: &Items, merged: Items) {
        let new = self.conversation.input.items();
        let from_history = from_history(history, &new, &merged);
        let unsaved = merged.iter().zip(&from_history);
        let unsaved = unsaved.filter(|(_, is_old)| !**is_old);
        let unsaved = unsaved.map(|(item, _)| item.without_internal_fields());
        self.session.unsaved = model_input::deduplicated(unsaved.collect());
        let first_new = from_history.iter().position(|is_old| !is_old);
        self.conversation.stored_input = first_new.unwrap_or(merged.len());
        self.conversation.merged_from_session = from_history.into();
        self.conversation.input = Input::Items(merged);
        self.session.is_attached = true;
    }

    /// Attaches a session to a run that began without one: it gets the whole conversation.
    pub(crate) fn attach_session_late(&mut self) {
        let input = self.conversation.input.items();
        let made = self.conversation.record.iter().map(RunItem::to_input_item);
        self.session.unsaved = input.iter().cloned().chain(made).collect();
        self.session.is_attached = true;
    }

    /// Adds the items of a turn to those the session must get.
    pub(crate) fn add_unsaved<'a>(&mut self, items: impl Iterator<Item = &'a RunItem>) {
        if !self.session.is_attached {
            return;
        }
        let early = std::mem::take(&mut self.session.saved_early);
        let unsaved = items.filter(|made| !early.contains(&made.key()));
        let unsaved = unsaved.map(RunItem::to_input_item).collect();
        self.session
            .unsaved
            .extend(model_input::deduplicated(unsaved));
        self.note_turn();
    }

    /// Adds the items of a turn that a filter rewrote: the new items it left, and calls whose
    /// output it left for the model alone.
    pub(crate) fn add_unsaved_parts(&mut self, parts: &Parts, turn: &Turn) {
        if !self.session.is_attached {
            return;
        }
        if self.session.conversation.is_some() {
            // The record holds the turn as it was; what the filter left is the view.
            // Without items it is no turn: the next one is committed with the view.
            if !turn.items.is_empty() {
                self.add_unsaved(turn.items.iter());
            }
            self.note_rewrite();
            return;
        }
        let mut kept: Vec<&RunItem> = parts.new_items.iter().collect();
        let shown = parts.input_items.as_ref().unwrap_or(&parts.new_items);
        let answered = tool_outputs(shown);
        if !answered.is_empty() {
            let recorded: FxHashSet<usize> = parts.new_items.iter().map(RunItem::key).collect();
            let calls = parts.pre_handoff_items.iter().chain(shown);
            kept.extend(calls.filter(|made| {
                made.kind().is_tool_call()
                    && answered.contains(&made.item().output_identity())
                    && !recorded.contains(&made.key())
            }));
        }
        drop_orphans(&mut kept, turn);
        self.add_unsaved(kept.into_iter());
    }

    /// Saves the completed tools of a turn that failed after they ran, and returns their items. The
    /// run itself stays where it is.
    pub(crate) fn save_completed_tools(&mut self) -> Vec<RunItem> {
        let Some(turn) = self.turn() else {
            return Vec::new();
        };
        let completed = turn.completed_tools();
        self.save_early(&completed);
        completed
    }

    /// Saves items before the end of their turn, each once.
    pub(crate) fn save_early(&mut self, items: &[RunItem]) {
        let session = &mut self.session;
        if !session.is_attached {
            return;
        }
        let mut has_new = false;
        let mut saved = std::mem::take(&mut session.saved_early).into_vec();
        for made in items {
            if !saved.contains(&made.key()) {
                session.unsaved.push(made.to_input_item());
                saved.push(made.key());
                has_new = true;
            }
        }
        session.saved_early = saved.into();
        if has_new {
            self.note_turn();
        }
    }
}

/// The answer of a call that nobody decided on; `None` for other items.
fn answer_undecided(call: &Item) -> Option<Item> {
    match call.kind() {
        ItemKind::FunctionCall | ItemKind::CustomToolCall => {
            Some(ToolOutput::from(UNDECIDED).to_item(call))
        }
        ItemKind::McpApprovalRequest => {
            let id = call.id().unwrap_or_default();
            Some(Item::mcp_approval_response(&id, false, Some(UNDECIDED)))
        }
        _ => None,
    }
}

/// Drops items that a filter left without their call or output. Items that the turn itself made so
/// stay: a tool that the provider runs may be answered later.
fn drop_orphans(kept: &mut Vec<&RunItem>, turn: &Turn) {
    let items: Vec<&Item> = kept.iter().map(|made| made.item()).collect();
    let paired = Pairing::of(&items).paired();
    if paired.iter().all(|is_paired| *is_paired) {
        return;
    }
    let unanswered = unanswered(turn);
    let mut paired = paired.into_iter();
    kept.retain(|made| paired.next() == Some(true) || unanswered.contains(&made.key()));
}

/// The keys of the turn's items that have no counterpart once its handoffs are answered.
fn unanswered(turn: &Turn) -> FxHashSet<usize> {
    let handoffs = turn.called_handoffs().iter();
    let answers: Vec<Item> = handoffs
        .map(|call| Item::output_of(&call.call, ""))
        .collect();
    let items = turn.items.iter().map(RunItem::item);
    let items: Vec<&Item> = items.chain(&answers).collect();
    let made = turn.items.iter().zip(Pairing::of(&items).paired());
    made.filter(|(_, is_paired)| !is_paired)
        .map(|(made, _)| made.key())
        .collect()
}

/// Returns for each merged item if it is from the history: the same item, or an equal one for each
/// that the history has. All others are new.
pub(crate) fn from_history(history: &Items, new: &Items, merged: &Items) -> Vec<bool> {
    let addresses =
        |items: &Items| -> FxHashSet<usize> { items.iter().map(Item::address).collect() };
    let (is_old, is_new) = (addresses(history), addresses(new));
    let present = addresses(merged);
    let mut equal: FxHashMap<&str, usize> = FxHashMap::default();
    for item in history {
        if !present.contains(&item.address()) {
            *equal.entry(item.as_json()).or_default() += 1;
        }
    }
    let mut take_equal = |item: &Item| match equal.get_mut(item.as_json()) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let merged = merged.iter().map(|item| {
        let address = item.address();
        is_old.contains(&address) || (!is_new.contains(&address) && take_equal(item))
    });
    merged.collect()
}
