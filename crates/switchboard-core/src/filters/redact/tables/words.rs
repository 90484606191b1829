//! Words that say what a number is, by language.

pub(in crate::filters::redact) mod phones;
pub(in crate::filters::redact) mod things;
pub(in crate::filters::redact) mod units;
