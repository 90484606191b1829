//! The JSON Schema of team files.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::shape::TeamShape;

/// The schema, made once.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<TeamShape>()
        .to_value();
    schema["title"] = json!("Switchboard team file");
    schema
});
