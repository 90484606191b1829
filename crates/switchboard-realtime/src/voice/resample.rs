//! Changes of the sample rate.

use super::audio::{RATES, UnsupportedRate};

/// The zero crossings of the filter on each side.
const CROSSINGS: f64 = 16.0;

/// The most phases of the filter. Ratios that need more are rounded to these.
const MAX_PHASES: usize = 1024;

/// The share of the lower rate's band that is kept.
const BAND: f64 = 0.92;

/// Converts audio from one rate to another, piece by piece. It is a windowed-sinc filter: what lies above the
/// band of the lower rate is removed, so that nothing is heard as another tone.
pub(crate) struct Resampler {
    /// The rates without their common divisor.
    from: u64,
    to: u64,
    /// The coefficients of each phase.
    phases: Vec<Vec<f32>>,
    /// The number of input samples on each side of an output sample.
    half: usize,
    /// The input that is still needed, with `half` samples before the next output.
    input: Vec<f32>,
    /// The place of the next output, in `to` parts of an input sample after `input[half]`.
    place: u64,
    taken: u64,
    given: u64,
}

impl Resampler {
    pub(crate) fn new(from: u32, to: u32) -> Result<Self, UnsupportedRate> {
        for rate in [from, to] {
            if !RATES.contains(&rate) {
                return Err(UnsupportedRate(rate));
            }
        }
        let divisor = greatest_common_divisor(from, to);
        let (from, to) = (u64::from(from / divisor), u64::from(to / divisor));
        let (phases, half) = if from == to {
            (Vec::new(), 0)
        } else {
            filter(from, to)
        };
        Ok(Self {
            from,
            to,
            phases,
            half,
            input: vec![0.0; half],
            place: 0,
            taken: 0,
            given: 0,
        })
    }

    /// Converts the next samples. The last ones come with later input, or with [`Resampler::finish`].
    pub(crate) fn push(&mut self, samples: &[i16]) -> Vec<i16> {
        if self.from == self.to {
            return samples.to_vec();
        }
        self.taken += samples.len() as u64;
        self.input
            .extend(samples.iter().map(|&sample| f32::from(sample)));
        self.convert(u64::MAX)
    }

    /// The samples that are left.
    pub(crate) fn finish(&mut self) -> Vec<i16> {
        if self.from == self.to {
            return Vec::new();
        }
        let total = (self.taken * self.to).div_ceil(self.from);
        self.input.extend(std::iter::repeat_n(0.0, self.half + 1));
        self.convert(total)
    }

    /// Converts as long as there is input, up to `total` samples of output.
    fn convert(&mut self, total: u64) -> Vec<i16> {
        let mut output = Vec::new();
        let mut first = 0;
        while self.given < total {
            let whole = (self.place / self.to) as usize;
            let window = first + whole..first + whole + 2 * self.half + 1;
            let Some(window) = self.input.get(window) else {
                break;
            };
            let fraction = self.place % self.to;
            let phase = fraction * self.phases.len() as u64 / self.to;
            let phase = &self.phases[phase as usize];
            let sum: f32 = window
                .iter()
                .zip(phase)
                .map(|(sample, weight)| sample * weight)
                .sum();
            // The conversion saturates.
            output.push(sum.round() as i16);
            self.given += 1;
            self.place += self.from;
            first += (self.place / self.to) as usize;
            self.place %= self.to;
        }
        self.input.drain(..first.min(self.input.len()));
        output
    }
}

/// The coefficients of each phase, and the number of samples on each side.
fn filter(from: u64, to: u64) -> (Vec<Vec<f32>>, usize) {
    let (from, to) = (from as f64, to as f64);
    let cutoff = (to / from).min(1.0) * BAND;
    let half = (CROSSINGS / (to / from).min(1.0)).ceil() as usize;
    let count = (to as usize).min(MAX_PHASES);
    let phase = |index: usize| {
        let fraction = index as f64 / count as f64;
        let weights: Vec<f64> = (0..2 * half + 1)
            .map(|tap| {
                let distance = tap as f64 - half as f64 - fraction;
                sinc(distance * cutoff) * window(distance / (half as f64 + 1.0))
            })
            .collect();
        // A constant stays as loud as it was.
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / sum) as f32).collect()
    };
    ((0..count).map(phase).collect(), half)
}

fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
}

/// Blackman's window, from -1 to 1.
fn window(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return 0.0;
    }
    let x = (x + 1.0) * std::f64::consts::PI;
    0.42 - 0.5 * x.cos() + 0.08 * (2.0 * x).cos()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn tone(rate: u32, frequency: f64, samples: usize) -> Vec<i16> {
        let sample = |n: usize| {
            (10_000.0 * (TAU * frequency * n as f64 / f64::from(rate)).sin()).round() as i16
        };
        (0..samples).map(sample).collect()
    }

    fn resampled(from: u32, to: u32, samples: &[i16]) -> Vec<i16> {
        let mut resampler = Resampler::new(from, to).unwrap();
        let mut output = resampler.push(samples);
        output.extend(resampler.finish());
        output
    }

    fn power(samples: impl Iterator<Item = f64>) -> f64 {
        samples.map(|sample| sample * sample).sum()
    }

    #[test]
    fn a_tone_stays_the_same_tone() {
        for (from, to) in [
            (24_000, 16_000),
            (16_000, 24_000),
            (8_000, 16_000),
            (16_000, 8_000),
            (48_000, 16_000),
            (44_100, 16_000),
            (16_000, 44_100),
        ] {
            let output = resampled(from, to, &tone(from, 1_000.0, from as usize / 2));
            assert_eq!(output.len(), to as usize / 2, "{from} to {to}");
            let expected = tone(to, 1_000.0, output.len());
            // Without the ends, where the tone begins and stops at once.
            let inner = 200..output.len() - 200;
            let pairs = || output[inner.clone()].iter().zip(&expected[inner.clone()]);
            let noise = power(pairs().map(|(a, b)| f64::from(*a) - f64::from(*b)));
            let signal = power(pairs().map(|(_, b)| f64::from(*b)));
            let decibels = 10.0 * (signal / noise).log10();
            assert!(decibels > 50.0, "{from} to {to}: {decibels} dB");
        }
    }

    #[test]
    fn a_tone_above_the_band_is_removed() {
        let output = resampled(48_000, 16_000, &tone(48_000, 11_000.0, 24_000));
        let loudest = output[200..output.len() - 200]
            .iter()
            .map(|sample| sample.abs())
            .max();
        assert!(loudest < Some(20), "{loudest:?}");
    }

    #[test]
    fn pieces_give_the_same_as_the_whole() {
        let input = tone(44_100, 440.0, 10_000);
        let whole = resampled(44_100, 16_000, &input);
        for size in [1, 7, 441, 4_096] {
            let mut resampler = Resampler::new(44_100, 16_000).unwrap();
            let mut output = Vec::new();
            for piece in input.chunks(size) {
                output.extend(resampler.push(piece));
            }
            output.extend(resampler.finish());
            assert!(output == whole, "pieces of {size}");
        }
    }

    #[test]
    fn odd_rates_are_converted_and_impossible_ones_refused() {
        let output = resampled(191_999, 16_001, &tone(191_999, 1_000.0, 191_999));
        assert_eq!(output.len(), 16_001);
        for rate in [0, 3_999, 192_001, u32::MAX] {
            assert!(Resampler::new(rate, 16_000).is_err());
        }
        assert!(resampled(8_000, 16_000, &[]).is_empty());
    }
}
