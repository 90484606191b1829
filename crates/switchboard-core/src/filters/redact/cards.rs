//! Payment card numbers.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::labels::{self, Source};
use super::numbers::{Numbers, last_bytes};

/// Finds card numbers among neighbouring groups of digits, so that a date before or a code after one
/// does not hide it.
pub(super) fn find(numbers: &Numbers<'_>, source: Source) -> Vec<Range<usize>> {
    let mut cards = Vec::new();
    let mut first = 0;
    while first < numbers.groups.len() {
        if let Some(last) = last_group(numbers, first, source) {
            cards.push(numbers.range(first..last + 1));
            first = last;
        }
        first += 1;
    }
    cards
}

/// Returns the last group of the longest card number that begins with the group `first`.
fn last_group(numbers: &Numbers<'_>, first: usize, source: Source) -> Option<usize> {
    let before = &numbers.text[..numbers.groups[first].start];
    if !may_begin_after(before) {
        return None;
    }
    let mut digits = String::new();
    let mut longest = None;
    let mut needs_grouping = before.ends_with('.');
    for last in first..numbers.groups.len() {
        if last > first {
            match numbers.separator(last - 1) {
                " " | "-" | "  " | " - " => {}
                "." | "/" | "_" => needs_grouping = true,
                _ => break,
            }
        }
        super::count_steps(1);
        if digits.len() + numbers.groups[last].len() > 19 {
            break;
        }
        digits.push_str(numbers.digits(last));
        let groups = first..last + 1;
        let is_card = digits.len() >= 12
            && is_of_card_network(&digits, before)
            && passes_luhn_check(&digits)
            && has_card_grouping(numbers, groups, needs_grouping)
            && ends_whole(&numbers.text[numbers.groups[last].end..]);
        if is_card {
            longest = Some(last);
        }
    }
    longest.filter(|_| source == Source::Text || !labels::is_no_card(before))
}

/// Returns `false` where the number is part of an identifier or a fraction. "card4111…" may be one.
fn may_begin_after(before: &str) -> bool {
    let word = last_bytes(before, 24);
    let letters = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ends_in_digit = letters.ends_with(|c: char| c.is_ascii_digit() || c == '_');
    match word.len() - letters.len() {
        0 => !before.ends_with('_'),
        1..3 => false,
        _ => !ends_in_digit,
    }
}

fn ends_whole(after: &str) -> bool {
    let mut after = after.chars();
    match after.next() {
        Some('.') => !after.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => !c.is_ascii_alphanumeric(),
        None => true,
    }
}

/// Returns `true` if the sizes of the groups may be those of a card. With other separators than spaces
/// and dashes it may be an amount, a version or an IP address.
fn has_card_grouping(numbers: &Numbers<'_>, groups: Range<usize>, needs_grouping: bool) -> bool {
    let sizes: Vec<usize> = numbers.sizes(groups).collect();
    let [rest @ .., last] = &*sizes else {
        return false;
    };
    if rest.is_empty() {
        return !needs_grouping;
    }
    let is_spelled = sizes.iter().all(|size| *size == 1) && !needs_grouping;
    let shortest = rest.iter().min();
    is_spelled
        || (shortest >= Some(&3)
            && (!needs_grouping || sizes.iter().all(|size| *size <= 6))
            && *last <= 16)
}

/// Returns `true` if the first digits and the length are those of a card network. Short numbers may be
/// the EAN of a product, so those need a word for card before them.
fn is_of_card_network(digits: &str, before: &str) -> bool {
    static CARD: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("(?i)card|visa|maestro|karte|carte|tarjeta|carta|cartão|карт|卡|カード|카드")
            .ok()
    });
    let has_word = || {
        CARD.as_ref()
            .is_some_and(|word| word.is_match(last_bytes(before, 40)))
    };
    let prefix = |len| {
        let prefix: Option<u32> = digits.get(..len).and_then(|first| first.parse().ok());
        prefix.unwrap_or_default()
    };
    match (prefix(2), digits.len()) {
        (34 | 37, 15) | (30 | 36 | 38 | 39, 14..=19) => true,
        (35 | 40..=49 | 50..=69, 16..=19) => true,
        // Mir; Mastercard; RuPay; Troy.
        (22, 16..=19) if matches!(prefix(4), 2200..=2204) => true,
        (_, 16) if matches!(prefix(4), 2221..=2720 | 8100..=8299 | 9792) => true,
        (40..=49, 13) => !is_ean(digits) || has_word(),
        (50..=69, 12..=15) => has_word(),
        _ => false,
    }
}

fn passes_luhn_check(digits: &str) -> bool {
    let digits = digits.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let sum: u32 = digits
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit) {
            (0, _) => digit,
            (_, 0..5) => digit * 2,
            _ => digit * 2 - 9,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Returns `true` if 13 digits have the check digit of an EAN.
fn is_ean(digits: &str) -> bool {
    let digits = digits.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let weighted = digits
        .enumerate()
        .map(|(index, digit)| digit * if index % 2 == 0 { 1 } else { 3 });
    weighted.sum::<u32>().is_multiple_of(10)
}
