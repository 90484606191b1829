//! URLs with placeholders.

use std::borrow::Cow;

use ::url::Url;
use serde_json::Value;

use crate::template::{Part, Placeholder, Template, TemplateValues};

/// A URL with placeholders in its path and query only.
#[derive(Debug, Clone)]
pub(crate) struct UrlTemplate {
    /// Scheme and host: `https://api.example.com`.
    server: String,
    path: Vec<Part>,
    query: Vec<Part>,
}

/// The reason a text is not a URL template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlError {
    /// It does not begin with `http://` or `https://` and a server.
    NoServer,
    /// It has a placeholder before the path.
    PlaceholderInServer,
    /// It has a `#`.
    Fragment,
    /// It has a user or a password, which belong in a header.
    Credentials,
}

impl UrlError {
    /// The message and help of the problem.
    pub(crate) fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::NoServer => (
                "this is not an http or https URL",
                "write it in full, as in https://api.example.com/invoices/{number}",
            ),
            Self::PlaceholderInServer => (
                "the server's name cannot have placeholders",
                "write a tool for each server, so that no model can choose one",
            ),
            Self::Fragment => ("the part after # is never sent", "remove it"),
            Self::Credentials => (
                "a URL here has no user and no password",
                "send them as a header: headers = { Authorization = { env = \"NAME\" } }",
            ),
        }
    }
}

impl UrlTemplate {
    pub(crate) fn new(template: &Template) -> Result<Self, UrlError> {
        let mut parts = template.parts().iter().cloned();
        let Some(Part::Text(first)) = parts.next() else {
            return Err(UrlError::PlaceholderInServer);
        };
        let scheme = first
            .find("://")
            .map(|at| at + 3)
            .ok_or(UrlError::NoServer)?;
        let is_http = ["http://", "https://"]
            .iter()
            .any(|known| first[..scheme].eq_ignore_ascii_case(known));
        if !is_http {
            return Err(UrlError::NoServer);
        }
        let server_length = first[scheme..].find(['/', '?', '#']);
        let end = server_length.map_or(first.len(), |length| scheme + length);
        let rest: Vec<Part> = parts.collect();
        if end == first.len() && !rest.is_empty() {
            return Err(UrlError::PlaceholderInServer);
        }
        let server = &first[..end];
        let parsed = Url::parse(server).map_err(|_| UrlError::NoServer)?;
        if !parsed.has_host() {
            return Err(UrlError::NoServer);
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(UrlError::Credentials);
        }
        let mut url = Self {
            server: server.to_owned(),
            path: Vec::new(),
            query: Vec::new(),
        };
        let mut in_query = false;
        for part in std::iter::once(Part::Text(first[end..].to_owned())).chain(rest) {
            match part {
                Part::Text(text) if text.contains('#') => return Err(UrlError::Fragment),
                Part::Text(text) if !in_query && text.contains('?') => {
                    let (path, query) = text.split_once('?').unwrap_or_default();
                    url.path.push(Part::Text(path.to_owned()));
                    url.query.push(Part::Text(query.to_owned()));
                    in_query = true;
                }
                part if in_query => url.query.push(part),
                part => url.path.push(part),
            }
        }
        Ok(url)
    }

    /// Renders the URL with values percent-encoded. Fails with a message for the model if a value is
    /// missing or cannot be part of a path.
    pub(crate) fn render(&self, values: TemplateValues<'_>) -> Result<Url, String> {
        let mut path = String::new();
        let mut without_values = String::new();
        let mut last = "";
        for part in &self.path {
            match part {
                Part::Text(text) => {
                    path.push_str(text);
                    without_values.push_str(text);
                }
                Part::Placeholder(placeholder) => {
                    let value = value(placeholder, values)?;
                    // Servers that decode before routing would follow these, encoded or not.
                    let name = placeholder.name();
                    if added_dot_segments(&value, "") {
                        return Err(format!("{name:?} cannot lead to another folder"));
                    }
                    path.push_str(&percent_encoded(&value));
                    without_values.push('x');
                    last = name;
                }
            }
        }
        // Several values, or a value and the text beside it, can be two dots together.
        if added_dot_segments(&path, &without_values) {
            return Err(format!("{last:?} cannot lead to another folder"));
        }
        let mut query = String::new();
        for part in &self.query {
            match part {
                Part::Text(text) => query.push_str(text),
                Part::Placeholder(placeholder) => {
                    query.push_str(&percent_encoded(&value(placeholder, values)?));
                }
            }
        }
        let mut text = format!("{}{path}", self.server);
        if !query.is_empty() {
            text.push('?');
            text.push_str(&query);
        }
        let url = Url::parse(&text).map_err(|error| format!("the URL is invalid: {error}"))?;
        // Encoding already ensures this; a second check, should it ever miss something.
        let server = Url::parse(&self.server).map_err(|error| error.to_string())?;
        if url.origin() == server.origin() && url.username().is_empty() {
            Ok(url)
        } else {
            Err("the URL leads to another server".to_owned())
        }
    }
}

