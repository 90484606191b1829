//! WAV files.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::path::Path;

use hound::{SampleFormat, WavSpec};

use super::audio::{Audio, RATES, UnsupportedRate, duration_of};
use super::resample::Resampler;

/// Reads a WAV file piece by piece: whole numbers of 8, 16, 24 or 32 bits or floating-point numbers, with any
/// number of channels, which are mixed into one.
///
/// Only the piece that is asked for is in memory, however long the file is.
pub struct WavReader<R> {
    reader: hound::WavReader<R>,
}

impl WavReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a WAV file that is supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WavError> {
        let file = File::open(path).map_err(WavError::Io)?;
        Self::new(BufReader::new(file))
    }
}

impl<R: Read> WavReader<R> {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// If it is not a WAV file that is supported.
    pub fn new(reader: R) -> Result<Self, WavError> {
        let reader = hound::WavReader::new(reader).map_err(WavError::from_hound)?;
        let WavSpec {
            channels,
            sample_rate,
            bits_per_sample,
            ..
        } = reader.spec();
        if !RATES.contains(&sample_rate) {
            return Err(WavError::Invalid(UnsupportedRate(sample_rate).to_string()));
        }
        if channels == 0 || !(1..=32).contains(&bits_per_sample) {
            let message =
                format!("{channels} channels of {bits_per_sample} bits are not supported");
            return Err(WavError::Invalid(message));
        }
        Ok(Self { reader })
    }

    /// The number of samples per second.
    pub fn rate(&self) -> u32 {
        self.reader.spec().sample_rate
    }

    /// The length, as the head states it.
    pub fn duration(&self) -> std::time::Duration {
        duration_of(self.reader.duration() as usize, self.rate())
    }

    /// The next piece of at most this number of samples; `None` at the end.
    ///
    /// # Errors
    /// If the file breaks off.
    pub fn read(&mut self, samples: usize) -> Result<Option<Audio>, WavError> {
        let spec = self.reader.spec();
        let channels = usize::from(spec.channels);
        let mixed = match spec.sample_format {
            SampleFormat::Float => mix(self.reader.samples::<f32>(), channels, samples, |sample| {
                if sample.is_finite() {
                    f64::from(sample) * 32_768.0
                } else {
                    0.0
                }
            }),
            SampleFormat::Int => {
                let scale = f64::from(spec.bits_per_sample) - 16.0;
                let scale = (-scale).exp2();
                mix(self.reader.samples::<i32>(), channels, samples, |sample| {
                    f64::from(sample) * scale
                })
            }
        }?;
        Ok((!mixed.is_empty()).then(|| Audio::new(spec.sample_rate, mixed)))
    }
}

/// Reads frames and mixes their channels. A last frame that is not whole is left out.
fn mix<S>(
    mut values: impl Iterator<Item = hound::Result<S>>,
    channels: usize,
    frames: usize,
    level: impl Fn(S) -> f64,
) -> Result<Vec<i16>, WavError> {
    let mut mixed = Vec::new();
    for _ in 0..frames {
        let mut sum = 0.0;
        for _ in 0..channels {
            match values.next() {
                Some(value) => sum += level(value.map_err(WavError::from_hound)?),
                None => return Ok(mixed),
            }
        }
        // The conversion saturates.
        mixed.push((sum / channels as f64).round() as i16);
    }
    Ok(mixed)
}

/// Writes audio to a WAV file of one channel and 16 bits, at one rate.
pub struct WavWriter<W: Write + Seek> {
    writer: hound::WavWriter<W>,
    rate: u32,
    /// Converts audio of another rate.
    resampler: Option<(u32, Resampler)>,
}

impl WavWriter<BufWriter<File>> {
    /// Creates a file, in place of one that is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: impl AsRef<Path>, rate: u32) -> Result<Self, WavError> {
        let file = File::create(path).map_err(WavError::Io)?;
        Self::new(BufWriter::new(file), rate)
    }
}

