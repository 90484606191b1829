//! The caller: a file, the demonstration, or a microphone.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use switchboard_realtime::voice::{Audio, BargeIn, Playback, VoiceHandle, WavError, WavReader};

use crate::commands::speech::Speech;
use crate::embedded_teams;
use crate::failure::{Exit, Failure};

/// The pause after each line of the demonstration, which ends the turn.
const PAUSE: Duration = Duration::from_secs(1);

/// The source of the caller's speech.
pub(super) enum Caller {
    /// Speech that waits for the answers.
    Recorded {
        speech: Recorded,
        /// The name of the file.
        file: Option<String>,
    },
    /// A person.
    #[cfg(feature = "microphone")]
    Live(super::microphone::Devices),
}

pub(super) enum Recorded {
    File(Box<WavReader<BufReader<File>>>),
    Lines(Vec<Audio>),
}

impl Caller {
    pub(super) async fn open(
        input: Option<&Path>,
        is_offline: bool,
        speech: &Speech,
    ) -> Result<Self, Failure> {
        if let Some(path) = input {
            let reader = WavReader::open(path).map_err(|error| unreadable(path, error))?;
            return Ok(Self::Recorded {
                speech: Recorded::File(Box::new(reader)),
                file: Some(path.display().to_string()),
            });
        }
        #[cfg(feature = "microphone")]
        if let Ok(devices) = super::microphone::Devices::open() {
            return Ok(Self::Live(devices));
        }
        if is_offline {
            let mut lines = Vec::new();
            for line in embedded_teams::spoken_demo() {
                lines.push(speech.say(line).await?);
            }
            return Ok(Self::Recorded {
                speech: Recorded::Lines(lines),
                file: None,
            });
        }
        Err(no_microphone())
    }

    /// The name of the file, if it is one.
    pub(super) fn description(&self) -> Option<String> {
        match self {
            Self::Recorded { file, .. } => file.clone(),
            #[cfg(feature = "microphone")]
            Self::Live(_) => None,
        }
    }

    pub(super) fn playback(&self) -> Playback {
        match self {
            Self::Recorded { .. } => Playback::Instant,
            #[cfg(feature = "microphone")]
            Self::Live(_) => Playback::Reported,
        }
    }

    /// The effect of the caller's speech during an answer.
    pub(super) fn barge_in(&self, finishes_answers: bool) -> BargeIn {
        #[cfg(not(feature = "microphone"))]
        let _ = finishes_answers;
        match self {
            Self::Recorded { .. } => BargeIn::Wait,
            #[cfg(feature = "microphone")]
            Self::Live(_) if !finishes_answers => BargeIn::Interrupt,
            #[cfg(feature = "microphone")]
            Self::Live(_) => BargeIn::Ignore,
        }
    }

    /// The sample rate that answers need, if they are played.
    pub(super) fn output_rate(&self) -> Option<u32> {
        match self {
            Self::Recorded { .. } => None,
            #[cfg(feature = "microphone")]
            Self::Live(devices) => Some(devices.output_rate()),
        }
    }

    /// Speaks to the session until there is nothing more to say.
    pub(super) async fn speak(self, handle: VoiceHandle) -> Result<(), Failure> {
        match self {
            Self::Recorded { speech, file } => match speech {
                Recorded::File(mut reader) => {
                    let piece = reader.rate() as usize / 10;
                    loop {
                        let audio = reader.read(piece).map_err(|error| {
                            unreadable(Path::new(file.as_deref().unwrap_or_default()), error)
                        })?;
                        let Some(audio) = audio else { break };
                        if handle.send_audio(audio).await.is_err() {
                            break;
                        }
                    }
                }
                Recorded::Lines(lines) => {
                    for line in lines {
                        let pause = Audio::silence(line.rate(), PAUSE);
                        for audio in [pause.clone(), line, pause] {
                            // A session that has ended needs no more words.
                            let _ = handle.send_audio(audio).await;
                        }
                    }
                }
            },
            #[cfg(feature = "microphone")]
            Self::Live(devices) => return devices.listen(handle).await,
        }
        handle.close().await;
        Ok(())
    }
}

fn unreadable(path: &Path, error: WavError) -> Failure {
    match error {
        WavError::Io(error) => Failure::unreadable(path, &error),
        error => Failure::Message {
            exit: Exit::Usage,
            message: format!("{}: {error}", path.display()),
            help: Some(
                "give a WAV file of PCM samples, at 4 to 192 kHz; `ffmpeg -i speech.mp3 speech.wav` makes one"
                    .to_owned(),
            ),
        },
    }
}

#[cfg(feature = "microphone")]
fn no_microphone() -> Failure {
    Failure::usage(
        "there is no microphone here",
        "give the caller's speech with --in, or try `switchboard talk --offline`",
    )
}

#[cfg(not(feature = "microphone"))]
fn no_microphone() -> Failure {
    Failure::usage(
        "nobody speaks: this program was built without a microphone",
        "give the caller's speech with --in, try `switchboard talk --offline`, or build it with `cargo \
         install --features microphone`",
    )
}
