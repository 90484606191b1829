//! Detectors for private data in normalized text, whose digits, spaces and dashes are ASCII.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Finds private data of one kind. The ranges are in order and do not overlap.
pub(super) type Detector = fn(&str) -> Vec<Range<usize>>;

/// A fixed pattern. A test compiles them all.
type Pattern = LazyLock<Option<Regex>>;

/// The edge of a number. Only ASCII counts as part of it: Chinese has no spaces.
const EDGE: &str = r"(?-u:\b)";

fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

pub(super) fn card_numbers(text: &str) -> Vec<Range<usize>> {
    // UUIDs come first, so that they are skipped.
    static DIGITS: Pattern = LazyLock::new(|| {
        let uuid = "(?i:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})";
        compile(&format!(r"{uuid}|(?<groups>[0-9]+(?:[ .\-][0-9]+)*)"))
    });
    captures(&DIGITS, text)
        .filter_map(|captures| captures.name("groups"))
        .flat_map(|groups| card_numbers_in(text, groups.range()))
        .collect()
}

/// Finds card numbers among neighbouring groups of digits, so that a date before or a code after one
/// does not hide it.
fn card_numbers_in(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut start = range.start;
    for group in text[range].split([' ', '.', '-']) {
        groups.push(start..start + group.len());
        start += group.len() + 1;
    }
    let mut cards = Vec::new();
    let mut first = 0;
    while first < groups.len() {
        if let Some(last) = last_group_of_card(text, &groups, first) {
            cards.push(groups[first].start..groups[last].end);
            first = last;
        }
        first += 1;
    }
    cards
}

/// Returns the last group of the longest card number that begins with the group `first`.
fn last_group_of_card(text: &str, groups: &[Range<usize>], first: usize) -> Option<usize> {
    let is_before_dot = |group: &Range<usize>| text.as_bytes().get(group.end) == Some(&b'.');
    let mut has_dot = first > 0 && is_before_dot(&groups[first - 1]);
    let mut digits = String::new();
    let mut longest = None;
    for last in first..groups.len() {
        has_dot |= last > first && is_before_dot(&groups[last - 1]);
        digits.push_str(&text[groups[last].clone()]);
        if digits.len() > 19 {
            break;
        }
        // With dots it may be an amount, a version or an IP address.
        let is_grouped = !has_dot || (last > first && has_card_grouping(&groups[first..=last]));
        if is_grouped && is_of_card_network(&digits) && passes_luhn_check(&digits) {
            longest = Some(last);
        }
    }
    longest
}

fn has_card_grouping(groups: &[Range<usize>]) -> bool {
    let shortest = groups[..groups.len() - 1].iter().map(Range::len).min();
    let longest = groups.iter().map(Range::len).max();
    shortest >= Some(3) && longest <= Some(6)
}

/// Returns `true` if the first digits and the length are those of a card network.
fn is_of_card_network(digits: &str) -> bool {
    let first: Option<u32> = digits.get(..2).and_then(|two| two.parse().ok());
    matches!(
        (first, digits.len()),
        (Some(34 | 37), 15)
            | (Some(30 | 36 | 38 | 39), 14..=19)
            | (Some(22..=27 | 35), 16..=19)
            | (Some(40..=49), 13 | 16..=19)
            | (Some(50..=69), 13..=19)
    )
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

pub(super) fn social_security_numbers(text: &str) -> Vec<Range<usize>> {
    static SSN: Pattern = LazyLock::new(|| {
        let label = format!("(?i:(?:{EDGE}|_)ssn|social[ _-]?security)");
        let labelled = format!("{label}[^0-9\\n]{{0,24}}(?<labelled>[0-9]{{9}}){EDGE}");
        let grouped = format!("{EDGE}(?<grouped>[0-9]{{3}}[ .-][0-9]{{2}}[ .-][0-9]{{4}}){EDGE}");
        compile(&format!("{labelled}|{grouped}"))
    });
    captures(&SSN, text)
        .filter_map(|captures| {
            captures
                .name("labelled")
                .or_else(|| captures.name("grouped"))
        })
        .map(|number| number.range())
        .filter(|range| is_whole_number(text, range))
        .collect()
}

pub(super) fn emails(text: &str) -> Vec<Range<usize>> {
    static EMAIL: Pattern = LazyLock::new(|| {
        // In scripts written without spaces an address must not swallow the words around it, so its
        // parts consist either of these letters only or of others only.
        let dense = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}";
        let letter = format!(r"[\p{{L}}\p{{M}}--{dense}]");
        let letter_or_digit = format!(r"[\p{{L}}\p{{M}}\p{{Nd}}--{dense}]");
        let local = format!(
            r"(?:(?:{letter_or_digit}|[.!#$%&'*+/=?^_`{{|}}~\-])+|[{dense}][{dense}._\-]*)"
        );
        let label = format!(
            r"(?:{letter_or_digit}(?:(?:{letter_or_digit}|-)*{letter_or_digit})?|[{dense}]+)"
        );
        let top = format!(r"(?:xn--[A-Za-z0-9\-]*[A-Za-z0-9]|{letter}{{2,}}|[{dense}]{{2}})");
        compile(&format!(r"{local}@(?:{label}\.)+{top}"))
    });
    captures(&EMAIL, text)
        .map(|captures| captures.get_match().range())
        .collect()
}

