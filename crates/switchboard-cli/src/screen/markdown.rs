//! Draws Markdown as it arrives: headings, lists, quotes, tables, code, emphasis and links, by the rules of CommonMark.
//!
//! Text is held back only while what follows decides about it: the beginning of a line, a mark that may be closed, a
//! table. What turns out to be no mark is written as it is.
//!
//! Styles are marked in the text by private characters, which the wrapper counts as no columns, and which
//! become escape sequences afterwards. In the text of a model, these characters are replaced.

mod inline;
mod lines;
mod styles;
mod table;

use super::wrap::{FIRST_HANG, FIRST_MARK, LAST_HANG, LineWrapper};
use inline::{Base, Before, End, is_special};
use lines::{Line, fence, is_fence_end, is_rule, leading_spaces, line_kind};
use styles::{CODE, HEADING, QUOTE, escape_sequences, mark};

/// The largest number of bytes that are held back for a mark to be closed.
const MAX_HELD: usize = 2_000;

/// The number of bytes from which held text is looked at only after it has grown by an eighth.
const MIN_HELD_BACK: usize = 128;

/// The largest number of bytes of a word that are looked at for the beginning of an address.
const MAX_WORD: usize = 200;

/// Wraps and styles Markdown that arrives in pieces.
#[derive(Debug)]
pub(crate) struct MarkdownWrapper {
    wrapper: LineWrapper,
    /// The beginning of a line, until it is known what it begins.
    line_start: Option<String>,
    /// Set if the line before has ended, and its end is not written yet.
    has_break: bool,
    block: Block,
    /// Set after an item of a list, until a line that is not part of it.
    is_in_list: bool,
    /// The lines of what is or may be a table.
    table: Vec<String>,
    /// Text of the current block that begins with what may be a mark.
    held: String,
    /// The length of `held` from which it is looked at again, so that the work is linear in the length of the text.
    look_at: usize,
    /// The last word before it.
    word: String,
    /// The last character before it.
    last: char,
}

/// The block that the current line is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    None,
    /// Text whose further lines are part of it.
    Paragraph {
        styles: u32,
        /// The beginning of further lines.
        prefix: String,
        is_quote: bool,
    },
    /// A heading, or a line of indented code.
    Line {
        styles: u32,
    },
    /// Code between fences.
    Fence {
        mark: char,
        length: usize,
    },
}

impl MarkdownWrapper {
    /// Creates a wrapper whose first line begins at `column` and whose others begin at `indent`.
    pub(crate) fn new(width: Option<usize>, column: usize, indent: usize) -> Self {
        Self {
            wrapper: LineWrapper::new(width, column, indent).with_hangs(),
            line_start: Some(String::new()),
            has_break: false,
            block: Block::None,
            is_in_list: false,
            table: Vec::new(),
            held: String::new(),
            look_at: 0,
            word: String::new(),
            last: '\n',
        }
    }

    /// Sets the width of the following lines.
    pub(crate) fn resize(&mut self, width: Option<usize>) {
        self.wrapper.resize(width);
    }

