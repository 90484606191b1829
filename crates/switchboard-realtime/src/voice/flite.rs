//! Text to speech with flite, a program that needs no network.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream;
use switchboard_core::callback::BoxError;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::audio::Audio;
use super::programs::{command, last_line, start_error};
use super::speech::{SpeechRequest, TextToSpeech};

/// The number of characters that are spoken at once.
const MAX_CHARACTERS: usize = 4096;

/// The longest audio of a text.
const MAX_AUDIO: Duration = Duration::from_secs(600);

const ADVICE: &str =
    "install it with `apt-get install flite`, or name the program with SWITCHBOARD_FLITE";

/// Text to speech with the program [flite](http://cmuflite.org), without a network. Each sentence is one process.
///
/// ```no_run
/// use switchboard_realtime::voice::Flite;
///
/// let speaks = Flite::from_env().voice("slt");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Flite {
    program: PathBuf,
    voice: Arc<str>,
    time_limit: Duration,
}

impl Flite {
    /// The program at this path, or of this name in `PATH`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            voice: "rms".into(),
            time_limit: Duration::from_secs(20),
        }
    }

    /// The program that the variable `SWITCHBOARD_FLITE` names; `flite` by default.
    pub fn from_env() -> Self {
        let program = std::env::var_os("SWITCHBOARD_FLITE").filter(|name| !name.is_empty());
        Self::new(program.unwrap_or_else(|| "flite".into()))
    }

    /// Sets the voice of agents that have none: `rms` by default, or `slt`, `awb`, `kal16`.
    pub fn voice(mut self, voice: impl Into<Arc<str>>) -> Self {
        self.voice = voice.into();
        self
    }

    /// Sets the longest time for a sentence; 20 seconds by default.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Checks that the program is there, and speaks.
    ///
    /// # Errors
    /// Says what to install.
    pub async fn check(&self) -> Result<(), BoxError> {
        self.clone().run("Hello.", None).await.map(drop)
    }

    /// The names of the voices that the program has; `None` if it does not tell.
    pub async fn voices(&self) -> Option<Vec<String>> {
        let listed = command(&self.program).arg("-lv").output();
        let listed = timeout(self.time_limit, listed).await.ok()?.ok()?;
        let listed = String::from_utf8(listed.stdout).ok()?;
        let (_, names) = listed.split_once("Voices available:")?;
        Some(names.split_whitespace().map(ToOwned::to_owned).collect())
    }

    async fn run(self, text: &str, voice: Option<Arc<str>>) -> Result<Audio, BoxError> {
        if text.chars().count() > MAX_CHARACTERS {
            let message = format!("flite: a text has more than {MAX_CHARACTERS} characters");
            return Err(message.into());
        }
        let voice = voice.as_ref().unwrap_or(&self.voice);
        if voice.starts_with('-') || voice.contains(['/', '\\', ':']) {
            return Err(format!("flite: {voice:?} is no name of a voice").into());
        }
        // The program goes back in its output to complete the head, so it cannot be a pipe.
        let output = tempfile::Builder::new().suffix(".wav").tempfile()?;
        let mut child = command(&self.program)
            .args(["-voice", voice, "-f", "-", "-o"])
            .arg(output.path())
            .spawn()
            .map_err(|error| start_error("flite", ADVICE, &error))?;
        let mut stdin = child.stdin.take();
        let spoken = async {
            if let Some(stdin) = &mut stdin {
                // A program that ends before it has read is told by its exit code.
                let _ = stdin.write_all(text.as_bytes()).await;
            }
            drop(stdin);
            child.wait_with_output().await
        };
        let ended = timeout(self.time_limit, spoken).await.map_err(|_| {
            let seconds = self.time_limit.as_secs_f64();
            format!("flite took more than {seconds} seconds for a sentence")
        })??;
        if !ended.status.success() {
            let (status, reason) = (ended.status, last_line(&ended.stderr));
            return Err(format!("flite failed ({status}): {reason}").into());
        }
        let file = std::io::BufReader::new(output.reopen()?);
        Ok(Audio::from_wav(file, MAX_AUDIO).map_err(|error| format!("flite: {error}"))?)
    }
}

impl TextToSpeech for Flite {
    fn speak(&self, request: SpeechRequest) -> impl Stream<Item = Result<Audio, BoxError>> + Send {
        let flite = self.clone();
        stream::once(async move { flite.run(&request.text, request.voice).await })
    }

    fn name(&self) -> &str {
        "flite"
    }
}
