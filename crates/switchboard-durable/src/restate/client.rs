//! Requests to a Restate server.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{RequestBuilder, StatusCode};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use super::Settings;
use super::service::{HANDLER, object_name};
use crate::error::{DurableError, DurableErrorKind};
use crate::record::RunRecord;

/// The number of times that a request is tried, and the pause after the first.
const ATTEMPTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(100);

/// A client of the ingress and of the admin address.
pub(super) struct Client {
    http: Result<reqwest::Client, String>,
    application: Option<String>,
    ingress: String,
    admin: Option<String>,
    token: Option<String>,
}

impl Client {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            http: http_client(),
            application: settings.application.clone(),
            ingress: settings.ingress.clone(),
            admin: settings.admin.clone(),
            token: settings.token.clone(),
        }
    }

    /// Invokes a run, unless it was invoked before.
    pub(super) async fn invoke(&self, run: &RunRecord) -> Result<(), DurableError> {
        let id = &*run.id;
        let object = object_name(self.application.as_deref(), run.team.as_deref());
        let key = utf8_percent_encode(&run.conversation, NON_ALPHANUMERIC);
        // Header values are limited to visible ASCII.
        let name = utf8_percent_encode(&run.log_name(), NON_ALPHANUMERIC).to_string();
        let url = format!("{}/{object}/{key}/{HANDLER}/send", self.ingress);
        let body = serde_json::json!({ "run": id, "log": run.log_name() }).to_string();
        let request = |http: &reqwest::Client| {
            http.post(&url)
                .header("content-type", "application/json")
                .header("idempotency-key", &name)
                .body(body.clone())
        };
        self.send(id, &request, &[]).await.map(drop)
    }

    /// Resolves an awakeable. One that was resolved before is left as it is.
    pub(super) async fn resolve(&self, awakeable: &str) -> Result<(), DurableError> {
        let url = format!("{}/restate/awakeables/{awakeable}/resolve", self.ingress);
        let request = |http: &reqwest::Client| {
            http.post(&url)
                .header("content-type", "application/json")
                .body("null")
        };
        let gone = [
            StatusCode::NOT_FOUND,
            StatusCode::CONFLICT,
            StatusCode::GONE,
        ];
        self.send(awakeable, &request, &gone).await.map(drop)
    }

    /// Ends an invocation whose journal is of no use any more. It cannot end by itself: the server would compare its
    /// end with what the journal has there.
    pub(super) async fn kill(&self, invocation: &str) -> Result<(), DurableError> {
        let Some(admin) = &self.admin else {
            return Ok(());
        };
        let url = format!("{admin}/invocations/{invocation}/kill");
        let request = |http: &reqwest::Client| http.patch(&url);
        let gone = [
            StatusCode::NOT_FOUND,
            StatusCode::CONFLICT,
            StatusCode::GONE,
        ];
        self.send(invocation, &request, &gone).await.map(drop)
    }

    /// Registers the process at an address, which has this virtual object.
    pub(super) async fn register(&self, uri: &str, object: &str) -> Result<(), DurableError> {
        let Some(admin) = &self.admin else {
            return Ok(());
        };
        let url = format!("{admin}/deployments");
        // Runs check by themselves that the code of today does what they have recorded, so one address can
        // be registered again for other code.
        let body = serde_json::json!({ "uri": uri, "force": true }).to_string();
        let request = |http: &reqwest::Client| {
            http.post(&url)
                .header("content-type", "application/json")
                .body(body.clone())
        };
        let registered = self.send(uri, &request, &[]).await?;
        if !registers(&registered, object) {
            let message = format!(
                "a process of another application or team listens at {uri} as well: each needs an address of its own"
            );
            return Err(DurableError::new(DurableErrorKind::Engine, message));
        }
        Ok(())
    }

    /// Sends a request, again after failures that may pass. Returns the body of the answer.
    async fn send(
        &self,
        what: &str,
        request: &(dyn Fn(&reqwest::Client) -> RequestBuilder + Sync),
        accepted: &[StatusCode],
    ) -> Result<String, DurableError> {
        let failed = |reason: &str| {
            let message = format!("the Restate server did not take \"{what}\": {reason}");
            DurableError::new(DurableErrorKind::Engine, message)
        };
        let http = self.http.as_ref().map_err(|reason| failed(reason))?;
        let mut attempt = 0;
        loop {
            let mut request = request(http);
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            attempt += 1;
            let (reason, may_pass) = match request.send().await {
                Ok(response) => {
                    let status = response.status();
                    let text = response.text().await.unwrap_or_default();
                    if status.is_success() || accepted.contains(&status) {
                        return Ok(text);
                    }
                    let mut reason = status.to_string();
                    let _ = write!(reason, " {}", text.chars().take(400).collect::<String>());
                    {
                        // The service is not found as long as no process has registered it.
                        let passing = [StatusCode::NOT_FOUND, StatusCode::TOO_MANY_REQUESTS];
                        (
                            reason,
                            status.is_server_error() || passing.contains(&status),
                        )
                    }
                }
                Err(error) => (describe(&error), true),
            };
            if !may_pass || attempt >= ATTEMPTS {
                return Err(failed(&reason));
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        }
    }
}

/// Returns `true` if the answer to a registration lists the virtual object, or lists none.
fn registers(answer: &str, object: &str) -> bool {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let services = answer["services"].as_array();
    services.is_none_or(|services| services.iter().any(|service| service["name"] == object))
}

fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}

fn http_client() -> Result<reqwest::Client, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .timeout(Duration::from_secs(30));
    client.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_that_has_another_object_only_is_noticed() {
        let answer = r#"{"id":"dp_1","services":[{"name":"A","handlers":[]},{"name":"B"}]}"#;
        assert!(registers(answer, "A") && registers(answer, "B"));
        assert!(!registers(answer, "C"));
        // Not all versions of the server say which services they have found.
        assert!(registers("{}", "C") && registers("", "C"));
    }
}
