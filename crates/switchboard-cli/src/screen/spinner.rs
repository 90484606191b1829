//! A sign on standard error that something is under way, on terminals only.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long it takes until waiting is worth a sign.
const PATIENCE: Duration = Duration::from_millis(250);

/// A sign that moves while the user waits.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    since: Option<Instant>,
    frame: usize,
    is_shown: bool,
}

impl Spinner {
    /// Shows that `who` is being waited for.
    pub(crate) fn turn(&mut self, err: &mut dyn Write, who: &str) -> io::Result<()> {
        const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            return Ok(());
        }
        let frame = FRAMES[self.frame % FRAMES.len()];
        self.frame += 1;
        self.is_shown = true;
        write!(err, "\r\u{1b}[2K{frame} {who}")?;
        err.flush()
    }

    /// Takes the sign away, for what comes in its place.
    pub(crate) fn clear(&mut self, err: &mut dyn Write) -> io::Result<()> {
        self.since = None;
        if !std::mem::take(&mut self.is_shown) {
            return Ok(());
        }
        write!(err, "\r\u{1b}[2K")?;
        err.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shown_to_who_does_not_wait_long() {
        let (mut spinner, mut err) = (Spinner::default(), Vec::new());
        spinner.turn(&mut err, "Billing").unwrap();
        spinner.clear(&mut err).unwrap();
        assert_eq!(err, b"");
    }

    #[test]
    fn what_was_shown_is_taken_away() {
        let (mut spinner, mut err) = (Spinner::default(), Vec::new());
        spinner.since = Instant::now().checked_sub(PATIENCE);
        spinner.turn(&mut err, "Billing").unwrap();
        spinner.clear(&mut err).unwrap();
        assert_eq!(err, "\r\u{1b}[2K⠋ Billing\r\u{1b}[2K".as_bytes());
    }
}
