//! Events of agents inside a call: agents used as tools, and agents that answer beside others.

use std::io;

use switchboard_core::StreamEvent;
use switchboard_core::stream::{EventKind, HandoffStatus, ItemEvent};

use super::style::{DIM, NOTICE};
use super::wrap::one_line;
use super::{Screen, arguments_text};

impl Screen {
    /// Draws an event of an agent inside a call, as a line under what was drawn before.
    pub(super) fn inner_event(&mut self, call_id: &str, event: &StreamEvent) -> io::Result<()> {
        let agent = one_line(&event.agent);
        let text = match &event.kind {
            EventKind::Inner { call_id, event, .. } => return self.inner_event(call_id, event),
            // The answer of a tool is drawn when the tool ends.
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text: Some(text),
                ..
            } if !self.calls.contains_key(call_id) => text.trim().to_owned(),
            EventKind::Item {
                name: ItemEvent::ToolCalled,
                item,
                ..
            } => {
                self.note_item(item.item());
                return Ok(());
            }
            EventKind::ToolStarted {
                tool, arguments, ..
            } => format!("{}({})", one_line(tool), arguments_text(arguments)),
            EventKind::Handoff(handoff) if handoff.status == HandoffStatus::Taken => {
                format!("→ {}", one_line(&handoff.to))
            }
            EventKind::RunFailed { message, .. } => {
                let text = format!("{agent}: {} {message}", self.look.language.failed());
                return self.detail(NOTICE, &self.shortened(&text));
            }
            _ => return Ok(()),
        };
        self.detail(DIM, &self.shortened(&format!("{agent}: {text}")))
    }
}
