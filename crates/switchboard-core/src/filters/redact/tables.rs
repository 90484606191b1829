//! Data from libphonenumber and from Unicode.

pub(super) mod phones;
pub(super) mod unicode;
pub(super) mod words;
