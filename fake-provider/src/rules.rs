//! How strict the provider is.

/// How strict the provider is. The default is what OpenAI's own API is known to refuse, as far as a
/// client can help it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Check requests at all. Benches may not want to pay for it.
    pub check: bool,
    /// A schema that is `strict` must be closed: no additional properties, every property required.
    pub strict_schemas: bool,
    /// Item identifiers must be OpenAI's: by kind `msg`, `rs` or `fc`, and each once.
    pub item_ids: bool,
    /// A reasoning item must be followed by what it was made with.
    pub reasoning_followed: bool,
    /// Chat messages may have the fields of compatible servers, like `reasoning_content`.
    pub compatible: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            check: true,
            strict_schemas: true,
            item_ids: true,
            reasoning_followed: false,
            compatible: false,
        }
    }
}

impl Rules {
    /// Takes whatever it is sent.
    pub fn none() -> Self {
        Self {
            check: false,
            ..Self::default()
        }
    }

    /// The same, with or without closed schemas where they are strict.
    #[must_use]
    pub fn strict_schemas(mut self, on: bool) -> Self {
        self.strict_schemas = on;
        self
    }

    /// The same, with or without OpenAI's item identifiers.
    #[must_use]
    pub fn item_ids(mut self, on: bool) -> Self {
        self.item_ids = on;
        self
    }

    /// The same, with or without what must follow reasoning.
    #[must_use]
    pub fn reasoning_followed(mut self, on: bool) -> Self {
        self.reasoning_followed = on;
        self
    }

    /// The same, with or without the fields of compatible servers.
    #[must_use]
    pub fn compatible(mut self, on: bool) -> Self {
        self.compatible = on;
        self
    }
}
