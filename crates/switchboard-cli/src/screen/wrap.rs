//! Wraps text at the terminal's width, counts wide characters as two columns, and escapes control
//! characters.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The first private character that marks a style. Marks take no column.
pub(super) const FIRST_MARK: char = '\u{f700}';
/// The last private character that marks a style.
pub(super) const LAST_MARK: char = '\u{f73f}';
/// The first private character that sets the further indent of lines that are wrapped: this one is 0.
pub(super) const FIRST_HANG: char = '\u{f740}';
/// The last private character that sets it.
pub(super) const LAST_HANG: char = '\u{f77f}';

/// The columns of a text, without marks of styles.
pub(super) fn columns(text: &str) -> usize {
    let is_mark = |c: char| (FIRST_MARK..=LAST_MARK).contains(&c);
    let marks = text.chars().filter(|c| is_mark(*c)).count();
    // A private character has one column otherwise.
    text.width() - marks
}

/// Wraps text that arrives in pieces.
///
/// Lines break at spaces, and between characters of scripts that have none. A word is held back until
/// it is complete, as it may have to go to the next line.
#[derive(Debug)]
pub(crate) struct LineWrapper {
    /// The width of lines; `None` is no limit.
    width: Option<usize>,
    /// The indent of lines after the first.
    indent: usize,
    /// The further indent of lines that begin because the one before is full.
    hang: usize,
    /// Set if private characters set the further indent.
    takes_hangs: bool,
    /// The current column.
    column: usize,
    /// The number of spaces before the next word.
    spaces: usize,
    /// The word that is not complete yet.
    word: String,
    /// Set after a carriage return, which is written unless a line feed follows.
    has_return: bool,
    /// The number of line breaks before the next word.
    breaks: usize,
}

impl LineWrapper {
    /// Creates a wrapper whose first line begins at `column` and whose others begin at `indent`.
    pub(crate) fn new(width: Option<usize>, column: usize, indent: usize) -> Self {
        let mut wrapper = Self {
            width: None,
            indent,
            hang: 0,
            takes_hangs: false,
            column,
            spaces: 0,
            word: String::new(),
            has_return: false,
            breaks: 0,
        };
        wrapper.resize(width);
        wrapper
    }

    /// Lets private characters set the further indent of wrapped lines.
    pub(super) fn with_hangs(mut self) -> Self {
        self.takes_hangs = true;
        self
    }

    /// Sets the width of the following lines.
    pub(crate) fn resize(&mut self, width: Option<usize>) {
        // Leaves room for text in the narrowest terminal.
        self.width = width.map(|width| width.max(self.indent + 4));
    }

    /// Adds a piece of text, and returns the output that is complete.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if std::mem::take(&mut self.has_return) && c != '\n' {
                self.add_escaped('\r', &mut out);
            }
            match c {
                '\r' => self.has_return = true,
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
                c if is_control(c) => self.add_escaped(c, &mut out),
                FIRST_HANG..=LAST_HANG if self.takes_hangs => {
                    self.end_word(&mut out);
                    let hang = u32::from(c) - u32::from(FIRST_HANG);
                    self.hang = usize::try_from(hang).unwrap_or(0);
                }
                c => self.add(c, &mut out),
            }
        }
        out
    }

    /// The columns of a line.
    pub(super) fn room(&self) -> Option<usize> {
        self.width.map(|width| width.saturating_sub(self.indent))
    }

    /// Returns the rest of the output, without trailing white space.
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

    /// Writes the current word, on the next line if it does not fit on this one.
    fn end_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        for _ in 0..std::mem::take(&mut self.breaks) {
            self.new_line(out);
        }
        let spaces = std::mem::take(&mut self.spaces);
        let width = columns(&word);
        let fits =
            |column: usize, wrapper: &Self| wrapper.width.is_none_or(|limit| column <= limit);
        if fits(self.column + spaces + width, self) {
            out.extend(std::iter::repeat_n(' ', spaces));
            out.push_str(&word);
            self.column += spaces + width;
            return;
        }
        let indent = self.wrapped_indent();
        if self.column > indent {
            self.wrap(out);
        }
        // A word longer than a line is cut.
        for part in graphemes(&word) {
            let width = columns(part);
            if !fits(self.column + width, self) && self.column > indent {
                self.wrap(out);
            }
            out.push_str(part);
            self.column += width;
        }
    }

    /// The indent of a line that begins because the one before is full. It leaves room for text.
    fn wrapped_indent(&self) -> usize {
        let most = self
            .width
            .map_or(usize::MAX, |width| width.saturating_sub(4));
        (self.indent + self.hang).min(most.max(self.indent))
    }

    fn wrap(&mut self, out: &mut String) {
        self.begin_line(self.wrapped_indent(), out);
    }

    fn new_line(&mut self, out: &mut String) {
        self.begin_line(self.indent, out);
    }

    fn begin_line(&mut self, indent: usize, out: &mut String) {
        // Empty lines have no trailing spaces.
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }
}

/// Wraps and indents a whole text, whose first line begins at `column`.
pub(crate) fn wrapped(text: &str, width: Option<usize>, column: usize, indent: usize) -> String {
    let mut wrapper = LineWrapper::new(width, column, indent);
    let out = wrapper.push(text);
    out + &wrapper.finish()
}

/// Escapes line breaks and control characters.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| is_control(c) || is_line_break(c)) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for c in text.chars() {
        if is_control(c) || is_line_break(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Pads a text with spaces to a number of columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// Cuts a text to a number of columns, and marks the cut with an ellipsis.
pub(crate) fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut start = String::new();
    let mut width = 1;
    for part in graphemes(text) {
        width += part.width();
        if width > columns {
            break;
        }
        start.push_str(part);
    }
    start.truncate(start.trim_end().len());
    start.push('…');
    Cow::Owned(start)
}

/// Returns `true` for control characters, also those that change the direction of text.
fn is_control(c: char) -> bool {
    let changes_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && !matches!(c, '\n' | '\r' | '\t') || changes_direction
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}')
}

/// Returns `true` if a line may break between these characters.
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

/// Splits a text into characters, each with its combining characters and joined emoji.
fn graphemes(text: &str) -> impl Iterator<Item = &str> {
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
    fn words_are_not_split() {
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
    fn pieces_are_wrapped_as_the_whole_text_is() {
        let text = "One family 👩‍👩‍👧 and an e\u{301}lan of wörds, 多扣的款项 and\r\n\r\nmore\tof it";
        for width in [None, Some(4), Some(9), Some(20)] {
            let whole = wrapped(text, width, 2, 2);
            let mut wrapper = LineWrapper::new(width, 2, 2);
            let pieces: String = text
                .chars()
                .map(|c| wrapper.push(c.encode_utf8(&mut [0; 4])))
                .collect();
            assert_eq!(pieces + &wrapper.finish(), whole, "{width:?}");
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
    fn line_breaks_stay_except_at_the_end() {
        assert_eq!(wrapped("a\n\nb\n\n", None, 2, 2), "a\n\n  b");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            wrapped("\u{1b}[31mred\u{7} \u{9b}2J \u{202e}txt a\rb", None, 0, 0),
            "\\u{1b}[31mred\\u{7} \\u{9b}2J \\u{202e}txt a\\rb"
        );
        assert_eq!(one_line("a\nb\u{1b}c"), "a\\nb\\u{1b}c");
    }

    #[test]
    fn texts_are_cut_and_padded_by_columns() {
        assert_eq!(padded("账单", 6), "账单  ");
        assert_eq!(shortened("多扣的款项", 6), "多扣…");
        assert_eq!(shortened("short", 6), "short");
    }
}
