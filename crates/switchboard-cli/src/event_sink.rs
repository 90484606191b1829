//! Destinations of a conversation's events.

use std::io::{self, Write};

use serde_json::Value;
use switchboard_core::EventKind;
use switchboard_core::approval::InterruptionKind;

use crate::event_line::EventLine;
use crate::screen::style::Language;
use crate::screen::waiting_name;
use crate::screen::wrap::one_line;
use crate::translate::translate;

/// Receives the events of a conversation as they happen.
pub(crate) trait EventSink {
    /// Writes an event.
    fn write(&mut self, line: &EventLine) -> io::Result<()>;

    /// Names a call that was made before the events began.
    fn note_call(&mut self, _call_id: &str, _tool: &str) {}

    /// Writes a failure that no event tells.
    fn write_failure(&mut self, _message: &str) -> io::Result<()> {
        Ok(())
    }

    /// Writes advice on the failure that was written last.
    fn write_help(&mut self, _help: &str) -> io::Result<()> {
        Ok(())
    }

    /// Called several times a second while no event comes.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes each event as a line of JSON, and failures and advice to standard error.
pub(crate) struct JsonLines<W> {
    out: W,
    /// The language of standard error.
    language: Language,
}

impl<W: Write> JsonLines<W> {
    /// Writes the events to `out`.
    pub(crate) fn new(out: W, language: Language) -> Self {
        Self { out, language }
    }

    /// Returns the destination of the events.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> EventSink for JsonLines<W> {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        writeln!(self.out, "{}", line.to_json()?)?;
        self.out.flush()
    }

    fn write_failure(&mut self, message: &str) -> io::Result<()> {
        write_error(message, self.language);
        Ok(())
    }

    fn write_help(&mut self, help: &str) -> io::Result<()> {
        let help = translate(help, self.language);
        // A closed standard error is no reason to fail.
        let _ = writeln!(anstream::stderr(), "{} {help}", self.language.help());
        Ok(())
    }
}

/// Writes the final outputs alone, and failures to standard error.
pub(crate) struct Answers<W> {
    out: W,
    language: Language,
}

impl<W: Write> Answers<W> {
    /// Writes the outputs to `out`.
    pub(crate) fn new(out: W, language: Language) -> Self {
        Self { out, language }
    }
}

impl<W: Write> EventSink for Answers<W> {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        match &line.event.kind {
            EventKind::RunFinished { output, .. } => {
                let text = match output {
                    Value::String(text) => text.trim_end(),
                    other => &other.to_string(),
                };
                writeln!(self.out, "{text}")?;
                self.out.flush()
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

/// Writes to standard error why a run has failed, or what it waits for. Other events are left out.
pub(crate) fn write_problem(event: &EventKind, language: Language) {
    // A closed standard error is no reason to fail.
    match event {
        EventKind::RunFailed { message, .. } => write_error(message, language),
        EventKind::RunInterrupted { interruptions, .. } => {
            for call in interruptions {
                let (agent, name) = (one_line(&call.agent), waiting_name(call));
                let text = match &call.kind {
                    InterruptionKind::Person { .. } => "is asked for an answer".to_owned(),
                    _ => format!("waits for a decision: {name}"),
                };
                let text = translate(&text, language);
                let _ = writeln!(anstream::stderr(), "{agent} {text}");
            }
        }
        _ => {}
    }
}

/// Writes a failure to standard error.
pub(crate) fn write_error(message: &str, language: Language) {
    let message = translate(message, language);
    let _ = writeln!(anstream::stderr(), "{} {message}", language.error());
}

/// Writes advice to standard error.
pub(crate) fn write_advice(help: &str, language: Language) {
    let help = translate(help, language);
    let _ = writeln!(anstream::stderr(), "  {} {help}", language.help());
}

/// Collects the events.
impl EventSink for Vec<EventLine> {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        self.push(line.clone());
        Ok(())
    }
}

impl EventSink for Box<dyn EventSink> {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        (**self).write(line)
    }

    fn note_call(&mut self, call_id: &str, tool: &str) {
        (**self).note_call(call_id, tool);
    }

    fn write_failure(&mut self, message: &str) -> io::Result<()> {
        (**self).write_failure(message)
    }

    fn write_help(&mut self, help: &str) -> io::Result<()> {
        (**self).write_help(help)
    }

    fn tick(&mut self) -> io::Result<()> {
        (**self).tick()
    }
}

/// Writes to both.
impl<A: EventSink, B: EventSink> EventSink for (&mut A, &mut B) {
    fn write(&mut self, line: &EventLine) -> io::Result<()> {
        self.0.write(line)?;
        self.1.write(line)
    }

    fn note_call(&mut self, call_id: &str, tool: &str) {
        self.0.note_call(call_id, tool);
        self.1.note_call(call_id, tool);
    }

    fn write_failure(&mut self, message: &str) -> io::Result<()> {
        self.0.write_failure(message)?;
        self.1.write_failure(message)
    }

    fn write_help(&mut self, help: &str) -> io::Result<()> {
        self.0.write_help(help)?;
        self.1.write_help(help)
    }

    fn tick(&mut self) -> io::Result<()> {
        self.0.tick()?;
        self.1.tick()
    }
}
