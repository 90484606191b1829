//! The search for personal data in one text.

use std::ops::Range;

use super::class::{Classes, Pii};
use super::labels::Source;
use super::normalize::Normalized;
use super::numbers::Numbers;
use super::places::Places;
use super::prefilter::CharCounts;
use super::{cards, emails, ibans, identities, phones};

/// Personal data in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) class: Pii,
    pub(super) range: Range<usize>,
}

/// Finds personal data of these classes, in order. The ranges do not overlap.
pub(super) fn find(text: &str, classes: Classes, source: Source) -> Vec<Found> {
    let counts = CharCounts::of(text);
    if !counts.may_have(classes) {
        return Vec::new();
    }
    super::count_steps(text.len());
    let normalized = Normalized::new(text);
    let text = normalized.text();
    let mut found = Claims::default();
    if counts.may_have(Classes::of([Pii::Email])) {
        found.claim(Pii::Email, emails::find(text));
    }
    if classes.intersects(Classes::NUMBERS) {
        // All classes of numbers are searched, so that what is of one is not taken for another.
        if counts.may_have(Classes::NUMBERS.without(Classes::of([Pii::Passport]))) {
            let numbers = Numbers::new(text);
            found.claim(Pii::Iban, ibans::find(text));
            found.claim(Pii::ResidentId, identities::resident_ids(&numbers));
            let places = Places::new(text);
            let mut cards = cards::find(&numbers, source);
            cards.retain(|card| !places.holds_card(card));
            found.claim(Pii::Card, cards);
            found.claim(Pii::Ssn, identities::social_security_numbers(&numbers));
            found.claim(Pii::Passport, identities::passports(text));
            found.claim(Pii::Phone, phones::find(&numbers, source, &places));
        } else {
            found.claim(Pii::Passport, identities::passports(text));
        }
    }
    let original = |found: Found| Found {
        range: normalized.original_range(&found.range),
        ..found
    };
    let wanted = found
        .0
        .into_iter()
        .filter(|found| classes.contains(found.class));
    wanted.map(original).collect()
}

/// The data found so far, in order.
#[derive(Default)]
struct Claims(Vec<Found>);

impl Claims {
    /// Adds ranges that overlap none that are there.
    fn claim(&mut self, class: Pii, ranges: Vec<Range<usize>>) {
        if ranges.is_empty() {
            return;
        }
        let claimed = &self.0;
        let is_free = |range: &Range<usize>| {
            let next = claimed.partition_point(|found| found.range.end <= range.start);
            claimed
                .get(next)
                .is_none_or(|found| found.range.start >= range.end)
        };
        let new = ranges
            .into_iter()
            .filter(is_free)
            .map(|range| Found { class, range });
        let new: Vec<Found> = new.collect();
        self.0.extend(new);
        self.0.sort_by_key(|found| found.range.start);
    }
}
