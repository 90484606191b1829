//! The parts of HTTP that all protocols share: who asks, what is refused, and how errors are told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ServiceError, ServiceErrorKind};
use crate::keys::random_id;
use crate::service::{Caller, Service};
use crate::tenant::Tenant;

/// The header with the identifier of a request, in responses and in the log.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest identifier of a request that is taken over from the client.
const MAX_REQUEST_ID: usize = 64;

/// The form of errors that clients of OpenAI's protocols read; the service's own API has it as well. The error goes
/// with the response, for protocols with another form.
impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let kind = self.kind();
        let kind_name = match kind {
            ServiceErrorKind::Unauthorized => "authentication_error",
            ServiceErrorKind::RateLimited => "rate_limit_error",
            _ if kind.status() >= 500 => "server_error",
            _ => "invalid_request_error",
        };
        let body = json!({"error": {
            "message": self.message(), "type": kind_name, "param": null, "code": kind.as_str(),
        }});
        let status =
            StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if kind == ServiceErrorKind::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// Gives each request an identifier, counts and logs it, and sets the headers that keep browsers safe.
pub(crate) async fn observe(
    State(service): State<Service>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let given = request
        .headers()
        .get(&REQUEST_ID)
        .and_then(|id| id.to_str().ok());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let given =
        given.filter(|id| !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.chars().all(is_plain));
    let id = match given {
        Some(id) => id.to_owned(),
        None => random_id("req")
            .map(|id| id.to_string())
            .unwrap_or_default(),
    };
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("(none)", MatchedPath::as_str).to_owned();
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    let mut response = match check_head(&request, service.inner().limits.header_bytes) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            service.inner().metrics.refused(error.kind().as_str());
            error.into_response()
        }
    };
    let (status, time) = (response.status().as_u16(), began.elapsed());
    let counted = if method_is_known(&method) {
        method.as_str()
    } else {
        "(other)"
    };
    service
        .inner()
        .metrics
        .request(counted, &route, status, time);
    tracing::info!(
        request = id,
        method = counted,
        route,
        status,
        seconds = time.as_secs_f64(),
        "a request was answered"
    );
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        // A page of its own may set others.
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Refuses heads that are too large, and those that name more than one host: what stands before the service might go by
/// another of them.
fn check_head(request: &Request, limit: usize) -> Result<(), ServiceError> {
    let headers = request.headers();
    let lines = headers.iter().map(|(name, value)| {
        // With ": " and the end of the line.
        name.as_str().len() + value.len() + 4
    });
    let target = request.uri().path_and_query();
    let bytes = lines.sum::<usize>() + target.map_or(0, |target| target.as_str().len());
    if bytes > limit {
        let message = format!("the head of the request is larger than {limit} bytes");
        return Err(ServiceError::new(ServiceErrorKind::HeadTooLarge, message));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().map(HeaderValue::as_bytes);
    let is_other = match (request.uri().authority(), host) {
        (Some(authority), Some(host)) => !authority.as_str().as_bytes().eq_ignore_ascii_case(host),
        _ => false,
    };
    if hosts.next().is_some() || is_other {
        return Err(ServiceError::invalid(
            "the request names more than one host",
        ));
    }
    Ok(())
}

fn method_is_known(method: &Method) -> bool {
    [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::HEAD,
        Method::OPTIONS,
    ]
    .contains(method)
}

/// Refuses requests from pages of other sites, those beyond the limits, and those without a valid key.
pub(crate) async fn admit(
    State(service): State<Service>,
    mut request: Request,
    next: Next,
) -> Response {
    let _permit = match request_permit(&service) {
        Ok(permit) => permit,
        Err(error) => return error.into_response(),
    };
    match admitted(&service, request.method(), request.headers()) {
        Ok(mut caller) => {
            // `observe` has set it.
            let id = header_text(request.headers(), REQUEST_ID.as_str());
            caller.request = id.unwrap_or_default().into();
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => {
            service.inner().metrics.refused(error.kind().as_str());
            error.into_response()
        }
    }
}

/// Refuses WebSockets from pages of other sites. The key was checked for the ticket.
pub(crate) async fn admit_socket(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let checked = check_host(&service, headers).and_then(|()| check_own_origin(headers));
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => {
            service.inner().metrics.refused(error.kind().as_str());
            error.into_response()
        }
    }
}

/// Refuses requests as [`admit`] does, but asks for no key: for what everybody may read.
pub(crate) async fn admit_anybody(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let _permit = match request_permit(&service) {
        Ok(permit) => permit,
        Err(error) => return error.into_response(),
    };
    match check_host(&service, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            service.inner().metrics.refused(error.kind().as_str());
            error.into_response()
        }
    }
}

fn request_permit(service: &Service) -> Result<OwnedSemaphorePermit, ServiceError> {
    let inner = service.inner();
    inner.requests.clone().try_acquire_owned().map_err(|_| {
        inner.metrics.refused("requests");
        let message = "too many requests are under way";
        ServiceError::new(ServiceErrorKind::Unavailable, message)
            .retry_after(Duration::from_secs(1))
    })
}

