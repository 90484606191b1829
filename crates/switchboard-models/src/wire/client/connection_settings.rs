//! Checks the address, the headers and the proxy of an endpoint, and collects its secrets.

use percent_encoding::percent_decode_str;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Proxy, Url};
use serde_json::Value;
use switchboard_core::ModelRequest;

use crate::wire::endpoint::Endpoint;
use crate::wire::secret::Secret;

/// Headers that cannot be set: the HTTP client needs its own values of them.
const CONNECTION_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "trailers",
    "upgrade",
    "keep-alive",
];

/// An address without user name, password, path and parameters, as errors show it.
pub(crate) fn display_address(address: &str) -> String {
    match Url::parse(address.trim()) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        _ => "(no address)".to_owned(),
    }
}

/// Returns `true` for OpenAI's own server.
pub(crate) fn is_openai(url: &Url) -> bool {
    url.scheme() == "https" && url.host_str() == Some("api.openai.com")
}

/// Parses a server's address and removes the path of a request from its end. Errors do not quote
/// the address: it may hold a password.
pub(super) fn parse_address(address: &str) -> Result<Url, String> {
    let mut url = Url::parse(address.trim()).map_err(|error| {
        format!(
            "the address of the server cannot be read ({error}); it looks like \
             https://api.openai.com/v1 or http://localhost:11434/v1"
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(
            "the address of the server must begin with http:// or https://, such as \
             https://api.openai.com/v1 or http://localhost:11434/v1"
                .to_owned(),
        );
    }
    let path = url.path().trim_end_matches('/');
    let base = ["/chat/completions", "/responses"]
        .iter()
        .find_map(|request| path.strip_suffix(request))
        .unwrap_or(path);
    let base = base.trim_end_matches('/').to_owned();
    url.set_path(&base);
    Ok(url)
}

pub(super) fn proxy(address: &str) -> Result<Proxy, String> {
    let address = address.trim();
    let scheme = address
        .split_once("://")
        .map_or("http", |(scheme, _)| scheme);
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err(
            "the proxy cannot be used: only proxies at http:// and https:// are supported"
                .to_owned(),
        );
    }
    Proxy::all(address).map_err(|_| {
        "the address of the proxy cannot be read; it looks like http://proxy:8080".to_owned()
    })
}

/// The headers of every request.
pub(super) fn headers(endpoint: &Endpoint) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &endpoint.key {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
            .map_err(|_| "the key has characters that no key has".to_owned())?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in [
        ("OpenAI-Organization", &endpoint.organization),
        ("OpenAI-Project", &endpoint.project),
    ] {
        if let Some(value) = value {
            add_header(&mut headers, name, value)?;
        }
    }
    for (name, value) in &endpoint.headers {
        add_header(&mut headers, name, value.expose())?;
    }
    Ok(headers)
}

/// Adds a header and marks its value as sensitive.
pub(super) fn add_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    // An invalid name is not quoted: it may be a whole header line with its value.
    let name = HeaderName::try_from(name).map_err(|_| {
        "the name of a header has characters that no name has; it is what comes before the colon"
            .to_owned()
    })?;
    if CONNECTION_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
        return Err(format!(
            "the header {name} cannot be set: it belongs to the connection"
        ));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the header {name} has characters that no header has"))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// The secrets of an endpoint: its key, and those in its headers, its address and its proxy's.
pub(super) fn endpoint_secrets(endpoint: &Endpoint, base: &Url) -> Vec<Secret> {
    let headers = endpoint.headers.iter().map(|(_, value)| value.expose());
    let proxy = endpoint.proxy.as_ref().and_then(|proxy| {
        let proxy = proxy.expose().trim();
        let scheme = if proxy.contains("://") { "" } else { "http://" };
        Url::parse(&format!("{scheme}{proxy}")).ok()
    });
    let mut secrets: Vec<Secret> = endpoint.key.iter().cloned().collect();
    secrets.extend(headers.flat_map(value_secrets));
    secrets.extend([base].into_iter().chain(&proxy).flat_map(url_secrets));
    secrets
}

/// The values of a request's own headers, and the credentials of the servers behind its tools.
pub(crate) fn request_secrets(request: &ModelRequest) -> Vec<Secret> {
    let headers = request.settings.extra_headers.values();
    let mut secrets: Vec<Secret> = headers.flat_map(|value| value_secrets(value)).collect();
    for tool in &*request.hosted_tools {
        let config = tool.config();
        let headers = config.get("headers").and_then(Value::as_object);
        let headers = headers.into_iter().flat_map(|headers| headers.values());
        let values = config.get("authorization").into_iter().chain(headers);
        secrets.extend(values.filter_map(Value::as_str).flat_map(value_secrets));
    }
    secrets
}

/// A header's value, and the credentials after a scheme such as `Bearer`.
fn value_secrets(value: &str) -> Vec<Secret> {
    let value = value.trim();
    let credentials = value.rsplit(char::is_whitespace).next();
    [value, credentials.unwrap_or_default()]
        .into_iter()
        .filter(|text| is_long_enough(text))
        .map(Secret::new)
        .collect()
}

/// The user name, the password and the parameters of an address, as written and decoded.
fn url_secrets(url: &Url) -> Vec<Secret> {
    let parameters = url.query().unwrap_or_default().split('&');
    parameters
        .map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value))
        .chain([url.username()])
        .filter(|text| is_long_enough(text))
        .chain(url.password())
        .flat_map(|text| {
            let decoded = percent_decode_str(text).decode_utf8_lossy();
            [Secret::new(text), Secret::new(decoded)]
        })
        .collect()
}

