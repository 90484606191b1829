//! Bodies of the type `multipart/form-data`.

use bytes::Bytes;
use http::header::HeaderValue;

use crate::wire::model_error::ModelError;

/// A form: fields of text, and one file.
pub(super) struct Form {
    boundary: String,
    body: Vec<u8>,
}

impl Form {
    /// A form without fields. Its boundary is random, so that no part has it in it.
    pub(super) fn new() -> Self {
        Self {
            boundary: format!("switchboard-{:032x}", fastrand::u128(..)),
            body: Vec::new(),
        }
    }

    /// Adds a field. Names are those of the API.
    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.begin_part(&format!("name=\"{name}\""));
        self.body.extend_from_slice(b"\r\n\r\n");
        self.body.extend_from_slice(value.as_bytes());
        self
    }

    /// Adds a file.
    pub(super) fn file(
        mut self,
        name: &str,
        file_name: &str,
        media_type: &str,
        data: &[u8],
    ) -> Self {
        self.begin_part(&format!("name=\"{name}\"; filename=\"{file_name}\""));
        let media_type = format!("\r\nContent-Type: {media_type}\r\n\r\n");
        self.body.extend_from_slice(media_type.as_bytes());
        self.body.extend_from_slice(data);
        self
    }

    fn begin_part(&mut self, disposition: &str) {
        let line_break = if self.body.is_empty() { "" } else { "\r\n" };
        let boundary = &self.boundary;
        let start =
            format!("{line_break}--{boundary}\r\nContent-Disposition: form-data; {disposition}");
        self.body.extend_from_slice(start.as_bytes());
    }

    /// The content type and the body.
    pub(super) fn finish(mut self) -> Result<(HeaderValue, Bytes), ModelError> {
        let end = format!("\r\n--{}--\r\n", self.boundary);
        self.body.extend_from_slice(end.as_bytes());
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        let content_type = HeaderValue::try_from(content_type)
            .map_err(|error| ModelError::unsupported(error.to_string()))?;
        Ok((content_type, self.body.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_its_fields_and_its_file() {
        let form = Form::new()
            .text("model", "m")
            .file("file", "speech.wav", "audio/wav", b"RIFF");
        let boundary = form.boundary.clone();
        let (content_type, body) = form.finish().unwrap();
        assert_eq!(
            content_type,
            format!("multipart/form-data; boundary={boundary}")
        );
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"speech.wav\"\r\n\
             Content-Type: audio/wav\r\n\r\nRIFF\r\n--{boundary}--\r\n"
        );
        assert_eq!(body, expected);
    }
}
