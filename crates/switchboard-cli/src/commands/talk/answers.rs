//! The spoken answers: written to a file, played, or both.

use std::fs::File;
use std::io::{BufWriter, Read as _};
use std::path::{Path, PathBuf};

use switchboard_realtime::voice::{Audio, WavError, WavWriter};

use super::caller::Caller;
use crate::failure::{Exit, Failure};

/// The destination of answers.
pub(super) struct Answers {
    file: Option<(PathBuf, WavWriter<BufWriter<File>>)>,
    #[cfg(feature = "microphone")]
    loudspeaker: Option<super::microphone::Loudspeaker>,
}

impl Answers {
    /// Creates the file, in place of an older WAV file. A file of anything else is not overwritten.
    pub(super) fn create(path: Option<&Path>, caller: &Caller, rate: u32) -> Result<Self, Failure> {
        let file = match path {
            Some(path) if exists_and_is_no_wav(path) => {
                return Err(Failure::usage(
                    format!("{} is there already and is no WAV file", path.display()),
                    "name another file with --out, or delete this one",
                ));
            }
            Some(path) => {
                let writer = WavWriter::create(path, rate);
                Some((
                    path.to_owned(),
                    writer.map_err(|error| unwritable(path, &error))?,
                ))
            }
            None => None,
        };
        #[cfg(not(feature = "microphone"))]
        let _ = caller;
        Ok(Self {
            file,
            #[cfg(feature = "microphone")]
            loudspeaker: match caller {
                Caller::Live(devices) => Some(devices.loudspeaker()),
                Caller::Recorded { .. } => None,
            },
        })
    }

    pub(super) fn add(&mut self, audio: &Audio) -> Result<(), Failure> {
        if let Some((path, writer)) = &mut self.file {
            writer
                .write(audio)
                .map_err(|error| unwritable(path, &error))?;
        }
        #[cfg(feature = "microphone")]
        if let Some(loudspeaker) = &self.loudspeaker {
            loudspeaker.play(audio);
        }
        Ok(())
    }

    /// Plays nothing of what was added so far.
    pub(super) fn interrupt(&mut self) {
        #[cfg(feature = "microphone")]
        if let Some(loudspeaker) = &self.loudspeaker {
            loudspeaker.clear();
        }
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.file {
            Some((path, writer)) => writer.finish().map_err(|error| unwritable(&path, &error)),
            None => Ok(()),
        }
    }
}

fn unwritable(path: &Path, error: &WavError) -> Failure {
    match error {
        WavError::Io(error) => Failure::unwritable(path, error),
        error => Failure::Message {
            exit: Exit::Failed,
            message: format!("{}: {error}", path.display()),
            help: None,
        },
    }
}

/// Returns `true` if the file has content that is not a WAV file's.
fn exists_and_is_no_wav(path: &Path) -> bool {
    // A device or a pipe has no content to lose.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut head));
    // A file that cannot be read fails when it is created.
    read.is_ok() && !head.is_empty() && head != b"RIFF"
}
