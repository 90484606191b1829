//! Requests that lack nothing but their body.

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Client, Error, Method, Request, Url};

/// What comes after the endpoint's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Responses,
    ChatCompletions,
}

/// How an answer is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Events,
}

/// Requests made once per client: putting an address and headers together takes 4,000 instructions, a
/// tenth of what sending them does.
pub(super) struct Requests {
    responses: [Request; 2],
    completions: [Request; 2],
}

impl Requests {
    pub(super) fn new(http: &Client, base: &Url, headers: &HeaderMap) -> Result<Self, Error> {
        let request = |path: &str, accept: &'static str| {
            let mut url = base.clone();
            url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
            let mut headers = headers.clone();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            http.post(url).headers(headers).build()
        };
        let both = |path: &str| {
            let whole = request(path, "application/json")?;
            Ok([whole, request(path, "text/event-stream")?])
        };
        Ok(Self {
            responses: both("responses")?,
            completions: both("chat/completions")?,
        })
    }

    /// A request to be completed.
    pub(super) fn of(&self, path: Path, form: Form) -> Request {
        let [whole, events] = match path {
            Path::Responses => &self.responses,
            Path::ChatCompletions => &self.completions,
        };
        let made = match form {
            Form::Whole => whole,
            Form::Events => events,
        };
        let mut request = Request::new(Method::POST, made.url().clone());
        *request.headers_mut() = made.headers().clone();
        request
    }
}
