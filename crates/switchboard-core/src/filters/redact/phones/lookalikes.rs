//! Numbers that look like phones: amounts, lists, times of the day, parts of longer numbers.

use super::{Run, is_separator};
use crate::filters::redact::labels::{self, Label, Meaning};
use crate::filters::redact::{count_steps, units};

impl Run<'_, '_> {
    /// Returns `true` if the words before the first of the groups name another thing, as in "SIRET 443 061 841 00047".
    pub(super) fn is_run_of_another_thing(&self, end: usize) -> bool {
        const MOST_GROUPS: usize = 8;
        let mut first = self.groups.start;
        if self.is_bracketed() && self.numbers.groups[first - 1].len() > 1 {
            return false;
        }
        // "order 7 415-555-2671"
        let separator = |group: usize| self.numbers.separator(group).trim_matches(['(', ')']);
        if end - first > 1 && separator(first) != separator(first - 1) {
            return false;
        }
        while first > 0
            && self.groups.start - first < MOST_GROUPS
            && is_separator(self.numbers.separator(first - 1))
        {
            first -= 1;
        }
        count_steps(self.groups.start - first);
        let label = labels::nearest(&self.numbers.text[..self.numbers.groups[first].start]);
        label.is_some_and(|label| label.is_adjacent && label.meaning == Meaning::Other)
    }

    /// Returns `true` if the text after the number says that it counts something. After a word for phone only a currency does.
    pub(super) fn is_counted(&self, end: usize, is_labelled: bool) -> bool {
        let after = &self.numbers.text[self.numbers.groups[end - 1].end..];
        let is_bare = end - self.groups.start == 1;
        units::is_amount(after)
            || (!is_labelled
                && ((is_bare && units::is_operand(after))
                    || (self.may_be_amount(end) && units::is_counted(after))))
    }

    /// Returns `true` for digits in one group, or in groups of thousands.
    pub(super) fn may_be_amount(&self, end: usize) -> bool {
        let mut sizes = self.numbers.sizes(self.groups.start + 1..end);
        let first = self.numbers.digits(self.groups.start);
        !first.starts_with('0')
            && (end - self.groups.start == 1 || (first.len() <= 3 && sizes.all(|size| size == 3)))
    }

    /// Returns `true` for a number without a prefix of its own in the middle of groups like its own, as in
    /// "732 829 320 00074" and "8 045 311 447".
    pub(super) fn continues_amount(&self, end: Option<usize>) -> bool {
        let (first, Some(end)) = (self.groups.start, end) else {
            return false;
        };
        if first == 0 || self.is_bracketed() || !self.continues_run() {
            return false;
        }
        let before = self.numbers.separator(first - 1);
        let is_alike = (first..end - 1).all(|group| self.numbers.separator(group) == before);
        let is_thousands = self.numbers.sizes(first..end).all(|size| size == 3);
        let size = self.numbers.groups[first - 1].len();
        let goes_on = size == self.numbers.groups[first].len()
            && !self.numbers.digits(first).starts_with('0');
        end - first > 1 && is_alike && (is_thousands || goes_on)
    }

    /// Returns `true` for a postcode of Brazil: its word is also one for a phone in Turkish.
    pub(super) fn is_postcode(&self, label: Label) -> bool {
        let digits: usize = self.numbers.sizes(self.groups.clone()).sum();
        let bytes = self.before.as_bytes();
        let word = &bytes[..bytes.len().saturating_sub(label.distance)];
        let word = &word[word.len().saturating_sub(3)..];
        digits == 8 && word.eq_ignore_ascii_case(b"cep")
    }

    /// Returns `true` for a bare number that stands alone in square brackets, as that of a process in a log.
    pub(super) fn is_in_square_brackets(&self) -> bool {
        let after = &self.numbers.text[self.numbers.groups[self.groups.start].end..];
        self.before.ends_with('[') && after.starts_with(']') && !after.starts_with("](")
    }

    /// Returns `true` for two times of the day, as in "09.00-17.30" and "0900-1700".
    pub(super) fn is_time_range(&self, end: usize) -> bool {
        let groups = self.groups.start..end;
        let sizes: Vec<usize> = self.numbers.sizes(groups.clone()).collect();
        let digits = self.numbers.joined(groups);
        let is_number =
            |digits: &str, most: u32| digits.parse::<u32>().is_ok_and(|number| number <= most);
        let is_time = |time: &str| {
            is_number(&time[..2], 24)
                && matches!(
                    &time[2..],
                    "00" | "10" | "15" | "20" | "30" | "40" | "45" | "50" | "59"
                )
        };
        let is_hour = |at: usize| is_number(&digits[at..at + 2], 24);
        let is_dash = |group: usize| {
            self.numbers
                .separator(self.groups.start + group)
                .contains('-')
        };
        match &*sizes {
            [4, 4] => is_dash(0) && is_time(&digits[..4]) && is_time(&digits[4..]),
            // "08-12 13-17", and "08.00-12.30" or "08 00 12 30".
            [2, 2, 2, 2] if is_dash(0) && !is_dash(1) && is_dash(2) => {
                [0, 2, 4, 6].into_iter().all(is_hour)
            }
            [2, 2, 2, 2] => !is_dash(0) && is_time(&digits[..4]) && is_time(&digits[4..]),
            _ => false,
        }
    }

    /// Returns `true` if the groups before or after these are as short, as in a list of small numbers.
    pub(super) fn is_part_of_list(&self, end: usize) -> bool {
        let is_alike = |group: usize, other: usize| {
            let len = self.numbers.groups[group].len();
            len <= 2
                && self.numbers.groups[other].len() == len
                && self.numbers.separator(group.min(other)) == " "
        };
        let first = self.groups.start;
        let begins_with_zero = |group: usize| self.numbers.digits(group).starts_with('0');
        let may_begin = |first: usize| begins_with_zero(first) && !begins_with_zero(first - 1);
        (first > 0 && !may_begin(first) && is_alike(first, first - 1))
            || (end < self.numbers.groups.len() && is_alike(end - 1, end))
    }
}