/// Shorter values are names and numbers, which errors may mention.
fn is_long_enough(text: &str) -> bool {
    text.len() >= 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_request_is_removed_from_an_parse_address() {
        for (given, base) in [
            ("http://h/v1", "http://h/v1"),
            (" http://h/v1/ ", "http://h/v1"),
            ("http://h", "http://h/"),
            ("http://h/v1/chat/completions", "http://h/v1"),
            ("http://h/v1/responses/", "http://h/v1"),
            ("http://h/responses?a=b", "http://h/?a=b"),
        ] {
            assert_eq!(parse_address(given).unwrap().as_str(), base, "{given}");
        }
    }

    #[test]
    fn an_invalid_address_is_not_quoted() {
        for given in [
            "user:hunter2@host/v1?key=hunter3",
            "ftp://user:hunter2@host/v1?key=hunter3",
            "http://user:hunter2@host:port/v1",
            "hunter2",
        ] {
            let error = parse_address(given).unwrap_err();
            assert!(!error.contains("hunter"), "{error}");
            assert!(error.contains("http://localhost:11434/v1"), "{error}");
        }
    }

    #[test]
    fn only_http_proxies_are_accepted() {
        for valid in ["http://u:p@h:1", "https://h", "HTTP://h:1", "h:8080"] {
            assert!(proxy(valid).is_ok(), "{valid}");
        }
        for invalid in ["socks5://u:hunter2@h:1", "socks5h://h", "hunter2:// bad"] {
            let error = proxy(invalid).unwrap_err();
            assert!(!error.contains("hunter"), "{error}");
        }
    }

    #[test]
    fn headers_of_the_connection_are_rejected() {
        let mut headers = HeaderMap::new();
        for name in ["Host", "content-length", "TE", "Proxy-Authorization"] {
            let error = add_header(&mut headers, name, "5").unwrap_err();
            assert!(error.contains("belongs to the connection"), "{error}");
        }
        let error = add_header(&mut headers, "x: hunter2\r\ny", "v").unwrap_err();
        assert!(!error.contains("hunter"), "{error}");
        add_header(&mut headers, "api-key", "hunter2").unwrap();
        assert!(!format!("{headers:?}").contains("hunter"));
    }

    #[test]
    fn secrets_are_found_in_all_settings() {
        let endpoint = Endpoint::at(
            "http://robert:p%40ss1@h/v1?token=q%2Fsec1&plain1&v=1&w=%zz%e4%b8%ad&x=abc100%",
        )
        .key("key1")
        .header("authorization", "Basic header1")
        .proxy("u:prox1@h:8080");
        let base = parse_address(&endpoint.base_url).unwrap();
        let secrets = endpoint_secrets(&endpoint, &base);
        let known: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        for secret in [
            "robert", "p%40ss1", "p@ss1", "q%2Fsec1", "q/sec1", "plain1", "key1", "header1",
            "prox1", "%zz中", "abc100%",
        ] {
            assert!(known.contains(&secret), "{secret}: {known:?}");
        }
    }
}
