//! The microphone and the loudspeaker.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cpal::traits::{DeviceTrait as _, HostTrait as _, StreamTrait as _};
use cpal::{FromSample, SampleFormat, SizedSample, Stream, SupportedStreamConfig};
use switchboard_realtime::voice::{Audio, VoiceHandle};

use crate::failure::{Exit, Failure};

/// The samples that wait to be played.
type Queue = Arc<Mutex<VecDeque<i16>>>;

/// The default devices.
pub(super) struct Devices {
    input: (cpal::Device, SupportedStreamConfig),
    output: (cpal::Device, SupportedStreamConfig),
    loudspeaker: Loudspeaker,
}

/// Plays audio; clones share it.
#[derive(Clone)]
pub(super) struct Loudspeaker {
    queue: Queue,
}

impl Loudspeaker {
    /// Appends audio of the device's rate.
    pub(super) fn play(&self, audio: &Audio) {
        lock(&self.queue).extend(audio.samples());
    }

    /// Drops what is not played yet.
    pub(super) fn clear(&self) {
        lock(&self.queue).clear();
    }
}

impl Devices {
    pub(super) fn open() -> Result<Self, Failure> {
        let host = cpal::default_host();
        let input = host
            .default_input_device()
            .ok_or_else(|| missing("microphone"))?;
        let output = host
            .default_output_device()
            .ok_or_else(|| missing("loudspeaker"))?;
        let input_config = input
            .default_input_config()
            .map_err(|error| broken(&error))?;
        let output_config = output
            .default_output_config()
            .map_err(|error| broken(&error))?;
        let loudspeaker = Loudspeaker {
            queue: Queue::default(),
        };
        Ok(Self {
            input: (input, input_config),
            output: (output, output_config),
            loudspeaker,
        })
    }

    /// The sample rate of the loudspeaker.
    pub(super) fn output_rate(&self) -> u32 {
        self.output.1.sample_rate()
    }

    pub(super) fn loudspeaker(&self) -> Loudspeaker {
        self.loudspeaker.clone()
    }

    /// Sends what the microphone hears and plays the answers, until a device fails.
    pub(super) async fn listen(self, handle: VoiceHandle) -> Result<(), Failure> {
        let failure = Arc::new(OnceLock::new());
        let _streams = [
            self.microphone_stream(&handle, &failure)?,
            self.loudspeaker_stream(&handle, &failure)?,
        ];
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if let Some(error) = failure.get() {
                return Err(broken(error));
            }
        }
    }

    fn microphone_stream(
        &self,
        handle: &VoiceHandle,
        failure: &Arc<OnceLock<cpal::Error>>,
    ) -> Result<Stream, Failure> {
        match self.input.1.sample_format() {
            SampleFormat::I16 => self.listen_as::<i16>(handle, failure),
            SampleFormat::U16 => self.listen_as::<u16>(handle, failure),
            SampleFormat::I32 => self.listen_as::<i32>(handle, failure),
            SampleFormat::F32 => self.listen_as::<f32>(handle, failure),
            format => Err(broken(&format!(
                "samples of the form {format} are not supported"
            ))),
        }
    }

    fn listen_as<T: SizedSample>(
        &self,
        handle: &VoiceHandle,
        failure: &Arc<OnceLock<cpal::Error>>,
    ) -> Result<Stream, Failure>
    where
        i16: FromSample<T>,
    {
        let (device, config) = &self.input;
        let channels = usize::from(config.channels()).max(1);
        let rate = config.sample_rate();
        let (handle, failure) = (handle.clone(), failure.clone());
        let hear = move |samples: &[T], _: &cpal::InputCallbackInfo| {
            let mono = samples.chunks_exact(channels).map(|frame| {
                let sum: i32 = frame
                    .iter()
                    .map(|sample| i32::from(i16::from_sample_(*sample)))
                    .sum();
                (sum / channels as i32) as i16
            });
            // A session that has ended needs no more words.
            let _ = handle.try_send_audio(Audio::new(rate, mono.collect()));
        };
        let fail = move |error| drop(failure.set(error));
        let stream = device.build_input_stream(config.config(), hear, fail, None);
        started(stream)
    }

    fn loudspeaker_stream(
        &self,
        handle: &VoiceHandle,
        failure: &Arc<OnceLock<cpal::Error>>,
    ) -> Result<Stream, Failure> {
        match self.output.1.sample_format() {
            SampleFormat::I16 => self.play_as::<i16>(handle, failure),
            SampleFormat::U16 => self.play_as::<u16>(handle, failure),
            SampleFormat::I32 => self.play_as::<i32>(handle, failure),
            SampleFormat::F32 => self.play_as::<f32>(handle, failure),
            format => Err(broken(&format!(
                "samples of the form {format} are not supported"
            ))),
        }
    }

    fn play_as<T: SizedSample + FromSample<i16>>(
        &self,
        handle: &VoiceHandle,
        failure: &Arc<OnceLock<cpal::Error>>,
    ) -> Result<Stream, Failure> {
        let (device, config) = &self.output;
        let channels = usize::from(config.channels()).max(1);
        let rate = config.sample_rate();
        let queue = self.loudspeaker.queue.clone();
        let (handle, failure) = (handle.clone(), failure.clone());
        let play = move |samples: &mut [T], _: &cpal::OutputCallbackInfo| {
            let mut played = 0;
            let mut queue = lock(&queue);
            for frame in samples.chunks_mut(channels) {
                let next = queue.pop_front();
                played += usize::from(next.is_some());
                frame.fill(T::from_sample_(next.unwrap_or(0)));
            }
            drop(queue);
            if played > 0 {
                handle.played(Duration::from_secs_f64(played as f64 / f64::from(rate)));
            }
        };
        let fail = move |error| drop(failure.set(error));
        let stream = device.build_output_stream(config.config(), play, fail, None);
        started(stream)
    }
}

fn started(stream: Result<Stream, cpal::Error>) -> Result<Stream, Failure> {
    let stream = stream.map_err(|error| broken(&error))?;
    stream.play().map_err(|error| broken(&error))?;
    Ok(stream)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing(device: &str) -> Failure {
    Failure::usage(
        format!("there is no {device} here"),
        "give the caller's speech with --in, or try `switchboard talk --offline`",
    )
}

fn broken(error: &impl std::fmt::Display) -> Failure {
    Failure::Message {
        exit: Exit::Failed,
        message: format!("the sound card cannot be used: {error}"),
        help: Some("give the caller's speech with --in".to_owned()),
    }
}
