//! Text that fits the terminal: wrapped at its width, wide characters counted as two columns, and
//! nothing in it that the terminal would obey.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Text that flows into a column, piece by piece as it comes.
///
/// Lines break at spaces, and between characters of scripts that have none. A word is held back until
/// it is complete, as it may have to go to the next line.
#[derive(Debug)]
pub(crate) struct Flow {
    /// How many columns a line has; `None` is no limit.
    width: Option<usize>,
    /// How far lines are indented.
    indent: usize,
    /// The column the next word would begin in.
    column: usize,
    /// Spaces before the next word.
    spaces: usize,
    /// The word that is not complete yet.
    word: String,
    /// Whether the last character was a carriage return, which only counts if no line feed follows.
    returned: bool,
    /// Line breaks that show once something follows them.
    breaks: usize,
}

impl Flow {
    /// A flow whose first line begins at `column` and whose others begin at `indent`.
    pub(crate) fn new(width: Option<usize>, column: usize, indent: usize) -> Self {
        let mut flow = Self {
            width: None,
            indent,
            column,
            spaces: 0,
            word: String::new(),
            returned: false,
            breaks: 0,
        };
        flow.resize(width);
        flow
    }

    /// Lines have this width from here on.
    pub(crate) fn resize(&mut self, width: Option<usize>) {
        // Some room is always left, however narrow the terminal is.
        self.width = width.map(|width| width.max(self.indent + 4));
    }

    /// What can be shown now that `text` has come.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if std::mem::take(&mut self.returned) && c != '\n' {
                self.add_escaped('\r', &mut out);
            }
            match c {
                '\r' => self.returned = true,
                '\n' | '\u{2028}' | '\u{2029}' => {
                    self.end_word(&mut out);
                    self.spaces = 0;
                    self.breaks += 1;
                }
                ' ' => {
                    self.end_word(&mut out);
                    self.spaces += 1;
                }
                '\t' => {
                    self.end_word(&mut out);
                    self.spaces += 4;
                }
                c if is_obeyed(c) => self.add_escaped(c, &mut out),
                c => self.add(c, &mut out),
            }
        }
        out
    }

    /// The rest. White space at the end is not shown.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.end_word(&mut out);
        out
    }

    fn add_escaped(&mut self, c: char, out: &mut String) {
        for escaped in c.escape_default() {
            self.add(escaped, out);
        }
    }

    fn add(&mut self, c: char, out: &mut String) {
        if self
            .word
            .chars()
            .next_back()
            .is_some_and(|last| may_break(last, c))
        {
            self.end_word(out);
        }
        self.word.push(c);
    }

    /// Shows the word that is complete now, on the next line if it does not fit this one.
    fn end_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        for _ in 0..std::mem::take(&mut self.breaks) {
            self.new_line(out);
        }
        let spaces = std::mem::take(&mut self.spaces);
        let width = word.width();
        let fits = |column: usize, flow: &Self| flow.width.is_none_or(|limit| column <= limit);
        if fits(self.column + spaces + width, self) {
            out.extend(std::iter::repeat_n(' ', spaces));
            out.push_str(&word);
            self.column += spaces + width;
            return;
        }
        if self.column > self.indent {
            self.new_line(out);
        }
        // A word longer than a line is cut where it must be.
        for part in parts(&word) {
            let width = part.width();
            if !fits(self.column + width, self) && self.column > self.indent {
                self.new_line(out);
            }
            out.push_str(part);
            self.column += width;
        }
    }

    fn new_line(&mut self, out: &mut String) {
        // No spaces are left at the ends of empty lines.
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', self.indent));
        self.column = self.indent;
    }
}

/// A whole text, wrapped and indented; the first line begins at `column`.
pub(crate) fn wrapped(text: &str, width: Option<usize>, column: usize, indent: usize) -> String {
    let mut flow = Flow::new(width, column, indent);
    let mut out = flow.push(text);
    out.push_str(&flow.finish());
    out
}

