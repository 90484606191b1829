//! Draws Markdown as it arrives: headings, lists, quotes, code, emphasis and links.
//!
//! Styles are marked in the text by private characters, which the wrapper counts as no columns, and which
//! become escape sequences afterwards. In the text of a model, these characters are replaced.

use std::fmt::Write as _;

use super::wrap::{FIRST_MARK, LAST_MARK, LineWrapper};

const BOLD: u32 = 1;
const ITALIC: u32 = 2;
const CODE: u32 = 4;
const HEADING: u32 = 8;
const QUOTE: u32 = 16;
const LINK: u32 = 32;

/// The longest text in brackets that is held back as a link.
const MAX_LINK: usize = 600;

/// Wraps and styles Markdown that arrives in pieces.
#[derive(Debug)]
pub(crate) struct MarkdownWrapper {
    wrapper: LineWrapper,
    /// The styles that are on.
    styles: u32,
    /// Set within a block of code between fences.
    in_fence: bool,
    /// The beginning of a line, until it is known what it begins.
    line_start: Option<String>,
    /// Characters that may be the beginning of a mark.
    held: String,
    /// The last character that was written.
    previous: char,
}

impl MarkdownWrapper {
    /// Creates a wrapper whose first line begins at `column` and whose others begin at `indent`.
    pub(crate) fn new(width: Option<usize>, column: usize, indent: usize) -> Self {
        Self {
            wrapper: LineWrapper::new(width, column, indent),
            styles: 0,
            in_fence: false,
            line_start: Some(String::new()),
            held: String::new(),
            previous: '\n',
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
                c if (FIRST_MARK..=LAST_MARK).contains(&c) => '\u{fffd}',
                c => c,
            };
            self.add(c, &mut marked);
        }
        escape_sequences(&self.wrapper.push(&marked))
    }

    /// Returns the rest of the output, with all styles off.
    pub(crate) fn finish(&mut self) -> String {
        let mut marked = String::new();
        self.end_line(&mut marked);
        let out = self.wrapper.push(&marked) + &self.wrapper.finish();
        escape_sequences(&out)
    }

    fn add(&mut self, c: char, out: &mut String) {
        if c == '\n' {
            // The line of a fence is not shown.
            if self.end_line(out) == LineEnd::Shown {
                out.push('\n');
            }
            self.line_start = Some(String::new());
            self.previous = '\n';
            return;
        }
        let Some(start) = &mut self.line_start else {
            self.inline(c, out);
            return;
        };
        start.push(c);
        let start = start.clone();
        match block(&start, self.in_fence) {
            Block::Unknown => {}
            Block::Fence => {
                // The name of the language follows; the line itself is not shown.
            }
            Block::Text => self.begin_text(&start, out),
            Block::Heading(rest) => {
                self.line_start = None;
                self.set(HEADING, out);
                self.add_all(rest, out);
            }
            Block::Item(indent, rest) => {
                self.line_start = None;
                let _ = write!(out, "{:indent$}• ", "");
                self.add_all(rest, out);
            }
            Block::Quote(rest) => {
                self.line_start = None;
                self.set(QUOTE, out);
                out.push_str("│ ");
                self.add_all(rest, out);
            }
        }
    }

    /// Writes a line that is no special block.
    fn begin_text(&mut self, start: &str, out: &mut String) {
        self.line_start = None;
        if self.in_fence {
            self.set(CODE, out);
            // Spaces at the beginning of a line are part of the code.
            out.push_str(start);
            return;
        }
        self.add_all(start, out);
    }

    fn add_all(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.inline(c, out);
        }
    }

    /// Ends a line: what was held back is text, and styles end with it.
    fn end_line(&mut self, out: &mut String) -> LineEnd {
        if let Some(start) = self.line_start.take() {
            if start.trim_start().starts_with("```") {
                self.in_fence = !self.in_fence;
                return LineEnd::Hidden;
            } else if is_rule(&start) && !self.in_fence {
                out.push_str("────────");
            } else if !start.is_empty() {
                self.begin_text(&start, out);
            }
        }
        let held = std::mem::take(&mut self.held);
        // A mark at the end of a line closes what is open.
        match held.as_str() {
            "*" | "_" if self.styles & ITALIC != 0 => {}
            "**" | "__" if self.styles & BOLD != 0 => {}
            "`" if self.styles & CODE != 0 => {}
            held => out.push_str(held),
        }
        if self.styles != 0 {
            self.styles = 0;
            out.push(mark(0));
        }
        LineEnd::Shown
    }

    /// Adds a character within a line.
    fn inline(&mut self, c: char, out: &mut String) {
        if self.in_fence {
            out.push(c);
            return;
        }
        if self.held.starts_with('[') {
            self.held.push(c);
            self.link(out);
            return;
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            match held.as_str() {
                "*" if c == '*' => {
                    self.held = "**".to_owned();
                    return;
                }
                "_" if c == '_' => {
                    self.held = "__".to_owned();
                    return;
                }
                held => self.emphasis(held, c, out),
            }
        }
        let is_code = self.styles & CODE != 0;
        match c {
            '`' => self.held.push('`'),
            '*' | '_' if !is_code => self.held.push(c),
            '[' if !is_code => self.held.push('['),
            c => {
                out.push(c);
                self.previous = c;
            }
        }
    }

    /// Writes a mark before `next`: as a change of style, or as the characters that it is.
    fn emphasis(&mut self, held: &str, next: char, out: &mut String) {
        let style = match held {
            "`" => CODE,
            "**" | "__" => BOLD,
            _ => ITALIC,
        };
        let is_open = self.styles & style != 0;
        let is_underscore = held.starts_with('_');
        let opens = !next.is_whitespace()
            && (style == CODE
                || !(self.previous.is_alphanumeric() && (is_underscore || next.is_ascii_digit())));
        let closes = style == CODE
            || !(self.previous.is_whitespace() || is_underscore && next.is_alphanumeric());
        if is_open && closes || !is_open && opens {
            self.set(self.styles ^ style, out);
        } else {
            out.push_str(held);
        }
        if let Some(last) = held.chars().next_back() {
            self.previous = last;
        }
    }

    /// Writes a link that is complete, or text that is none.
    fn link(&mut self, out: &mut String) {
        let is_complete = match self.held.find(']') {
            None => self.held.len() > MAX_LINK,
            Some(end) => match self.held[end + 1..].chars().next() {
                None => return,
                Some('(') if self.held.len() <= MAX_LINK => self.held.ends_with(')'),
                Some(_) => true,
            },
        };
        if !is_complete {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let parts = held
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]("))
            .and_then(|(text, url)| Some((text, url.strip_suffix(')')?)));
        let before = self.styles;
        match parts {
            Some((text, url)) => {
                self.set(before | LINK, out);
                out.push_str(text);
                self.set(before, out);
                if url != text {
                    let _ = write!(out, " ({url})");
                }
                self.previous = ')';
            }
            None => {
                let mut chars = held.chars();
                out.extend(chars.next());
                self.previous = '[';
                // The rest may have marks of its own.
                self.add_all(chars.as_str(), out);
            }
        }
    }

    fn set(&mut self, styles: u32, out: &mut String) {
        self.styles = styles;
        out.push(mark(styles));
    }
}

