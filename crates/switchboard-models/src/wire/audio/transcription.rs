//! `POST /audio/transcriptions`.

use std::fmt;
use std::sync::Arc;

use http::Uri;
use http::header::HeaderValue;
use serde::Deserialize;
use tokio::time::sleep;

use super::multipart::Form;
use crate::wire::client::{BytesCall, Client, ResponseBody};
use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::server_errors;

/// The longest text that is read of an answer.
const MAX_ANSWER: usize = 4 << 20;

/// A model that writes down speech, at OpenAI or at a compatible server.
///
/// Requests are retried like those of other models. The fields of
/// [`Endpoint::body_field`](crate::Endpoint::body_field) are not sent.
///
/// ```no_run
/// use switchboard_models::{Endpoint, TranscriptionModel};
///
/// # async fn run(wav: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// let openai = Endpoint::from_env().connect()?;
/// let model = TranscriptionModel::new(&openai, "gpt-transcribe").language("en");
/// println!("{}", model.transcribe(wav).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct TranscriptionModel {
    client: Client,
    url: Uri,
    name: Arc<str>,
    language: Option<Arc<str>>,
    prompt: Option<Arc<str>>,
}

impl TranscriptionModel {
    /// The model with this name at the client's server.
    pub fn new(client: &Client, name: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            url: client.url("audio/transcriptions"),
            name: name.into(),
            language: None,
            prompt: None,
        }
    }

    /// Sets the language of the speech, such as `en`.
    pub fn language(mut self, language: impl Into<Arc<str>>) -> Self {
        self.language = Some(language.into());
        self
    }

    /// Sets words that guide the transcription, such as names that occur.
    pub fn prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes down the speech of a WAV file.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the request, or answers with something else than a
    /// transcript.
    pub async fn transcribe(&self, wav: &[u8]) -> Result<String, ModelError> {
        let call = self.call(wav)?;
        let mut attempt = 1;
        loop {
            let answer = async {
                let mut body = self.client.send_bytes(&call).await?;
                let text = read_text(&mut body).await;
                text.map_err(|error| error.with_headers(body.headers()))
            };
            let retry = match answer.await {
                Ok(text) => return Ok(text),
                Err(error) => self.client.plan_bytes_retry(error, attempt)?,
            };
            sleep(retry.delay).await;
            attempt = retry.attempt;
        }
    }

    fn call(&self, wav: &[u8]) -> Result<BytesCall, ModelError> {
        let mut form = Form::new()
            .text("model", &self.name)
            .text("response_format", "json");
        for (name, value) in [("language", &self.language), ("prompt", &self.prompt)] {
            if let Some(value) = value {
                form = form.text(name, value);
            }
        }
        let form = form.file("file", "speech.wav", "audio/wav", wav);
        let (content_type, body) = form.finish()?;
        Ok(BytesCall {
            is_get: false,
            added_header: None,
            url: self.url.clone(),
            content_type,
            accept: HeaderValue::from_static("application/json"),
            body,
        })
    }
}

/// Reads the text of an answer: `{"text": "…"}`.
async fn read_text(body: &mut ResponseBody) -> Result<String, ModelError> {
    #[derive(Deserialize)]
    struct Answer {
        text: String,
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next_chunk().await? {
        if bytes.len() + chunk.len() > MAX_ANSWER {
            let message = format!("the transcript is larger than {MAX_ANSWER} bytes");
            return Err(ModelError::new(ModelErrorKind::TooLarge, message));
        }
        bytes.extend_from_slice(&chunk);
    }
    if let Ok(answer) = serde_json::from_slice::<Answer>(&bytes) {
        return Ok(answer.text);
    }
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    Err(server_errors::from_body(text).unwrap_or_else(|| {
        let message = "the answer is no transcript: a JSON object with \"text\" was expected";
        ModelError::new(ModelErrorKind::BadAnswer, message)
    }))
}

impl fmt::Debug for TranscriptionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.client.server();
        write!(f, "TranscriptionModel({} at {server})", self.name)
    }
}
