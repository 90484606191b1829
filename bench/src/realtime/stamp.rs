//! Frames of audio that carry the time at which they were made, and the ages at which they arrived.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The bytes of a second of audio: 24 kHz, 16 bits, one channel.
const BYTES_PER_SECOND: f64 = 48_000.0;

/// The characters of base64 that hold the time.
const STAMP_CHARS: usize = 12;

/// A frame of audio of this length, made now.
pub(super) fn stamped_frame(length: Duration) -> Vec<u8> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a frame is short"
    )]
    let bytes = (length.as_secs_f64() * BYTES_PER_SECOND) as usize;
    let mut frame = vec![0; bytes.max(16)];
    frame[..8].copy_from_slice(&now_us().to_le_bytes());
    frame
}

/// The microseconds since the epoch. Two processes of one machine agree on them, unlike on an `Instant`.
fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

/// The ages of frames, in microseconds: counts in buckets that are at most 1/64 wide, so that measuring takes
/// the same memory for any number of frames.
pub(super) struct Ages {
    buckets: Vec<AtomicU64>,
    worst: AtomicU64,
}

impl Ages {
    /// The buckets of each power of two.
    const STEPS: u64 = 64;

    pub(super) fn new() -> Self {
        let buckets = (0..Self::STEPS * 64).map(|_| AtomicU64::new(0));
        Self {
            buckets: buckets.collect(),
            worst: AtomicU64::new(0),
        }
    }

    /// Notes the arrival of a frame.
    pub(super) fn note(&self, frame: &[u8]) {
        let Some(stamp) = frame.first_chunk::<8>() else {
            return;
        };
        let age = now_us().saturating_sub(u64::from_le_bytes(*stamp));
        let at = usize::try_from(Self::bucket(age)).unwrap_or(0);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        self.worst.fetch_max(age, Ordering::Relaxed);
    }

    /// Notes the arrival of a frame in base64, of which only the time is decoded.
    pub(super) fn note_base64(&self, frame: &str) {
        let stamp = frame.get(..STAMP_CHARS).unwrap_or_default();
        if let Ok(stamp) = STANDARD.decode(stamp) {
            self.note(&stamp);
        }
    }

    /// The number of frames.
    pub(super) fn count(&self) -> u64 {
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
    pub(super) fn to_json(&self) -> Value {
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
