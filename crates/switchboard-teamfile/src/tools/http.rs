//! Tools that send an HTTP request.

use std::time::Duration;

use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use ::http::{Method, Request, Uri};
use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_models::__private::{
    HttpClient, HttpError, TimeLimits, USER_AGENT as OWN_USER_AGENT, bytes_body, causes,
};

use super::{Limits, ToolError, UrlTemplate, Vars, output_text};
use crate::diagnostics::Problem;
use crate::template::{Template, TemplateValues};
use crate::types::EnvVarSpec;

/// A request as the file describes it.
#[derive(Debug, Clone)]
pub(crate) struct HttpTool {
    pub(crate) method: Method,
    pub(crate) url: UrlTemplate,
    pub(crate) query: Vec<(String, Template)>,
    pub(crate) headers: Vec<(HeaderName, HeaderTemplate)>,
    pub(crate) body: Body,
}

/// The value of a header.
#[derive(Debug, Clone)]
pub(crate) enum HeaderTemplate {
    Text(Template),
    Env(EnvVarSpec),
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Empty,
    /// All arguments, as a JSON object.
    Arguments,
    Json(JsonTemplate),
}

/// JSON whose strings are templates.
#[derive(Debug, Clone)]
pub(crate) enum JsonTemplate {
    Literal(Value),
    Text(Template),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl JsonTemplate {
    /// Renders the JSON; `None` if a value is missing. Tables omit missing values, lists hold null.
    fn render(&self, values: TemplateValues<'_>) -> Option<Value> {
        Some(match self {
            Self::Literal(value) => value.clone(),
            Self::Text(template) => match template.only_placeholder() {
                Some(placeholder) => values.value(placeholder)?.clone(),
                None => template.render(values).ok()?.into(),
            },
            Self::List(items) => items
                .iter()
                .map(|item| item.render(values).unwrap_or_default())
                .collect(),
            Self::Table(fields) => fields
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.render(values)?)))
                .collect(),
        })
    }
}

/// A request with its environment variables and client.
#[derive(Debug)]
pub(super) struct OpenHttp {
    tool: HttpTool,
    /// Headers from the environment, marked as sensitive so that `Debug` does not print them.
    secrets: HeaderMap,
    client: HttpClient,
}

impl HttpTool {
    pub(super) fn open(&self, client: HttpClient, vars: Vars<'_>) -> Result<OpenHttp, ToolError> {
        let mut secrets = HeaderMap::new();
        for (name, value) in &self.headers {
            let HeaderTemplate::Env(variable) = value else {
                continue;
            };
            let missing = || {
                let variable = &variable.env;
                let message =
                    format!("the environment has no variable {variable} that could be sent");
                let problem = Problem::without_file("variable", message);
                ToolError {
                    header: Some(name.clone()),
                    problem: Box::new(problem.help(format!("set it, as in export {variable}=…"))),
                }
            };
            let value = vars(&variable.env).ok_or_else(missing)?;
            let value = format!("{}{}", variable.prefix, value.trim());
            let mut value = HeaderValue::from_str(&value).map_err(|_| missing())?;
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
    pub(super) async fn send(
        &self,
        values: TemplateValues<'_>,
        limits: Limits,
    ) -> Result<String, BoxError> {
        let mut url = self.tool.url.render(values)?;
        for (name, template) in &self.tool.query {
            if let Ok(value) = template.render(values) {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.tool.headers {
            if let HeaderTemplate::Text(template) = value {
                let value = template.render(values)?;
                let value = HeaderValue::from_str(&value)
                    .map_err(|_| format!("{name} cannot hold line breaks or control characters"))?;
                headers.insert(name, value);
            }
        }
        headers.extend(self.secrets.clone());
        headers.entry(USER_AGENT).or_insert(OWN_USER_AGENT);
        let body = match &self.tool.body {
            Body::Empty => None,
            Body::Arguments => Some(Value::Object(values.arguments.clone())),
            Body::Json(json) => json.render(values),
        };
        if body.is_some() {
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/json"));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut request = Request::new(bytes_body(body));
        *request.method_mut() = self.tool.method.clone();
        *request.uri_mut() = Uri::try_from(String::from(url))?;
        *request.headers_mut() = headers;
        // The tool's timeout cancels the call; this one closes the connection too.
        let time = TimeLimits {
            read: None,
            total: Some(limits.timeout.saturating_add(Duration::from_secs(1))),
        };
        let response = self.client.send_within(request, time).await;
        let mut response = response.map_err(describe_error)?;
        let mut output = Vec::new();
        while output.len() <= limits.output_bytes
            && let Some(chunk) = response.chunk().await.map_err(describe_error)?
        {
            output.extend_from_slice(&chunk);
        }
        let text = output_text(&output, true, limits);
        let status = response.status();
        if status.is_success() {
            Ok(text)
        } else if status.is_redirection() {
            Err(format!("the server answered {status}, and redirects are not followed").into())
        } else {
            Err(format!("the server answered {status}: {text}").into())
        }
    }
}

/// Formats an error with its causes.
fn describe_error(error: HttpError) -> BoxError {
    let mut text = error.to_string();
    for cause in causes(&error) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text.into()
}