/// A text on one line, with nothing in it that a terminal obeys.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| is_obeyed(c) || is_line_break(c)) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().fold(String::new(), |mut out, c| {
        if is_obeyed(c) || is_line_break(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    });
    Cow::Owned(escaped)
}

/// A text filled up with spaces to a number of columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// The beginning of a text, at most so many columns, with a sign that there is more.
pub(crate) fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut width = 1;
    for part in parts(text) {
        width += part.width();
        if width > columns {
            break;
        }
        kept.push_str(part);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    Cow::Owned(kept)
}

/// Whether a terminal would do something for this character instead of showing it, or show the text
/// around it in another order.
fn is_obeyed(c: char) -> bool {
    let turns_text = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && !matches!(c, '\n' | '\r' | '\t') || turns_text
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}')
}

/// Whether a line may end after `last` and go on with `next`, with no space between them.
fn may_break(last: char, next: char) -> bool {
    const OPENING: &str = "（「『《【〈“‘([{";
    const CLOSING: &str = "，。！？、；：）」』》】〉”’…·)]},.!?;:%";
    let is_joined = last == '\u{200d}' || next.width().unwrap_or(0) == 0;
    let is_wide = |c: char| c.width() == Some(2);
    (is_wide(last) || is_wide(next))
        && !is_joined
        && !OPENING.contains(last)
        && !CLOSING.contains(next)
}

/// The smallest parts a text can be cut into: characters with what belongs to them.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut chars = rest.char_indices();
        let (_, mut last) = chars.next()?;
        let end = chars.find(|&(_, c)| {
            let begins = last != '\u{200d}' && c.width().unwrap_or(0) > 0;
            last = c;
            begins
        });
        let (part, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_to_the_next_line_whole() {
        assert_eq!(
            wrapped("A second charge is reversed", Some(16), 4, 4),
            "A second\n    charge is\n    reversed"
        );
    }

    #[test]
    fn wide_characters_count_twice_and_break_between_each_other() {
        assert_eq!(
            wrapped("多扣的款项会在三个工作日内退回。", Some(12), 0, 0),
            "多扣的款项会\n在三个工作日\n内退回。"
        );
    }

    #[test]
    fn no_line_begins_with_closing_punctuation() {
        assert_eq!(
            wrapped("多扣的款项。好", Some(10), 0, 0),
            "多扣的款\n项。好"
        );
    }

    #[test]
    fn pieces_flow_as_the_whole_does() {
        let text = "One family 👩‍👩‍👧 and an e\u{301}lan of wörds, 多扣的款项 and\r\n\r\nmore\tof it";
        for width in [None, Some(4), Some(9), Some(20)] {
            let whole = wrapped(text, width, 2, 2);
            let mut flow = Flow::new(width, 2, 2);
            let pieces: String = text
                .chars()
                .map(|c| flow.push(c.encode_utf8(&mut [0; 4])))
                .collect();
            assert_eq!(pieces + &flow.finish(), whole, "{width:?}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let text = "supercalifragilistic 👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧 多扣的款项会在三个工作日内退回 a b c";
        for width in 6..40 {
            for line in wrapped(text, Some(width), 2, 2).lines().skip(1) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn line_breaks_stay_and_those_at_the_end_go() {
        assert_eq!(wrapped("a\n\nb\n\n", None, 2, 2), "a\n\n  b");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_escaped() {
        assert_eq!(
            wrapped("\u{1b}[31mred\u{7} \u{9b}2J \u{202e}txt a\rb", None, 0, 0),
            "\\u{1b}[31mred\\u{7} \\u{9b}2J \\u{202e}txt a\\rb"
        );
        assert_eq!(one_line("a\nb\u{1b}c"), "a\\nb\\u{1b}c");
    }

    #[test]
    fn texts_are_cut_and_filled_by_columns() {
        assert_eq!(padded("账单", 6), "账单  ");
        assert_eq!(shortened("多扣的款项", 6), "多扣…");
        assert_eq!(shortened("short", 6), "short");
    }
}
