//! What is left of a file without what is wrong in its form.

use std::collections::HashSet;

use super::Checker;
use super::place::Place;
use crate::document::{Kind, Node};
use crate::problem::Source;
use crate::schema::SCHEMA;

/// The parts of a file that have the right form, so that what they mean can be looked at too.
pub(crate) struct Fitting {
    pub(crate) root: Node,
    /// The names of tools, guardrails and models that are left out, which others may well name.
    pub(crate) left_out: HashSet<String>,
}

/// What is left of a file of wrong form without what is wrong in it; nothing without agents.
pub(crate) fn fitting(root: &Node, source: &Source) -> Option<Fitting> {
    let checker = Checker { source };
    let top = Place::top(&SCHEMA);
    let fits = |node: &Node, place: Place<'_>| {
        let mut found = Vec::new();
        checker.check(node, place, &mut found);
        found.is_empty()
    };
    let mut left_out = HashSet::new();
    let mut entries = Vec::new();
    for entry in root.entries() {
        let Some(place) = top.field_of(entry) else {
            continue;
        };
        let mut entry = entry.clone();
        match (entry.name.as_str(), &mut entry.value.kind) {
            ("agents", Kind::Table(agents)) => {
                for agent in agents {
                    fit_fields(&mut agent.value, &fits);
                }
            }
            ("tools" | "guardrails" | "models", Kind::Table(described)) => {
                let element = Place {
                    schema: &place.schema["additionalProperties"],
                    ..place
                };
                described.retain(|element_entry| {
                    let stays = fits(&element_entry.value, element.resolved());
                    if !stays {
                        left_out.insert(element_entry.name.clone());
                    }
                    stays
                });
            }
            _ => {}
        }
        if fits(&entry.value, place) {
            entries.push(entry);
        }
    }
    let has_agents = entries.iter().any(|entry| entry.name == "agents");
    has_agents.then(|| Fitting {
        root: Node {
            span: root.span.clone(),
            kind: Kind::Table(entries),
        },
        left_out,
    })
}

/// Takes what is wrong out of an agent: fields, and single entries of lists.
fn fit_fields(agent: &mut Node, fits: &impl Fn(&Node, Place<'_>) -> bool) {
    let schema = Place::top(&SCHEMA).to(
        &SCHEMA["properties"]["agents"]["additionalProperties"],
        None,
    );
    let Kind::Table(fields) = &mut agent.kind else {
        return;
    };
    fields.retain_mut(|field| {
        let Some(properties) = schema.properties() else {
            return false;
        };
        let Some(of_field) = properties.get(&field.name) else {
            return false;
        };
        let place = Place {
            schema: of_field,
            ..schema
        }
        .resolved();
        if let (Kind::List(items), Some(of_item)) =
            (&mut field.value.kind, place.schema.get("items"))
        {
            let of_item = Place {
                schema: of_item,
                ..place
            }
            .resolved();
            items.retain(|item| fits(item, of_item));
        }
        fits(&field.value, place)
    });
}
