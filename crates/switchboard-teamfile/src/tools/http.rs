//! Tools that ask a server.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method};
use serde_json::{Map, Value};
use switchboard_core::BoxError;

use super::{Limits, UnusableTool, UrlTemplate, Vars, shown};
use crate::template::{Filling, Template};
use crate::types::EnvShape;

/// A request as the file describes it.
#[derive(Debug, Clone)]
pub(crate) struct HttpTool {
    pub(crate) method: Method,
    pub(crate) url: UrlTemplate,
    pub(crate) query: Vec<(String, Template)>,
    pub(crate) headers: Vec<(HeaderName, HeaderPlan)>,
    pub(crate) body: Body,
}

/// The value of a header.
#[derive(Debug, Clone)]
pub(crate) enum HeaderPlan {
    Text(Template),
    Env(EnvShape),
}

/// What is sent.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Nothing,
    Arguments,
    Json(Filled),
}

/// JSON with places to fill.
#[derive(Debug, Clone)]
pub(crate) enum Filled {
    As(Value),
    Text(Template),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl Filled {
    /// The JSON with its places filled. What is absent is left out of tables, and null elsewhere.
    fn fill(&self, filling: Filling<'_>) -> Option<Value> {
        Some(match self {
            Self::As(value) => value.clone(),
            Self::Text(template) => match template.only_place() {
                Some(place) => filling.value(place)?.clone(),
                None => template.fill(filling)?.into(),
            },
            Self::List(items) => {
                let items = items
                    .iter()
                    .map(|item| item.fill(filling).unwrap_or_default());
                items.collect()
            }
            Self::Table(fields) => {
                let fields = fields.iter();
                let fields =
                    fields.filter_map(|(name, value)| Some((name.clone(), value.fill(filling)?)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        })
    }
}

/// A request that can be sent.
#[derive(Debug)]
pub(super) struct OpenHttp {
    tool: HttpTool,
    /// Headers of the environment: secrets, which `Debug` of a header value does not show.
    secrets: HeaderMap,
    client: Client,
}

impl HttpTool {
    pub(super) fn open(&self, client: Client, vars: Vars<'_>) -> Result<OpenHttp, UnusableTool> {
        let mut secrets = HeaderMap::new();
        for (name, value) in &self.headers {
            let HeaderPlan::Env(variable) = value else {
                continue;
            };
            let not_set = || UnusableTool::NotSet {
                variable: variable.env.clone(),
                header: name.as_str().to_owned(),
            };
            let value = vars(&variable.env).ok_or_else(not_set)?;
            let value = format!("{}{}", variable.prefix, value.trim());
            let mut value = HeaderValue::from_str(&value).map_err(|_| not_set())?;
            value.set_sensitive(true);
            secrets.insert(name.clone(), value);
        }
        Ok(OpenHttp {
            tool: self.clone(),
            secrets,
            client,
        })
    }
}

impl OpenHttp {
    pub(super) async fn run(
        &self,
        filling: Filling<'_>,
        limits: Limits,
    ) -> Result<String, BoxError> {
        let mut url = self.tool.url.fill(filling)?;
        for (name, template) in &self.tool.query {
            if let Some(value) = template.fill(filling) {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.tool.headers {
            if let HeaderPlan::Text(template) = value {
                let value = template.fill_all(filling)?;
                let value = HeaderValue::from_str(&value)
                    .map_err(|_| format!("{name} cannot hold line breaks or control characters"))?;
                headers.insert(name, value);
            }
        }
        headers.extend(self.secrets.clone());
        // The engine ends the call at the limit; this ends the connection too.
        let mut request = self
            .client
            .request(self.tool.method.clone(), url)
            .timeout(limits.time + Duration::from_secs(1));
        let body = match &self.tool.body {
            Body::Nothing => None,
            Body::Arguments => Some(Value::Object(filling.arguments.clone())),
            Body::Json(json) => json.fill(filling),
        };
        if let Some(body) = body {
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/json"));
            request = request.body(body.to_string());
        }
        // The address may hold what the model must not learn; errors are told without it.
        let mut response = request
            .headers(headers)
            .send()
            .await
            .map_err(|error| told(error.without_url()))?;
        let mut output = Vec::new();
        let mut is_all = true;
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| told(error.without_url()))?
        {
            output.extend_from_slice(&chunk);
            if output.len() > limits.output {
                is_all = false;
                break;
            }
        }
        let text = shown(&output, is_all, limits);
        let status = response.status();
        match status {
            _ if status.is_success() => Ok(text),
            _ if status.is_redirection() => Err(format!(
                "the server answered {status}, which leads elsewhere, and redirects are not followed"
            )
            .into()),
            _ => Err(format!("the server answered {status}: {text}").into()),
        }
    }
}

/// An error of the client with its causes, which say most.
fn told(error: reqwest::Error) -> BoxError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text.into()
}