fn admitted(
    service: &Service,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Caller, ServiceError> {
    check_host(service, headers)?;
    check_origin(method, headers)?;
    let single = Caller {
        tenant: Tenant::single(),
        key: None,
        request: Arc::default(),
    };
    let studio = service.inner().studio.as_ref();
    let token = studio.and_then(|studio| studio.token());
    let keys = service.inner().keys.as_ref();
    if keys.is_none() && token.is_none() {
        return Ok(single);
    }
    let refused = || ServiceError::new(ServiceErrorKind::Unauthorized, "a valid key is needed");
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(sent), None) = (sent.next(), sent.next()) else {
        return Err(refused());
    };
    let sent = sent.to_str().map_err(|_| refused())?;
    let (scheme, sent) = sent.split_once(' ').ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused());
    }
    if token.is_some_and(|token| token.verify(sent.trim())) {
        return Ok(single);
    }
    let key = keys.and_then(|keys| keys.authenticate(sent.trim()));
    let key = key.ok_or_else(refused)?;
    key.take_request()?;
    Ok(Caller {
        tenant: key.tenant.clone(),
        key: Some(key),
        request: Arc::default(),
    })
}

/// Checks the name that the client has reached the service by.
pub(crate) fn check_host(service: &Service, headers: &HeaderMap) -> Result<(), ServiceError> {
    let Some(hosts) = &service.inner().hosts else {
        return Ok(());
    };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let name = host.map(without_port).unwrap_or_default();
    if hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let message = "the service does not answer for this host name";
    Err(ServiceError::new(ServiceErrorKind::Forbidden, message))
}

/// Checks that a request that changes something is not from a page of another site.
fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), ServiceError> {
    if method.is_safe() {
        // Without CORS headers the page cannot read the answer.
        return Ok(());
    }
    check_own_origin(headers)
}

/// Checks that a request is not from a page of another site. Programs that are no browsers send no origin.
fn check_own_origin(headers: &HeaderMap) -> Result<(), ServiceError> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if authority.is_some() && authority == host {
        return Ok(());
    }
    let message = "requests from pages of other sites are refused";
    Err(ServiceError::new(ServiceErrorKind::Forbidden, message))
}

/// The name of a host header, which may be an IPv6 address in brackets.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(at)
            if !host[at..].contains(']') && host[at + 1..].bytes().all(|b| b.is_ascii_digit()) =>
        {
            &host[..at]
        }
        _ => host,
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ServiceError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| {
            ServiceError::new(ServiceErrorKind::Unauthorized, "a valid key is needed")
        })
    }
}

/// The body of a request, read as JSON, within the limits of size and time.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Service> for JsonBody<T> {
    type Rejection = ServiceError;

    async fn from_request(request: Request, service: &Service) -> Result<Self, ServiceError> {
        check_media_type(request.headers(), &["application/json"])?;
        let body = read_body(request, service).await?;
        // A type whose fields are all optional would also be read from a list.
        if body.trim_ascii_start().first() == Some(&b'[') {
            return Err(ServiceError::invalid("the body is not an object"));
        }
        let parsed = serde_json::from_slice(&body);
        parsed.map(Self).map_err(|error| {
            ServiceError::invalid(format!(
                "the body is not what this endpoint expects: {error}"
            ))
        })
    }
}

/// Checks that the body of a request is of one of these types.
pub(crate) fn check_media_type(headers: &HeaderMap, known: &[&str]) -> Result<(), ServiceError> {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if known
        .iter()
        .any(|known| media_type.eq_ignore_ascii_case(known))
    {
        return Ok(());
    }
    let message = format!(
        "the content type of the body must be {}",
        known.join(" or ")
    );
    Err(ServiceError::new(
        ServiceErrorKind::UnsupportedMediaType,
        message,
    ))
}

/// Reads the body of a request within the limits of size and time.
pub(crate) async fn read_body(request: Request, service: &Service) -> Result<Bytes, ServiceError> {
    let limits = &service.inner().limits;
    let body = axum::body::to_bytes(request.into_body(), limits.body_bytes);
    let body = tokio::time::timeout(limits.body_time, body).await;
    let body = body.map_err(|_| {
        let message = "the body did not arrive in time";
        ServiceError::new(ServiceErrorKind::TimedOut, message)
    })?;
    body.map_err(|error| {
        let is_too_large = std::error::Error::source(&error)
            .is_some_and(|source| source.to_string().contains("length limit"));
        if is_too_large {
            let message = format!("the body is larger than {} bytes", limits.body_bytes);
            ServiceError::new(ServiceErrorKind::TooLarge, message)
        } else {
            ServiceError::invalid("the body could not be read")
        }
    })
}

/// Marks requests that came over TLS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverTls;

/// Segments of the path.
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Service> for PathOf<T> {
    type Rejection = ServiceError;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Service,
    ) -> Result<Self, ServiceError> {
        let path = Path::<T>::from_request_parts(parts, service).await;
        path.map(|Path(path)| Self(path))
            .map_err(|_| ServiceError::invalid("the path is not valid"))
    }
}

/// The parameters after the path.
pub(crate) struct QueryOf<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Service> for QueryOf<T> {
    type Rejection = ServiceError;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Service,
    ) -> Result<Self, ServiceError> {
        let query = Query::<T>::from_request_parts(parts, service).await;
        query
            .map(|Query(query)| Self(query))
            .map_err(|error| ServiceError::invalid(error.body_text()))
    }
}

/// The answer for a path that does not exist.
pub(crate) async fn not_found() -> ServiceError {
    ServiceError::not_found("there is nothing at this path")
}

/// The answer for a method that a path does not have.
pub(crate) async fn method_not_allowed() -> ServiceError {
    ServiceError::new(
        ServiceErrorKind::MethodNotAllowed,
        "this path does not have that method",
    )
}

/// A response of text.
pub(crate) fn text(content_type: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, content_type)], Body::from(text)).into_response()
}

/// The beginning of a text of the client's, for an error that quotes it.
pub(crate) fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(64).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// The value of a header, if it is text.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn the_port_of_a_host_is_left_out() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("evil.example:80.localhost", "evil.example:80.localhost"),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
