//! Who is told of a conversation: the screen, a machine that reads JSON lines, a recording.

use std::io::{self, Write};

use crate::event::Line;

/// Is told what happens, as it happens.
pub(crate) trait Audience {
    /// Something happened.
    fn told(&mut self, line: &Line) -> io::Result<()>;

    /// Nothing happened for a moment.
    fn waiting(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes each event as a line of JSON.
pub(crate) struct JsonLines<W>(pub(crate) W);

impl<W: Write> Audience for JsonLines<W> {
    fn told(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, line)?;
        self.0.write_all(b"\n")?;
        self.0.flush()
    }
}

/// Keeps what happened.
impl Audience for Vec<Line> {
    fn told(&mut self, line: &Line) -> io::Result<()> {
        self.push(line.clone());
        Ok(())
    }
}

/// Both are told.
impl<A: Audience, B: Audience> Audience for (&mut A, &mut B) {
    fn told(&mut self, line: &Line) -> io::Result<()> {
        self.0.told(line)?;
        self.1.told(line)
    }

    fn waiting(&mut self) -> io::Result<()> {
        self.0.waiting()?;
        self.1.waiting()
    }
}