    /// Adds a piece of text, and returns the output that is complete.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut marked = String::new();
        for c in text.chars() {
            let c = match c {
                '\r' => continue,
                c if (FIRST_MARK..=LAST_HANG).contains(&c) => '\u{fffd}',
                c => c,
            };
            self.add(c, &mut marked);
        }
        escape_sequences(&self.wrapper.push(&marked))
    }

    /// Returns the rest of the output, with all styles off.
    pub(crate) fn finish(&mut self) -> String {
        let mut marked = String::new();
        if let Some(start) = self.line_start.take().filter(|start| !start.is_empty()) {
            self.whole_line(&start, &mut marked);
        }
        self.end_table(&mut marked);
        self.end_block(&mut marked);
        let out = self.wrapper.push(&marked) + &self.wrapper.finish();
        escape_sequences(&out)
    }

    fn add(&mut self, c: char, out: &mut String) {
        if c == '\n' {
            match self.line_start.take() {
                Some(start) => self.whole_line(&start, out),
                None => self.end_line(out),
            }
            self.line_start = Some(String::new());
            return;
        }
        let Some(start) = &mut self.line_start else {
            self.text(c, out);
            return;
        };
        start.push(c);
        let line = match line_kind(start, &self.block, self.is_in_list) {
            Some(Line::Whole) | None
                if start.len() <= MAX_HELD || start.trim_start().starts_with('|') =>
            {
                return;
            }
            Some(Line::Whole) | None => Line::Text,
            Some(line) => line,
        };
        let start = self.line_start.take().unwrap_or_default();
        self.end_table(out);
        self.begin(&line, &start, out);
    }

    /// Ends a line whose beginning was known.
    fn end_line(&mut self, out: &mut String) {
        if !matches!(self.block, Block::Paragraph { .. } | Block::Fence { .. }) {
            self.end_block(out);
        } else if matches!(self.block, Block::Fence { .. }) {
            out.push(mark(0));
        }
        self.has_break = true;
    }

    /// Writes a line that only its end decides about.
    fn whole_line(&mut self, line: &str, out: &mut String) {
        if let Block::Fence {
            mark: fence,
            length,
        } = self.block
        {
            if is_fence_end(line, fence, length) {
                self.block = Block::None;
                return;
            }
            if line.trim().is_empty() {
                self.write_break(out);
                self.has_break = true;
                return;
            }
            self.begin(&Line::Code, line, out);
            self.end_line(out);
            return;
        }
        let trimmed = line.trim();
        if trimmed.starts_with('|') && leading_spaces(line) < 4 {
            self.table.push(line.to_owned());
            if self.table.len() == 2 && !table::is_table(&self.table[0], &self.table[1]) {
                self.end_table(out);
            }
            return;
        }
        self.end_table(out);
        if trimmed.is_empty() {
            self.end_block(out);
            self.write_break(out);
            self.has_break = true;
        } else if let Some((mark, length)) = fence(line) {
            self.end_block(out);
            self.write_break(out);
            self.block = Block::Fence { mark, length };
        } else if let Some(underline) = self.underline(trimmed) {
            self.end_block(out);
            self.write_break(out);
            out.extend(std::iter::repeat_n(underline, trimmed.chars().count()));
            self.has_break = true;
        } else if is_rule(trimmed) {
            self.end_block(out);
            self.is_in_list = false;
            self.write_break(out);
            out.push_str("────────");
            self.has_break = true;
        } else if trimmed == ">" {
            self.end_block(out);
            self.begin(&Line::Quote, line, out);
            self.end_line(out);
        } else {
            self.begin(&Line::Text, line, out);
            self.end_line(out);
        }
    }

    /// The line below a heading, as it is drawn.
    fn underline(&self, line: &str) -> Option<char> {
        let Block::Paragraph {
            is_quote: false, ..
        } = &self.block
        else {
            return None;
        };
        match line.chars().next() {
            _ if line.len() < 2 || self.is_in_list => None,
            Some('=') if line.chars().all(|c| c == '=') => Some('═'),
            Some('-') if line.chars().all(|c| c == '-') => Some('─'),
            _ => None,
        }
    }

    /// Writes the lines that were held back as a table, or as the text that they are.
    fn end_table(&mut self, out: &mut String) {
        let lines = std::mem::take(&mut self.table);
        let [header, delimiters, ..] = lines.as_slice() else {
            for line in lines {
                self.begin(&Line::Text, &line, out);
                self.end_line(out);
            }
            return;
        };
        if !table::is_table(header, delimiters) {
            for line in lines {
                self.begin(&Line::Text, &line, out);
                self.end_line(out);
            }
            return;
        }
        self.end_block(out);
        for row in table::draw(&lines, self.wrapper.room()) {
            self.write_break(out);
            out.push(hang(2));
            out.push_str(&row);
            self.has_break = true;
        }
        self.is_in_list = false;
    }

    /// Begins a line of this kind.
    fn begin(&mut self, line: &Line, start: &str, out: &mut String) {
        let spaces = leading_spaces(start);
        let rest = start.trim_start();
        if let (
            Line::Text,
            Block::Paragraph {
                is_quote: false, ..
            },
        )
        | (Line::Quote, Block::Paragraph { is_quote: true, .. }) = (line, &self.block)
        {
            let rest = if *line == Line::Quote {
                rest[1..].trim_start()
            } else {
                rest
            };
            self.has_break = false;
            let indent = self.base().prefix.chars().count();
            self.text('\n', out);
            if *line == Line::Text {
                // Spaces beyond those of the block are kept.
                self.all(&" ".repeat(spaces.saturating_sub(indent)), out);
            }
            self.all(rest, out);
            return;
        }
        if matches!(self.block, Block::Fence { .. }) {
            self.write_break(out);
            out.push(hang(0));
            out.push(mark(CODE));
            out.push_str(start);
            return;
        }
        self.end_block(out);
        self.write_break(out);
        self.last = '\n';
        self.word.clear();
        match line {
            Line::Code => {
                out.push(hang(0));
                out.push(mark(CODE));
                out.push_str(start);
                self.block = Block::Line { styles: CODE };
            }
            Line::Heading => {
                self.is_in_list = false;
                out.push(hang(0));
                out.push(mark(HEADING));
                self.block = Block::Line { styles: HEADING };
                self.all(rest.trim_start_matches('#').trim_start(), out);
            }
            Line::Item(marker) => {
                self.is_in_list = true;
                let shown = if rest.starts_with(['-', '*', '+']) {
                    "•"
                } else {
                    &rest[..*marker]
                };
                let columns = spaces + shown.chars().count() + 1;
                out.push(hang(columns));
                out.extend(std::iter::repeat_n(' ', spaces));
                out.push_str(shown);
                out.push(' ');
                self.begin_paragraph(0, " ".repeat(columns), false);
                self.all(rest[*marker..].trim_start(), out);
            }
            Line::Quote => {
                self.is_in_list = false;
                out.push(hang(2));
                out.push(mark(QUOTE));
                out.push_str("│ ");
                self.begin_paragraph(QUOTE, "│ ".to_owned(), true);
                self.all(rest[1..].trim_start(), out);
            }
            Line::Text | Line::Whole => {
                self.is_in_list &= spaces > 0;
                out.push(hang(spaces));
                out.extend(std::iter::repeat_n(' ', spaces));
                self.begin_paragraph(0, " ".repeat(spaces), false);
                self.all(rest, out);
            }
        }
    }

    fn begin_paragraph(&mut self, styles: u32, prefix: String, is_quote: bool) {
        self.block = Block::Paragraph {
            styles,
            prefix,
            is_quote,
        };
    }

    fn write_break(&mut self, out: &mut String) {
        if std::mem::take(&mut self.has_break) {
            out.push('\n');
        }
    }

    /// Ends a block: what was held back is final, and styles end with it.
    fn end_block(&mut self, out: &mut String) {
        self.settle(End::Final, out);
        if let Block::Paragraph { styles, .. } | Block::Line { styles } = self.block
            && styles != 0
        {
            out.push(mark(0));
        }
        if !matches!(self.block, Block::Fence { .. }) {
            self.block = Block::None;
        }
        self.last = '\n';
        self.word.clear();
    }

    fn all(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.text(c, out);
        }
    }

    /// Adds a character of the current block.
    fn text(&mut self, c: char, out: &mut String) {
        if matches!(
            self.block,
            Block::Fence { .. } | Block::Line { styles: CODE }
        ) {
            out.push(c);
            return;
        }
        if self.held.is_empty() && !is_special(c) {
            out.push(c);
            if c == '\n' {
                out.push_str(self.base().prefix);
            }
            self.note(c);
            return;
        }
        let before = self.held.chars().next_back();
        self.held.push(c);
        // Only these can settle what was held back.
        let may_settle = before.is_some_and(|before| {
            before != c && is_special(before) || before == ']' || before == '\\'
        });
        let may_settle = may_settle || c == ')' || self.held.len().is_multiple_of(256);
        if self.held.len() > MAX_HELD {
            self.settle(End::Open, out);
            if self.held.len() > MAX_HELD {
                self.settle(End::Final, out);
            }
        } else if may_settle && self.held.len() >= self.look_at {
            self.settle(End::Open, out);
        }
    }

    /// Writes what was held back, if nothing that follows can change what it is.
    fn settle(&mut self, end: End, out: &mut String) {
        if self.held.is_empty() {
            return;
        }
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + self.held.len());
        let before = Before {
            last: self.last,
            in_url: self.word.contains("://"),
        };
        let rendered = inline::render(&self.held, before, self.base(), end);
        if let Some(rendered) = rendered {
            out.push_str(&rendered.marked);
            let rest = self.held.split_off(rendered.length);
            for c in std::mem::replace(&mut self.held, rest).chars() {
                self.note(c);
            }
        }
        self.look_at = match self.held.len() {
            ..MIN_HELD_BACK => 0,
            length => length + length / 8,
        };
    }

    /// Notes a character that was written.
    fn note(&mut self, c: char) {
        self.last = c;
        if c.is_whitespace() {
            self.word.clear();
        } else if self.word.len() < MAX_WORD {
            self.word.push(c);
        }
    }

    fn base(&self) -> Base<'_> {
        match &self.block {
            Block::Paragraph { styles, prefix, .. } => Base {
                styles: *styles,
                prefix,
            },
            Block::Line { styles } => Base {
                styles: *styles,
                prefix: "",
            },
            Block::None | Block::Fence { .. } => Base {
                styles: 0,
                prefix: "",
            },
        }
    }
}

