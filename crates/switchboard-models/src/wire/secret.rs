//! Keys, kept out of everything that is printed.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Text that is never shown.
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

/// What a server said, without secrets it may quote: ours, and whatever looks like a key.
pub(crate) fn scrubbed<'a>(text: &'a str, ours: &[Secret]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in ours.iter().map(Secret::expose) {
        // Short ones would take words apart and are no secrets.
        if secret.len() >= 4 && text.contains(secret) {
            text = text.replace(secret, "[key]").into();
        }
    }
    if !text.contains("sk-") {
        return text;
    }
    let mut is_clean = true;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut kept = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find("sk-") {
        let (before, found) = rest.split_at(at);
        let end = found.find(|c| !is_part(c)).unwrap_or(found.len());
        let inside_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        kept.push_str(before);
        let is_key = !inside_word && end >= 8;
        is_clean &= !is_key;
        kept.push_str(if is_key { "[key]" } else { &found[..end] });
        rest = &found[end..];
    }
    if is_clean {
        return text;
    }
    kept.push_str(rest);
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out_of_what_a_server_says() {
        let ours = [Secret::new("topsecretkey")];
        let said = "Incorrect API key: topsecretkey, sk-proj-abc***xyz, a task-list, sk-1";
        let shown = "Incorrect API key: [key], [key], a task-list, sk-1";
        assert_eq!(scrubbed(said, &ours), shown);
        assert_eq!(format!("{:?}", ours[0]), "[secret]");
        assert!(matches!(
            scrubbed("a task-list, sk-1", &ours),
            Cow::Borrowed(_)
        ));
    }
}
