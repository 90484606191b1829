//! Keys: they are in nothing that is printed.

use std::fmt;
use std::sync::Arc;

/// Text that `Debug` does not show.
#[derive(Clone)]
pub(super) struct Secret(Arc<str>);

impl Secret {
    pub(super) fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Replaces these secrets, and everything that looks like a key of OpenAI, by `[key]`.
pub(super) fn scrub(text: &str, secrets: &[Secret]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().map(Secret::expose) {
        // Shorter ones occur within words.
        if secret.len() >= 4 {
            text = text.replace(secret, "[key]");
        }
    }
    for prefix in ["sk-", "ek_"] {
        text = scrub_prefix(&text, prefix);
    }
    text
}

fn scrub_prefix(text: &str, prefix: &str) -> String {
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let mut scrubbed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(prefix) {
        let (before, key) = rest.split_at(start);
        let end = key.find(|c| !is_key_char(c)).unwrap_or(key.len());
        let is_in_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        scrubbed.push_str(before);
        scrubbed.push_str(if end >= 8 && !is_in_word {
            "[key]"
        } else {
            &key[..end]
        });
        rest = &key[end..];
    }
    scrubbed.push_str(rest);
    scrubbed
}
