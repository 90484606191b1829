//! Addresses with places to fill.

use reqwest::Url;

use crate::template::{Filling, Part, Place, Template};

/// An address in which only the path and the query have places.
#[derive(Debug, Clone)]
pub(crate) struct UrlTemplate {
    /// `https://api.example.com`, as it stands.
    server: String,
    path: Vec<Part>,
    query: Vec<Part>,
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrongUrl {
    /// It does not begin with `http://` or `https://` and a server.
    NoServer,
    /// It has a place before the path.
    PlaceInServer,
    /// It has a `#`.
    Fragment,
    /// It has a user or a password, which belong into a header.
    Credentials,
}

impl WrongUrl {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::NoServer => "this is not an address of a server",
            Self::PlaceInServer => "nothing can be filled into the server's name",
            Self::Fragment => "the part behind # is never sent",
            Self::Credentials => "an address holds no user and no password",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::NoServer => "write it in full, as in https://api.example.com/invoices/{number}",
            Self::PlaceInServer => "write a tool for each server, so that no model can choose one",
            Self::Fragment => "leave it out",
            Self::Credentials => {
                "send them as a header: headers = { Authorization = { env = \"NAME\" } }"
            }
        }
    }
}

impl UrlTemplate {
    pub(crate) fn new(template: &Template) -> Result<Self, WrongUrl> {
        let mut parts = template.parts().iter().cloned();
        let Some(Part::Text(first)) = parts.next() else {
            return Err(WrongUrl::PlaceInServer);
        };
        let scheme = first
            .find("://")
            .map(|at| at + 3)
            .ok_or(WrongUrl::NoServer)?;
        let is_http = ["http://", "https://"]
            .iter()
            .any(|known| first[..scheme].eq_ignore_ascii_case(known));
        if !is_http {
            return Err(WrongUrl::NoServer);
        }
        let end = first[scheme..].find(['/', '?', '#']);
        let end = end.map_or(first.len(), |at| scheme + at);
        let rest: Vec<Part> = parts.collect();
        if end == first.len() && !rest.is_empty() {
            return Err(WrongUrl::PlaceInServer);
        }
        let server = &first[..end];
        let parsed = Url::parse(server).map_err(|_| WrongUrl::NoServer)?;
        if !parsed.has_host() {
            return Err(WrongUrl::NoServer);
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(WrongUrl::Credentials);
        }
        let mut url = Self {
            server: server.to_owned(),
            path: Vec::new(),
            query: Vec::new(),
        };
        let mut in_query = false;
        for part in std::iter::once(Part::Text(first[end..].to_owned())).chain(rest) {
            match part {
                Part::Text(text) if text.contains('#') => return Err(WrongUrl::Fragment),
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

    /// The address with its places filled, each value escaped so that it stays where it is.
    ///
    /// # Errors
    /// What the model is told: a value that is absent, or that no part of a path can be.
    pub(crate) fn fill(&self, filling: Filling<'_>) -> Result<Url, String> {
        let mut path = String::new();
        for part in &self.path {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Place(place) => {
                    let value = value(place, filling)?;
                    // Servers that decode before they route would follow these.
                    let leads_out = value
                        .split(['/', '\\'])
                        .any(|part| part == "." || part == "..");
                    if leads_out {
                        let name = place.name();
                        return Err(format!("{name:?} cannot lead to another folder"));
                    }
                    path.push_str(&escaped(&value));
                }
            }
        }
        let mut query = String::new();
        for part in &self.query {
            match part {
                Part::Text(text) => query.push_str(text),
                Part::Place(place) => query.push_str(&escaped(&value(place, filling)?)),
            }
        }
        let mut text = format!("{}{path}", self.server);
        if !query.is_empty() {
            text.push('?');
            text.push_str(&query);
        }
        let url = Url::parse(&text).map_err(|error| format!("the address is wrong: {error}"))?;
        // What was filled in is escaped; should a way around that ever be found, it leads nowhere.
        let server = Url::parse(&self.server).map_err(|error| error.to_string())?;
        if url.origin() == server.origin() && url.username().is_empty() {
            Ok(url)
        } else {
            Err("the address leads to another server".to_owned())
        }
    }
}

fn value(place: &Place, filling: Filling<'_>) -> Result<String, String> {
    let name = place.name();
    match filling.value(place) {
        Some(serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
            Err(format!("{name:?} must be a text or a number"))
        }
        Some(_) => match filling.text(place).unwrap_or_default() {
            text if text.is_empty() => Err(format!("{name:?} is empty")),
            text => Ok(text.into_owned()),
        },
        None => Err(format!("{name:?} is missing")),
    }
}

/// Everything but letters, digits and `-._~` becomes `%XX`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::context::Context;
    use crate::template::Names;

    fn template(text: &str) -> Template {
        let context = Context::default();
        let names = Names {
            arguments: None,
            context: &context,
        };
        Template::parse(text, names).unwrap()
    }

    fn filled(url: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else {
            panic!()
        };
        let context = Context::default();
        let filling = Filling {
            arguments: &arguments,
            context: &context,
        };
        let url = UrlTemplate::new(&template(url)).unwrap();
        url.fill(filling).map(Into::into)
    }

    #[test]
    fn only_paths_and_queries_have_places() {
        for (text, wrong) in [
            ("{a}", WrongUrl::PlaceInServer),
            ("https://{a}/x", WrongUrl::PlaceInServer),
            ("https://example.com{a}", WrongUrl::PlaceInServer),
            ("https://example.com:{a}/", WrongUrl::PlaceInServer),
            ("file:///etc/passwd", WrongUrl::NoServer),
            ("example.com/x", WrongUrl::NoServer),
            ("https:///x", WrongUrl::NoServer),
            ("https://me:secret@example.com/x", WrongUrl::Credentials),
            ("https://example.com/#{a}", WrongUrl::Fragment),
        ] {
            assert_eq!(
                UrlTemplate::new(&template(text)).unwrap_err(),
                wrong,
                "{text}"
            );
        }
    }

    #[test]
    fn values_stay_where_they_are() {
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
            assert_eq!(filled(url, json!({ "a": a, "b": b })).unwrap(), address);
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
            assert_eq!(filled(url, json!({ "a": a, "b": 1 })).unwrap_err(), why);
        }
    }

    proptest! {
        #[test]
        fn no_value_leaves_its_place(a in ".{1,40}", b in ".{1,40}") {
            let mut arguments = Map::new();
            arguments.insert("a".into(), a.clone().into());
            arguments.insert("b".into(), b.clone().into());
            let url = filled("http://127.0.0.1:9/x/{a}/y?k={b}&l=1", Value::Object(arguments));
            if let Ok(url) = url {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(url.host_str(), Some("127.0.0.1"));
                let parts: Vec<&str> = url.path_segments().unwrap().collect();
                prop_assert_eq!((parts.len(), parts[0], parts[2]), (3, "x", "y"));
                let pairs: Vec<_> = url.query_pairs().collect();
                prop_assert_eq!(pairs.len(), 2);
                prop_assert_eq!(&*pairs[0].1, b.as_str());
            } else {
                let mut parts = a.split(['/', '\\']);
                prop_assert!(parts.any(|part| part == "." || part == ".."));
            }
        }
    }
}
