//! Social security numbers, Chinese resident ids and passports.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::labels;
use super::numbers::{Numbers, first_bytes, last_bytes};

/// Finds social security numbers of the United States: in groups, or nine digits after a word for them.
pub(super) fn social_security_numbers(numbers: &Numbers<'_>) -> Vec<Range<usize>> {
    let count = numbers.groups.len();
    let mut found = Vec::new();
    let mut first = 0;
    while first < count {
        let len = if is_grouped_ssn(numbers, first) {
            3
        } else if is_labelled_ssn(numbers, first) {
            1
        } else {
            first += 1;
            continue;
        };
        found.push(numbers.range(first..first + len));
        first += len;
    }
    found
}

fn is_grouped_ssn(numbers: &Numbers<'_>, first: usize) -> bool {
    if first + 3 > numbers.groups.len() {
        return false;
    }
    let groups = first..first + 3;
    let separators = [numbers.separator(first), numbers.separator(first + 1)];
    numbers.sizes(groups.clone()).eq([3, 2, 4])
        && separators
            .iter()
            .all(|separator| matches!(*separator, " " | "-" | "."))
        && is_assigned(&numbers.joined(groups.clone()))
        && numbers.is_whole(&numbers.range(groups))
}

fn is_labelled_ssn(numbers: &Numbers<'_>, group: usize) -> bool {
    let range = &numbers.groups[group];
    let before = &numbers.text[..range.start];
    range.len() == 9 && numbers.is_whole(range) && follows_ssn_label(before)
}

fn follows_ssn_label(before: &str) -> bool {
    static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let label = r"(?:\b|_)ssn|social[ _-]?security|soc\.? ?sec|\bss#|\bitin\b|seguro social|社会安全|社會安全";
        Regex::new(&format!("(?i)(?:{label})[^0-9\\n]*$")).ok()
    });
    let near = last_bytes(before, 48);
    super::count_steps(near.len());
    LABEL.as_ref().is_some_and(|label| label.is_match(near))
}

/// Returns `false` for numbers that are never given out.
fn is_assigned(digits: &str) -> bool {
    let (area, rest) = digits.split_at(3);
    let (group, serial) = rest.split_at(2);
    !matches!(area, "000" | "666") && group != "00" && serial != "0000"
}

/// Finds Chinese resident ids (GB 11643): 18 characters with region, date and check digit, and those of
/// 15 digits after a word for them.
pub(super) fn resident_ids(numbers: &Numbers<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < numbers.groups.len() {
        super::count_steps(1);
        match resident_id(numbers, first) {
            Some((range, groups)) => {
                found.push(range);
                first += groups;
            }
            None => first += 1,
        }
    }
    found
}

/// The most groups in which an id is written.
const MAX_GROUPS: usize = 6;

/// Returns the range of the id that begins with a group, and the number of its groups.
fn resident_id(numbers: &Numbers<'_>, first: usize) -> Option<(Range<usize>, usize)> {
    let is_separator = |group: usize| matches!(numbers.separator(group), " " | "-" | "." | "/");
    let (mut last, mut len) = (first, numbers.groups[first].len());
    while len < 17 && is_separator(last) && last + 1 - first < MAX_GROUPS {
        // An id of 15 digits ends here, if the next group is too long for one of 18.
        let next = numbers.groups.get(last + 1)?.len();
        if len == 15 && (last == first || len + next > 18) {
            break;
        }
        len += next;
        last += 1;
    }
    let mut range = numbers.range(first..last + 1);
    let mut digits = numbers.joined(first..last + 1);
    if digits.len() == 17 {
        let after = &numbers.text[range.end..];
        let letter = after.trim_start_matches([' ', '-', '.', '/']);
        let apart = after.len() - letter.len();
        if apart <= usize::from(last > first) && letter.starts_with(['X', 'x']) {
            digits.push('X');
            range.end += apart + 1;
        }
    }
    let is_id = match digits.len() {
        // After a word for it the date may be wrong.
        18 => {
            has_check_digit(&digits)
                && (has_region_and_date(&digits[..6], &digits[6..14])
                    || (is_province(&digits) && is_labelled_resident_id(numbers, &range)))
        }
        15 => {
            let date = format!("19{}", &digits[6..12]);
            has_region_and_date(&digits[..6], &date) && is_labelled_resident_id(numbers, &range)
        }
        _ => false,
    };
    (is_id && numbers.is_whole(&range)).then_some((range, last + 1 - first))
}

fn is_labelled_resident_id(numbers: &Numbers<'_>, range: &Range<usize>) -> bool {
    let before = last_bytes(&numbers.text[..range.start], 40);
    ["身份证", "身份證", "身份号", "身分證", "证件号", "證件號"]
        .iter()
        .any(|word| before.contains(word))
}

