//! References within a JSON schema.

use std::borrow::Cow;

use serde_json::Value;

/// The schema that a reference within the same document leads to.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    let fragment = &*percent_decoded(fragment)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(fragment);
    }
    let definitions = root.get("$defs").or_else(|| root.get("definitions"))?;
    let is_named = |schema: &&Value| {
        let anchor = schema
            .get("$anchor")
            .or_else(|| schema.get("$dynamicAnchor"));
        anchor.and_then(Value::as_str) == Some(fragment)
    };
    definitions.as_object()?.values().find(is_named)
}

/// Decodes the `%XX` escapes of a URI fragment. Returns `None` if the result is not UTF-8.
pub(super) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(code.unwrap_or(b'%'));
        decoded.extend(part.bytes().skip(if code.is_some() { 2 } else { 0 }));
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}
