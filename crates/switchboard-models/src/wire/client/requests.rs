//! Requests without their body.

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Client, Error, Method, Request, Url};

/// The path of a request, appended to the endpoint's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Responses,
    ChatCompletions,
}

/// The form in which an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerForm {
    Whole,
    Events,
}

/// Requests without their body, built once for each client.
pub(super) struct RequestTemplates {
    responses: Request,
    chat_completions: Request,
}

impl RequestTemplates {
    pub(super) fn new(http: &Client, base: &Url, headers: &HeaderMap) -> Result<Self, Error> {
        // The builder, unlike `Request::new`, moves a password in the address to a header.
        let request = |path: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
            http.post(url).headers(headers.clone()).build()
        };
        Ok(Self {
            responses: request("responses")?,
            chat_completions: request("chat/completions")?,
        })
    }

    pub(super) fn request(&self, path: Path, form: AnswerForm) -> Request {
        let template = match path {
            Path::Responses => &self.responses,
            Path::ChatCompletions => &self.chat_completions,
        };
        let accept = HeaderValue::from_static(match form {
            AnswerForm::Whole => "application/json",
            AnswerForm::Events => "text/event-stream",
        });
        let mut request = Request::new(Method::POST, template.url().clone());
        *request.headers_mut() = template.headers().clone();
        request.headers_mut().insert(ACCEPT, accept);
        request
    }
}
