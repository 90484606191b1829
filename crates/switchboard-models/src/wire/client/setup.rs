//! What a client is made from: the address, headers and the proxy, looked over before anything is
//! sent.

use std::collections::BTreeMap;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Proxy, Url};

use crate::wire::endpoint::Endpoint;
use crate::wire::secret::Secret;

/// Headers that say how a request is framed and passed on; another value breaks it.
const FRAMING: [&str; 9] = [
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

/// An address as it may be shown: without names, passwords and parameters.
pub(crate) fn shown(address: &str) -> String {
    match Url::parse(address.trim()) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        _ => "(no address)".to_owned(),
    }
}

/// Whether this is OpenAI's own server.
pub(crate) fn is_openai(url: &Url) -> bool {
    url.scheme() == "https" && url.host_str() == Some("api.openai.com")
}

/// The address that paths are put behind. What cannot be used is not shown: it may hold a password.
pub(super) fn address(address: &str) -> Result<Url, String> {
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
    // Addresses are often copied with the path of a request.
    let path = url.path().trim_end_matches('/');
    let base = ["/chat/completions", "/responses"]
        .iter()
        .find_map(|request| path.strip_suffix(request));
    let base = base.unwrap_or(path).trim_end_matches('/').to_owned();
    url.set_path(&base);
    Ok(url)
}

/// The proxy of the endpoint.
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
    let named = [
        ("OpenAI-Organization", &endpoint.organization),
        ("OpenAI-Project", &endpoint.project),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            add(&mut headers, name, value)?;
        }
    }
    for (name, value) in &endpoint.headers {
        add(&mut headers, name, value.expose())?;
    }
    Ok(headers)
}

/// Adds a header, whose value is a secret.
pub(super) fn add(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    // A name that is none may be a whole line, with the value in it.
    let name = HeaderName::try_from(name).map_err(|_| {
        "the name of a header has characters that no name has; it is what comes before the colon"
            .to_owned()
    })?;
    if FRAMING.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
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

/// All that must not be shown.
pub(super) fn secrets(endpoint: &Endpoint, base: &Url) -> Vec<Secret> {
    let mut secrets: Vec<Secret> = endpoint.key.iter().cloned().collect();
    for (_, value) in &endpoint.headers {
        secrets.extend(in_header(value.expose()));
    }
    secrets.extend(in_url(base));
    let proxy = endpoint.proxy.as_ref().map(|proxy| proxy.expose().trim());
    let proxy = proxy.and_then(|proxy| match proxy.contains("://") {
        true => Url::parse(proxy).ok(),
        false => Url::parse(&format!("http://{proxy}")).ok(),
    });
    secrets.extend(proxy.iter().flat_map(in_url));
    secrets
}

/// The values of a request's own headers.
pub(super) fn of_call(headers: &BTreeMap<String, String>) -> Vec<Secret> {
    headers
        .values()
        .flat_map(|value| in_header(value))
        .collect()
}

/// A header's value, and what is behind a word such as `Bearer`.
fn in_header(value: &str) -> Vec<Secret> {
    let value = value.trim();
    let last = value.rsplit_once(char::is_whitespace);
    let parts = [value, last.map_or("", |(_, last)| last)];
    let parts = parts.into_iter().filter(|part| may_be_secret(part));
    parts.map(Secret::new).collect()
}

/// The name, the password and the parameters of an address, as written and as meant.
fn in_url(url: &Url) -> Vec<Secret> {
    let parameters = url.query().unwrap_or_default().split('&');
    let values = parameters.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    let open = values.chain([url.username()]);
    let written = open
        .filter(|text| may_be_secret(text))
        .chain(url.password());
    written
        .flat_map(|text| [Secret::new(text), Secret::new(decoded(text))])
        .collect()
}

/// Shorter ones are names and numbers, which an error may well speak of.
fn may_be_secret(text: &str) -> bool {
    text.len() >= 6
}

/// Text of an address with what stands behind `%` put in place.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_comes_before_a_requests_path() {
        for (given, base) in [
            ("http://h/v1", "http://h/v1"),
            (" http://h/v1/ ", "http://h/v1"),
            ("http://h", "http://h/"),
            ("http://h/v1/chat/completions", "http://h/v1"),
            ("http://h/v1/responses/", "http://h/v1"),
            ("http://h/responses?a=b", "http://h/?a=b"),
        ] {
            assert_eq!(address(given).unwrap().as_str(), base, "{given}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_used_is_not_shown() {
        for given in [
            "user:hunter2@host/v1?key=hunter3",
            "ftp://user:hunter2@host/v1?key=hunter3",
            "http://user:hunter2@host:port/v1",
            "hunter2",
        ] {
            let told = address(given).unwrap_err();
            assert!(!told.contains("hunter"), "{told}");
            assert!(told.contains("http://localhost:11434/v1"), "{told}");
        }
    }

    #[test]
    fn only_proxies_that_work_are_taken() {
        for works in ["http://u:p@h:1", "https://h", "HTTP://h:1", "h:8080"] {
            assert!(proxy(works).is_ok(), "{works}");
        }
        for fails in ["socks5://u:hunter2@h:1", "socks5h://h", "hunter2:// bad"] {
            let told = proxy(fails).unwrap_err();
            assert!(!told.contains("hunter"), "{told}");
        }
    }

    #[test]
    fn headers_of_the_connection_are_refused() {
        let mut headers = HeaderMap::new();
        for name in ["Host", "content-length", "TE", "Proxy-Authorization"] {
            let told = add(&mut headers, name, "5").unwrap_err();
            assert!(told.contains("belongs to the connection"), "{told}");
        }
        let told = add(&mut headers, "x: hunter2\r\ny", "v").unwrap_err();
        assert!(!told.contains("hunter"), "{told}");
        add(&mut headers, "api-key", "hunter2").unwrap();
        assert!(!format!("{headers:?}").contains("hunter"));
    }

    #[test]
    fn all_that_is_secret_is_known() {
        let endpoint = Endpoint::at("http://robert:p%40ss1@h/v1?token=q%2Fsec1&plain1&v=1")
            .key("key1")
            .header("authorization", "Basic header1")
            .proxy("u:prox1@h:8080");
        let base = address(&endpoint.base_url).unwrap();
        let secrets = secrets(&endpoint, &base);
        let known: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        for secret in [
            "robert", "p%40ss1", "p@ss1", "q%2Fsec1", "q/sec1", "plain1", "key1", "header1",
            "prox1",
        ] {
            assert!(known.contains(&secret), "{secret}: {known:?}");
        }
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%e4%b8%ad"), "%zz中");
    }
}
