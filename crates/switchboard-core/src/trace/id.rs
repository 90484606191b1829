//! Identifiers of traces and spans, in the form of the reference.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seeded by the system, so that processes make different identifiers.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

static COUNTER: AtomicU64 = AtomicU64::new(1);

fn next_count() -> u64 {
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

/// The identifier of a trace: `trace_` and 32 hexadecimal digits.
///
/// An application can use identifiers of its own, in any form:
///
/// ```
/// use switchboard_core::trace::TraceId;
///
/// let id = TraceId::generate();
/// assert_eq!((id.as_str().len(), &id.as_str()[..6]), (38, "trace_"));
/// assert_eq!(TraceId::from("trace_of_order_7").to_string(), "trace_of_order_7");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TraceId(Arc<str>);

impl TraceId {
    /// Makes a new identifier.
    pub fn generate() -> Self {
        let count = next_count();
        let (high, low) = (SEED.hash_one((count, 'h')), SEED.hash_one((count, 'l')));
        Self(format!("trace_{high:016x}{low:016x}").into())
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for TraceId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl FromStr for TraceId {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identifier of a span: `span_` and 24 hexadecimal digits. Those of one process are in the
/// order in which their spans began.
///
/// As text and as JSON it is the same, and read back from either:
///
/// ```
/// use switchboard_core::trace::{InvalidSpanId, SpanId};
///
/// let id: SpanId = "span_0123456789abcdef01234567".parse()?;
/// assert_eq!(id.to_string(), "span_0123456789abcdef01234567");
/// assert!("span_7".parse::<SpanId>().is_err());
/// # Ok::<(), InvalidSpanId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId {
    high: NonZeroU32,
    low: u64,
}

impl SpanId {
    /// Counts up from a random number, which takes no allocation.
    pub(super) fn next() -> Self {
        /// 95 bits, so that counting does not exceed 96.
        static FIRST: LazyLock<u128> = LazyLock::new(|| {
            let (high, low) = (SEED.hash_one("high"), SEED.hash_one("low"));
            (u128::from(high >> 33) << 64) | u128::from(low)
        });
        let number = *FIRST + u128::from(next_count());
        let [low, high] = [number, number >> 64].map(|part| part as u64);
        let high = u32::try_from(high).ok().and_then(NonZeroU32::new);
        Self {
            high: high.unwrap_or(NonZeroU32::MIN),
            low,
        }
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "span_{:08x}{:016x}", self.high, self.low)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SpanId {
    type Err = InvalidSpanId;

    fn from_str(text: &str) -> Result<Self, InvalidSpanId> {
        let digits = text.strip_prefix("span_").ok_or(InvalidSpanId)?;
        if digits.len() != 24 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidSpanId);
        }
        let number = u128::from_str_radix(digits, 16).map_err(|_| InvalidSpanId)?;
        let high = u32::try_from(number >> 64).ok().and_then(NonZeroU32::new);
        Ok(Self {
            high: high.ok_or(InvalidSpanId)?,
            low: number as u64,
        })
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpanId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The error for a text that is no [`SpanId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidSpanId;

impl fmt::Display for InvalidSpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a span identifier is \"span_\" and 24 hexadecimal digits, the first 8 of which are not \
             all zero",
        )
    }
}

impl std::error::Error for InvalidSpanId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_identifiers_have_the_references_form_and_count_up() {
        let ids: Vec<SpanId> = (0..1000).map(|_| SpanId::next()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        for id in ids {
            let text = id.to_string();
            let digits = text.strip_prefix("span_").unwrap();
            assert!(digits.len() == 24 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn trace_identifiers_have_the_references_form_and_differ() {
        let (one, other) = (TraceId::generate(), TraceId::generate());
        assert_ne!(one, other);
        let digits = one.as_str().strip_prefix("trace_").unwrap();
        assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
}
