//! The time from the making of something to its arrival in another process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};

/// The microseconds since the epoch. Two processes of one machine agree on them, unlike on an `Instant`.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

/// The ages at which things arrived, in microseconds: counts in buckets that are at most 1/64 wide, so that
/// measuring takes the same memory for any number of arrivals.
pub(crate) struct Ages {
    buckets: Vec<AtomicU64>,
    worst: AtomicU64,
}

impl Ages {
    /// The buckets of each power of two.
    const STEPS: u64 = 64;

    pub(crate) fn new() -> Self {
        let buckets = (0..Self::STEPS * 64).map(|_| AtomicU64::new(0));
        Self {
            buckets: buckets.collect(),
            worst: AtomicU64::new(0),
        }
    }

    /// Notes the arrival of something that was made at this time, in microseconds since the epoch.
    pub(crate) fn note(&self, made_at: u64) {
        let age = now_us().saturating_sub(made_at);
        let at = usize::try_from(Self::bucket(age)).unwrap_or(0);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        self.worst.fetch_max(age, Ordering::Relaxed);
    }

    /// The number of arrivals.
    pub(crate) fn count(&self) -> u64 {
        self.buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .sum()
    }

    fn bucket(age: u64) -> u64 {
        let log = age.max(1).ilog2();
        match log.checked_sub(6) {
            None => age,
            Some(shift) => u64::from(shift) * Self::STEPS + (age >> shift),
        }
    }

    /// The upper bound of a bucket.
    fn bound(bucket: u64) -> u64 {
        match (bucket / Self::STEPS).checked_sub(1) {
            None => bucket,
            Some(shift) => ((bucket % Self::STEPS + Self::STEPS + 1) << shift) - 1,
        }
    }

    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in (0..).zip(&self.buckets) {
            seen += count.load(Ordering::Relaxed);
            if seen >= wanted {
                return Self::bound(bucket).min(self.worst.load(Ordering::Relaxed));
            }
        }
        0
    }

    /// The median, the 99th percentile and the worst age, in microseconds.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "p50_us": self.percentile(50),
            "p99_us": self.percentile(99),
            "worst_us": self.worst.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_the_ages_up_to_its_bound() {
        for age in (0..5_000).chain([65_535, 65_536, 1_000_000, 59_999_999]) {
            let bound = Ages::bound(Ages::bucket(age));
            assert!(bound >= age && bound <= age + age / 64, "{age}: {bound}");
        }
    }
}
