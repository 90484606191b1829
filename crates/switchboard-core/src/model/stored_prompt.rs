//! Prompts that the provider stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A prompt that the provider stores: its identifier, its version, and values for its variables.
///
/// ```
/// use switchboard_core::model::Prompt;
///
/// let prompt = Prompt::new("pmpt_123").version("2").variable("customer", "Ada");
/// assert_eq!(
///     serde_json::to_value(&prompt)?,
///     serde_json::json!({"id": "pmpt_123", "version": "2", "variables": {"customer": "Ada"}})
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The identifier.
    pub id: Arc<str>,
    /// The version; the current one where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Arc<str>>,
    /// The values of its variables: texts, or content such as images and files as the provider writes
    /// it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Value>,
}

impl Prompt {
    /// The current version of the prompt with this identifier.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self {
            id: id.into(),
            version: None,
            variables: BTreeMap::new(),
        }
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the value of a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }
}
