//! Filters on what the next agent sees.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A filter on the items that the next agent sees.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "filter")]
#[serde(rename_all = "snake_case", remote = "Self")]
pub(crate) enum FilterSpec {
    /// Removes tool calls and their outputs.
    RemoveAllTools,
    /// Removes the models' reasoning.
    DropReasoning,
    /// Replaces the history by one summary.
    NestHistory,
    /// Redacts personal data of all classes.
    RedactPii,
    /// Redacts personal data of the chosen classes.
    #[schemars(rename = "redact_pii")]
    RedactPiiWith(RedactPiiSpec),
    /// Redacts the matches of patterns.
    Redact(RedactSpec),
    /// Keeps this many of the latest items.
    KeepLast(u32),
    /// Keeps items from the beginning and from the end.
    KeepFirstAndLast(KeepFirstAndLastSpec),
    /// Keeps the latest items that fit into this many tokens, roughly counted.
    TokenBudget(u32),
    /// Shows the payload of the handoff to the next agent.
    Payload,
    /// Adds a note for the next agent.
    Note(String),
    /// Replaces all but the latest items by a model's summary.
    Summarize(SummarizeSpec),
}

impl<'de> Deserialize<'de> for FilterSpec {
    /// `redact_pii` stands alone or is a table, which a derived implementation has no form for.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let filter = match value.get("redact_pii") {
            Some(options) => RedactPiiSpec::deserialize(options).map(Self::RedactPiiWith),
            None => Self::deserialize(value),
        };
        filter.map_err(D::Error::custom)
    }
}

/// The classes of personal data that are redacted, and their placeholders.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "redaction of personal data")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RedactPiiSpec {
    /// The classes that are redacted. Without it, all.
    pub(crate) only: Option<Vec<PiiSpec>>,
    /// The classes that are not redacted.
    pub(crate) without: Vec<PiiSpec>,
    /// The texts that replace data, by class. Without one it is the name of the class, as in `[CARD]`.
    pub(crate) placeholders: PlaceholdersSpec,
}

/// A class of personal data.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(rename = "class of personal data")]
#[serde(rename_all = "snake_case")]
pub(crate) enum PiiSpec {
    /// Payment card numbers.
    Card,
    /// International bank account numbers.
    Iban,
    /// Social security numbers of the United States.
    Ssn,
    /// Resident identity numbers of China.
    ResidentId,
    /// Passport numbers, after a word for passport.
    Passport,
    /// E-mail addresses.
    Email,
    /// Phone numbers.
    Phone,
}

/// The texts that replace personal data.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "table of placeholders")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PlaceholdersSpec {
    /// For payment card numbers.
    pub(crate) card: Option<String>,
    /// For international bank account numbers.
    pub(crate) iban: Option<String>,
    /// For social security numbers of the United States.
    pub(crate) ssn: Option<String>,
    /// For resident identity numbers of China.
    pub(crate) resident_id: Option<String>,
    /// For passport numbers.
    pub(crate) passport: Option<String>,
    /// For e-mail addresses.
    pub(crate) email: Option<String>,
    /// For phone numbers.
    pub(crate) phone: Option<String>,
}

/// Patterns of text that are redacted.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "redaction")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RedactSpec {
    /// Regular expressions, each with its replacement.
    pub(crate) patterns: IndexMap<String, String>,
}

/// The number of items that are kept at both ends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "keep_first_and_last")]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepFirstAndLastSpec {
    /// The number of items from the beginning.
    pub(crate) first: u32,
    /// The number of items from the end.
    pub(crate) last: u32,
}

/// A summary of a conversation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "summary")]
#[serde(deny_unknown_fields)]
pub(crate) struct SummarizeSpec {
    /// The model that writes it; see `model` at the top.
    pub(crate) model: String,
    /// The number of latest items that are kept unchanged.
    pub(crate) keep_last: u32,
}
