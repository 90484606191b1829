//! Checks the address, the headers and the proxy of an endpoint.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::http_client;
use crate::wire::endpoint::Endpoint;

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

/// The message for an address without a scheme.
const NO_SCHEME: &str = "the address of the server must begin with http:// or https://, such as \
                         https://api.openai.com/v1 or http://localhost:11434/v1";

/// An address without user name, password, path and parameters, as errors show it.
pub(crate) fn display_address(address: &str) -> String {
    match Url::parse(address.trim()) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        _ => "(no address)".to_owned(),
    }
}

/// An address with its path, without user name, password and parameters.
pub(crate) fn display_url(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.authority().map_or("", |authority| authority.as_str());
    format!("{scheme}://{host}{}", url.path())
}

/// The target of a redirect with its path, without user name, password and parameters.
pub(super) fn display_target(target: &Url) -> String {
    if !target.has_host() {
        return "(no address)".to_owned();
    }
    format!("{}{}", target.origin().ascii_serialization(), target.path())
}

/// Returns `true` for OpenAI's own server.
pub(crate) fn is_openai(url: &Url) -> bool {
    url.scheme() == "https" && url.host_str() == Some("api.openai.com")
}

/// Parses a server's address and removes the path of a request from its end. Errors do not quote
/// the address: it may hold a password.
pub(crate) fn parse_address(address: &str) -> Result<Url, String> {
    let mut url = match Url::parse(address.trim()) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => return Err(NO_SCHEME.to_owned()),
        Err(error) => {
            return Err(format!(
                "the address of the server cannot be read ({error}); it looks like \
                 https://api.openai.com/v1 or http://localhost:11434/v1"
            ));
        }
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(NO_SCHEME.to_owned());
    }
    let path = url.path().trim_end_matches('/');
    let base = [
        "/chat/completions",
        "/responses",
        "/audio/speech",
        "/audio/transcriptions",
    ]
    .iter()
    .find_map(|request| path.strip_suffix(request))
    .unwrap_or(path);
    let base = base.trim_end_matches('/').to_owned();
    url.set_path(&base);
    if request_uri(&url, "chat/completions").is_none() {
        return Err("the address of the server has characters that no address has".to_owned());
    }
    Ok(url)
}

/// The address of requests to a path of the server; `None` if it is no address that can be sent.
pub(super) fn request_uri(base: &Url, path: &str) -> Option<Uri> {
    let mut url = base.clone();
    url.set_fragment(None);
    let base = base.path().trim_end_matches('/');
    url.set_path(&format!("{base}/{path}"));
    Uri::try_from(String::from(url)).ok()
}

/// Removes the user name and the password from an address. Returns them as the value of a header.
pub(super) fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let name = decoded(url.username());
    let password = url.password().map(decoded);
    if name.is_empty() && password.is_none() {
        return None;
    }
    // Fails for addresses that can have neither, which have none.
    let _ = (url.set_username(""), url.set_password(None));
    let credentials = [&*name, b":", &password.unwrap_or_default()].concat();
    let value = format!("Basic {}", STANDARD.encode(credentials));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Parses the address of a proxy.
pub(super) fn proxy(address: &str) -> Result<Uri, String> {
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
    let unreadable = "the address of the proxy cannot be read; it looks like http://proxy:8080";
    let address = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let url = Url::parse(&address).map_err(|_| unreadable.to_owned())?;
    Uri::try_from(String::from(url)).map_err(|_| unreadable.to_owned())
}

/// The headers of every request. `authorization` is that of the address.
pub(super) fn headers(
    endpoint: &Endpoint,
    authorization: Option<HeaderValue>,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(USER_AGENT, http_client::USER_AGENT);
    headers.insert(CONTENT_TYPE, json.clone());
    headers.insert(ACCEPT, json);
    headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
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
}