/// Tells whether a line has an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Shown,
    Hidden,
}

/// The kind of a line by its beginning.
enum Block<'a> {
    /// More characters are needed.
    Unknown,
    Text,
    /// A line of three backticks.
    Fence,
    Heading(&'a str),
    /// An item of a list, with its indent.
    Item(usize, &'a str),
    Quote(&'a str),
}

fn block(start: &str, in_fence: bool) -> Block<'_> {
    let rest = start.trim_start_matches(' ');
    let indent = start.len() - rest.len();
    if rest.is_empty() {
        return Block::Unknown;
    }
    if rest.starts_with("```") {
        return Block::Fence;
    }
    if "```".starts_with(rest) {
        return Block::Unknown;
    }
    if in_fence {
        return Block::Text;
    }
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if hashes > 0 {
        return match rest[hashes..].strip_prefix(' ') {
            Some(rest) if hashes <= 6 => Block::Heading(rest),
            None if rest.len() == hashes && hashes <= 6 => Block::Unknown,
            _ => Block::Text,
        };
    }
    // `---` and `***` may be a rule, which only the end of the line tells.
    if is_rule_start(rest) && rest.len() <= 80 {
        return Block::Unknown;
    }
    match rest.chars().next() {
        Some('-' | '*' | '+') => match rest[1..].strip_prefix(' ') {
            Some(text) => Block::Item(indent, text),
            None if rest.len() == 1 => Block::Unknown,
            None => Block::Text,
        },
        Some('>') if rest.len() == 1 => Block::Unknown,
        Some('>') => Block::Quote(rest[1..].trim_start()),
        _ => Block::Text,
    }
}

fn is_rule_start(text: &str) -> bool {
    let text = text.trim();
    ['-', '*', '_']
        .iter()
        .any(|mark| text.len() >= 2 && text.chars().all(|c| c == *mark))
}

fn is_rule(text: &str) -> bool {
    is_rule_start(text) && text.trim().len() >= 3
}

/// The private character that sets these styles.
fn mark(styles: u32) -> char {
    char::from_u32(u32::from(FIRST_MARK) + styles).unwrap_or(FIRST_MARK)
}

/// Replaces the private characters by escape sequences.
fn escape_sequences(marked: &str) -> String {
    let mut out = String::with_capacity(marked.len());
    for c in marked.chars() {
        if !(FIRST_MARK..=LAST_MARK).contains(&c) {
            out.push(c);
            continue;
        }
        let styles = u32::from(c) - u32::from(FIRST_MARK);
        out.push_str("\u{1b}[0");
        for (style, code) in [
            (BOLD, ";1"),
            (ITALIC, ";3"),
            (CODE, ";36"),
            (HEADING, ";1;4"),
            (QUOTE, ";2"),
            (LINK, ";34"),
        ] {
            if styles & style != 0 {
                out.push_str(code);
            }
        }
        out.push('m');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(drawn(text), text);
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
