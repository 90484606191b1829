//! Phone numbers, by the lengths and written forms in libphonenumber's metadata.

use std::ops::Range;

use super::labels::{self, Meaning, Source};
use super::numbers::{Numbers, last_bytes};
use super::tables::phones::{COUNTRY_CODES, NATIONAL_FORMS};

/// The most digits of a number (ITU-T E.164).
const MAX_DIGITS: usize = 15;

pub(super) fn find(numbers: &Numbers<'_>, source: Source) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < numbers.groups.len() {
        let run = Run::new(numbers, first);
        if run.is_date_or_address() {
            first = run.end_of_date();
            continue;
        }
        match run.international().or_else(|| run.national(source)) {
            Some(end) => {
                found.push(run.start_of_range()..numbers.groups[end - 1].end);
                first = end;
            }
            None => first += 1,
        }
    }
    found
}

/// Neighbouring groups of digits that may be one phone number.
struct Run<'n, 't> {
    numbers: &'n Numbers<'t>,
    groups: Range<usize>,
    before: &'t str,
}

impl<'n, 't> Run<'n, 't> {
    /// The longest run that begins with a group.
    fn new(numbers: &'n Numbers<'t>, first: usize) -> Self {
        let mut end = first + 1;
        let mut digits = numbers.groups[first].len();
        while end < numbers.groups.len() && is_separator(numbers.separator(end - 1)) {
            digits += numbers.groups[end].len();
            if digits > MAX_DIGITS + 2 {
                break;
            }
            end += 1;
        }
        super::count_steps(end - first);
        let before = &numbers.text[..numbers.groups[first].start];
        Self {
            numbers,
            groups: first..end,
            before,
        }
    }

    /// The offset of the first digit, or of the plus or bracket before it.
    fn start_of_range(&self) -> usize {
        let before = self.before.strip_suffix('+').unwrap_or(self.before);
        match before.strip_suffix('(').filter(|_| self.is_bracketed()) {
            Some(before) => before.len(),
            None => before.len(),
        }
    }

    fn has_plus(&self) -> bool {
        self.before.ends_with('+')
    }

    /// Returns `true` if the first group is in brackets.
    fn is_bracketed(&self) -> bool {
        let before = self.before.strip_suffix('+').unwrap_or(self.before);
        before.ends_with('(') && self.numbers.separator(self.groups.start).starts_with(')')
    }

    /// The ends of shorter and shorter numbers, with their digits.
    fn ends(&self) -> impl Iterator<Item = (usize, String)> {
        let ends = (self.groups.start + 1..=self.groups.end).rev();
        ends.map(|end| (end, self.numbers.joined(self.groups.start..end)))
    }

    fn is_whole(&self, end: usize) -> bool {
        let last = self.numbers.groups[end - 1].end;
        self.numbers.is_whole(&(self.start_of_range()..last))
    }

    /// Returns `true` if the first groups are a date or an IP address.
    fn is_date_or_address(&self) -> bool {
        let groups = self.groups.len();
        let separators: Vec<&str> = (self.groups.start..self.groups.end - 1)
            .take(3)
            .map(|group| self.numbers.separator(group))
            .collect();
        let sizes: Vec<usize> = self.numbers.sizes(self.groups.clone()).take(4).collect();
        let is_year = |group: usize| {
            let digits = self.numbers.digits(self.groups.start + group);
            digits.starts_with("19") || digits.starts_with("20")
        };
        if self.is_bracketed() || self.has_plus() {
            return false;
        }
        match (&*separators, &*sizes) {
            ([".", ".", "."], [1..=3, 1..=3, 1..=3, 1..=3]) if groups == 4 => true,
            (["-", "-", ..] | [".", ".", ..] | ["/", "/", ..], [4, 1..=2, 1..=2, ..]) => is_year(0),
            (
                ["-", "-", ..] | [".", ".", ..] | ["/", "/", ..] | [" ", " ", ..],
                [1..=2, 1..=2, 4, ..],
            ) => is_year(2),
            _ => false,
        }
    }

    fn end_of_date(&self) -> usize {
        self.groups.start + 3
    }

    /// Returns the end of a number that begins with a plus or two zeros and a country calling code.
    fn international(&self) -> Option<usize> {
        let has_plus = self.has_plus();
        let first = self.numbers.digits(self.groups.start);
        if !has_plus && !first.starts_with("00") {
            return None;
        }
        let is_of_another_thing = || labels::is_of_another_thing(self.before);
        self.ends().find_map(|(end, digits)| {
            let digits = if has_plus { &digits } else { &digits[2..] };
            let (code_len, lengths) = country_code(digits)?;
            let zero = usize::from(self.has_bracketed_zero(end));
            let national = digits.len().checked_sub(code_len + zero)?;
            let is_bare = end - self.groups.start == 1;
            let is_possible =
                national <= if is_bare { 14 } else { 12 } && lengths & (1 << national) != 0;
            // Without a plus the code stands apart, or nothing does.
            let stands_apart =
                has_plus || is_bare || first.len() == code_len + 2 || first.len() == 2;
            (is_possible
                && stands_apart
                && self.is_whole(end)
                && (has_plus || !is_of_another_thing()))
            .then_some(end)
        })
    }

