//! The marks within a paragraph: emphasis, code, links and escapes, by the rules of CommonMark.

use unicode_width::UnicodeWidthChar as _;

use super::styles::{BOLD, CODE, ITALIC, LINK, mark};

/// The longest text or address of a link.
const MAX_LINK: usize = 600;

/// The text before the one that is rendered, as far as it decides about marks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    /// The last character; a line break at the beginning.
    pub(super) last: char,
    /// Set within the address of a page.
    pub(super) in_url: bool,
}

/// The way to treat marks that nothing closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// More text may follow that closes them.
    Open,
    /// They are text.
    Final,
}

/// The look of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base<'a> {
    /// The styles that are on.
    pub(super) styles: u32,
    /// The beginning of further lines.
    pub(super) prefix: &'a str,
}

/// Returns `true` for characters that may begin a mark.
pub(super) fn is_special(c: char) -> bool {
    matches!(c, '\\' | '`' | '*' | '_' | '[')
}

/// The beginning of a text with marks of styles.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) marked: String,
    /// The number of bytes of the text that it is made of.
    pub(super) length: usize,
}

/// Renders as much of a text as text that follows cannot change: with [`End::Final`] all of it. Returns `None` if
/// that is nothing.
pub(super) fn render(text: &str, before: Before, base: Base<'_>, end: End) -> Option<Rendered> {
    let (mut nodes, length) = Lexer::new(text, before).nodes(base, end);
    if length == 0 {
        return None;
    }
    if match_emphasis(&mut nodes) == Matched::WithOpeners && end == End::Open {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut current = base.styles;
    for node in &nodes {
        let text = match &node.kind {
            Kind::Text(text) => text.as_str(),
            Kind::Run(run) => &text[run.start..run.start + run.length],
        };
        if text.is_empty() {
            continue;
        }
        let styles = base.styles | node.styles;
        if styles != current {
            out.push(mark(styles));
            current = styles;
        }
        for c in text.chars() {
            out.push(c);
            if c == '\n' {
                out.push_str(base.prefix);
            }
        }
    }
    if current != base.styles {
        out.push(mark(base.styles));
    }
    Some(Rendered {
        marked: out,
        length,
    })
}

/// A piece of text, or a run of `*` or `_`.
struct Node {
    kind: Kind,
    styles: u32,
}

enum Kind {
    Text(String),
    Run(Run),
}

/// A run of the same delimiter.
struct Run {
    delimiter: char,
    start: usize,
    /// The number of characters that are not part of a mark.
    length: usize,
    original: usize,
    can_open: bool,
    can_close: bool,
}

struct Lexer<'a> {
    text: &'a str,
    before: Before,
    at: usize,
    /// The position where the current word begins.
    word: usize,
    plain: String,
    nodes: Vec<Node>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, before: Before) -> Self {
        Self {
            text,
            before,
            at: 0,
            word: 0,
            plain: String::new(),
            nodes: Vec::new(),
        }
    }

    /// Splits the text, as far as more text cannot change how. Returns the number of bytes as well.
    fn nodes(mut self, base: Base<'_>, end: End) -> (Vec<Node>, usize) {
        while let Some(c) = self.text[self.at..].chars().next() {
            let is_decided = match c {
                '\\' => self.escape(end),
                '`' => self.code(end),
                '*' | '_' => self.run(c, end),
                '[' => self.link(base, end),
                c => {
                    self.plain.push(c);
                    self.at += c.len_utf8();
                    if c.is_whitespace() {
                        self.word = self.at;
                    }
                    Some(())
                }
            };
            if is_decided.is_none() {
                break;
            }
        }
        self.end_plain();
        (self.nodes, self.at)
    }

    fn end_plain(&mut self) {
        if !self.plain.is_empty() {
            let text = std::mem::take(&mut self.plain);
            self.add(text, 0);
        }
    }

    fn add(&mut self, text: String, styles: u32) {
        let kind = Kind::Text(text);
        self.nodes.push(Node { kind, styles });
    }

    fn escape(&mut self, end: End) -> Option<()> {
        let next = self.text[self.at + 1..].chars().next();
        if next.is_none() && end == End::Open {
            return None;
        }
        self.at += 1;
        match next {
            // A line break that is escaped is one.
            Some('\n') => {}
            Some(c) if c.is_ascii_punctuation() => {
                self.plain.push(c);
                self.at += 1;
            }
            _ => self.plain.push('\\'),
        }
        Some(())
    }

    fn code(&mut self, end: End) -> Option<()> {
        let rest = &self.text[self.at..];
        let length = run_length(rest, '`');
        match code_end(rest) {
            // The run that closes it may go on.
            Some(close) if close == rest.len() && end == End::Open => return None,
            Some(close) => {
                let code = &rest[length..close - length];
                let is_padded = code.starts_with([' ', '\n'])
                    && code.ends_with([' ', '\n'])
                    && !code.trim().is_empty();
                let code = if is_padded {
                    &code[1..code.len() - 1]
                } else {
                    code
                };
                self.end_plain();
                self.add(code.to_owned(), CODE);
                self.at += close;
            }
            None if end == End::Open => return None,
            None => {
                self.plain.push_str(&rest[..length]);
                self.at += length;
            }
        }
        Some(())
    }

    fn run(&mut self, delimiter: char, end: End) -> Option<()> {
        let rest = &self.text[self.at..];
        let length = run_length(rest, delimiter);
        let next = match rest[length..].chars().next() {
            None if end == End::Open => return None,
            None => '\n',
            Some(next) => next,
        };
        let last = self.text[..self.at].chars().next_back();
        let last = last.unwrap_or(self.before.last);
        // Addresses have underscores that are none of Markdown's.
        let in_url =
            self.text[self.word..self.at].contains("://") || self.word == 0 && self.before.in_url;
        if in_url && (next.is_alphanumeric() || next == '/') {
            self.plain.push_str(&rest[..length]);
            self.at += length;
            return Some(());
        }
        let is_left = !next.is_whitespace() && (!is_punctuation(next) || ends_word(last));
        let is_right = !last.is_whitespace() && (!is_punctuation(last) || ends_word(next));
        let (can_open, can_close) = if delimiter == '*' {
            (is_left, is_right)
        } else {
            (
                is_left && (!is_right || is_punctuation(last)),
                is_right && (!is_left || is_punctuation(next)),
            )
        };
        // Beside CommonMark: 2*x and x**2 are no emphasis.
        let is_operator = [last, next]
            .iter()
            .all(|c| c.is_alphanumeric() && c.width() == Some(1));
        let can_open = can_open && !is_operator;
        self.end_plain();
        let run = Run {
            delimiter,
            start: self.at,
            length,
            original: length,
            can_open,
            can_close,
        };
        self.nodes.push(Node {
            kind: Kind::Run(run),
            styles: 0,
        });
        self.at += length;
        Some(())
    }

    fn link(&mut self, base: Base<'_>, end: End) -> Option<()> {
        let rest = &self.text[self.at..];
        match find_link(rest) {
            Found::Undecided if end == End::Open => None,
            Found::Undecided | Found::None => {
                self.plain.push('[');
                self.at += 1;
                Some(())
            }
            Found::Link {
                label,
                target,
                length,
            } => {
                self.end_plain();
                let inner = Lexer::new(
                    label,
                    Before {
                        last: '[',
                        in_url: false,
                    },
                );
                let (mut nodes, _) = inner.nodes(base, End::Final);
                match_emphasis(&mut nodes);
                for node in nodes {
                    let text = match node.kind {
                        Kind::Text(text) => text,
                        Kind::Run(run) => label[run.start..run.start + run.length].to_owned(),
                    };
                    self.add(text, node.styles | LINK);
                }
                if label != target {
                    self.add(format!(" ({target})"), 0);
                }
                self.at += length;
                Some(())
            }
        }
    }
}

