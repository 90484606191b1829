//! `POST /audio/speech`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use http::Uri;
use http::header::HeaderValue;
use serde::Serialize;
use tokio::time::sleep;

use crate::wire::client::{BytesCall, Client, ResponseBody};
use crate::wire::model_error::{ModelError, ModelErrorKind};

/// The voice where none is set.
const DEFAULT_VOICE: &str = "ash";

/// The number of characters that OpenAI speaks in one request.
const MAX_CHARACTERS: usize = 4096;

/// A model that speaks texts, at OpenAI or at a compatible server.
///
/// Requests are retried like those of other models, as long as no audio has come. The fields of
/// [`Endpoint::body_field`](crate::Endpoint::body_field) are not sent.
///
/// ```no_run
/// use futures_util::StreamExt as _;
/// use switchboard_models::{Endpoint, SpeechModel};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let openai = Endpoint::from_env().connect()?;
/// let model = SpeechModel::new(&openai, "gpt-4o-mini-tts").voice("coral");
/// let mut audio = std::pin::pin!(model.speak("Your bill is fixed.", None));
/// while let Some(pcm) = audio.next().await {
///     println!("{} bytes", pcm?.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct SpeechModel {
    client: Client,
    url: Uri,
    name: Arc<str>,
    voice: Arc<str>,
    instructions: Option<Arc<str>>,
    speed: Option<f32>,
}

/// The body of a request.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a str,
    voice: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    response_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<f32>,
}

impl SpeechModel {
    /// The sample rate of the audio.
    pub const SAMPLE_RATE: u32 = 24_000;

    /// The model with this name at the client's server.
    pub fn new(client: &Client, name: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            url: client.url("audio/speech"),
            name: name.into(),
            voice: DEFAULT_VOICE.into(),
            instructions: None,
            speed: None,
        }
    }

    /// Sets the voice; `ash` by default.
    pub fn voice(mut self, voice: impl Into<Arc<str>>) -> Self {
        self.voice = voice.into();
        self
    }

    /// Sets instructions for the way of speaking.
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the speed, from 0.25 to 4; 1 by default.
    pub fn speed(mut self, speed: f32) -> Self {
        self.speed = Some(speed);
        self
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Speaks a text, in this voice if one is given. The audio is PCM: 16-bit, little-endian, one channel,
    /// at [`SpeechModel::SAMPLE_RATE`]; a sample may be divided between two pieces. After an error
    /// nothing follows.
    pub fn speak(
        &self,
        text: &str,
        voice: Option<&str>,
    ) -> impl Stream<Item = Result<Bytes, ModelError>> + Send + use<> {
        let call = self.call(text, voice.unwrap_or(&self.voice));
        let state = State::Start(self.client.clone(), Box::new(call));
        stream::unfold(state, |state| async move {
            match state.next().await {
                Ok(Some((bytes, state))) => Some((Ok(bytes), state)),
                Ok(None) => None,
                Err(error) => Some((Err(error), State::Ended)),
            }
        })
    }

    fn call(&self, text: &str, voice: &str) -> Result<BytesCall, ModelError> {
        if text.chars().count() > MAX_CHARACTERS {
            let message =
                format!("a text of more than {MAX_CHARACTERS} characters cannot be spoken");
            return Err(ModelError::unsupported(message));
        }
        let body = Body {
            model: &self.name,
            input: text,
            voice,
            instructions: self.instructions.as_deref(),
            response_format: "pcm",
            speed: self.speed,
        };
        let body = serde_json::to_vec(&body);
        let body = body.map_err(|error| ModelError::unsupported(error.to_string()))?;
        Ok(BytesCall {
            is_get: false,
            added_header: None,
            url: self.url.clone(),
            content_type: HeaderValue::from_static("application/json"),
            accept: HeaderValue::from_static("application/octet-stream"),
            body: body.into(),
        })
    }
}

/// The state of spoken text.
enum State {
    Start(Client, Box<Result<BytesCall, ModelError>>),
    Reading(Client, Box<ResponseBody>),
    Ended,
}

impl State {
    /// The next bytes, which are never empty.
    async fn next(self) -> Result<Option<(Bytes, Self)>, ModelError> {
        let (client, mut body) = match self {
            Self::Start(client, call) => return open(client, (*call)?).await,
            Self::Reading(client, body) => (client, body),
            Self::Ended => return Ok(None),
        };
        match read(&mut body).await {
            Ok(Some(bytes)) => Ok(Some((bytes, Self::Reading(client, body)))),
            Ok(None) => Ok(None),
            Err(error) => Err(client.complete(error)),
        }
    }
}

/// Sends the request, with retries, until the first audio is there.
async fn open(client: Client, call: BytesCall) -> Result<Option<(Bytes, State)>, ModelError> {
    let mut attempt = 1;
    loop {
        let opened = async {
            let mut body = Box::new(client.send_bytes(&call).await?);
            let first = match check_type(&body) {
                Ok(()) => read(&mut body).await,
                Err(error) => Err(error),
            };
            let first = first.map_err(|error| error.with_headers(body.headers()))?;
            Ok(first.map(|bytes| (bytes, body)))
        };
        let retry = match opened.await {
            Ok(Some((bytes, body))) => return Ok(Some((bytes, State::Reading(client, body)))),
            Ok(None) => return Ok(None),
            Err(error) => client.plan_bytes_retry(error, attempt)?,
        };
        sleep(retry.delay).await;
        attempt = retry.attempt;
    }
}

/// The next bytes of a body that are not empty.
async fn read(body: &mut ResponseBody) -> Result<Option<Bytes>, ModelError> {
    loop {
        match body.next_chunk().await? {
            Some(bytes) if bytes.is_empty() => {}
            bytes => return Ok(bytes),
        }
    }
}

/// Text instead of audio would be heard as noise.
fn check_type(body: &ResponseBody) -> Result<(), ModelError> {
    let media_type = body.media_type();
    if media_type.starts_with("text/") || media_type == "application/json" {
        let message = format!("audio was requested, but the response is of type {media_type}");
        return Err(ModelError::new(ModelErrorKind::BadAnswer, message));
    }
    Ok(())
}

impl fmt::Debug for SpeechModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.client.server();
        write!(f, "SpeechModel({} at {server})", self.name)
    }
}
