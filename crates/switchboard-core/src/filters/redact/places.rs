//! The places of a text in which numbers are parts of something else: addresses of pages, and what is written as an IBAN.

use std::ops::Range;

use super::addresses;
use super::ibans::{self, Lookalike};

pub(super) struct Places {
    ibans: Vec<Lookalike>,
    addresses: Vec<Range<usize>>,
}

impl Places {
    pub(super) fn new(text: &str) -> Self {
        Self {
            ibans: ibans::lookalikes(text),
            addresses: addresses::find(text),
        }
    }

    /// Returns `true` if a card is a part of what is written as an IBAN.
    pub(super) fn holds_card(&self, card: &Range<usize>) -> bool {
        self.iban_at(card.start)
            .is_some_and(|iban| iban.holds_card(card))
    }

    /// Returns `true` inside of what is written as an IBAN.
    pub(super) fn is_in_iban(&self, at: usize) -> bool {
        self.iban_at(at).is_some()
    }

    fn iban_at(&self, at: usize) -> Option<&Lookalike> {
        let next = self.ibans.partition_point(|iban| iban.range.end <= at);
        self.ibans.get(next).filter(|iban| iban.range.start <= at)
    }

    /// Returns the beginning of the address around an offset.
    pub(super) fn start_of_address(&self, at: usize) -> Option<usize> {
        let next = self.addresses.partition_point(|address| address.end <= at);
        let address = self.addresses.get(next)?;
        (address.start <= at).then_some(address.start)
    }
}
