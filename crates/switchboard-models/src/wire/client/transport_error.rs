//! Errors of the connection to a server.

use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::payload::WrongLength;

/// The error for a failed connection. Without the URL, which may hold a key.
pub(super) fn transport_error(error: reqwest::Error, has_begun: bool) -> ModelError {
    use ModelErrorKind::{Connection, Interrupted, Timeout};
    let error = error.without_url();
    let details = error_chain(&error);
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
             proxies at http:// and https:// are supported; name another with Endpoint::proxy, or \
             leave this server out with NO_PROXY",
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

/// An error and its causes, in one line.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    for cause in causes(error).map(ToString::to_string) {
        if !chain.contains(&cause) {
            chain.push_str(": ");
            chain.push_str(&cause);
        }
    }
    chain
}

fn causes<'a>(
    error: &'a dyn std::error::Error,
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}