fn run_length(text: &str, c: char) -> usize {
    text.len() - text.trim_start_matches(c).len()
}

/// The length of the code that the text begins with, with its backticks.
fn code_end(text: &str) -> Option<usize> {
    let length = run_length(text, '`');
    let mut at = length;
    while let Some(found) = text[at..].find('`') {
        at += found;
        let closing = run_length(&text[at..], '`');
        at += closing;
        if closing == length {
            return Some(at);
        }
    }
    None
}

/// A link at the beginning of a text.
enum Found<'a> {
    None,
    /// It may become one.
    Undecided,
    Link {
        label: &'a str,
        target: &'a str,
        length: usize,
    },
}

fn find_link(text: &str) -> Found<'_> {
    let Some(close) = closing(text, '[', ']') else {
        return if text.len() > MAX_LINK {
            Found::None
        } else {
            Found::Undecided
        };
    };
    let after = &text[close + 1..];
    match after.chars().next() {
        None => return Found::Undecided,
        Some('(') => {}
        Some(_) => return Found::None,
    }
    let Some(end) = closing(after, '(', ')') else {
        return if after.len() > MAX_LINK {
            Found::None
        } else {
            Found::Undecided
        };
    };
    let target = after[1..end].trim();
    // A title may follow the address.
    let (_, title) = target
        .split_once(char::is_whitespace)
        .unwrap_or((target, ""));
    let title = title.trim();
    if !(title.is_empty() || title.starts_with(['"', '\''])) {
        return Found::None;
    }
    let label = &text[1..close];
    if label.is_empty() || target.is_empty() {
        return Found::None;
    }
    Found::Link {
        label,
        target,
        length: close + 1 + end + 1,
    }
}

