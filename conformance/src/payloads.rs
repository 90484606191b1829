//! The types that cases name as handoff payloads and output types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a type in this module.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) enum TypeName {
    Escalation,
    Query,
    Ticket,
    Order,
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
