//! The types that cases name as handoff payloads, output types and parameters of agent tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a type in this module.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum TypeName {
    Escalation,
    Query,
    Ticket,
    Order,
    Translation,
    Booking,
}

/// The name of a type whose schema cannot be strict.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum LenientTypeName {
    Counts,
}

/// Calls a macro with the type that a [`TypeName`] names.
macro_rules! with_type {
    ($name:expr, $then:ident) => {
        match $name {
            TypeName::Escalation => $then!(Escalation),
            TypeName::Query => $then!(Query),
            TypeName::Ticket => $then!(Ticket),
            TypeName::Order => $then!(Order),
            TypeName::Translation => $then!(Translation),
            TypeName::Booking => $then!(Booking),
        }
    };
}
pub(crate) use with_type;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Counts {
    counts: BTreeMap<String, i64>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Escalation {
    reason: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Query {
    query: String,
    period: String,
    limit: i64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Ticket {
    department: Department,
    priority: Priority,
    user_info: String,
    issue_summary: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Department {
    Billing,
    Technical,
    Sales,
    General,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    Low,
    Medium,
    High,
    Urgent,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    id: i64,
    lines: Vec<Line>,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Line {
    sku: String,
    quantity: i64,
}

// Doc comments are descriptions in the schema.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Translation {
    /// Text to translate.
    text: String,
    /// Source language.
    source: String,
    /// Target language.
    target: String,
}

/// A table for a party.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Booking {
    guests: i64,
    #[serde(default)]
    smoking: Option<bool>,
    /// A day of the week.
    day: String,
}
