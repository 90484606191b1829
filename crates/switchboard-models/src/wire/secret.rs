//! Secrets, and removing them from text that a server has sent.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

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
}
