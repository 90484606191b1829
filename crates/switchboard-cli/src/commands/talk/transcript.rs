//! The sink of `--transcript`: what was said, and who has the conversation.

use std::io::{self, Write};

use switchboard_core::EventKind;
use switchboard_core::stream::{HandoffStatus, ItemEvent};

use crate::event_line::EventLine;
use crate::event_sink::{EventSink, write_advice, write_error, write_problem};
use crate::screen::style::Language;
use crate::screen::wrap::one_line;

/// Writes one line for each turn of the caller, each message and each handoff.
pub(super) struct Transcript<W> {
    out: W,
    language: Language,
}

impl<W: Write> Transcript<W> {
    pub(super) fn new(out: W, language: Language) -> Self {
        Self { out, language }
    }

    fn line(&mut self, name: &str, text: &str) -> io::Result<()> {
        // A line is a turn, however many lines were written.
        let words: Vec<&str> = text.split_whitespace().collect();
        writeln!(
            self.out,
            "{}: {}",
            one_line(name),
            one_line(&words.join(" "))
        )?;
        self.out.flush()
    }
}

impl<W: Write> EventSink for Transcript<W> {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        let agent = &*line.event.agent;
        match &line.event.kind {
            EventKind::RunStarted {
                input: Some(input), ..
            }
            | EventKind::InputPassed {
                input: Some(input), ..
            } => {
                let caller = self.language.user();
                self.line(caller, input)
            }
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text: Some(text),
                ..
            } => self.line(agent, text),
            EventKind::Handoff(handoff) if handoff.status == HandoffStatus::Taken => {
                let arrow = format!("→ {}", handoff.to);
                self.line(&handoff.from, &arrow)
            }
            kind => {
                write_problem(kind, self.language);
                Ok(())
            }
        }
    }

    fn write_failure(&mut self, message: &str) -> io::Result<()> {
        write_error(message, self.language);
        Ok(())
    }

    fn write_help(&mut self, help: &str) -> io::Result<()> {
        write_advice(help, self.language);
        Ok(())
    }
}
