//! The forms in which countries write phone numbers.

use super::Run;
use crate::filters::redact::count_steps;
use crate::filters::redact::tables::phones::{COUNTRY_CODES, NATIONAL_FORMS};

impl Run<'_, '_> {
    /// Returns `true` if the groups are those of a number in some country, which is told from other numbers
    /// by a prefix, brackets or its groups.
    pub(super) fn has_national_form(&self, end: usize, digits: &str) -> bool {
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
        // "01 02 03 04 05" is a list.
        let small = || {
            groups
                .clone()
                .map(|group| self.numbers.digits(group).parse::<u8>().unwrap_or(0))
        };
        if sizes.iter().all(|size| *size == 2)
            && small()
                .zip(small().skip(1))
                .all(|(one, next)| one + 1 == next)
        {
            return false;
        }
        // "013/2024" is the number of a year.
        let is_year = |digits: &str| digits.starts_with("19") || digits.starts_with("20");
        if digits.len() == 7
            && *rest == [4]
            && separators.clone().eq(["/"])
            && is_year(&digits[3..])
        {
            return false;
        }
        // "000-000-0000" stands for any number.
        if digits.bytes().all(|digit| digit == digits.as_bytes()[0]) {
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
                && rest.iter().all(|size| *size > 1)
                && digits.starts_with(prefix)
                && is_form(prefix, &digits[prefix.len()..], rest)
        };
        attached() || apart("0") || apart("8") || apart("06") || has_form("", digits, &sizes)
    }
}

impl Run<'_, '_> {
    /// Returns `true` for an area code in brackets as only phones have it: "(917) 555-0168" and "(020) 7946 0958".
    pub(super) fn has_area_in_brackets(&self, end: usize) -> bool {
        let area = self.numbers.digits(self.groups.start);
        let sizes = self.numbers.sizes(self.groups.start..end);
        self.is_bracketed() && ((area.len() > 1 && area.starts_with('0')) || sizes.eq([3, 3, 4]))
    }
}

/// Returns the length of the country calling code, and a bit for each length of its national numbers.
pub(super) fn country_code(digits: &str) -> Option<(usize, u32)> {
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
    count_steps(1);
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
    if "01234567890".contains(digits) || digits.bytes().all(|digit| digit == digits.as_bytes()[0]) {
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
