//! The parts of an invalid file that match the schema.

use std::collections::HashSet;

use super::schema_node::SchemaNode;
use super::violations;
use crate::diagnostics::Source;
use crate::document::{Entry, Kind, Node};
use crate::schema::SCHEMA;

/// The valid parts of a file, which can still be resolved to find further problems.
pub(crate) struct ValidParts {
    pub(crate) root: Node,
    /// The names of invalid tools, guardrails and models. References to them are not reported.
    pub(crate) removed: HashSet<String>,
}

/// Removes what does not match the schema. Returns `None` if no agents are left.
pub(crate) fn valid_parts(root: &Node, source: &Source) -> Option<ValidParts> {
    let is_valid =
        |node: &Node, schema: SchemaNode<'_>| violations(node, schema, source).is_empty();
    let properties = SchemaNode::root(&SCHEMA).properties()?;
    let mut removed = HashSet::new();
    let mut entries = root.entries().to_vec();
    entries.retain_mut(|entry| {
        let Some(schema) = properties.get(&entry.name) else {
            return false;
        };
        let schema = SchemaNode::root(&SCHEMA).child(schema, None);
        let of_element = || schema.child(&schema.schema["additionalProperties"], None);
        match (entry.name.as_str(), &mut entry.value.kind) {
            ("agents", Kind::Table(agents)) => {
                for agent in agents {
                    retain_valid_fields(&mut agent.value, of_element(), &is_valid);
                }
            }
            ("tools" | "guardrails" | "models", Kind::Table(elements)) => {
                let (valid, invalid): (Vec<Entry>, Vec<Entry>) = std::mem::take(elements)
                    .into_iter()
                    .partition(|element| is_valid(&element.value, of_element()));
                *elements = valid;
                removed.extend(invalid.into_iter().map(|element| element.name));
            }
            _ => {}
        }
        is_valid(&entry.value, schema)
    });
    let has_agents = entries.iter().any(|entry| entry.name == "agents");
    has_agents.then(|| ValidParts {
        root: Node {
            span: root.span.clone(),
            kind: Kind::Table(entries),
        },
        removed,
    })
}

/// Removes the invalid fields of an agent, and the invalid entries of its lists.
fn retain_valid_fields(
    agent: &mut Node,
    schema: SchemaNode<'_>,
    is_valid: &impl Fn(&Node, SchemaNode<'_>) -> bool,
) {
    let (Kind::Table(fields), Some(properties)) = (&mut agent.kind, schema.properties()) else {
        return;
    };
    fields.retain_mut(|field| {
        let Some(of_field) = properties.get(&field.name) else {
            return false;
        };
        let of_field = schema.child(of_field, None);
        if let (Kind::List(items), Some(of_item)) = (&mut field.value.kind, of_field.get("items")) {
            items.retain(|item| is_valid(item, of_field.child(of_item, None)));
        }
        is_valid(&field.value, of_field)
    });
}
