//! Strict JSON schemas, the closed form of a schema that model providers require.
//!
//! A strict schema closes every object, requires every property, has `anyOf` for `oneOf`, no `allOf`
//! of one entry, no `null` defaults, and no `$ref` with other keywords beside it.
//!
//! Inlining a `$ref` *shares* the target's subschemas instead of copying them: a subschema made strict
//! in one place is strict in the other, also below keywords that are never visited (`not`, `if`).
//! The schema is therefore converted as a graph.

mod schema_graph;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::rc::Rc;

use serde_json::{Value, json};

use self::schema_graph::{
    MapId, Node, OrderedMap, ROOT, SchemaGraph, check_depth, cost, drop_iteratively,
};

/// The maximum depth of the given schema, and of expanded subschemas.
const MAX_DEPTH: usize = 100;

/// Keywords that are allowed beside a `$ref`, because they do not constrain the value.
#[rustfmt::skip]
const ANNOTATIONS: [&str; 15] = [
    "$anchor", "$comment", "$defs", "$schema", "contentEncoding", "contentMediaType",
    "contentSchema", "default", "definitions", "deprecated", "description", "examples",
    "readOnly", "title", "writeOnly",
];

/// The reason for exceeding a limit on visits, copies or output.
const TOO_LARGE: &str = "the schema grows too large while its `$ref`s are expanded; shorten it, or \
    let more of the `$ref`s stand alone, with no keyword beside them";
/// The reason for a reference whose root is not the schema's.
const FOREIGN_REF: &str = "a `$ref` lies in, or leads into, a subschema with an `$id` of its own, \
    and cannot be resolved from the root; remove the inner `$id`, or inline what is referred to";

/// Makes a JSON schema strict: every object closed, every property required, and keywords that
/// strict mode does not know replaced where an equal one exists.
///
/// An empty schema becomes an object without properties. The order of keys is kept.
///
/// # Errors
/// If the schema has no strict form (an open object, a union at the root), if a `$ref` that has to be
/// inlined cannot be, or if the schema is too deep or expands too far. The error names the subschema.
///
/// ```
/// use serde_json::json;
/// use switchboard_core::schema::strict;
///
/// let schema = json!({"properties": {"city": {"type": "string", "default": null}}});
/// let expected = json!({
///     "properties": {"city": {"type": "string"}},
///     "type": "object",
///     "additionalProperties": false,
///     "required": ["city"],
/// });
/// assert_eq!(strict(schema)?, expected);
/// # Ok::<(), switchboard_core::schema::StrictSchemaError>(())
/// ```
pub fn strict(schema: Value) -> Result<Value, StrictSchemaError> {
    if let Err(error) = check_depth(&schema, 1) {
        drop_iteratively(schema);
        return Err(error);
    }
    if schema.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(empty_object());
    }
    let (mut graph, root) = SchemaGraph::of(schema);
    graph.convert_at(&[], &root, Scope::default())?;
    graph.normalize_root()?;
    graph.into_schema(&root)
}

/// The strict schema of an object without properties.
pub(crate) fn empty_object() -> Value {
    json!({"additionalProperties": false, "type": "object", "properties": {}, "required": []})
}

/// The error for a schema that has no strict form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictSchemaError {
    path: String,
    reason: String,
}

impl StrictSchemaError {
    /// Returns the JSON pointer of the offending subschema, empty for the root. Long keys are cut.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns what is wrong there, and what to do about it.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Prepends keys to the path.
    fn below(mut self, keys: &[&str]) -> Self {
        for key in keys.iter().rev() {
            let key = truncated(key).replace('~', "~0").replace('/', "~1");
            self.path = format!("/{key}{}", self.path);
        }
        self
    }
}

impl_error!(
    StrictSchemaError,
    |error| "the JSON schema has no strict form: at `#{}`: {}",
    error.path,
    error.reason
);

type StrictResult<T> = Result<T, StrictSchemaError>;