fn has_region_and_date(region: &str, date: &str) -> bool {
    let number = |digits: &str| digits.parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(&date[..4]), number(&date[4..6]), number(&date[6..]));
    let is_leap_year = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 if is_leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    is_province(region) && (1850..2100).contains(&year) && (1..=days).contains(&day)
}

/// Returns `true` if a number begins with the code of a province.
fn is_province(digits: &str) -> bool {
    matches!(
        digits[..2].parse::<u32>(),
        Ok(11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83 | 91)
    )
}

/// Checks the last of 18 characters by ISO 7064, MOD 11-2.
fn has_check_digit(digits: &str) -> bool {
    let remainder = digits.bytes().fold(0, |sum, byte| match byte {
        b'X' => sum * 2 + 10,
        _ => sum * 2 + u32::from(byte - b'0'),
    } % 11);
    remainder == 1
}

/// Finds passport numbers after a word for passport.
pub(super) fn passports(text: &str) -> Vec<Range<usize>> {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let words = concat!(
            r"(?:\b|_)(?:passports?|passp(?:oort|rot|rt)|passeports?|reisep(?:ass|aß|ässe)|pa(?:ss?|ß)[ -]?(?:nummer|nr\b|no\b|number\b)|(?:meine?n?s?|ihre?n?|mitt|mit|min) pa(?:ss?|ß)\b|pasipoti|passi(?:n|ni|a|ssani|n?numero|n?nro)?\b|(?:můj|môj|moj|svůj) pas\b|passet (?:mitt|hans|hennes)\b|(?:schweizer|deutsche?[rmn]?|\w+ische?[rmn]?) pa(?:ss|ß)\b|(?:svenskt?|svenska|norske?|danske?|finska?) pass?\b|",
            r"(?:český|slovenský|slovinský|chorvatský|poľský|polský|ruský|německý|nemecký) pas\b|",
            r"pas(?:as|o|ą|e|es|u)? (?:nr|numeris|numurs|č|číslo)\b|č\. pasu|útlevel|pasaboor|baasaboor|fasfo|paspò|iphasiphothi|шиноснома|pasaportes?|passaport|paspoort|paszport|",
            r"pasaport|pașaport|pasport|paspor\b|passin numero|passi number|pases num|paso (?:num|nr)|čísl\w+ (?:\w+ )?pasu|pas č\.|pasbort|vegabréf|",
            r"cestovn(?:í|ý|ého|ího)? pas|putovnic|potn(?:i|ega) list|pasoš|útlevél|hộ chiếu|ho chieu|pasi ya kusafiria|төлқұжат)|",
            "паспорт|пашпарт|пасош|διαβατ[ηή]ρ|护照|護照|旅券|パスポート|여권|جواز|گذرنامه|پاسپور|דרכו[ןנ]|หนังสือเดินทาง|พาสปอร์ต|",
            "पासपोर्ट|पारपत्र|राहदानी|পাসপোর্ট|પાસપોર્ટ|ਪਾਸਪੋਰਟ|பாஸ்போர்ட்|கடவுச்சீட்டு|పాస్పోర్ట్|ಪಾಸ್ಪೋರ್ಟ್|പാസ്പോർട്ട്|ගමන් බලපත්|",
            "პასპორტ|անձնագ|ፓስፖርት|លិខិតឆ្លងដែន|ໜັງສືຜ່ານແດນ|နိုင်ငံကူးလက်မှတ်|ပတ်စပို့|ប៉ាស្ព័រ|ພາສປອດ|ປັດສະປ|පාස්පෝට්|ପାସପୋର୍ଟ|پاسپۆرت",
        );
        Regex::new(&format!("(?i){words}")).ok()
    });
    super::count_steps(text.len());
    let words = WORD.iter().flat_map(|word| word.find_iter(text));
    let mut found: Vec<Range<usize>> = Vec::new();
    for word in words {
        if is_other_pass(&text[..word.start()], word.as_str()) {
            continue;
        }
        let number = passport_number(&text[word.end()..]);
        let mut next = number.map(|number| word.end() + number.start..word.end() + number.end);
        while let Some(range) = next.take() {
            if found.last().is_none_or(|last| last.end <= range.start) {
                next = another_passport(text, &range);
                found.push(range);
            }
        }
    }
    found
}

/// Returns `true` if the words before "pass number" say that it lets one in or aboard, as in "boarding pass number".
fn is_other_pass(before: &str, word: &str) -> bool {
    const KINDS: [&str; 20] = [
        "annual", "boarding", "bus", "day", "entry", "event", "gate", "guest", "lift", "monthly",
        "park", "parking", "press", "rail", "season", "security", "ski", "train", "visitor",
        "weekly",
    ];
    let near = last_bytes(before, 16).trim_end_matches([' ', '-']);
    let kind = near.rsplit(|c: char| !c.is_alphabetic()).next();
    let is_short = word.len() >= 4 && word.as_bytes()[..4].eq_ignore_ascii_case(b"pass");
    let is_passport = word.len() >= 8 && word.as_bytes()[4..5].eq_ignore_ascii_case(b"p");
    is_short
        && !is_passport
        && kind.is_some_and(|kind| KINDS.contains(&&*kind.to_ascii_lowercase()))
}

