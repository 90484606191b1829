//! The rules that requests are checked by.

/// The rules that requests are checked by. The default is what OpenAI's API is known to reject, as far
/// as a client can avoid it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Requests are checked at all.
    pub check: bool,
    /// A `strict` schema must be closed: no additional properties, every property required.
    pub strict_schemas: bool,
    /// Item identifiers must be unique and have OpenAI's prefixes: `msg`, `rs` or `fc`.
    pub item_ids: bool,
    /// A reasoning item must be followed by the output that it belongs to.
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
    /// Rules that accept every request.
    pub fn none() -> Self {
        Self {
            check: false,
            ..Self::default()
        }
    }

    /// Sets whether strict schemas must be closed.
    #[must_use]
    pub fn strict_schemas(mut self, on: bool) -> Self {
        self.strict_schemas = on;
        self
    }

    /// Sets whether item identifiers must have OpenAI's format.
    #[must_use]
    pub fn item_ids(mut self, on: bool) -> Self {
        self.item_ids = on;
        self
    }

    /// Sets whether reasoning must be followed by its output.
    #[must_use]
    pub fn reasoning_followed(mut self, on: bool) -> Self {
        self.reasoning_followed = on;
        self
    }

    /// Sets whether the fields of compatible servers are accepted.
    #[must_use]
    pub fn compatible(mut self, on: bool) -> Self {
        self.compatible = on;
        self
    }
}