/// Fails at the current subschema. The callers add the path to it.
fn fail<T>(reason: impl Into<String>) -> StrictResult<T> {
    Err(StrictSchemaError {
        path: String::new(),
        reason: reason.into(),
    })
}

/// Properties that a subschema inherits from those around it.
#[derive(Clone, Copy, Default)]
struct Scope {
    /// The number of subschemas around it, merges included.
    depth: usize,
    /// Set if one of them has an `$id`, so that references are not relative to the root.
    in_resource: bool,
}

impl SchemaGraph {
    /// Makes a subschema strict. `keys` is its path from the current one.
    fn convert_at(&mut self, keys: &[&str], node: &Node, scope: Scope) -> StrictResult<MapId> {
        let converted = match node {
            Node::Map(schema) => self.convert(*schema, scope).map(|()| *schema),
            _ => fail("a schema has to be a JSON object here; write it as one"),
        };
        converted.map_err(|error| error.below(keys))
    }

    /// Makes a subschema strict. The order of steps is part of the behaviour: definitions are strict
    /// before a `$ref` to them is inlined, and subschemas are strict before anything is merged.
    fn convert(&mut self, schema: MapId, mut scope: Scope) -> StrictResult<()> {
        scope.depth += 1;
        if scope.depth > MAX_DEPTH {
            return fail(
                "`$ref`s and `allOf`s expand too deep here, perhaps without end; let a recursive \
                 `$ref` stand alone, with no keyword beside it",
            );
        }
        self.visit()?;
        let closed_by_author = self.is_closed(schema);
        scope.in_resource |= schema != ROOT && self.is_resource(schema);
        self.check_ref(schema, scope)?;
        for keyword in ["$defs", "definitions"] {
            if let Some(definitions) = self[schema].map(keyword) {
                self.convert_entries(keyword, definitions, scope)?;
            }
        }
        self.close_object(schema)?;
        self.convert_properties(schema, scope)?;
        if let Some(items) = self[schema].map("items") {
            self.convert_at(&["items"], &Node::Map(items), scope)?;
        }
        self.convert_unions(schema, scope)?;
        if let Some(entries) = self[schema].list("allOf") {
            if let [entry] = &*entries {
                let entry = self.strict_entry(entry, scope)?;
                self[schema].remove("allOf");
                if !closed_by_author {
                    self[schema].remove("additionalProperties");
                }
                self.merge(schema, entry)?;
                return self.convert(schema, scope);
            }
            self.convert_list("allOf", &entries, scope)?;
        }
        if self[schema].get("default").is_some_and(Node::is_null) {
            self[schema].remove("default");
        }
        self.inline_ref(schema, scope)
    }

    /// Rejects a `$ref` that has constraining keywords beside it, or is not relative to the root.
    fn check_ref(&self, schema: MapId, scope: Scope) -> StrictResult<()> {
        if self[schema].get("$ref").is_none() {
            return Ok(());
        }
        if scope.in_resource {
            return fail(FOREIGN_REF);
        }
        let constraining = constraining_keywords(&self[schema]);
        let names = first_names(constraining.filter(|key| schema != ROOT || &***key != "$id"));
        if names.is_empty() {
            return Ok(());
        }
        fail(format!(
            "a `$ref` cannot be merged with {names} beside it; move that into the referenced schema"
        ))
    }

    /// Makes every schema of a map strict, in order.
    fn convert_entries(&mut self, keyword: &str, map: MapId, scope: Scope) -> StrictResult<()> {
        let keys = self[map].keys().to_vec();
        for key in &keys {
            self.spend(cost(key))?;
            if let Some(node) = self[map].get(key).cloned() {
                self.convert_at(&[keyword, key], &node, scope)?;
            }
        }
        if self[map].keys() == keys {
            return Ok(());
        }
        let error = "a `$ref` uses this map of schemas as a schema; refer to one of its entries";
        fail(error).map_err(|error| error.below(&[keyword]))
    }

