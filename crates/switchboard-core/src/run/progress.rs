//! How far a step got before it failed, so that what it had done is not done again.

use std::sync::Arc;

use super::machine::{Phase, Run};
use super::turn::{Progress, RanTool};

impl Run {
    /// Notes what tools returned before one of them failed, so that they do not run again, and whose
    /// start was told.
    pub(super) fn tools_partly_ran(&mut self, done: Vec<RanTool>, started: Vec<usize>) {
        if let Phase::Tools(turn) = &mut self.phase {
            let tools = turn.tools_mut();
            tools.done = done;
            tools.started = started;
        }
    }

    /// The calls whose start hooks were told of already, by their place.
    pub(super) fn tools_started(&self) -> &[usize] {
        match &self.phase {
            Phase::Tools(turn) => &turn.tools().started,
            _ => &[],
        }
    }

    /// What tools of the turn have returned already.
    pub(super) fn tools_done(&self) -> &[RanTool] {
        match &self.phase {
            Phase::Tools(turn) => &turn.tools().done,
            _ => &[],
        }
    }

    /// How far the handoff got before the turn failed.
    pub(super) fn handoff_progress(&self) -> Progress {
        match &self.phase {
            Phase::Handoff(turn) => turn.progress,
            _ => Progress::Nothing,
        }
    }

    pub(super) fn note_handoff_progress(&mut self, progress: Progress) {
        if let Phase::Handoff(turn) = &mut self.phase {
            turn.progress = progress;
        }
    }

    /// Whom code picked for the handoff before the turn failed.
    pub(super) fn picked(&self) -> Option<&Arc<str>> {
        match &self.phase {
            Phase::Handoff(turn) => turn.picked.as_ref(),
            _ => None,
        }
    }

    /// Notes that the callback has run, and for whom where code picked them.
    pub(super) fn note_called_back(&mut self, picked: Option<Arc<str>>) {
        if let Phase::Handoff(turn) = &mut self.phase {
            turn.progress = Progress::CalledBack;
            turn.picked = picked;
        }
    }

    /// Whether hooks were told of the agent's end.
    pub(super) fn is_end_told(&self) -> bool {
        matches!(&self.phase, Phase::Output(turn, _) if turn.end_told)
    }

    pub(super) fn note_end_told(&mut self) {
        if let Phase::Output(turn, _) = &mut self.phase {
            turn.end_told = true;
        }
    }
}
