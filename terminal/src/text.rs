//! A screen as text, with and without what has scrolled out of it.

use vt100::Screen;

/// The rows of the screen, trimmed at the end, without the empty ones below the last.
pub(crate) fn screen(screen: &Screen) -> String {
    trimmed(&rows(screen))
}

/// The rows of the screen, with the spaces that were written at their ends.
pub(crate) fn rows(screen: &Screen) -> String {
    let columns = screen.size().1.get();
    screen.rows(0, columns).collect::<Vec<_>>().join("\n")
}

/// The scrollback from line `first` on and the screen, with lines that were wrapped made whole, and with
/// the spaces that were written at their ends.
///
/// Leaves the view at the screen itself.
pub(crate) fn since(screen: &mut Screen, first: usize) -> String {
    let height = usize::from(screen.size().0.get());
    let mut text = String::new();
    let mut next = first.min(screen.scrollback_len());
    loop {
        let above = screen.scrollback_len() - next;
        screen.set_scrollback(above);
        let taken = if above == 0 {
            height
        } else {
            above.min(height)
        };
        for (row, line) in (0..).zip(screen.rows(0, u16::MAX).take(taken)) {
            text.push_str(&line);
            if !screen.row_wrapped(row) {
                text.push('\n');
            }
        }
        if above == 0 {
            break;
        }
        next += taken;
    }
    screen.set_scrollback(0);
    text
}

/// Lines without spaces at their ends, and without empty ones after the last.
pub(crate) fn trimmed(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end_matches('\n').to_owned()
}

/// Whether a text has another in it, with or without the spaces at the ends of lines: who waits for the
/// prompt `> ` means its space, who waits for two lines does not care what follows the first.
pub(crate) fn shows(text: &str, wanted: &str) -> bool {
    text.contains(wanted) || trimmed(text).contains(wanted)
}
