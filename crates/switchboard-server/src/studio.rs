//! The studio: a page at `/` that talks to a team and shows what happens in it.
//!
//! The page is a set of static files. It holds no secret: the token that the service asks for comes in the fragment
//! of the page's address, which browsers send to nobody, and goes into the header of each request. So a page of another site has
//! no way to use the service in a visitor's name, and there are no cookies.

use std::path::PathBuf;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::error::ServiceError;
use crate::http::check_host;
use crate::keys::{KeysError, Token};
use crate::service::Service;
use crate::team_source::text_version;

/// The content security policy of the page: nothing but its own files, and no script in the text of the page.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; media-src 'self' blob:; \
    worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page.
#[cfg(feature = "studio")]
const FILES: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("../studio/dist/index.html")),
    ("icon.svg", include_bytes!("../studio/dist/icon.svg")),
    (
        "assets/studio.js",
        include_bytes!("../studio/dist/assets/studio.js"),
    ),
    (
        "assets/studio.css",
        include_bytes!("../studio/dist/assets/studio.css"),
    ),
    (
        "assets/microphone.js",
        include_bytes!("../studio/dist/assets/microphone.js"),
    ),
];

#[cfg(not(feature = "studio"))]
const FILES: &[(&str, &[u8])] = &[];

/// The settings of the studio.
#[derive(Debug)]
#[must_use]
pub struct Studio {
    token: Option<Token>,
    language: String,
    folder: Option<PathBuf>,
}

impl Studio {
    /// A studio that everybody who reaches the service may use, with the keys of the service where it has some.
    pub fn new() -> Self {
        Self {
            token: None,
            language: "en".to_owned(),
            folder: None,
        }
    }

    /// A studio for one person: each request needs a token, which is made anew. Returns the token as well.
    ///
    /// # Errors
    /// An error if the system has no random numbers.
    pub fn with_token() -> Result<(Self, String), KeysError> {
        let (token, text) = Token::generate()?;
        let studio = Self {
            token: Some(token),
            ..Self::new()
        };
        Ok((studio, text))
    }

    /// Sets the language that the page begins with: `en` or `zh`.
    pub fn language(mut self, language: impl Into<String>) -> Self {
        self.language = language.into();
        self
    }

    /// Serves the page from a folder instead of from the program, to work on it.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    pub(crate) fn language_name(&self) -> &str {
        &self.language
    }

    /// A file of the page.
    async fn file(&self, path: &str) -> Option<Vec<u8>> {
        let Some(folder) = &self.folder else {
            let file = FILES.iter().find(|(name, _)| *name == path);
            return file.map(|(_, bytes)| bytes.to_vec());
        };
        // Plain names only: nothing leads out of the folder.
        let is_plain = |part: &str| {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !part.is_empty() && !part.starts_with('.') && part.chars().all(is_valid)
        };
        if !path.split('/').all(is_plain) {
            return None;
        }
        tokio::fs::read(folder.join(path)).await.ok()
    }
}

impl Default for Studio {
    fn default() -> Self {
        Self::new()
    }
}

/// Answers with a file of the page. They are public, and hold no secret.
pub(crate) async fn page(
    State(service): State<Service>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    check_host(&service, &headers)?;
    let missing = || ServiceError::not_found("there is nothing at this path");
    let studio = service.inner().studio.as_ref().ok_or_else(missing)?;
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let bytes = studio.file(path).await.ok_or_else(missing)?;
    let tag = format!("\"{}\"", text_version(&String::from_utf8_lossy(&bytes)));
    let known = headers.get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(bytes).into_response()
    };
    let fixed = [
        (header::CONTENT_TYPE, content_type(path)),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (
            HeaderName::from_static("permissions-policy"),
            "microphone=(self), camera=(), geolocation=()",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json" | "map") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}
