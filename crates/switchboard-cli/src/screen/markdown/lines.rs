//! The kinds of lines, by the rules of CommonMark.

use super::Block;

/// The kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Text,
    /// Code between fences, or code that is indented.
    Code,
    Heading,
    /// An item of a list, with the length of its marker.
    Item(usize),
    Quote,
    /// Only the end of the line tells its kind.
    Whole,
}

/// The kind of a line by its beginning; `None` if more characters are needed.
pub(super) fn line_kind(start: &str, block: &Block, is_in_list: bool) -> Option<Line> {
    let rest = start.trim_start();
    let spaces = leading_spaces(start);
    if let Block::Fence { mark, length } = block {
        let fence = rest.trim_start_matches(*mark);
        let may_end = spaces < 4 && fence.trim().is_empty();
        let may_end = may_end && (fence.is_empty() || rest.len() - fence.len() >= *length);
        return if may_end { None } else { Some(Line::Code) };
    }
    let in_paragraph = matches!(block, Block::Paragraph { .. });
    let first = rest.chars().next()?;
    if spaces >= 4 && !in_paragraph && !is_in_list {
        return Some(Line::Code);
    }
    if is_fence_start(rest) || first == '|' || may_be_rule(rest) {
        return Some(Line::Whole);
    }
    let text = Some(Line::Text);
    match first {
        '`' | '~' if rest.len() < 3 && rest.chars().all(|c| c == first) => None,
        '=' if in_paragraph && rest.trim_end().chars().all(|c| c == '=') => Some(Line::Whole),
        '#' => {
            let after = rest.trim_start_matches('#');
            match after.chars().next() {
                _ if rest.len() - after.len() > 6 => text,
                None => None,
                Some(' ' | '\t') => Some(Line::Heading),
                Some(_) => text,
            }
        }
        '>' if rest.len() == 1 => None,
        '>' => Some(Line::Quote),
        '-' | '*' | '+' => item(rest, 1),
        '0'..='9' => {
            let digits = rest.chars().take_while(char::is_ascii_digit).count();
            match rest[digits..].chars().next() {
                None if digits <= 9 => None,
                // A sentence may end with a number at the beginning of a line.
                Some('.' | ')')
                    if digits <= 9 && (!in_paragraph || is_in_list || rest[..digits] == *"1") =>
                {
                    item(rest, digits + 1)
                }
                _ => text,
            }
        }
        _ => text,
    }
}

/// The kind of a line that begins with a marker of a list, if text follows it.
fn item(rest: &str, marker: usize) -> Option<Line> {
    let after = &rest[marker..];
    match after.chars().next() {
        None => None,
        Some(' ' | '\t') if after.trim().is_empty() => None,
        Some(' ' | '\t') => Some(Line::Item(marker)),
        Some(_) => Some(Line::Text),
    }
}

/// The columns of the indent of a line.
pub(super) fn leading_spaces(line: &str) -> usize {
    let spaces = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    spaces.map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// Returns `true` if a line without its indent begins a block of code between fences.
fn is_fence_start(rest: &str) -> bool {
    let info = rest.strip_prefix("```");
    // Backticks after the first ones are the end of code within a line.
    info.is_some_and(|info| !info.trim_start_matches('`').contains('`')) || rest.starts_with("~~~")
}

/// The character and the length of a fence that a line begins with.
pub(super) fn fence(line: &str) -> Option<(char, usize)> {
    let rest = line.trim_start();
    let mark = rest.chars().next().filter(|_| is_fence_start(rest))?;
    Some((mark, rest.len() - rest.trim_start_matches(mark).len()))
}

/// Returns `true` for the line that ends a block of code.
pub(super) fn is_fence_end(line: &str, fence: char, length: usize) -> bool {
    let line = line.trim();
    line.len() >= length && line.chars().all(|c| c == fence)
}

/// Returns `true` for a line that is a rule if it goes on as it is.
fn may_be_rule(rest: &str) -> bool {
    rest.len() <= 80
        && ['-', '*', '_']
            .iter()
            .any(|mark| rest.starts_with(*mark) && rest.chars().all(|c| c == *mark || c == ' '))
}

/// Returns `true` for a line that is a rule.
pub(super) fn is_rule(line: &str) -> bool {
    may_be_rule(line) && line.chars().filter(|c| *c != ' ').count() >= 3
}
