//! Secrets: finding those of an endpoint and a request, and removing them from text that a server has sent.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use switchboard_core::ModelRequest;
use url::Url;

use super::endpoint::Endpoint;

/// Text that `Debug` does not show.
#[derive(Clone)]
pub(crate) struct Secret(Arc<str>);

impl Secret {
    pub(crate) fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Replaces these secrets, and anything that looks like an OpenAI key, with `[key]`. The text is
/// borrowed if there are none.
pub(crate) fn scrub<'a>(text: &'a str, secrets: &[Secret]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in secrets.iter().map(Secret::expose) {
        // Shorter ones occur within words.
        if secret.len() >= 4 && text.contains(secret) {
            text = text.replace(secret, "[key]").into();
        }
    }
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut from = 0;
    while let Some(found) = text[from..].find("sk-") {
        let start = from + found;
        let key = &text[start..];
        let length = key.find(|c| !is_key_char(c)).unwrap_or(key.len());
        let is_in_word = text[..start].ends_with(|c: char| c.is_ascii_alphanumeric());
        from = start + length;
        if !is_in_word && length >= 8 {
            text.to_mut().replace_range(start..from, "[key]");
            from = start + "[key]".len();
        }
    }
    text
}

/// The secrets of an endpoint: its key, and those in its headers, its address and its proxy's.
pub(crate) fn endpoint_secrets(endpoint: &Endpoint, base: &Url) -> Vec<Secret> {
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
    fn keys_are_removed_from_text() {
        let secrets = [Secret::new("topsecretkey")];
        let text = "Incorrect API key: topsecretkey, sk-proj-abc***xyz, a task-list, sk-1";
        let scrubbed = "Incorrect API key: [key], [key], a task-list, sk-1";
        assert_eq!(scrub(text, &secrets), scrubbed);
        assert_eq!(format!("{:?}", secrets[0]), "[secret]");
        let clean = scrub("a task-list, sk-1", &secrets);
        assert!(matches!(clean, Cow::Borrowed(_)));
    }

    #[test]
    fn secrets_are_found_in_all_settings() {
        let endpoint = Endpoint::at(
            "http://robert:p%40ss1@h/v1?token=q%2Fsec1&plain1&v=1&w=%zz%e4%b8%ad&x=abc100%",
        )
        .key("key1")
        .header("authorization", "Basic header1")
        .proxy("u:prox1@h:8080");
        let base = Url::parse(&endpoint.base_url).unwrap();
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
