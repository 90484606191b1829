//! The text of a screen, with and without the scrollback.

use vt100::Screen;

/// The rows of the screen, without trailing spaces and trailing empty rows.
pub(crate) fn screen(screen: &Screen) -> String {
    trimmed(&rows(screen))
}

/// The rows of the screen, with trailing spaces that were written.
pub(crate) fn rows(screen: &Screen) -> String {
    let columns = screen.size().1.get();
    screen.rows(0, columns).collect::<Vec<_>>().join("\n")
}

/// The scrollback from line `first` on and the screen, with wrapped lines joined, and with trailing spaces
/// that were written.
///
/// Resets the scroll position.
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

/// Removes trailing spaces of lines and trailing empty lines.
pub(crate) fn trimmed(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end_matches('\n').to_owned()
}

/// Returns `true` if a text contains another, with or without the trailing spaces of lines: the space
/// of the prompt `> ` matters, but not spaces between two expected lines.
pub(crate) fn shows(text: &str, wanted: &str) -> bool {
    text.contains(wanted) || trimmed(text).contains(wanted)
}