/// Returns the range of a number after a passport number that is written like it: "passports A1234567 and A1234568".
fn another_passport(text: &str, range: &Range<usize>) -> Option<Range<usize>> {
    static AND: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^ ?(?:[,;/&+、，]|and|und|et|y|e|i|en|och|og|ja|и|та|і|oraz|és|și|ve|dan|và|和|と) ?",
        )
        .ok()
    });
    let after = first_bytes(&text[range.end..], 16 + range.len());
    super::count_steps(after.len());
    let start = range.end + AND.as_ref()?.find(after)?.end();
    let number = text.get(start..start + range.len())?;
    let is_alike = |(one, other): (char, char)| {
        one.is_ascii_digit() == other.is_ascii_digit() && is_letter(one) == is_letter(other)
    };
    let is_whole = !text[start + number.len()..].starts_with(char::is_alphanumeric);
    (is_whole
        && text[range.clone()]
            .chars()
            .zip(number.chars())
            .all(is_alike))
    .then(|| start..start + number.len())
}

/// Returns the range of the number in the text after a word for passport: the first word with a digit that is no year, date or small
/// number.
fn passport_number(after: &str) -> Option<Range<usize>> {
    const MOST_DATES: usize = 2;
    // Letters of some scripts have three bytes.
    let near = first_bytes(after, 160);
    let end = near.char_indices().nth(60).map_or(near.len(), |(at, _)| at);
    super::count_steps(end);
    let mut start = 0;
    for _ in 0..=MOST_DATES {
        let digit = start + near.get(start..end)?.find(|c: char| c.is_ascii_digit())?;
        let gap = near[..digit].trim_end_matches(is_letter);
        let letters = near[gap.len()..digit].chars().count();
        if letters > 5 || labels::has_another_label(gap) {
            return None;
        }
        if let Some(number) = number_after(after, gap, letters == 0) {
            return Some(number);
        }
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.' | '/');
        let date = near[digit..].trim_start_matches(is_part);
        let date = &near[digit..near.len() - date.len()];
        let is_date = date.split(['-', '.', '/']).all(|part| part.len() <= 4);
        if letters > 0 || !is_date || near[digit + date.len()..].starts_with(is_letter) {
            return None;
        }
        start = digit + date.len();
    }
    None
}

/// Returns the range of the number that begins after `gap`. Its series may stand apart, if it has no other letters.
fn number_after(after: &str, gap: &str, has_no_letters: bool) -> Option<Range<usize>> {
    let series = series_before(gap).filter(|_| has_no_letters);
    let len = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit() && !is_letter(c))
            .unwrap_or(text.len())
    };
    let first_len = len(&after[gap.len()..]);
    let first = &after[gap.len()..gap.len() + first_len];
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let end = gap.len() + first_len;
    // Russian numbers have their series apart: 75 1234567, 4510 123456.
    if is_digits(first) && matches!(first_len, 2 | 4) && after[end..].starts_with(' ') {
        let second = &after[end + 1..];
        let second_len = len(second);
        if is_digits(&second[..second_len]) && matches!((first_len, second_len), (2, 7) | (4, 6)) {
            return Some(gap.len()..end + 1 + second_len);
        }
    }
    let continues = matches!(after.as_bytes().get(end..), Some([b'-' | b'.', next, ..]) if next.is_ascii_digit());
    let starts = series.into_iter().chain([gap.len()]);
    let mut numbers = starts.map(|start| start..end);
    numbers.find(|number| !continues && is_passport_number(&after[number.clone()]))
}

fn is_passport_number(number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let characters = number.chars().filter(|c| !matches!(c, ' ' | '-')).count();
    let least = match characters {
        _ if number.contains(char::is_lowercase) => 6,
        8 | 9 => 2,
        _ => 4,
    };
    (6..=9).contains(&characters) && digits >= least
}

/// Returns `true` for the letters of passport numbers: Latin ones, and capitals of other scripts.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c.is_uppercase()
}

/// Returns the offset of one or two capital letters that stand apart before a number, as in "AB 123456".
fn series_before(gap: &str) -> Option<usize> {
    let text = gap.strip_suffix([' ', '-'])?;
    let before = text.trim_end_matches(char::is_uppercase);
    let series = &text[before.len()..];
    let stands_apart = !before.ends_with(char::is_alphanumeric);
    let is_series = matches!(series.chars().count(), 1 | 2);
    let is_word = matches!(series, "NO" | "NR" | "N" | "ID" | "IS" | "MY" | "АЙ" | "НР");
    (stands_apart && is_series && !is_word).then_some(before.len())
}
