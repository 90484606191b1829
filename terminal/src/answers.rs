//! The terminal's answers to queries of the program.

use vt100::{Callbacks, Screen, capture::RowContents};

/// Collects the answers to send, and counts the lines that are lost from the scrollback.
///
/// Line editors query the cursor position or the capabilities of the terminal, and hang without an
/// answer.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pending: Vec<u8>,
    lines_lost: u64,
}

impl Answers {
    /// Takes the answers to send to the program.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// The number of lines that were dropped or cleared from the scrollback.
    pub(crate) fn lines_lost(&self) -> u64 {
        self.lines_lost
    }
}

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        i1: Option<u8>,
        _i2: Option<u8>,
        params: &[&[u16]],
        c: char,
    ) {
        let first = params.first().and_then(|param| param.first()).copied();
        match (i1, c, first) {
            (None, 'n', Some(5)) => self.pending.extend(b"\x1b[0n"),
            (None, 'n', Some(6)) => {
                let (row, column) = screen.cursor_position();
                let column = column.min(screen.size().1.get() - 1);
                let report = format!("\x1b[{};{}R", row + 1, column + 1);
                self.pending.extend(report.as_bytes());
            }
            // A VT100 with the advanced video option, which all programs support.
            (None, 'c', None | Some(0)) => self.pending.extend(b"\x1b[?1;2c"),
            _ => {}
        }
    }

    fn on_scroll(&mut self, _: RowContents<'_>, alternate_screen: bool) {
        // The alternate screen has no scrollback.
        if !alternate_screen {
            self.lines_lost += 1;
        }
    }
}