pub(super) fn phone_numbers(text: &str) -> Vec<Range<usize>> {
    let mut numbers = Vec::new();
    let mut start = 0;
    let captures_at = |start| PHONE.as_ref()?.captures_at(text, start);
    while let Some(captures) = captures_at(start) {
        let strong = captures.name("strong");
        let Some(number) = strong.or_else(|| captures.name("weak")) else {
            start = captures.get_match().end();
            continue;
        };
        let is_phone = has_phone_length(number.as_str())
            && is_whole_number(text, &number.range())
            && (strong.is_some() || !is_labelled_otherwise(&text[..number.start()]));
        if is_phone {
            numbers.push(number.range());
            start = number.end();
        } else {
            // A shorter number may begin further on.
            start = number.start() + 1;
        }
    }
    numbers
}

fn has_phone_length(number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let least = if number.starts_with('+') { 8 } else { 9 };
    (least..=15).contains(&digits)
}

/// Strong forms are rarely anything but a phone number. Weak ones may be, so the words before them
/// count. Dates come first, so that they are skipped.
static PHONE: Pattern = LazyLock::new(|| {
    let year = "(?:19|20)[0-9]{2}";
    let date =
        format!("[0-9]{{1,2}}[.-][0-9]{{1,2}}[.-]{year}|{year}[.-][0-9]{{1,2}}[.-][0-9]{{1,2}}");
    let international = r"\+[0-9]{1,3}[ .-]?(?:\(?[0-9]{1,4}\)?[ .-]?){2,5}[0-9]{2,4}";
    let american = format!(
        r"(?:{EDGE}1[ .-])?(?:\([0-9]{{3}}\) ?|{EDGE}[0-9]{{3}}[ .-])[0-9]{{3}}[ .-][0-9]{{4}}"
    );
    let chinese = "(?:86[ -]?)?1[3-9][0-9](?:[0-9]{8}|[ .-][0-9]{4}[ .-][0-9]{4})";
    let bare = "(?:1[ -]?)?[2-9][0-9]{2}[ -]?[2-9][0-9]{6}|0[1-9][0-9]{8,9}";
    // Trunk and international prefixes.
    let zeros = "0{1,2}[1-9][0-9]{0,3}";
    let bracketed = format!(
        r"\({zeros}\) ?[0-9]{{2,8}}(?:[ -][0-9]{{2,8}}){{0,3}}|\([2-9][0-9]{{2}}\) ?[2-9][0-9]{{6}}"
    );
    let rest = [
        "(?: [0-9]{2,8}){1,4}",
        r"(?:\.[0-9]{2,8}){2,4}",
        "(?:-[0-9]{2,8}){1,4}",
    ]
    .join("|");
    let grouped = format!("{zeros}(?:-[0-9]{{3,4}} [0-9]{{3,4}}|{rest})");
    compile(&format!(
        "{EDGE}(?:{date}){EDGE}\
         |(?<strong>(?:{international}|{american}|{EDGE}{chinese}){EDGE})\
         |(?<weak>(?:{bracketed}|{EDGE}(?:{grouped}|{bare})){EDGE})"
    ))
});

/// Returns `true` if a number is not part of a longer one or of a fraction.
fn is_whole_number(text: &str, range: &Range<usize>) -> bool {
    let (before, rest) = text.as_bytes().split_at(range.start);
    let continues_before = match rest {
        [b'+', ..] => matches!(before, [.., b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z']),
        _ => matches!(before, [.., b'0'..=b'9', b'-' | b'.']),
    };
    !continues_before && !matches!(rest[range.len()..], [b'-' | b'.', b'0'..=b'9', ..])
}

/// Returns `true` if the words right before a number label it as something else than a phone number.
fn is_labelled_otherwise(before: &str) -> bool {
    static PHONE: Pattern = LazyLock::new(|| {
        let label = format!("(?:{EDGE}|_)(?:tele)?(?:phone|tel|cell|mobile|fax|whatsapp)");
        let number = "(?:[ _-]?(?:phone|number|num|no|nr))?(?: is| was)?";
        compile(&format!(
            r#"(?:(?i:{label}{number})|电话|手机|電話|手機)[ .:#=/"'：，-]*$"#
        ))
    });
    static OTHER: Pattern = LazyLock::new(|| {
        let things = "order|invoice|ticket|ref|reference|tracking|parcel|shipment|booking|\
                      confirmation|transaction|receipt|isbn|ean|sku|po|id|timestamp|amount|total|price";
        let others =
            "case|account|customer|contract|policy|item|product|article|serial|model|part|payment";
        let number = "[ _-]?(?:number|num|no|nr|id|code|key)";
        let label = format!("(?:{EDGE}|_)(?:(?:{things})s?(?:{number})?|(?:{others})s?{number})");
        let chinese = "订单号?|單號|单号|编号|編號|运单|流水号|账号|金额|数量|訂單號?";
        compile(&format!(
            r#"(?:(?i:{label}(?: is| was| of)?)|{chinese}|[A-Za-z0-9]-|[#$€£¥])[ .:#=/"'：，]*$"#
        ))
    });
    // 80 bytes are far more than a label takes.
    let start = before.len().saturating_sub(80);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at));
    let near = &before[start.unwrap_or(before.len())..];
    let ends_with = |pattern: &Pattern| pattern.as_ref().is_some_and(|p| p.is_match(near));
    ends_with(&OTHER) && !ends_with(&PHONE)
}

fn captures<'t>(pattern: &'t Pattern, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
    let pattern = pattern.as_ref().into_iter();
    pattern.flat_map(move |pattern| pattern.captures_iter(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (detector, text) in [
            (card_numbers as Detector, "4111111111111111"),
            (social_security_numbers, "078-05-1120"),
            (emails, "a@b.com"),
            (phone_numbers, "+14155552671"),
        ] {
            assert_eq!(detector(text), vec![0..text.len()], "in {text}");
        }
        assert!(is_labelled_otherwise("order "));
        assert!(!is_labelled_otherwise("order phone "));
        assert!(is_labelled_otherwise("hotel order "));
    }
}