    /// Makes every schema of a list strict, in order.
    fn convert_list(&mut self, keyword: &str, list: &[Node], scope: Scope) -> StrictResult<()> {
        for (position, node) in list.iter().enumerate() {
            self.convert_at(&[keyword, &position.to_string()], node, scope)?;
        }
        Ok(())
    }

    /// Closes the subschema if it is an object, and rejects one that is open on purpose.
    fn close_object(&mut self, schema: MapId) -> StrictResult<()> {
        let keywords = &mut self[schema];
        let additional = keywords.get("additionalProperties");
        let left_open = additional.is_some_and(|value| !value.is_false());
        let untyped = keywords.get("type").is_none_or(Node::is_null);
        if untyped && keywords.map("properties").is_some() {
            keywords.set("type", Node::Text("object".into()));
        }
        let is_object = self.may_be_object(schema)?;
        if left_open && (is_object || untyped) {
            return fail(
                "`additionalProperties` leaves this object open, and strict objects are closed; \
                 declare each property and remove it, or do not ask for a strict schema",
            );
        }
        if is_object {
            self[schema].set("additionalProperties", Node::Plain(Value::Bool(false)));
        }
        Ok(())
    }

    /// Requires every property and makes it strict. The map is replaced, as others may share it.
    fn convert_properties(&mut self, schema: MapId, scope: Scope) -> StrictResult<()> {
        let Some(properties) = self[schema].map("properties") else {
            return Ok(());
        };
        let names = self[properties].keys().iter().cloned();
        let required = Node::List(names.map(Node::Text).collect());
        self[schema].set("required", required);
        self.convert_entries("properties", properties, scope)?;
        let own = self[properties].clone();
        let own = self.add(own);
        self[schema].set("properties", Node::Map(own));
        Ok(())
    }

    /// Makes the variants of `anyOf` and `oneOf` strict, and turns the latter into the former.
    fn convert_unions(&mut self, schema: MapId, scope: Scope) -> StrictResult<()> {
        let any_of = self[schema].list("anyOf").unwrap_or_default();
        self.convert_list("anyOf", &any_of, scope)?;
        if let Some(one_of) = self[schema].list("oneOf") {
            self.convert_list("oneOf", &one_of, scope)?;
            let variants = any_of.iter().chain(&*one_of).cloned().collect();
            self[schema].set("anyOf", Node::List(variants));
            self[schema].remove("oneOf");
        }
        Ok(())
    }

    /// Returns the keywords of the only entry of an `allOf`, following references.
    fn strict_entry(&mut self, entry: &Node, scope: Scope) -> StrictResult<OrderedMap> {
        if let Node::Map(reference) = *entry
            && is_plain_ref(&self[reference])
        {
            self.visit()?;
            let checked = self.check_ref(reference, scope);
            let target = checked.and_then(|()| self.follow(reference));
            return target.map_err(|error| error.below(&["allOf", "0"]));
        }
        let schema = self.convert_at(&["allOf", "0"], entry, scope)?;
        self.copy(schema)
    }

    /// Follows references to their target, and adds the annotations beside them; of several with the
    /// same name, the first counts.
    fn follow(&mut self, reference: MapId) -> StrictResult<OrderedMap> {
        let mut target = reference;
        let mut seen = HashSet::new();
        let mut annotations = OrderedMap::default();
        while is_plain_ref(&self[target]) {
            self.visit()?;
            let mut keywords = self.copy(target)?;
            target = self.resolve(target)?;
            if !seen.insert(keywords.text("$ref")) {
                return fail("the `$ref`s followed here form a circle; break it");
            }
            keywords.set_all(&annotations);
            keywords.remove("$ref");
            annotations = keywords;
        }
        let mut keywords = self.copy(target)?;
        keywords.set_all(&annotations);
        Ok(keywords)
    }