/// The position of the bracket that closes the one at the beginning, within the longest link.
fn closing(text: &str, opens: char, closes: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if at > MAX_LINK {
            return None;
        }
        match c {
            '\\' => at += 1,
            '`' if opens == '[' => {
                let rest = &text[at..];
                at += code_end(rest).unwrap_or_else(|| run_length(rest, '`'));
                continue;
            }
            c if c == opens => depth += 1,
            c if c == closes => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

fn is_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace() && c.width().unwrap_or(0) > 0
}

/// Returns `true` for a character beside which a run may stand between punctuation and it. Scripts without spaces
/// between words are treated as if they had them.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || is_punctuation(c) || c.width() == Some(2)
}

/// Whether runs are left that could open emphasis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matched {
    All,
    WithOpeners,
}

/// Matches runs that open with those that close, and sets the styles between them.
fn match_emphasis(nodes: &mut [Node]) -> Matched {
    // The runs that may open, by their indices.
    let mut openers: Vec<usize> = Vec::new();
    // Below these lengths of `openers`, there is none for a closing run of this kind.
    let mut bottoms = [0_usize; 12];
    for index in 0..nodes.len() {
        while let Kind::Run(closer) = &nodes[index].kind {
            if !closer.can_close || closer.length == 0 {
                break;
            }
            let bottom = usize::from(closer.delimiter == '_') * 6
                + usize::from(closer.can_open) * 3
                + closer.original % 3;
            let found = (bottoms[bottom]..openers.len()).rev().find(
                |at| matches!(&nodes[openers[*at]].kind, Kind::Run(opener) if fits(opener, closer)),
            );
            let Some(found) = found else {
                bottoms[bottom] = openers.len();
                break;
            };
            let opening = openers[found];
            openers.truncate(found + 1);
            let is_strong = [opening, index]
                .iter()
                .all(|index| matches!(&nodes[*index].kind, Kind::Run(run) if run.length >= 2));
            let (style, used) = if is_strong { (BOLD, 2) } else { (ITALIC, 1) };
            for node in &mut nodes[opening + 1..index] {
                node.styles |= style;
            }
            // The inner characters of the runs are those of the mark.
            if let Kind::Run(run) = &mut nodes[opening].kind {
                run.length -= used;
                if run.length == 0 {
                    openers.pop();
                }
            }
            for bottom in &mut bottoms {
                *bottom = openers.len().min(*bottom);
            }
            if let Kind::Run(run) = &mut nodes[index].kind {
                run.length -= used;
                run.start += used;
            }
        }
        if let Kind::Run(run) = &nodes[index].kind
            && run.can_open
            && run.length > 0
        {
            openers.push(index);
        }
    }
    if openers.is_empty() {
        Matched::All
    } else {
        Matched::WithOpeners
    }
}

fn fits(opener: &Run, closer: &Run) -> bool {
    let has_both = opener.can_close || closer.can_open;
    opener.delimiter == closer.delimiter
        && !(has_both
            && (opener.original + closer.original).is_multiple_of(3)
            && !(opener.original.is_multiple_of(3) && closer.original.is_multiple_of(3)))
}
