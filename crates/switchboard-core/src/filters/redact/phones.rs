//! Phone numbers, by the lengths and written forms in libphonenumber's metadata.

mod forms;
mod lookalikes;

use std::ops::Range;

use self::forms::country_code;
use super::addresses;
use super::columns::Columns;
use super::labels::{self, Label, Meaning, Source};
use super::numbers::{Numbers, last_bytes};
use super::places::Places;

/// The most digits of a number (ITU-T E.164).
const MAX_DIGITS: usize = 15;

pub(super) fn find(numbers: &Numbers<'_>, source: Source, places: &Places) -> Vec<Range<usize>> {
    let columns = Columns::new(numbers.text);
    let mut found = Vec::new();
    let mut first = 0;
    while first < numbers.groups.len() {
        let start = numbers.groups[first].start;
        if places.is_in_iban(start) {
            first += 1;
            continue;
        }
        let run = Run::new(numbers, first);
        if places
            .start_of_address(start)
            .is_some_and(|address| !run.is_named_in(address))
        {
            first += 1;
            continue;
        }
        if run.is_date_or_address() {
            first = run.end_of_date();
            continue;
        }
        match run
            .international()
            .or_else(|| run.national(source, &columns))
        {
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
            // The expiry date and the code of a card.
            (["/", " "], [2, 2, 3..=4]) if groups == 3 => {
                matches!(self.numbers.digits(self.groups.start), "10" | "11" | "12")
                    || self.numbers.digits(self.groups.start).starts_with('0')
            }
            _ => false,
        }
    }

    fn end_of_date(&self) -> usize {
        self.groups.start + 3
    }

    /// Returns `true` for a phone in the address that begins at an offset: with a plus, or after a name for phones.
    fn is_named_in(&self, address: usize) -> bool {
        let before = &self.numbers.text[address..self.start_of_range().max(address)];
        let is_of_phone = || {
            labels::nearest(before)
                .is_some_and(|label| label.is_adjacent && label.meaning == Meaning::Phone)
        };
        if self.has_plus() {
            return !before.ends_with(char::is_alphanumeric);
        }
        addresses::may_name_phone(before) && is_of_phone()
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
    fn national(&self, source: Source, columns: &Columns) -> Option<usize> {
        let total: usize = self.numbers.sizes(self.groups.clone()).sum();
        if total < 7 || self.before.ends_with(['+', '$', '€', '£', '¥']) {
            return None;
        }
        let candidates =
            |is_labelled: bool, is_phone: &dyn Fn(&Run<'_, '_>, usize, &str) -> bool| {
                self.ends().find_map(|(end, digits)| {
                    let is_number = (7..=MAX_DIGITS).contains(&digits.len())
                        && self.is_whole(end)
                        && !self.is_part_of_list(end)
                        && is_phone(self, end, &digits);
                    (is_number && !self.is_counted(end, is_labelled)).then_some(end)
                })
            };
        let label = self.label(columns);
        let is_named = label.is_some_and(|label| {
            label.meaning == Meaning::Phone && label.is_adjacent && !self.is_postcode(label)
        });
        let by_form = candidates(is_named, &|run, end, digits| {
            run.has_national_form(end, digits)
        });
        if self.continues_run() && by_form.is_none_or(|end| self.is_run_of_another_thing(end)) {
            return None;
        }
        let bare = by_form.filter(|end| end - self.groups.start == 1);
        let is_area_in_brackets = by_form.is_some_and(|end| self.has_area_in_brackets(end));
        let is_near =
            |label: &Label| label.distance <= 40 && !has_number(self.before, label.distance);
        match label {
            Some(label) if self.is_postcode(label) => None,
            Some(label) if !label.is_adjacent && self.continues_identifier() => None,
            Some(label) if label.meaning == Meaning::Phone && is_near(&label) => {
                by_form.or_else(|| candidates(is_named, &|run, end, _| run.may_follow_word(end)))
            }
            _ if source == Source::JsonNumber
                || self.continues_identifier()
                || self.continues_amount(by_form) =>
            {
                None
            }
            Some(label)
                if label.meaning == Meaning::Other
                    && !is_area_in_brackets
                    && (label.is_adjacent || bare.is_some()) =>
            {
                None
            }
            Some(label)
                if label.meaning == Meaning::OtherBare && label.is_adjacent && bare.is_some() =>
            {
                None
            }
            _ if bare.is_some()
                && (labels::follows_key(self.before)
                    || labels::is_counted(self.before)
                    || self.is_in_square_brackets()) =>
            {
                None
            }
            _ => by_form.filter(|end| !self.is_time_range(*end)),
        }
    }

    /// Returns what the words before the number say, or the header of its column.
    fn label(&self, columns: &Columns) -> Option<Label> {
        let label = labels::nearest(self.before);
        if label.is_some_and(|label| label.is_adjacent) {
            return label;
        }
        let whole = self.start_of_range()..self.numbers.groups[self.groups.end - 1].end;
        let of_column = columns.meaning(&whole).map(|meaning| Label {
            meaning,
            distance: 0,
            is_adjacent: true,
        });
        of_column.or(label)
    }

    /// Returns `true` if the group before is one of the same run.
    fn continues_run(&self) -> bool {
        let first = self.groups.start;
        first > 0 && is_separator(self.numbers.separator(first - 1))
    }

    /// Returns `true` after the beginning of an identifier, as in "ORD-4155552671", "FV/2026/4155552671", "#4155552671"
    /// and "1Z 999 AA1 01 2345".
    fn continues_identifier(&self) -> bool {
        if self.before.ends_with(['#', '\\', '@']) {
            return true;
        }
        if let Some(before) = self.before.strip_suffix('-') {
            return before.ends_with(|c: char| c.is_ascii_alphanumeric());
        }
        if labels::continues_path(self.before) || labels::continues_capitals(self.before) {
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

    /// Returns `true` if the groups may be a phone number after a word for it.
    fn may_follow_word(&self, end: usize) -> bool {
        let groups = self.groups.start..end;
        let separators: Vec<&str> = (self.groups.start..end - 1)
            .map(|group| self.numbers.separator(group))
            .collect();
        let sizes: Vec<usize> = self.numbers.sizes(groups).collect();
        let last = sizes.last().copied().unwrap_or(0);
        let is_fraction = matches!(&*separators, ["."]);
        // "app 8.14.2 (812345)"
        let is_version = matches!(
            (&*separators, &*sizes),
            ([".", ".", rest @ ..], [1..=2, 1..=3, 1..=3, ..])
                if sizes[..3].contains(&1) && rest.iter().any(|separator| *separator != ".")
        );
        !is_fraction && !is_version && (sizes.len() == 1 || last > 1) && sizes.len() <= 7
    }
}

/// Returns `true` if the last bytes of a text have a number that is none of the day or the hour: "call after 16:30 on".
fn has_number(before: &str, distance: usize) -> bool {
    const LONGEST_HOUR: usize = 2;
    let start = before.len().saturating_sub(distance);
    let mut groups = before.as_bytes()[start..].split(|byte| !byte.is_ascii_digit());
    groups.any(|digits| digits.len() > LONGEST_HOUR)
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
