//! A spinner for terminals.

use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

/// The time after which the spinner appears.
const DELAY: Duration = Duration::from_millis(250);

/// A spinner that shows which agent the user waits for.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    since: Option<Instant>,
    frame: usize,
    is_shown: bool,
}

impl Spinner {
    /// Draws the next frame, once the delay is over.
    pub(crate) fn draw(&mut self, terminal: &mut dyn Write, agent: &str) -> io::Result<()> {
        const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < DELAY {
            return Ok(());
        }
        let frame = FRAMES[self.frame % FRAMES.len()];
        self.frame += 1;
        self.is_shown = true;
        write!(terminal, "\r\u{1b}[2K{frame} {agent}")?;
        terminal.flush()
    }

    /// Removes the spinner, and starts the delay again.
    pub(crate) fn clear(&mut self, terminal: &mut dyn Write) -> io::Result<()> {
        self.since = None;
        if !std::mem::take(&mut self.is_shown) {
            return Ok(());
        }
        write!(terminal, "\r\u{1b}[2K")?;
        terminal.flush()
    }
}

/// Returns `true` if a spinner can be drawn on standard error.
pub(crate) fn can_animate() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_before_the_delay_is_over() {
        let (mut spinner, mut terminal) = (Spinner::default(), Vec::new());
        spinner.draw(&mut terminal, "Billing").unwrap();
        spinner.clear(&mut terminal).unwrap();
        assert_eq!(terminal, b"");
    }

    #[test]
    fn a_drawn_spinner_is_removed() {
        let (mut spinner, mut terminal) = (Spinner::default(), Vec::new());
        spinner.since = Instant::now().checked_sub(DELAY);
        spinner.draw(&mut terminal, "Billing").unwrap();
        spinner.clear(&mut terminal).unwrap();
        assert_eq!(terminal, "\r\u{1b}[2K⠋ Billing\r\u{1b}[2K".as_bytes());
    }
}
