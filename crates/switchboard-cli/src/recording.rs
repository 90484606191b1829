//! Checks of recordings: their version, and that they are whole.

use switchboard_core::stream::STREAM_VERSION;
use switchboard_core::{EventKind, StreamEvent};

use crate::failure::Failure;

/// Fails if a recording is of a version of the events that this program does not know.
pub(crate) fn check_version(event: &EventKind, name: &str) -> Result<(), Failure> {
    match event {
        EventKind::RunStarted { version, .. } if *version > STREAM_VERSION => Err(Failure::usage(
            format!(
                "{name} was recorded by a newer version of switchboard: its events have the version \
                 {version}, and this program knows {STREAM_VERSION}"
            ),
            "use that version, or a newer one",
        )),
        _ => Ok(()),
    }
}

/// The parts that a recording lacks.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    /// A run has events and no beginning.
    begins_within_run: bool,
    /// A run begins within another one.
    lacks_end: bool,
    has_run: bool,
    is_in_run: bool,
    ends_within_line: bool,
}

impl Cuts {
    /// Takes the next event.
    pub(crate) fn see(&mut self, event: &StreamEvent) {
        match &event.kind {
            EventKind::RunStarted { .. } => {
                self.lacks_end |= self.is_in_run;
                self.is_in_run = true;
                self.has_run = true;
            }
            EventKind::RunFailed { .. } => {
                // A run can fail before it begins, and its store can fail after it.
                self.begins_within_run |= !self.has_run && event.turn > 0;
                self.is_in_run = false;
            }
            EventKind::RunFinished { .. }
            | EventKind::RunInterrupted { .. }
            | EventKind::RunStopped { .. } => {
                self.begins_within_run |= !self.is_in_run;
                self.is_in_run = false;
            }
            EventKind::TurnStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ReasoningDelta { .. }
            | EventKind::ArgumentsDelta { .. }
            | EventKind::Usage { .. }
            | EventKind::Item { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolEnded { .. }
            | EventKind::Handoff { .. }
            | EventKind::Inner { .. } => self.begins_within_run |= !self.is_in_run,
            _ => {}
        }
    }

    /// Takes a last line that is no whole event.
    pub(crate) fn end_within_line(&mut self) {
        self.ends_within_line = true;
    }

    /// A sentence for each cut.
    pub(crate) fn describe(&self, name: &str) -> Vec<String> {
        let mut cuts = Vec::new();
        if self.begins_within_run {
            cuts.push(format!("{name} is cut: the beginning of a run is missing"));
        }
        if self.lacks_end {
            cuts.push(format!("{name} is cut: the end of a run is missing"));
        }
        if self.ends_within_line {
            cuts.push(format!("{name} is cut: it ends within a line"));
        } else if self.is_in_run {
            cuts.push(format!("{name} is cut: it ends before its last run does"));
        }
        cuts
    }
}