    /// Merges the only entry of an `allOf` into the schema around it, if that keeps the meaning.
    fn merge(&mut self, schema: MapId, entry: OrderedMap) -> StrictResult<()> {
        let outer = self.copy(schema)?;
        let mut conflicts: Vec<Rc<str>> = Vec::new();
        if self.is_closed(schema) && !self.has_properties(&outer) && self.has_properties(&entry) {
            conflicts.push("properties".into());
        }
        let mut merged = entry;
        for (key, value) in outer.entries() {
            match merged.get(key) {
                Some(other) if !ANNOTATIONS.contains(&&**key) => {
                    let is_overridden = match (&**key, value) {
                        ("properties", Node::Map(map)) => self[*map].keys().is_empty(),
                        ("required", Node::List(list)) => list.is_empty(),
                        _ => false,
                    };
                    if !is_overridden && !self.equal(value, other)? {
                        conflicts.push(key.clone());
                    }
                }
                _ => merged.set(key.clone(), value.clone()),
            }
        }
        if conflicts.is_empty() {
            self[schema] = merged;
            return Ok(());
        }
        let names = first_names(conflicts.iter());
        fail(format!(
            "the only `allOf` entry and the schema around it disagree on {names}; write them out as \
             one schema"
        ))
    }

    /// Replaces a `$ref` that has keywords beside it by its target; those keywords win.
    fn inline_ref(&mut self, schema: MapId, scope: Scope) -> StrictResult<()> {
        let reference = self[schema].get("$ref");
        let is_falsy = reference.is_none_or(|reference| self.is_falsy(reference));
        if is_falsy || self[schema].keys().len() == 1 {
            return Ok(());
        }
        let target = self.resolve(schema)?;
        self[schema].remove("$ref");
        let keywords = self.copy(target)?;
        for (key, value) in keywords.entries() {
            if self[schema].get(key).is_none() {
                self[schema].set(key.clone(), value.clone());
            }
        }
        self.convert(schema, scope)
    }

    /// Rejects a root that is a union or allows more than an object, as strict mode does.
    fn normalize_root(&mut self) -> StrictResult<()> {
        if self[ROOT].list("anyOf").is_some() {
            return fail("the root must not be a union; wrap the union in a property");
        }
        let Some(types) = self[ROOT].list("type") else {
            return Ok(());
        };
        if !self.may_be_object(ROOT)? {
            return Ok(());
        }
        if types.len() > 1 {
            return fail("the root must be an object only; make its `type` \"object\"");
        }
        self[ROOT].set("type", Node::Text("object".into()));
        Ok(())
    }

    /// Returns `true` if the `type` of a schema is, or allows, an object.
    fn may_be_object(&mut self, schema: MapId) -> StrictResult<bool> {
        let types = self[schema].list("type").unwrap_or_default();
        self.spend(types.len())?;
        let mut types = types.iter().chain(self[schema].get("type"));
        Ok(types.any(|node| matches!(node, Node::Text(name) if &**name == "object")))
    }

    /// Returns `true` if a schema allows no properties but those it declares.
    fn is_closed(&self, schema: MapId) -> bool {
        let additional = self[schema].get("additionalProperties");
        additional.is_some_and(Node::is_false)
    }

    fn has_properties(&self, keywords: &OrderedMap) -> bool {
        let properties = keywords.map("properties");
        properties.is_some_and(|map| !self[map].keys().is_empty())
    }
}

/// Returns the keywords beside a `$ref` that constrain the value.
fn constraining_keywords(keywords: &OrderedMap) -> impl Iterator<Item = &Rc<str>> {
    let constrains = |key: &&Rc<str>| &***key != "$ref" && !ANNOTATIONS.contains(&&***key);
    keywords.keys().iter().filter(constrains)
}

/// Returns `true` for a reference with nothing beside it that constrains the value.
fn is_plain_ref(keywords: &OrderedMap) -> bool {
    keywords.get("$ref").is_some() && constraining_keywords(keywords).next().is_none()
}

/// Cuts a name to a length that fits in a message.
fn truncated(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Lists the first few keywords for a message.
fn first_names<'a>(keywords: impl Iterator<Item = &'a Rc<str>>) -> String {
    let names = keywords.take(5).map(|key| format!("`{}`", truncated(key)));
    names.collect::<Vec<_>>().join(", ")
}
