//! Where private data stands in a text. What is looked at has been folded: its digits, spaces and
//! dashes are ASCII.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Finds the places of one sort of private data, in order and apart from each other.
pub(super) type Find = fn(&str) -> Vec<Range<usize>>;

/// A fixed pattern; a test compiles them all.
type Pattern = LazyLock<Option<Regex>>;

/// The edge of a number. Letters outside ASCII do not hide it: Chinese has no spaces.
const EDGE: &str = r"(?-u:\b)";

fn compiled(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Card numbers.
pub(super) fn cards(text: &str) -> Vec<Range<usize>> {
    // Any run of groups of digits; which of them are a card is found out by the check digit. Before
    // that a UUID, which is none.
    static DIGITS: Pattern = LazyLock::new(|| {
        let uuid = "(?i:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})";
        compiled(&format!(r"{uuid}|(?<run>[0-9]+(?:[ .\-][0-9]+)*)"))
    });
    let mut found = Vec::new();
    for run in captures(&DIGITS, text).filter_map(|found| found.name("run")) {
        cards_in(text, run.range(), &mut found);
    }
    found
}

/// Neighbouring groups that together are a card number, so that a date before it or a code after it
/// does not hide it.
fn cards_in(text: &str, run: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut start = run.start;
    for group in text[run].split([' ', '.', '-']) {
        groups.push(start..start + group.len());
        start += group.len() + 1;
    }
    let mut first = 0;
    while first < groups.len() {
        match card_from(text, &groups, first) {
            Some(last) => {
                found.push(groups[first].start..groups[last].end);
                first = last + 1;
            }
            None => first += 1,
        }
    }
}

/// The last group of the longest card number that begins with the group `first`.
fn card_from(text: &str, groups: &[Range<usize>], first: usize) -> Option<usize> {
    let is_dot = |at: usize| text.as_bytes().get(at) == Some(&b'.');
    let is_fraction = first > 0 && is_dot(groups[first - 1].end);
    let mut digits = String::new();
    let mut has_dot = false;
    let mut longest = None;
    for last in first..groups.len() {
        if last > first {
            has_dot |= is_dot(groups[last - 1].end);
        }
        if digits.len() + groups[last].len() > 19 {
            break;
        }
        digits.push_str(&text[groups[last].clone()]);
        let fits = match has_dot || is_fraction {
            // Not the parts of an amount, of a version or of an address in a network.
            true => last > first && has_groups_of_card(&groups[first..=last]),
            false => true,
        };
        if fits && is_of_network(&digits) && has_right_check_digit(&digits) {
            longest = Some(last);
        }
    }
    longest
}

fn has_groups_of_card(groups: &[Range<usize>]) -> bool {
    let shortest = groups[..groups.len() - 1].iter().map(Range::len).min();
    let longest = groups.iter().map(Range::len).max();
    shortest >= Some(3) && longest <= Some(6)
}

/// Whether the first digits and the length are those of a card network.
fn is_of_network(digits: &str) -> bool {
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

/// The check that card numbers carry (Luhn's).
fn has_right_check_digit(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            match (at % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled @ 10..) => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Social security numbers.
pub(super) fn social_security_numbers(text: &str) -> Vec<Range<usize>> {
    static SSN: Pattern = LazyLock::new(|| {
        let name = format!("(?i:(?:{EDGE}|_)ssn|social[ _-]?security)");
        let named = format!("{name}[^0-9\\n]{{0,24}}(?<named>[0-9]{{9}}){EDGE}");
        let grouped = format!("{EDGE}(?<grouped>[0-9]{{3}}[ .-][0-9]{{2}}[ .-][0-9]{{4}}){EDGE}");
        compiled(&format!("{named}|{grouped}"))
    });
    let found = captures(&SSN, text).filter_map(|found| {
        let number = found.name("named").or_else(|| found.name("grouped"))?;
        stands_alone(text, &number.range()).then(|| number.range())
    });
    found.collect()
}

/// E-mail addresses.
pub(super) fn emails(text: &str) -> Vec<Range<usize>> {
    static EMAIL: Pattern = LazyLock::new(|| {
        // Scripts written without spaces: an address is not to swallow the words around it, so its
        // parts are either all of them or without them.
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
        compiled(&format!(r"{local}@(?:{label}\.)+{top}"))
    });
    let found = EMAIL.as_ref().map(|pattern| pattern.find_iter(text));
    found
        .into_iter()
        .flatten()
        .map(|found| found.range())
        .collect()
}

/// Phone numbers.
pub(super) fn phones(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let next = |at| PHONE.as_ref().and_then(|phone| phone.captures_at(text, at));
    while let Some(matched) = next(at) {
        let strong = matched.name("strong");
        let Some(number) = strong.or_else(|| matched.name("weak")) else {
            at = matched.get_match().end();
            continue;
        };
        let is_phone = has_digits_of_phone(number.as_str())
            && stands_alone(text, &number.range())
            && (strong.is_some() || !is_named_otherwise(&text[..number.start()]));
        if is_phone {
            found.push(number.range());
            at = number.end();
        } else {
            // One may begin further on in what was too long for one.
            at = number.start() + 1;
        }
    }
    found
}

fn has_digits_of_phone(number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let least = if number.starts_with('+') { 8 } else { 9 };
    (least..=15).contains(&digits)
}

/// Strong forms are hardly anything else; weak ones may be, and the words before them count. Dates
/// come first, so that they are passed over.
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
    // With the zeros for long distance, in groups.
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
    compiled(&format!(
        "{EDGE}(?:{date}){EDGE}\
         |(?<strong>(?:{international}|{american}|{EDGE}{chinese}){EDGE})\
         |(?<weak>(?:{bracketed}|{EDGE}(?:{grouped}|{bare})){EDGE})"
    ))
});

/// Whether a number is not part of a longer one or of a fraction.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let before = &text.as_bytes()[..range.start];
    let is_continued = match text.as_bytes()[range.start] {
        b'+' => matches!(before, [.., b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z']),
        _ => matches!(before, [.., b'0'..=b'9', b'-' | b'.']),
    };
    let after = &text.as_bytes()[range.end..];
    !is_continued && !matches!(after, [b'-' | b'.', b'0'..=b'9', ..])
}

/// Whether the words right before a number say that it is something else than a phone number.
fn is_named_otherwise(before: &str) -> bool {
    static PHONE: Pattern = LazyLock::new(|| {
        let name = format!("(?:{EDGE}|_)(?:tele)?(?:phone|tel|cell|mobile|fax|whatsapp)");
        let number = "(?:[ _-]?(?:phone|number|num|no|nr))?(?: is| was)?";
        compiled(&format!(
            r#"(?:(?i:{name}{number})|电话|手机|電話|手機)[ .:#=/"'：，-]*$"#
        ))
    });
    static OTHER: Pattern = LazyLock::new(|| {
        let things = "order|invoice|ticket|ref|reference|tracking|parcel|shipment|booking|\
                      confirmation|transaction|receipt|isbn|ean|sku|po|id|timestamp|amount|total|price";
        let others =
            "case|account|customer|contract|policy|item|product|article|serial|model|part|payment";
        let number = "[ _-]?(?:number|num|no|nr|id|code|key)";
        let name = format!("(?:{EDGE}|_)(?:(?:{things})s?(?:{number})?|(?:{others})s?{number})");
        let chinese = "订单号?|單號|单号|编号|編號|运单|流水号|账号|金额|数量|訂單號?";
        compiled(&format!(
            r#"(?:(?i:{name}(?: is| was| of)?)|{chinese}|[A-Za-z0-9]-|[#$€£¥])[ .:#=/"'：，]*$"#
        ))
    });
    // Far more than the words and signs take.
    let start = before.len().saturating_sub(80);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at));
    let near = &before[start.unwrap_or(before.len())..];
    let ends_with = |pattern: &Pattern| pattern.as_ref().is_some_and(|p| p.is_match(near));
    ends_with(&OTHER) && !ends_with(&PHONE)
}

fn captures<'t>(pattern: &'t Pattern, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
    let found = pattern.as_ref().map(|pattern| pattern.captures_iter(text));
    found.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (find, text) in [
            (cards as Find, "4111111111111111"),
            (social_security_numbers, "078-05-1120"),
            (emails, "a@b.com"),
            (phones, "+14155552671"),
        ] {
            assert_eq!(find(text), vec![0..text.len()], "in {text}");
        }
        assert!(is_named_otherwise("order "));
        assert!(!is_named_otherwise("order phone "));
        assert!(is_named_otherwise("hotel order "));
    }
}