impl<W: Write + Seek> WavWriter<W> {
    /// Writes the head of a file.
    ///
    /// # Errors
    /// If it cannot be written, or the rate is not supported.
    pub fn new(writer: W, rate: u32) -> Result<Self, WavError> {
        if !RATES.contains(&rate) {
            return Err(WavError::Invalid(UnsupportedRate(rate).to_string()));
        }
        let spec = WavSpec {
            channels: 1,
            sample_rate: rate,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let writer = hound::WavWriter::new(writer, spec).map_err(WavError::from_hound)?;
        Ok(Self {
            writer,
            rate,
            resampler: None,
        })
    }

    /// Appends audio, converted to the file's rate.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, audio: &Audio) -> Result<(), WavError> {
        if self.resampler.as_ref().map_or(self.rate, |(rate, _)| *rate) != audio.rate() {
            self.flush_resampler()?;
            if audio.rate() != self.rate {
                let resampler = Resampler::new(audio.rate(), self.rate);
                let resampler = resampler.map_err(|error| WavError::Invalid(error.to_string()))?;
                self.resampler = Some((audio.rate(), resampler));
            }
        }
        match &mut self.resampler {
            Some((_, resampler)) => {
                let samples = resampler.push(audio.samples());
                self.write_samples(&samples)
            }
            None => self.write_samples(audio.samples()),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<(), WavError> {
        self.flush_resampler()?;
        self.writer.finalize().map_err(WavError::from_hound)
    }

    fn flush_resampler(&mut self) -> Result<(), WavError> {
        match self.resampler.take() {
            Some((_, mut resampler)) => self.write_samples(&resampler.finish()),
            None => Ok(()),
        }
    }

    fn write_samples(&mut self, samples: &[i16]) -> Result<(), WavError> {
        for &sample in samples {
            self.writer
                .write_sample(sample)
                .map_err(WavError::from_hound)?;
        }
        Ok(())
    }
}

impl Audio {
    /// Reads a WAV file of at most `max` length; what comes after it is left out.
    ///
    /// # Errors
    /// If it is not a WAV file that is supported, or breaks off.
    pub fn from_wav(reader: impl Read, max: std::time::Duration) -> Result<Self, WavError> {
        let mut reader = WavReader::new(reader)?;
        let rate = reader.rate();
        let audio = reader.read(super::audio::samples_in(max, rate))?;
        Ok(audio.unwrap_or_else(|| Self::new(rate, Vec::new())))
    }

    /// The audio as a WAV file.
    ///
    /// # Errors
    /// If it is too long for one, or its rate is not supported.
    pub fn to_wav(&self) -> Result<Vec<u8>, WavError> {
        let mut bytes = Cursor::new(Vec::with_capacity(44 + self.samples().len() * 2));
        let mut writer = WavWriter::new(&mut bytes, self.rate())?;
        writer.write(self)?;
        writer.finish()?;
        Ok(bytes.into_inner())
    }
}

/// The error of a WAV file.
#[derive(Debug)]
#[non_exhaustive]
pub enum WavError {
    /// It cannot be read or written.
    Io(io::Error),
    /// It is not a WAV file, is broken, or has a form that is not supported.
    Invalid(String),
}

impl WavError {
    fn from_hound(error: hound::Error) -> Self {
        match error {
            hound::Error::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Invalid("it breaks off".to_owned())
            }
            hound::Error::IoError(error) if is_short_read(&error) => {
                Self::Invalid("it breaks off".to_owned())
            }
            hound::Error::IoError(error) => Self::Io(error),
            error => Self::Invalid(error.to_string()),
        }
    }
}

/// Returns `true` for the error by which the library reports the end of a file.
fn is_short_read(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Other && error.to_string().contains("enough bytes")
}

impl fmt::Display for WavError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Invalid(problem) => write!(f, "the WAV file cannot be used: {problem}"),
        }
    }
}

impl std::error::Error for WavError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Invalid(_) => None,
        }
    }
}

impl<R> fmt::Debug for WavReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WavReader")
    }
}

impl<W: Write + Seek> fmt::Debug for WavWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WavWriter({} Hz)", self.rate)
    }
}