    /// Returns `true` if a group is the trunk prefix in brackets, as in `+44 (0)20`.
    fn has_bracketed_zero(&self, end: usize) -> bool {
        (self.groups.start + 1..end - 1).any(|group| {
            self.numbers.digits(group) == "0"
                && self.numbers.separator(group - 1).ends_with('(')
                && self.numbers.separator(group).starts_with(')')
        })
    }

    /// Returns the end of a number in the form in which a country writes it, or of any form after a word
    /// for phone.
    fn national(&self, source: Source) -> Option<usize> {
        let total: usize = self.numbers.sizes(self.groups.clone()).sum();
        if total < 7 || self.before.ends_with(['+', '$', '€', '£', '¥']) {
            return None;
        }
        let candidates = |is_phone: &dyn Fn(&Run<'_, '_>, usize, &str) -> bool| {
            self.ends().find_map(|(end, digits)| {
                let is_number = (7..=MAX_DIGITS).contains(&digits.len())
                    && self.is_whole(end)
                    && !self.is_part_of_list(end)
                    && is_phone(self, end, &digits);
                let is_counted =
                    || labels::has_unit(&self.numbers.text[self.numbers.groups[end - 1].end..]);
                (is_number && !is_counted()).then_some(end)
            })
        };
        let by_form = candidates(&|run, end, digits| run.has_national_form(end, digits));
        if by_form.is_none() && self.continues_run() {
            return None;
        }
        let bare = by_form.filter(|end| end - self.groups.start == 1);
        let label = labels::nearest(self.before);
        let is_near =
            |label: &labels::Label| label.distance <= 40 && !has_digit(self.before, label.distance);
        match label {
            Some(label) if label.meaning == Meaning::Phone && is_near(&label) => {
                by_form.or_else(|| candidates(&|run, end, _| run.may_follow_word(end)))
            }
            _ if source == Source::JsonNumber || self.continues_identifier() => None,
            Some(label)
                if label.meaning == Meaning::Other && (label.is_adjacent || bare.is_some()) =>
            {
                None
            }
            _ if bare.is_some()
                && (labels::follows_key(self.before) || labels::is_counted(self.before)) =>
            {
                None
            }
            _ => by_form,
        }
    }

    /// Returns `true` if the groups are those of a number in some country, which is told from other numbers
    /// by a prefix, brackets or its groups.
    fn has_national_form(&self, end: usize, digits: &str) -> bool {
        let groups = self.groups.start..end;
        let sizes: Vec<usize> = self.numbers.sizes(groups.clone()).collect();
        let [first, rest @ ..] = &*sizes else {
            return false;
        };
        if rest.is_empty() {
            return is_bare_number(digits);
        }
        let separators = (self.groups.start..end - 1).map(|group| self.numbers.separator(group));
        let has_dots_only = separators.clone().all(|separator| separator == ".");
        if self.is_bracketed() {
            let is_area = (1..=5).contains(first) && (8..=12).contains(&digits.len());
            let is_zero = *first == 1 && digits.starts_with('0');
            return is_area
                && (*first > 1 || is_zero)
                && rest.iter().all(|size| *size >= 2)
                && !has_dots_only;
        }
        // A fraction has one dot.
        if has_dots_only && rest.len() < 2 {
            return false;
        }
        let is_american = |digits: &str, sizes: &[usize]| {
            matches!(sizes, [3, 3, 4] | [3, 7])
                && digits.len() == 10
                && (sizes.len() == 3 || is_bare_number(digits))
        };
        if is_american(digits, &sizes)
            || (digits.starts_with('1') && *first == 1 && is_american(&digits[1..], rest))
        {
            return true;
        }
        if *first == 2 && digits.strip_prefix("86").is_some_and(is_chinese_mobile) {
            return true;
        }
        let is_form = |prefix: &str, digits: &str, sizes: &[usize]| {
            let merged = [sizes[0], sizes[1..].iter().sum()];
            has_form(prefix, digits, sizes)
                || (!prefix.is_empty() && sizes.len() > 2 && has_form(prefix, digits, &merged))
        };
        let attached = || {
            let mut sizes = sizes.clone();
            sizes[0] -= 1;
            sizes[0] > 0 && digits.starts_with('0') && is_form("0", &digits[1..], &sizes)
        };
        let apart = |prefix: &str| {
            *first == prefix.len()
                && rest.len() > 1
                && digits.starts_with(prefix)
                && is_form(prefix, &digits[prefix.len()..], rest)
        };
        attached() || apart("0") || apart("8") || apart("06") || has_form("", digits, &sizes)
    }

    /// Returns `true` if the group before is one of the same run.
    fn continues_run(&self) -> bool {
        let first = self.groups.start;
        first > 0 && is_separator(self.numbers.separator(first - 1))
    }