/// The private character that sets the further indent of wrapped lines.
fn hang(columns: usize) -> char {
    let columns = u32::try_from(columns).unwrap_or(0).min(63);
    char::from_u32(u32::from(FIRST_HANG) + columns).unwrap_or(FIRST_HANG)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// The number of bytes of held text that were looked at.
        pub(super) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    /// Draws a text at once and in single characters, which must not differ.
    fn drawn(text: &str) -> String {
        let whole = {
            let mut wrapper = MarkdownWrapper::new(Some(40), 0, 0);
            wrapper.push(text) + &wrapper.finish()
        };
        let mut wrapper = MarkdownWrapper::new(Some(40), 0, 0);
        let mut pieces = String::new();
        for c in text.chars() {
            pieces.push_str(&wrapper.push(&c.to_string()));
        }
        pieces.push_str(&wrapper.finish());
        assert_eq!(whole, pieces, "{text}");
        whole.replace("\u{1b}[0", "<").replace('\u{1b}', "ESC")
    }

    #[test]
    fn emphasis_code_and_links_are_styled() {
        assert_eq!(drawn("a **b** c"), "a <;1mb<m c");
        assert_eq!(drawn("an *x* and `y*z*`"), "an <;3mx<m and <;36my*z*<m");
        assert_eq!(
            drawn("see [docs](https://a.b/c) now"),
            "see <;34mdocs<m (https://a.b/c) now"
        );
    }

    #[test]
    fn headings_lists_quotes_and_code_blocks_are_drawn() {
        assert_eq!(
            drawn("## Plan\n- one\n  * two\n> so"),
            "<;1;4mPlan<m\n• one\n  • two\n<;2m│ so<m"
        );
        assert_eq!(drawn("```sh\nls  *.rs\n```\nend"), "<;36mls  *.rs<m\nend");
    }

    #[test]
    fn text_that_is_no_markup_stays_as_it_is() {
        for text in [
            "2 * 3 * 4",
            "snake_case_name",
            "a [b] c",
            "#1 is open",
            "-5 degrees",
            "5*3=15",
            "[unfinished",
            "rm *.tmp *.bak",
            "f(**kw) or f(*args)",
            "3*x + 2*y",
            "_config.yml",
            "x**2 + y**2",
            "an *unclosed mark",
            "an **unclosed mark",
            "an `unclosed one",
            "a \\ b",
            "https://a.b/_c_/_d",
            "12",
            "-",
            "| a | b |",
            "a **",
            "***",
            "a ~~ b",
        ] {
            let shown = if text == "***" {
                "────────"
            } else {
                text
            };
            assert_eq!(drawn(text), shown);
        }
    }

    #[test]
    fn emphasis_is_that_of_commonmark() {
        for (text, shown) in [
            (
                "***both*** *a **b** c*",
                "<;1;3mboth<m <;3ma <;1;3mb<;3m c<m",
            ),
            ("**a*", "*<;3ma<m"),
            ("*a **b*", "*a *<;3mb<m"),
            ("\\*escaped\\* \\`a\\`", "*escaped* `a`"),
            ("`` a`b `` and ```c```", "<;36ma`b<m and <;36mc<m"),
            ("`*a` *b*", "<;36m*a<m <;3mb<m"),
            ("**a**b a__b__c", "<;1ma<mb a__b__c"),
            ("*a\nb*", "<;3ma\nb<m"),
            ("*a\n\nb*", "*a\n\nb*"),
            ("[*a*](b) **[c](d)**", "<;3;34ma<m (b) <;1;34mc<;1m (d)<m"),
            ("**注意：**请看", "<;1m注意：<m请看"),
            ("**https://a.b/c_d_e**", "<;1mhttps://a.b/c_d_e<m"),
        ] {
            assert_eq!(drawn(text), shown, "{text}");
        }
    }

    #[test]
    fn blocks_are_those_of_commonmark() {
        for (text, shown) in [
            ("* * *\na", "────────\na"),
            ("Plan\n====\ntext", "Plan\n════\ntext"),
            ("Plan\n---", "Plan\n───"),
            ("~~~\n```\n~~~\na", "<;36m```<m\na"),
            ("```a``` b", "<;36ma<m b"),
            ("    *.rs\na", "<;36m    *.rs<m\na"),
            ("> *a\n> b*", "<;2m│ <;3;2ma\n│ b<;2m<m"),
            ("1986. A year", "1986. A year"),
            (
                "| a | b |\n| - | -: |\n| *x* | 10 |\nend",
                "<;1ma<m │  <;1mb<m\n──┼───\n<;3mx<m │ 10\nend",
            ),
        ] {
            assert_eq!(drawn(text), shown, "{text}");
        }
    }

    #[test]
    fn wrapped_lines_of_an_item_are_indented_as_its_text_is() {
        let text = "- one two three four five six seven eight nine\n  ten\n\n10. one two three four five six seven eight";
        assert_eq!(
            drawn(text),
            "• one two three four five six seven\n  eight nine\n  ten\n\n\
             10. one two three four five six seven\n    eight"
        );
    }

    #[test]
    fn many_marks_that_nothing_closes_take_work_that_is_linear_in_their_number() {
        for piece in [
            "_a* ", "[a", "`a ``b ", "*a", "\\\\[", "| a ", "**a_", "- ", "> ",
        ] {
            let text = piece.repeat(60_000 / piece.len());
            LOOKED_AT.set(0);
            let mut wrapper = MarkdownWrapper::new(Some(40), 0, 0);
            for c in text.chars() {
                wrapper.push(&c.to_string());
            }
            wrapper.finish();
            assert!(
                LOOKED_AT.get() < 32 * text.len(),
                "{piece:?} {}",
                LOOKED_AT.get()
            );
        }
    }

    #[test]
    fn no_character_is_lost_however_marks_are_mixed() {
        let pieces = [
            "*", "**", "_", "`", "[", "](", ")", "a", "b c", " ", "\n", "\\", "|", "-", "1. ",
            "> ", "#", "~~~",
        ];
        let mut state = 7_u64;
        for _ in 0..3_000 {
            let mut text = String::new();
            for _ in 0..14 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[usize::try_from(state >> 33).unwrap() % pieces.len()]);
            }
            let letters = |text: &str| {
                text.chars()
                    .filter(|c| matches!(c, 'a' | 'b' | 'c'))
                    .count()
            };
            let plain = drawn(&text);
            // The line of a fence is not shown.
            if !text.contains("~~~") && !text.contains("```") {
                assert_eq!(letters(&plain), letters(&text), "{text:?} {plain:?}");
            }
        }
    }

    #[test]
    fn lines_are_wrapped_without_counting_styles_and_escapes_stay_escaped() {
        let words = "**word** ".repeat(9);
        let lines = drawn(&words);
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert_eq!(drawn("\u{1b}[31mred \u{f701}x"), "\\u{1b}[31mred \u{fffd}x");
    }
}
