//! The classes of personal data.

use std::fmt;

/// A class of personal data that a [`Redaction`](super::Redaction) finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Pii {
    /// Payment card numbers, by their first digits, length and check digit.
    Card,
    /// International bank account numbers, by country, length and check digits.
    Iban,
    /// Social security numbers of the United States.
    Ssn,
    /// Resident identity numbers of China, by region, date and check digit.
    ResidentId,
    /// Passport numbers after a word for passport.
    Passport,
    /// E-mail addresses, also obfuscated ones.
    Email,
    /// Phone numbers, by libphonenumber's metadata.
    Phone,
}

impl Pii {
    /// All classes. Where two match the same text, the first of them here names it.
    pub const ALL: [Self; 7] = [
        Self::Card,
        Self::Iban,
        Self::Ssn,
        Self::ResidentId,
        Self::Passport,
        Self::Email,
        Self::Phone,
    ];

    /// Returns the name of the class in team files, such as `resident_id`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Iban => "iban",
            Self::Ssn => "ssn",
            Self::ResidentId => "resident_id",
            Self::Passport => "passport",
            Self::Email => "email",
            Self::Phone => "phone",
        }
    }

    /// Returns the text that replaces data of this class, unless another is chosen.
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Card => "[CARD]",
            Self::Iban => "[IBAN]",
            Self::Ssn => "[SSN]",
            Self::ResidentId => "[RESIDENT_ID]",
            Self::Passport => "[PASSPORT]",
            Self::Email => "[EMAIL]",
            Self::Phone => "[PHONE]",
        }
    }

    pub(super) const fn index(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Pii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Classes(u8);

impl Classes {
    pub(super) const NONE: Self = Self(0);
    /// The classes of numbers. One of them is only told from another by looking for both.
    pub(super) const NUMBERS: Self = Self(!(1 << Pii::Email.index()));

    pub(super) fn of(classes: impl IntoIterator<Item = Pii>) -> Self {
        let bits = classes.into_iter().map(|class| 1 << class.index());
        Self(bits.fold(0, |all, bit| all | bit))
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn contains(self, class: Pii) -> bool {
        self.0 & (1 << class.index()) != 0
    }
}
