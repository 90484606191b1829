//! The body of a response.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use switchboard_core::ModelResponse;

use super::response_headers::request_id;
use super::transport_error::transport_error;
use super::{Events, Opened, ResponseHeaders};
use crate::http_client::HttpResponse;
use crate::wire::lenient_json::{bad, field, raw_usage};
use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::secret::Secret;
use crate::wire::{Protocol, server_errors};

/// The most white space before an answer.
const MAX_WHITE_SPACE: usize = 64 << 10;

/// The body of a successful response.
pub(crate) struct ResponseBody {
    response: HttpResponse,
    /// The number of bytes that may still come.
    left: usize,
    limit: usize,
    /// Set if the answer keeps the usage as the server sent it.
    keeps_raw_usage: bool,
}

impl ResponseBody {
    /// The body of a response, of which at most `limit` bytes are read.
    pub(super) fn new(response: HttpResponse, limit: usize, keeps_raw_usage: bool) -> Self {
        Self {
            response,
            left: limit,
            limit,
            keeps_raw_usage,
        }
    }

    /// The headers of the response, which only errors need.
    pub(crate) fn headers(&self) -> ResponseHeaders {
        ResponseHeaders::parse(self.response.headers())
    }

    /// Adds the identifier of the request to its answer.
    pub(crate) fn identify(&self, mut answer: ModelResponse) -> ModelResponse {
        answer.request_id = request_id(self.response.headers()).map(Into::into);
        answer
    }

    /// The media type of the response, in lower case and without parameters.
    pub(in crate::wire) fn media_type(&self) -> String {
        let value = self.response.headers().get(CONTENT_TYPE);
        let value = value.and_then(|value| value.to_str().ok());
        let value = value.unwrap_or_default().split(';').next();
        value.unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The next bytes; `None` at the end.
    pub(in crate::wire) async fn next_chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        // The length that is still to come. Polling for the end would start another timer.
        if self.response.remaining_length() == Some(0) {
            return Ok(None);
        }
        let chunk = self.response.chunk().await;
        let Some(bytes) = chunk.map_err(|error| transport_error(error, true))? else {
            return Ok(None);
        };
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| {
            let limit = self.limit;
            let message = format!("the response is larger than the limit of {limit} bytes");
            ModelError::new(ModelErrorKind::TooLarge, message)
        })?;
        Ok(Some(bytes))
    }

    /// The value of a header, if it is text.
    pub(in crate::wire) fn header(&self, name: &HeaderName) -> Option<String> {
        let value = self.response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    }

    /// Reads the whole body.
    pub(in crate::wire) async fn read_bytes(&mut self) -> Result<Vec<u8>, ModelError> {
        let mut read = Vec::new();
        while let Some(bytes) = self.next_chunk().await? {
            read.extend_from_slice(&bytes);
        }
        if read.trim_ascii_start().starts_with(b"<") {
            return Err(self.web_page());
        }
        Ok(read)
    }

    /// The body as a stream of events.
    pub(in crate::wire) fn into_events(self) -> Events {
        Events::new(self, &[])
    }

    /// Reads the rest of a body that begins with `start`, and parses it.
    pub(in crate::wire) async fn read_whole(
        &mut self,
        model: &impl Protocol,
        mut start: Bytes,
    ) -> Result<ModelResponse, ModelError> {
        let mut joined = Vec::new();
        while let Some(bytes) = self.next_chunk().await? {
            // Most answers come in one chunk, which is not copied.
            if start.is_empty() {
                start = bytes;
                continue;
            }
            if joined.is_empty() {
                joined.extend_from_slice(&start);
            }
            joined.extend_from_slice(&bytes);
        }
        let body = if joined.is_empty() { &*start } else { &joined };
        let body = std::str::from_utf8(body).map_err(|error| bad(&error))?;
        // Some servers send a byte order mark.
        let body = body.strip_prefix('\u{feff}').unwrap_or(body);
        if body.trim_start().starts_with('<') {
            return Err(self.web_page());
        }
        let mut answer = self.identify(model.parse(body)?);
        if self.keeps_raw_usage {
            answer.raw_usage = raw_usage(field(body, "usage"));
        }
        Ok(answer)
    }

    /// Reads up to the first event of a stream. Errors quote no `secrets`.
    pub(in crate::wire) async fn read_first(
        mut self,
        model: &impl Protocol,
        secrets: &[Secret],
    ) -> Result<Opened, ModelError> {
        let mut start = Vec::new();
        while start.trim_ascii_start().is_empty()
            && start.len() < MAX_WHITE_SPACE
            && let Some(bytes) = self.next_chunk().await?
        {
            start.extend_from_slice(&bytes);
        }
        // Content types are not reliable: what comes decides whether it is a stream.
        match start.trim_ascii_start().first() {
            Some(b'{' | b'[') => {
                let answer = self.read_whole(model, start.into()).await;
                return answer.map(Opened::Whole);
            }
            Some(b'<') => return Err(self.web_page()),
            _ => {}
        }
        let mut events = Events::new(self, &start);
        let Some(first) = events.next().await? else {
            if !is_event_stream(&start) {
                return Err(server_errors::not_an_answer(&start, secrets));
            }
            let message = "the stream ended before its first event";
            return Err(ModelError::new(ModelErrorKind::Interrupted, message));
        };
        if let Some(error) = server_errors::from_event(&first) {
            return Err(error);
        }
        events.put_back(first);
        Ok(Opened::Events(Box::new(events)))
    }

    /// The error for a page of HTML, as a proxy, a login form or a wrong address sends it.
    fn web_page(&self) -> ModelError {
        let status = self.response.status().as_u16();
        let media_type = match self.media_type().as_str() {
            "" => "of unknown type".to_owned(),
            media_type => media_type.to_owned(),
        };
        let message =
            format!("the server answered {status} with a web page ({media_type}), not as a model");
        ModelError::new(ModelErrorKind::WebPage, message)
    }
}

/// Returns `true` if a body begins with a field of an event or a comment, or with a part of one.
fn is_event_stream(start: &[u8]) -> bool {
    // Some servers send a byte order mark.
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    let start = start.trim_ascii_start();
    let fields = [&b"data:"[..], b"event:", b"id:", b"retry:", b":"];
    fields
        .iter()
        .any(|field| start.starts_with(field) || field.starts_with(start))
}