    /// Returns `true` after the beginning of an identifier, as in "ORD-4155552671", "#4155552671"
    /// and "1Z 999 AA1 01 2345".
    fn continues_identifier(&self) -> bool {
        if self.before.ends_with('#') {
            return true;
        }
        if let Some(before) = self.before.strip_suffix('-') {
            return before.ends_with(|c: char| c.is_ascii_alphanumeric());
        }
        if labels::continues_path(self.before) {
            return true;
        }
        let token = last_bytes(self.before, 128).rsplit(char::is_whitespace);
        if token.take(1).any(|token| token.contains("://")) {
            return true;
        }
        let word = last_bytes(self.before.trim_end_matches(' '), 24);
        let word = word
            .rsplit(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        word.contains(|c: char| c.is_ascii_digit())
            && word.contains(|c: char| c.is_ascii_uppercase())
    }

    /// Returns `true` if the groups before or after these are as short, as in a list of small numbers.
    fn is_part_of_list(&self, end: usize) -> bool {
        let is_alike = |group: usize, other: usize| {
            let len = self.numbers.groups[group].len();
            len <= 2
                && self.numbers.groups[other].len() == len
                && self.numbers.separator(group.min(other)) == " "
        };
        let first = self.groups.start;
        let begins_with_zero = self.numbers.digits(first).starts_with('0');
        (first > 0 && !begins_with_zero && is_alike(first, first - 1))
            || (end < self.numbers.groups.len() && is_alike(end - 1, end))
    }

    /// Returns `true` if the groups may be a phone number after a word for it.
    fn may_follow_word(&self, end: usize) -> bool {
        let groups = self.groups.start..end;
        let separators: Vec<&str> = (self.groups.start..end - 1)
            .map(|group| self.numbers.separator(group))
            .collect();
        let sizes: Vec<usize> = self.numbers.sizes(groups).collect();
        let last = sizes.last().copied().unwrap_or(0);
        let is_fraction = matches!(&*separators, ["."]);
        !is_fraction && (sizes.len() == 1 || last > 1) && sizes.len() <= 7
    }
}

fn has_digit(before: &str, distance: usize) -> bool {
    let start = before.len().saturating_sub(distance);
    before.as_bytes()[start..].iter().any(u8::is_ascii_digit)
}

fn is_separator(separator: &str) -> bool {
    matches!(
        separator,
        " " | "-"
            | "."
            | "/"
            | "("
            | ")"
            | ") "
            | " ("
            | ")-"
            | "-("
            | " - "
            | " / "
            | ")/"
            | ") ("
    )
}

/// Returns the length of the country calling code, and a bit for each length of its national numbers.
fn country_code(digits: &str) -> Option<(usize, u32)> {
    (1..=3).find_map(|len| {
        let code: u16 = digits.get(..len)?.parse().ok()?;
        let found = COUNTRY_CODES.binary_search_by_key(&code, |(code, _)| *code);
        let (_, lengths) = COUNTRY_CODES
            .get(found.ok()?)
            .filter(|_| !digits.starts_with('0'))?;
        Some((len, *lengths))
    })
}

/// Returns `true` if some country writes a number with this prefix in these groups.
fn has_form(prefix: &str, digits: &str, sizes: &[usize]) -> bool {
    super::count_steps(1);
    let found = NATIONAL_FORMS.binary_search_by(|(form_prefix, groups, _)| {
        let groups = groups.iter().map(|size| usize::from(*size));
        let by_groups = groups.cmp(sizes.iter().copied());
        (*form_prefix).cmp(prefix).then(by_groups)
    });
    let lead: Option<u16> = digits.get(..3).and_then(|lead| lead.parse().ok());
    let (Ok(found), Some(lead)) = (found, lead) else {
        return false;
    };
    let (_, _, leads) = NATIONAL_FORMS[found];
    let mut leads = leads.iter();
    leads.any(|(first, last)| (*first..=*last).contains(&lead))
}

/// Returns `true` for digits in one group that can be an American number, a Chinese mobile number, or ten
/// or eleven digits after a zero.
fn is_bare_number(digits: &str) -> bool {
    // The digits in their order are an example, not a number.
    if "01234567890".contains(digits) {
        return false;
    }
    let bytes = digits.as_bytes();
    let is_american = |bytes: &[u8]| bytes.len() == 10 && bytes[0] >= b'2' && bytes[3] >= b'2';
    match bytes {
        [b'0', b'1'..=b'9', ..] => matches!(bytes.len(), 10 | 11),
        [b'1', rest @ ..] if is_american(rest) => true,
        [b'8', b'6', ..] if is_chinese_mobile(&digits[2..]) => true,
        _ => is_american(bytes) || is_chinese_mobile(digits),
    }
}

fn is_chinese_mobile(digits: &str) -> bool {
    matches!(digits.as_bytes(), [b'1', b'3'..=b'9', rest @ ..] if rest.len() == 9)
}
