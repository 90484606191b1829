//! What a session is given of a run.

use rustc_hash::FxHashSet;

use super::halves::drop_halves;
use super::machine::{Phase, Run};
use super::model_input;
use crate::handoff::Parts;
use crate::items::{RunItem, RunItemKind};

impl Run {
    /// What a session may keep of a turn whose final output, made by a tool, must not pass.
    /// The session is to be given it now, once.
    pub(super) fn keep_withheld(&mut self) {
        if let Phase::Output(turn, _) = &self.phase
            && turn.ends_at_tool
            && self.has_session
            && self.saved_early.is_empty()
        {
            self.unsaved.extend(turn.withheld());
            self.saved_early = turn.items.iter().map(RunItem::key).collect();
        }
    }

    /// Notes what the session must be given.
    pub(super) fn note_unsaved<'a>(&mut self, items: impl Iterator<Item = &'a RunItem>) {
        let early: FxHashSet<usize> = std::mem::take(&mut self.saved_early).into_iter().collect();
        let unsaved = items.filter(|made| !early.contains(&made.key()));
        let batch = unsaved.map(RunItem::to_input_item).collect();
        self.unsaved.extend(model_input::latest_only(batch));
    }

    /// Notes what the session must be given of a turn that a filter rewrote: what the filter left
    /// for the record, and any call whose output it left for the model alone.
    pub(super) fn note_unsaved_parts(&mut self, parts: &Parts) {
        if !self.has_session {
            return;
        }
        let mut kept: Vec<&RunItem> = parts.new_items.iter().collect();
        let shown = parts.input_items.as_ref().unwrap_or(&parts.new_items);
        let answered: FxHashSet<u64> = shown
            .iter()
            .filter(|made| matches!(made.kind(), RunItemKind::ToolCallOutput { .. }))
            .map(|made| made.item().identity())
            .collect();
        if !answered.is_empty() {
            let recorded: FxHashSet<usize> = parts.new_items.iter().map(RunItem::key).collect();
            let calls = parts.pre_handoff_items.iter().chain(shown);
            kept.extend(calls.filter(|made| {
                *made.kind() == RunItemKind::ToolCall
                    && answered.contains(&made.item().output_identity())
                    && !recorded.contains(&made.key())
            }));
        }
        if let Phase::Handoff(turn) = &self.phase {
            drop_halves(&mut kept, turn);
        }
        self.note_unsaved(kept.into_iter());
    }

    /// What is worth keeping of a turn that fails after its tools have run. The session is to be
    /// given it now; the run itself stays where it is.
    pub(super) fn keep_completed_tools(&mut self) -> Vec<RunItem> {
        let (Phase::Handoff(turn) | Phase::Judge(turn)) = &self.phase else {
            return Vec::new();
        };
        let kept = turn.completed_tools();
        if self.has_session && self.saved_early.is_empty() {
            self.unsaved.extend(kept.iter().map(RunItem::to_input_item));
            self.saved_early = kept.iter().map(RunItem::key).collect();
        }
        kept
    }
}
