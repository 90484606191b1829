//! Audio: samples of one channel at a rate.

use std::fmt;
use std::time::Duration;

use super::resample::Resampler;

/// The rates that audio can have.
pub(crate) const RATES: std::ops::RangeInclusive<u32> = 4_000..=192_000;

/// Audio of one channel, as 16-bit samples.
///
/// ```
/// use std::time::Duration;
/// use switchboard_realtime::voice::Audio;
///
/// let second = Audio::new(8_000, vec![0; 8_000]);
/// assert_eq!(second.duration(), Duration::from_secs(1));
/// assert_eq!(second.resampled(16_000)?.samples().len(), 16_000);
/// # Ok::<(), switchboard_realtime::voice::UnsupportedRate>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Audio {
    rate: u32,
    samples: Vec<i16>,
}

impl Audio {
    /// Audio with this number of samples per second.
    pub fn new(rate: u32, samples: Vec<i16>) -> Self {
        Self { rate, samples }
    }

    /// Silence of this length.
    pub fn silence(rate: u32, length: Duration) -> Self {
        Self::new(rate, vec![0; samples_in(length, rate)])
    }

    /// Audio of PCM bytes: 16-bit, little-endian. A last byte alone is left out.
    pub fn from_pcm(rate: u32, bytes: &[u8]) -> Self {
        let (samples, _) = bytes.as_chunks::<2>();
        Self::new(
            rate,
            samples
                .iter()
                .map(|&pair| i16::from_le_bytes(pair))
                .collect(),
        )
    }

    /// The samples as PCM bytes: 16-bit, little-endian.
    pub fn to_pcm(&self) -> Vec<u8> {
        self.samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect()
    }

    /// The number of samples per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// The samples.
    pub fn samples(&self) -> &[i16] {
        &self.samples
    }

    /// Returns the samples.
    pub fn into_samples(self) -> Vec<i16> {
        self.samples
    }

    /// The length.
    pub fn duration(&self) -> Duration {
        duration_of(self.samples.len(), self.rate)
    }

    /// The same audio at another rate.
    ///
    /// # Errors
    /// If a rate is not supported.
    pub fn resampled(&self, rate: u32) -> Result<Self, UnsupportedRate> {
        let mut resampler = Resampler::new(self.rate, rate)?;
        let mut samples = resampler.push(&self.samples);
        samples.extend(resampler.finish());
        Ok(Self::new(rate, samples))
    }

    /// Audio in pieces of at most this length.
    pub(crate) fn pieces(self, length: Duration) -> impl Iterator<Item = Self> {
        let rate = self.rate;
        let size = samples_in(length, rate).max(1);
        let mut samples = self.samples;
        std::iter::from_fn(move || {
            if samples.is_empty() {
                return None;
            }
            let rest = samples.split_off(size.min(samples.len()));
            Some(Self::new(rate, std::mem::replace(&mut samples, rest)))
        })
    }
}

impl fmt::Debug for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Audio({} samples at {} Hz)",
            self.samples.len(),
            self.rate
        )
    }
}

/// The number of samples of this length.
pub(crate) fn samples_in(length: Duration, rate: u32) -> usize {
    let samples = length.as_nanos() * u128::from(rate) / 1_000_000_000;
    usize::try_from(samples).unwrap_or(usize::MAX)
}

/// The length of this number of samples.
pub(crate) fn duration_of(samples: usize, rate: u32) -> Duration {
    let nanos = samples as u128 * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The error for a sample rate below 4,000 or above 192,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedRate(pub(crate) u32);

impl fmt::Display for UnsupportedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, lowest, highest) = (self.0, RATES.start(), RATES.end());
        write!(
            f,
            "{rate} samples per second are not supported: {lowest} to {highest} are"
        )
    }
}

impl std::error::Error for UnsupportedRate {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcm_bytes_are_read_and_written() {
        let audio = Audio::from_pcm(16_000, &[1, 0, 255, 255, 9]);
        assert_eq!(audio.samples(), [1, -1]);
        assert_eq!(audio.to_pcm(), [1, 0, 255, 255]);
    }

    #[test]
    fn pieces_make_up_the_whole() {
        let audio = Audio::new(1_000, (0..250).collect());
        let pieces: Vec<Audio> = audio.clone().pieces(Duration::from_millis(100)).collect();
        let lengths: Vec<usize> = pieces.iter().map(|piece| piece.samples().len()).collect();
        assert_eq!(lengths, [100, 100, 50]);
        let joined: Vec<i16> = pieces.into_iter().flat_map(Audio::into_samples).collect();
        assert_eq!(joined, audio.samples());
    }
}
