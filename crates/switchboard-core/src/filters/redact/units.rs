//! The text after a number that says that it counts something or is a part of a calculation.

use std::sync::LazyLock;

use regex::Regex;

use super::numbers::first_bytes;
use super::tables::words::units::{
    CAPITALS, CODES, COUNTED_THINGS, DENSE_COUNTED, EXTENSIONS, LAST_UNITS, UNITS,
};

/// Matches a sign or a code after an amount of any form.
static AMOUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(&format!(
        r"^ ?(?:(?:(?i:{CODES})|{CAPITALS})\b|[€$£¥₩₹₽₺₴฿₫₪₦₱%‰元円원圆圓]|日元|韩元|美元|欧元|руб|грн|ریال|ريال|درهم|دينار|جنيه|تومان|บาท|रुपये|টাকা|ரூபாய்)"
    ))
});

/// Matches a word or a unit for what a bare number or one with groups of thousands counts. Units of one letter and the like stand at
/// the end of a clause.
static COUNTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(&format!(
        r"^ ?(?:(?i:{COUNTED_THINGS}|us)\b|(?:{UNITS})(?:$|[^\p{{L}}\p{{N}}])|B(?:$|[^\p{{L}}\p{{N}}.]|\.$|\. [^A-Z])|(?:{LAST_UNITS})(?:$|[,;:!?)\]/\n]|\.(?:$|\s))|{DENSE_COUNTED})"
    ))
});

/// Matches an operator after a bare number.
static OPERATOR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(r"^(?: ?(?:[*×÷^%]|\*\*|=) ?\d| [<>] ?\w| [+/] \d{1,6}(?:$|[\s,.)])| mod \d)")
});

/// Matches the ending of a file's name.
static EXTENSION: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(&format!(r"^\.(?i:{EXTENSIONS})\b")));

fn pattern(pattern: &str) -> Option<Regex> {
    Regex::new(&pattern.replace("    ", "")).ok()
}

fn matches(pattern: &LazyLock<Option<Regex>>, after: &str) -> bool {
    pattern
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(after))
}

/// The longest text after a number that is looked at.
const WINDOW: usize = 24;

/// Returns `true` if a sign or a code of a currency follows, so that a number of any form is an amount.
pub(super) fn is_amount(after: &str) -> bool {
    let after = first_bytes(after, WINDOW);
    super::count_steps(after.len());
    matches(&AMOUNT, after) || matches(&EXTENSION, after)
}

/// Returns `true` if a word follows for what a bare number counts. One for microseconds is another word apart.
pub(super) fn is_counted(after: &str) -> bool {
    let after = first_bytes(after, WINDOW);
    let is_word = after.starts_with(" us") && !after[3..].starts_with(char::is_alphanumeric);
    super::count_steps(after.len());
    matches(&COUNTED, after) && !is_word
}

/// Returns `true` if a calculation goes on after a bare number.
pub(super) fn is_operand(after: &str) -> bool {
    let after = first_bytes(after, WINDOW);
    super::count_steps(after.len());
    matches(&OPERATOR, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let patterns = [&AMOUNT, &COUNTED, &OPERATOR, &EXTENSION];
        assert!(patterns.iter().all(|pattern| pattern.is_some()));
    }
}
