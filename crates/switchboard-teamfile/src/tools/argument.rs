//! Arguments of commands.

use switchboard_core::callback::BoxError;

use super::url::{UrlError, UrlTemplate, added_dot_segments, is_unreserved};
use crate::template::{Part, Placeholder, Template, TemplateValues};

/// An argument of a command.
#[derive(Debug, Clone)]
pub(crate) enum ArgumentTemplate {
    Text(Template),
    /// An address of HTTP, after what is before it: `--url=`.
    Address {
        before: String,
        url: UrlTemplate,
    },
}

impl ArgumentTemplate {
    /// Fails if the server of an address has a placeholder, wherever in the argument the address is.
    pub(crate) fn new(template: Template) -> Result<Self, UrlError> {
        if has_placeholder_in_server(&template) {
            return Err(UrlError::PlaceholderInServer);
        }
        let Some((before, address)) = address(&template) else {
            return Ok(Self::Text(template));
        };
        Ok(match UrlTemplate::new(&address) {
            Ok(url) => Self::Address { before, url },
            // Programs may take what a request has no place for: a fragment, a user.
            Err(_) => Self::Text(template),
        })
    }

    /// Renders the argument. A value cannot become a further argument or an option, and within an argument it
    /// cannot lead to another folder or another part of an address.
    pub(super) fn render(&self, values: TemplateValues<'_>) -> Result<String, BoxError> {
        match self {
            Self::Text(template) => text(template, values),
            Self::Address { before, url } => Ok(format!("{before}{}", url.render(values)?)),
        }
    }
}

/// Stands for a placeholder where the text around it is looked at.
const PLACEHOLDER: char = '\0';

/// Returns `true` if the scheme or the server of an address has a placeholder.
fn has_placeholder_in_server(template: &Template) -> bool {
    let mut text = String::new();
    for part in template.parts() {
        match part {
            Part::Text(literal) => text.push_str(&literal.to_ascii_lowercase()),
            Part::Placeholder(_) => text.push(PLACEHOLDER),
        }
    }
    let is_scheme =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | PLACEHOLDER);
    let any_scheme = text.match_indices("://").any(|(at, separator)| {
        let rest = text[..at].trim_end_matches(is_scheme);
        text[rest.len()..at].contains(PLACEHOLDER)
            || server_has_placeholder(&text[at + separator.len()..])
    });
    // Programs take any number of slashes after these schemes, also none.
    let any_http = ["http:", "https:"].iter().any(|scheme| {
        text.match_indices(scheme).any(|(at, _)| {
            let rest = &text[at + scheme.len()..];
            server_has_placeholder(rest.trim_start_matches(['/', '\\']))
        })
    });
    any_scheme || any_http
}

/// Returns `true` if the server at the beginning of a text has a placeholder.
fn server_has_placeholder(text: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`');
    let server = text.split(is_end).next().unwrap_or_default();
    server.contains(PLACEHOLDER)
}

/// The address that is a whole argument with placeholders, or the value of an option, and what is before it.
fn address(template: &Template) -> Option<(String, Template)> {
    let (Part::Text(first), rest) = template.parts().split_first()? else {
        return None;
    };
    let lower = first.to_ascii_lowercase();
    let start = ["http://", "https://"]
        .iter()
        .find_map(|scheme| lower.find(scheme))?;
    let (before, address) = first.split_at(start);
    let is_whole = before.is_empty() || before.ends_with('=');
    let has_space = template
        .parts()
        .iter()
        .any(|part| matches!(part, Part::Text(text) if text.contains(char::is_whitespace)));
    if rest.is_empty() || !is_whole || has_space {
        return None;
    }
    let parts = std::iter::once(Part::Text(address.to_owned()));
    let parts = parts.chain(rest.iter().cloned()).collect();
    Some((before.to_owned(), Template::from_parts(parts)))
}

fn text(template: &Template, values: TemplateValues<'_>) -> Result<String, BoxError> {
    let mut text = String::new();
    let mut without_values = String::new();
    let mut last = None;
    let parts = template.parts();
    let is_within = is_within(parts);
    let is_path = parts
        .iter()
        .any(|part| matches!(part, Part::Text(text) if text.contains(['/', '\\'])));
    for part in parts {
        match part {
            Part::Text(literal) => {
                text.push_str(literal);
                without_values.push_str(literal);
            }
            Part::Placeholder(placeholder) => {
                let name = placeholder.name();
                let value = values.text(placeholder)?;
                if value.contains('\0') {
                    return Err(format!("{name:?} cannot hold a zero byte").into());
                }
                // `-` begins an option, and `@` the name of a file to read in many programs.
                if text.is_empty() && value.starts_with(['-', '@']) {
                    return Err(format!("{name:?} cannot begin with - or @").into());
                }
                if is_within {
                    check_within(&value, &text, is_path)
                        .map_err(|problem| format!("{name:?} {problem}"))?;
                    if is_structured(placeholder, values) {
                        return Err(format!("{name:?} must be a text or a number").into());
                    }
                }
                text.push_str(&value);
                without_values.push('x');
                last = Some(name);
            }
        }
    }
    // Several values, or a value and the text beside it, can be two dots together.
    if is_within
        && let Some(name) = last
        && added_dot_segments(&decoded(&text), &decoded(&without_values))
    {
        return Err(format!("{name:?} cannot lead to another folder").into());
    }
    Ok(text)
}

/// Returns `true` if the values of an argument are only parts of it, as in `notes/{name}.txt`, and not all of it or
/// of an option: `--limit={n}`.
fn is_within(parts: &[Part]) -> bool {
    match parts {
        [_] => false,
        [Part::Text(before), Part::Placeholder(_)] => {
            let is_option = before.starts_with('-') && before.ends_with('=');
            !is_option || before.contains(['/', '\\'])
        }
        _ => true,
    }
}

/// Checks a value that is only a part of an argument, after the text before it.
fn check_within(value: &str, before: &str, is_path: bool) -> Result<(), &'static str> {
    if value.is_empty() {
        return Err("is empty");
    }
    if before.contains("://") && !value.bytes().all(is_unreserved) {
        return Err("can hold only letters, digits and -._~ within an address");
    }
    let is_separator = |c: char| matches!(c, '/' | '\\');
    let value = decoded(value);
    if added_dot_segments(&value, "") {
        return Err("cannot lead to another folder");
    }
    if is_path && value.contains(is_separator) {
        return Err("cannot hold / or \\ within a path");
    }
    // `of={a}`, `host:{a}` and `{a}.txt` begin a path.
    let begins_path = before.is_empty() || before.ends_with(['=', ':', '@', ',', ';', '|']);
    if begins_path && value.starts_with(is_separator) {
        return Err("cannot lead to another folder");
    }
    Ok(())
}

/// Decodes the dots and slashes that some programs decode.
fn decoded(value: &str) -> String {
    let mut decoded = value.to_owned();
    for (code, character) in [
        ("%2e", "."),
        ("%2E", "."),
        ("%2f", "/"),
        ("%2F", "/"),
        ("%5c", "\\"),
        ("%5C", "\\"),
    ] {
        decoded = decoded.replace(code, character);
    }
    decoded
}

fn is_structured(placeholder: &Placeholder, values: TemplateValues<'_>) -> bool {
    let value = values.value(placeholder);
    value.is_some_and(|value| value.is_array() || value.is_object())
}
