//! Speech to text with pocketsphinx, a Python package that needs no network.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use switchboard_core::callback::BoxError;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::audio::Audio;
use super::programs::{command, last_line, start_error};
use super::speech::SpeechToText;

/// The program that is given to Python.
const SCRIPT: &str = include_str!("pocketsphinx.py");

/// The sample rate of its model.
const RATE: u32 = 16_000;

/// The longest line that is read.
const MAX_LINE: u64 = 1 << 20;

/// The longest speech that is written down at once.
const MAX_SPEECH: Duration = Duration::from_secs(120);

const ADVICE: &str = "install it with `pip install pocketsphinx` into a virtual environment (`python3 -m venv`), and \
                      name its Python with SWITCHBOARD_PYTHON";

/// Speech to text with the Python package [pocketsphinx](https://pypi.org/project/pocketsphinx/), in English and
/// without a network. One process serves all turns of the user; clones share it.
///
/// ```no_run
/// use switchboard_realtime::voice::PocketSphinx;
///
/// // `python3 -m venv speech && speech/bin/pip install pocketsphinx`
/// let hears = PocketSphinx::new("speech/bin/python");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct PocketSphinx {
    python: PathBuf,
    time_limit: Duration,
    /// The process, while it does not work. One whose work was cancelled ends.
    process: Arc<Mutex<Option<Process>>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A line of the process.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    text: Option<String>,
    error: Option<String>,
    missing: bool,
    ready: bool,
}

impl PocketSphinx {
    /// The package of this Python.
    pub fn new(python: impl Into<PathBuf>) -> Self {
        Self {
            python: python.into(),
            time_limit: Duration::from_secs(60),
            process: Arc::default(),
        }
    }

    /// The package of the Python that the variable `SWITCHBOARD_PYTHON` names; `python3` by default.
    pub fn from_env() -> Self {
        let python = std::env::var_os("SWITCHBOARD_PYTHON").filter(|name| !name.is_empty());
        Self::new(python.unwrap_or_else(|| "python3".into()))
    }

    /// Sets the longest time for the start, and for a turn of the user; 60 seconds by default.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Starts the process, if it does not run, and checks that the package is there.
    ///
    /// # Errors
    /// Says what to install.
    pub async fn check(&self) -> Result<(), BoxError> {
        let mut idle = self.process.lock().await;
        if idle.is_none() {
            *idle = Some(self.within_limit(self.start()).await?);
        }
        Ok(())
    }

    async fn within_limit<T>(
        &self,
        work: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, BoxError> {
        timeout(self.time_limit, work).await.unwrap_or_else(|_| {
            let seconds = self.time_limit.as_secs_f64();
            Err(format!("pocketsphinx took more than {seconds} seconds").into())
        })
    }

    async fn start(&self) -> Result<Process, BoxError> {
        let mut child = command(&self.python)
            .args(["-c", SCRIPT])
            .spawn()
            .map_err(|error| start_error("Python", ADVICE, &error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("pocketsphinx has no pipes".into());
        };
        let mut process = Process {
            child,
            input,
            output: BufReader::new(output),
        };
        match process.read().await? {
            Answer { ready: true, .. } => Ok(process),
            Answer { missing: true, .. } => {
                Err(format!("the Python package pocketsphinx is not installed: {ADVICE}").into())
            }
            answer => Err(answer.into_error()),
        }
    }
}

impl Process {
    async fn exchange(&mut self, pcm: &[u8]) -> Result<String, BoxError> {
        let length = u32::try_from(pcm.len())?.to_le_bytes();
        self.input.write_all(&length).await?;
        self.input.write_all(pcm).await?;
        self.input.flush().await?;
        let answer = self.read().await?;
        match answer.text {
            Some(text) => Ok(text),
            None => Err(answer.into_error()),
        }
    }

    async fn read(&mut self) -> Result<Answer, BoxError> {
        let mut line = String::new();
        let mut limited = (&mut self.output).take(MAX_LINE);
        limited.read_line(&mut line).await?;
        if line.is_empty() {
            return Err(self.end_error().await);
        }
        let answer = serde_json::from_str(&line);
        Ok(answer.map_err(|error| format!("pocketsphinx answers with something else: {error}"))?)
    }

    /// The error for a process that has ended.
    async fn end_error(&mut self) -> BoxError {
        let mut errors = Vec::new();
        if let Some(stderr) = &mut self.child.stderr {
            let mut limited = stderr.take(64 << 10);
            let read = limited.read_to_end(&mut errors);
            // The words are worth a moment, not more.
            let _ = timeout(Duration::from_secs(1), read).await;
        }
        format!(
            "the Python of pocketsphinx has ended: {}",
            last_line(&errors)
        )
        .into()
    }
}

impl Answer {
    fn into_error(self) -> BoxError {
        let reason = self
            .error
            .unwrap_or_else(|| "it does not say why".to_owned());
        format!("pocketsphinx failed: {reason}").into()
    }
}

impl SpeechToText for PocketSphinx {
    async fn transcribe(&self, speech: Audio) -> Result<String, BoxError> {
        if speech.duration() > MAX_SPEECH {
            return Err(format!("more than {} seconds of speech", MAX_SPEECH.as_secs()).into());
        }
        let speech = speech.resampled(RATE)?;
        let mut idle = self.process.lock().await;
        // Out of its place while it works: after a failure or a cancelled turn it is not used again.
        let work = async {
            let mut process = match idle.take() {
                Some(process) => process,
                None => self.start().await?,
            };
            let text = process.exchange(&speech.to_pcm()).await?;
            Ok((text, process))
        };
        let (text, process) = self.within_limit(work).await?;
        *idle = Some(process);
        Ok(text)
    }

    fn rate(&self) -> u32 {
        RATE
    }

    fn name(&self) -> &str {
        "pocketsphinx"
    }
}