fn value<'a>(
    placeholder: &Placeholder,
    values: TemplateValues<'a>,
) -> Result<Cow<'a, str>, String> {
    let name = placeholder.name();
    if let Some(Value::Array(_) | Value::Object(_)) = values.value(placeholder) {
        return Err(format!("{name:?} must be a text or a number"));
    }
    let text = values.text(placeholder)?;
    if text.is_empty() {
        return Err(format!("{name:?} is empty"));
    }
    Ok(text)
}

/// Returns `true` if a path has more segments that are one or two dots than it has without its values.
pub(super) fn added_dot_segments(path: &str, without_values: &str) -> bool {
    let count = |path: &str| {
        let segments = path.split(['/', '\\']);
        segments
            .filter(|segment| matches!(*segment, "." | ".."))
            .count()
    };
    count(path) > count(without_values)
}

/// Returns `true` for the unreserved characters of RFC 3986: letters, digits and `-._~`.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Percent-encodes everything but the unreserved characters of RFC 3986: letters, digits and `-._~`.
fn percent_encoded(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if is_unreserved(byte) => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;
    use crate::context::Context;
    use crate::template::KnownNames;

    fn template(text: &str) -> Template {
        let context = Context::default();
        let names = KnownNames {
            arguments: None,
            context: &context,
        };
        Template::parse(text, names).unwrap()
    }

    fn render(url: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else {
            panic!()
        };
        let context = Context::default();
        let values = TemplateValues {
            arguments: &arguments,
            context: &context,
            call_key: &Value::Null,
            payload: &Value::Null,
        };
        let url = UrlTemplate::new(&template(url)).unwrap();
        url.render(values).map(Into::into)
    }

    #[test]
    fn only_paths_and_queries_have_placeholders() {
        for (text, expected) in [
            ("{a}", UrlError::PlaceholderInServer),
            ("https://{a}/x", UrlError::PlaceholderInServer),
            ("https://example.com{a}", UrlError::PlaceholderInServer),
            ("https://example.com:{a}/", UrlError::PlaceholderInServer),
            ("file:///etc/passwd", UrlError::NoServer),
            ("example.com/x", UrlError::NoServer),
            ("https:///x", UrlError::NoServer),
            ("https://me:secret@example.com/x", UrlError::Credentials),
            ("https://example.com/#{a}", UrlError::Fragment),
        ] {
            assert_eq!(
                UrlTemplate::new(&template(text)).unwrap_err(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn values_are_percent_encoded_or_rejected() {
        let url = "https://example.com/v1/invoices/{a}/lines?of={b}";
        for (a, b, address) in [
            (
                json!("7"),
                json!(7),
                "https://example.com/v1/invoices/7/lines?of=7",
            ),
            (
                json!("x/../admin?x=1#y".replace("..", "...")),
                json!("1&admin=true"),
                "https://example.com/v1/invoices/x%2F...%2Fadmin%3Fx%3D1%23y/lines?of=1%26admin%3Dtrue",
            ),
            (
                json!("@evil.example\\x"),
                json!("账单 %41"),
                "https://example.com/v1/invoices/%40evil.example%5Cx/lines?of=%E8%B4%A6%E5%8D%95%20%2541",
            ),
        ] {
            assert_eq!(render(url, json!({ "a": a, "b": b })).unwrap(), address);
        }
        for (a, why) in [
            (json!(".."), "\"a\" cannot lead to another folder"),
            (json!("."), "\"a\" cannot lead to another folder"),
            (json!("../../admin"), "\"a\" cannot lead to another folder"),
            (json!("x\\..\\y"), "\"a\" cannot lead to another folder"),
            (json!(""), "\"a\" is empty"),
            (json!(null), "\"a\" is missing"),
            (json!(["x"]), "\"a\" must be a text or a number"),
        ] {
            assert_eq!(render(url, json!({ "a": a, "b": 1 })).unwrap_err(), why);
        }
        for url in ["https://example.com/x/.{a}", "https://example.com/x/{a}{a}"] {
            let joined = render(url, json!({ "a": "." })).unwrap_err();
            assert_eq!(joined, "\"a\" cannot lead to another folder", "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_value_changes_the_rest_of_the_url(a in ".{1,40}", b in ".{1,40}") {
            let mut arguments = Map::new();
            arguments.insert("a".into(), a.clone().into());
            arguments.insert("b".into(), b.clone().into());
            let url = render("http://127.0.0.1:9/x/{a}/y?k={b}&l=1", Value::Object(arguments));
            if let Ok(url) = url {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(url.host_str(), Some("127.0.0.1"));
                let segments: Vec<&str> = url.path_segments().unwrap().collect();
                prop_assert_eq!((segments.len(), segments[0], segments[2]), (3, "x", "y"));
                let pairs: Vec<_> = url.query_pairs().collect();
                prop_assert_eq!(pairs.len(), 2);
                prop_assert_eq!(&*pairs[0].1, b.as_str());
            } else {
                let mut segments = a.split(['/', '\\']);
                prop_assert!(segments.any(|segment| segment == "." || segment == ".."));
            }
        }
    }
}
