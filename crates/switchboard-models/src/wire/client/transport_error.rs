//! Errors of the connection to a server.

use crate::http_client::{HttpError, causes};
use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::payload::WrongLength;

/// The error for a failed connection.
pub(super) fn transport_error(error: HttpError, has_begun: bool) -> ModelError {
    use ModelErrorKind::{Connection, Interrupted, Timeout};
    let details = causes_text(&error);
    if causes(&error).any(|cause| cause.is::<WrongLength>()) {
        let message = format!("the request cannot be sent: {WrongLength}");
        return ModelError::unsupported(message)
            .with(|details| details.source = Some(error.into()));
    }
    // The server's address was checked before, so the scheme is that of the environment's proxy.
    if error.is_connect()
        && (details.contains("unsupported scheme") || details.contains("scheme is not http"))
    {
        return ModelError::configuration(
            "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY) cannot be used: only \
             proxies at http:// and https:// are supported; name another there, or leave this \
             server out with NO_PROXY; Endpoint::proxy names one as well",
        );
    }
    let (kind, message) = if error.is_timeout() {
        (Timeout, "the server took too long")
    } else if has_begun {
        (Interrupted, "the answer broke off")
    } else if error.is_connect() {
        (Connection, "the server cannot be reached")
    } else {
        let message = "the server closed the connection before it answered";
        (Connection, message)
    };
    let is_unsent = !has_begun && error.is_connect();
    let error = ModelError::new(kind, format!("{message}: {details}"))
        .with(|details| details.source = Some(error.into()));
    error.with(|error| error.is_unsent = is_unsent)
}

/// The causes of an error, in one line.
fn causes_text(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let causes: Vec<String> = causes(error).map(ToString::to_string).collect();
    for (index, cause) in causes.iter().enumerate() {
        let is_last = index + 1 == causes.len();
        let cause = match cause.as_str() {
            // The HTTP client's own words say no more than the causes below them.
            "client error (Connect)" | "client error (SendRequest)" | "tcp connect error"
                if !is_last =>
            {
                continue;
            }
            "dns error" => "the name of the server was not found",
            cause => cause,
        };
        if text.is_empty() {
            text = cause.to_owned();
        } else if !text.contains(cause) {
            text.push_str(": ");
            text.push_str(cause);
        }
    }
    text
}
