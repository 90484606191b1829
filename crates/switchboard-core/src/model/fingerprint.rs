//! A stable fingerprint of a request.

use std::fmt;

use super::{ModelRequest, ToolInput};

impl ModelRequest {
    /// A fingerprint of everything that the model is shown: instructions and knowledge, conversation,
    /// settings, tools, handoffs, output type. Equal requests have equal fingerprints, in every
    /// process. It may serve as the key of a cache; it is not made to resist attackers.
    ///
    /// ```
    /// use switchboard_core::{Item, ModelRequest};
    ///
    /// let request = ModelRequest::new(vec![Item::user("Hi")]);
    /// assert_eq!(request.fingerprint(), request.clone().fingerprint());
    /// assert_ne!(request.fingerprint(), ModelRequest::new(vec![Item::user("Ho")]).fingerprint());
    /// ```
    pub fn fingerprint(&self) -> String {
        let mut hash = Hash::new();
        hash.text(&self.full_instructions().unwrap_or_default());
        for item in &self.input {
            hash.text(item.as_json());
        }
        hash.end_list();
        for tool in &*self.tools {
            hash.text(&tool.name);
            hash.text(&tool.description);
            hash.text(tool.parameters.get());
            hash.text(if tool.strict { "strict" } else { "" });
            if let ToolInput::Text { format } = &tool.input {
                hash.text("text");
                hash.text(
                    &format
                        .as_ref()
                        .map_or_else(String::new, |format| format.to_string()),
                );
            }
        }
        hash.end_list();
        for tool in &*self.hosted_tools {
            // Not the secrets of a server: a recording is replayed with others.
            let mut config = tool.config().clone();
            if let Some(config) = config.as_object_mut() {
                config.remove("authorization");
                config.remove("headers");
            }
            hash.text(&config.to_string());
            tool.included().iter().for_each(|field| hash.text(field));
        }
        if !self.hosted_tools.is_empty() {
            hash.end_list();
        }
        for handoff in &*self.handoffs {
            hash.text(&handoff.tool_name);
            hash.text(&handoff.tool_description);
            hash.text(handoff.input_json_schema.get());
            hash.text(if handoff.strict { "strict" } else { "" });
        }
        hash.end_list();
        hash.text(&format!("{:?}", self.settings.shown_to_model()));
        hash.text(
            self.output
                .as_ref()
                .map_or("", |output| output.schema().get()),
        );
        hash.text(&format!("{:?}", self.server));
        if let Some(prompt) = &self.prompt {
            hash.text(&format!("{prompt:?}"));
        }
        hash.to_string()
    }
}

/// A hash of a text, the same in every process.
pub(crate) fn text_hash(text: &str) -> String {
    let mut hash = Hash::new();
    hash.text(text);
    hash.to_string()
}

/// FNV-1a with 128 bits.
pub(crate) struct Hash(u128);

impl Hash {
    pub(crate) fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a text and its length, so that the limits of texts count.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    pub(crate) fn end_list(&mut self) {
        self.bytes(&u64::MAX.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 ^= u128::from(*byte);
            self.0 = self
                .0
                .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
