//! Strict JSON schemas: the closed form of a schema that model providers ask for.
//!
//! A strict schema closes every object, requires every property, has `anyOf` for `oneOf`, no `allOf`
//! of one entry, no `null` defaults, and no `$ref` with other keywords beside it.
//!
//! Inlining a `$ref` *shares* the target's subschemas instead of copying them: what is made strict
//! in one place is strict in the other, also below keywords that are never visited (`not`, `if`).
//! The schema is therefore held as a graph while it is converted.

mod graph;

use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use serde_json::{Value, json};

use self::graph::{Graph, MapId, Node, OrderedMap, ROOT, check_depth, dismantle, weight};

/// How deep the schema given may nest, and how deep subschemas may be expanded.
const MAX_DEPTH: usize = 100;
/// How many subschemas may be visited; one reached by several references counts each time.
const MAX_VISITS: usize = 100_000;

/// Keywords that may stand beside a `$ref`, because they do not constrain the value.
#[rustfmt::skip]
const ANNOTATIONS: [&str; 15] = [
    "$anchor", "$comment", "$defs", "$schema", "contentEncoding", "contentMediaType",
    "contentSchema", "default", "definitions", "deprecated", "description", "examples",
    "readOnly", "title", "writeOnly",
];

/// The reason given when a schema exceeds what may be visited, copied or written.
const TOO_LARGE: &str = "the schema grows too large while its `$ref`s are expanded; shorten it, or \
    let more of the `$ref`s stand alone, with no keyword beside them";
/// The reason given for a reference that has another root than the schema's.
const FOREIGN_REF: &str = "a `$ref` lies in, or leads into, a subschema with an `$id` of its own, \
    and cannot be resolved from the root; remove the inner `$id`, or inline what is referred to";

/// Makes a JSON schema strict: every object closed, every property required, and keywords that
/// strict mode does not know replaced where an equal one exists.
///
/// An empty schema becomes an object without properties. The order of keys is kept.
///
/// # Errors
/// When the schema has no strict form (an open object, a union at the root), when a `$ref` that has
/// to be inlined cannot be, and when the schema is too deep or expands too far. The error names the
/// place.
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
        dismantle(schema);
        return Err(error);
    }
    if schema.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(json!({
            "additionalProperties": false, "type": "object", "properties": {}, "required": [],
        }));
    }
    let (graph, root) = Graph::of(schema);
    let mut conversion = Conversion {
        graph,
        visits_left: MAX_VISITS,
    };
    conversion.convert_at(&[], &root, Place::default())?;
    conversion.settle_root()?;
    conversion.graph.into_schema(&root)
}

/// Why a schema has no strict form: the place in the schema, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictSchemaError {
    path: String,
    reason: String,
}

impl StrictSchemaError {
    /// The JSON pointer of the offending subschema, empty for the root; very long keys are cut.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there, and what to do about it.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The same error, seen from further up.
    fn below(mut self, keys: &[&str]) -> Self {
        for key in keys.iter().rev() {
            let key = shown(key).replace('~', "~0").replace('/', "~1");
            self.path = format!("/{key}{}", self.path);
        }
        self
    }
}

impl fmt::Display for StrictSchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, reason } = self;
        write!(
            f,
            "the JSON schema has no strict form: at `#{path}`: {reason}"
        )
    }
}

impl std::error::Error for StrictSchemaError {}

/// What every step of the conversion returns.
type Step<T> = Result<T, StrictSchemaError>;

/// An error at the place being looked at; the callers add how they got there.
fn fault(reason: impl Into<String>) -> StrictSchemaError {
    StrictSchemaError {
        path: String::new(),
        reason: reason.into(),
    }
}

/// Where a subschema stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// How many subschemas lead here, merges in place included.
    depth: usize,
    /// Whether one of them has an `$id`, so that references are not relative to the root.
    in_resource: bool,
}

/// A schema on its way to the strict form.
struct Conversion {
    graph: Graph,
    visits_left: usize,
}

impl Conversion {
    /// Makes the subschema strict that is found at some keys below a place.
    fn convert_at(&mut self, keys: &[&str], node: &Node, place: Place) -> Step<MapId> {
        let converted = match node {
            Node::Map(schema) => self.convert(*schema, place).map(|()| *schema),
            _ => Err(fault(
                "a schema has to be a JSON object here; write it as one",
            )),
        };
        converted.map_err(|error| error.below(keys))
    }

    /// Makes a subschema strict. The order of steps is part of the behaviour: definitions are strict
    /// before a `$ref` to them is inlined, and all below is strict before something is merged.
    fn convert(&mut self, schema: MapId, mut place: Place) -> Step<()> {
        place.depth += 1;
        if place.depth > MAX_DEPTH {
            return Err(fault(
                "`$ref`s and `allOf`s expand too deep here, perhaps without end; let a recursive \
                 `$ref` stand alone, with no keyword beside it",
            ));
        }
        self.visit()?;
        let closed_by_author = self.is_closed(schema);
        place.in_resource |= schema != ROOT && self.graph.is_resource(schema);
        self.check_ref(schema, place)?;
        for keyword in ["$defs", "definitions"] {
            if let Some(definitions) = self.graph[schema].map(keyword) {
                self.convert_entries(keyword, definitions, place)?;
            }
        }
        self.close_object(schema)?;
        self.convert_properties(schema, place)?;
        if let Some(items) = self.graph[schema].map("items") {
            self.convert_at(&["items"], &Node::Map(items), place)?;
        }
        self.convert_unions(schema, place)?;
        if let Some(entries) = self.graph[schema].list("allOf") {
            if let [entry] = &*entries {
                let entry = self.strict_entry(entry, place)?;
                self.graph[schema].remove("allOf");
                if !closed_by_author {
                    self.graph[schema].remove("additionalProperties");
                }
                self.merge(schema, entry)?;
                return self.convert(schema, place);
            }
            self.convert_list("allOf", &entries, place)?;
        }
        if self.graph[schema].get("default").is_some_and(Node::is_null) {
            self.graph[schema].remove("default");
        }
        self.inline_ref(schema, place)
    }

    /// Refuses a `$ref` that other keywords narrow, or that is not relative to the root.
    fn check_ref(&self, schema: MapId, place: Place) -> Step<()> {
        if self.graph[schema].get("$ref").is_none() {
            return Ok(());
        }
        if place.in_resource {
            return Err(fault(FOREIGN_REF));
        }
        let narrowing = narrowing(&self.graph[schema]);
        let names = listed(narrowing.filter(|key| schema != ROOT || &***key != "$id"));
        if names.is_empty() {
            return Ok(());
        }
        Err(fault(format!(
            "a `$ref` cannot be merged with {names} beside it; move that into the referenced schema"
        )))
    }

    /// Makes every schema of a map strict, in order.
    fn convert_entries(&mut self, keyword: &str, map: MapId, place: Place) -> Step<()> {
        let keys = self.graph[map].keys().to_vec();
        for key in &keys {
            self.graph.work(weight(key))?;
            if let Some(node) = self.graph[map].get(key).cloned() {
                self.convert_at(&[keyword, key], &node, place)?;
            }
        }
        if self.graph[map].keys() == keys {
            return Ok(());
        }
        Err(
            fault("a `$ref` uses this map of schemas as a schema; refer to one of its entries")
                .below(&[keyword]),
        )
    }

    /// Makes every schema of a list strict, in order.
    fn convert_list(&mut self, keyword: &str, list: &[Node], place: Place) -> Step<()> {
        for (position, node) in list.iter().enumerate() {
            self.convert_at(&[keyword, &position.to_string()], node, place)?;
        }
        Ok(())
    }

    /// Closes the subschema if it is an object, and refuses one that its author left open.
    fn close_object(&mut self, schema: MapId) -> Step<()> {
        let keywords = &mut self.graph[schema];
        let left_open = keywords
            .get("additionalProperties")
            .is_some_and(|value| !value.is_false());
        let untyped = keywords.get("type").is_none_or(Node::is_null);
        if untyped && keywords.map("properties").is_some() {
            keywords.set("type", Node::Text("object".into()));
        }
        let is_object = self.may_be_object(schema)?;
        if left_open && (is_object || untyped) {
            return Err(fault(
                "`additionalProperties` leaves this object open, and strict objects are closed; \
                 declare each property and remove it, or do not ask for a strict schema",
            ));
        }
        if is_object {
            self.graph[schema].set("additionalProperties", Node::Plain(Value::Bool(false)));
        }
        Ok(())
    }

    /// Requires every property and makes it strict. The map is replaced, for others may share it.
    fn convert_properties(&mut self, schema: MapId, place: Place) -> Step<()> {
        let Some(properties) = self.graph[schema].map("properties") else {
            return Ok(());
        };
        let required = self.graph[properties]
            .keys()
            .iter()
            .cloned()
            .map(Node::Text)
            .collect();
        self.graph[schema].set("required", Node::List(required));
        self.convert_entries("properties", properties, place)?;
        let own = self.graph[properties].clone();
        let own = self.graph.add(own);
        self.graph[schema].set("properties", Node::Map(own));
        Ok(())
    }

    /// Makes the variants of `anyOf` and `oneOf` strict, and turns the latter into the former.
    fn convert_unions(&mut self, schema: MapId, place: Place) -> Step<()> {
        let any_of = self.graph[schema].list("anyOf").unwrap_or_default();
        self.convert_list("anyOf", &any_of, place)?;
        if let Some(one_of) = self.graph[schema].list("oneOf") {
            self.convert_list("oneOf", &one_of, place)?;
            let variants = any_of.iter().chain(&*one_of).cloned().collect();
            self.graph[schema].set("anyOf", Node::List(variants));
            self.graph[schema].remove("oneOf");
        }
        Ok(())
    }

    /// The keywords that the only entry of an `allOf` brings, references followed.
    fn strict_entry(&mut self, entry: &Node, place: Place) -> Step<OrderedMap> {
        if let Node::Map(reference) = *entry
            && is_plain_ref(&self.graph[reference])
        {
            self.visit()?;
            let followed = self
                .check_ref(reference, place)
                .and_then(|()| self.follow(reference));
            return followed.map_err(|error| error.below(&["allOf", "0"]));
        }
        let schema = self.convert_at(&["allOf", "0"], entry, place)?;
        self.graph.copy(schema)
    }

    /// Follows references to where they end, and adds the annotations met on the way there; of
    /// several with the same name, the first counts.
    fn follow(&mut self, reference: MapId) -> Step<OrderedMap> {
        let mut target = reference;
        let mut seen = HashSet::new();
        let mut annotations = OrderedMap::default();
        while is_plain_ref(&self.graph[target]) {
            self.visit()?;
            let mut met = self.graph.copy(target)?;
            target = self.graph.resolve(target)?;
            if !seen.insert(met.text("$ref")) {
                return Err(fault("the `$ref`s followed here form a circle; break it"));
            }
            met.set_all(&annotations);
            met.remove("$ref");
            annotations = met;
        }
        let mut found = self.graph.copy(target)?;
        found.set_all(&annotations);
        Ok(found)
    }

    /// Merges the only entry of an `allOf` into the schema around it, where that keeps the meaning.
    fn merge(&mut self, schema: MapId, entry: OrderedMap) -> Step<()> {
        let around = self.graph.copy(schema)?;
        let mut clashes = Vec::new();
        if self.is_closed(schema) && !self.declares_any(&around) && self.declares_any(&entry) {
            clashes.push("properties".into());
        }
        let mut merged = entry;
        for (key, value) in around.entries() {
            match merged.get(key) {
                Some(other) if !ANNOTATIONS.contains(&&**key) => {
                    let yields = match value {
                        Node::Map(map) => {
                            &**key == "properties" && self.graph[*map].keys().is_empty()
                        }
                        Node::List(list) => &**key == "required" && list.is_empty(),
                        _ => false,
                    };
                    if !yields && !self.graph.equal(value, other)? {
                        clashes.push(key.clone());
                    }
                }
                _ => merged.set(key.clone(), value.clone()),
            }
        }
        if clashes.is_empty() {
            self.graph[schema] = merged;
            return Ok(());
        }
        let names = listed(clashes.iter());
        Err(fault(format!(
            "the only `allOf` entry and the schema around it disagree on {names}; write them out as \
             one schema"
        )))
    }

    /// Replaces a `$ref` that has keywords beside it by what it refers to; those keywords win.
    fn inline_ref(&mut self, schema: MapId, place: Place) -> Step<()> {
        let Some(reference) = self.graph[schema].get("$ref").cloned() else {
            return Ok(());
        };
        if self.graph[schema].keys().len() == 1 || self.graph.is_blank(&reference) {
            return Ok(());
        }
        let target = self.graph.resolve(schema)?;
        self.graph[schema].remove("$ref");
        let found = self.graph.copy(target)?;
        for (key, value) in found.entries() {
            if self.graph[schema].get(key).is_none() {
                self.graph[schema].set(key.clone(), value.clone());
            }
        }
        self.convert(schema, place)
    }

    /// Refuses a root that is a union, or more than an object, which strict mode does not take.
    fn settle_root(&mut self) -> Step<()> {
        if self.graph[ROOT].list("anyOf").is_some() {
            return Err(fault(
                "the root must not be a union; wrap the union in a property",
            ));
        }
        let Some(kinds) = self.graph[ROOT].list("type") else {
            return Ok(());
        };
        if !self.may_be_object(ROOT)? {
            return Ok(());
        }
        if kinds.len() > 1 {
            return Err(fault(
                "the root must be an object only; make its `type` \"object\"",
            ));
        }
        self.graph[ROOT].set("type", Node::Text("object".into()));
        Ok(())
    }

    /// Whether the `type` of a schema is, or allows, an object.
    fn may_be_object(&mut self, schema: MapId) -> Step<bool> {
        let is_object = |node: &Node| matches!(node, Node::Text(name) if &**name == "object");
        let kinds = self.graph[schema].list("type").unwrap_or_default();
        self.graph.work(kinds.len())?;
        Ok(kinds
            .iter()
            .chain(self.graph[schema].get("type"))
            .any(is_object))
    }

    /// Whether a schema is closed to properties that it does not declare.
    fn is_closed(&self, schema: MapId) -> bool {
        self.graph[schema]
            .get("additionalProperties")
            .is_some_and(Node::is_false)
    }

    /// Whether some keywords declare a property.
    fn declares_any(&self, keywords: &OrderedMap) -> bool {
        keywords
            .map("properties")
            .is_some_and(|map| !self.graph[map].keys().is_empty())
    }

    /// Counts a visit to a subschema.
    fn visit(&mut self) -> Step<()> {
        self.visits_left = self
            .visits_left
            .checked_sub(1)
            .ok_or_else(|| fault(TOO_LARGE))?;
        Ok(())
    }
}

/// The keywords beside a `$ref` that constrain the value.
fn narrowing(keywords: &OrderedMap) -> impl Iterator<Item = &Rc<str>> {
    let narrows = |key: &&Rc<str>| &***key != "$ref" && !ANNOTATIONS.contains(&&***key);
    keywords.keys().iter().filter(narrows)
}

/// Whether some keywords are a reference, with nothing beside it that constrains the value.
fn is_plain_ref(keywords: &OrderedMap) -> bool {
    keywords.get("$ref").is_some() && narrowing(keywords).next().is_none()
}

/// A name from the schema, cut to a length that fits in a message.
fn shown(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The first few of some keywords, as a message names them.
fn listed<'a>(keywords: impl Iterator<Item = &'a Rc<str>>) -> String {
    let names = keywords.take(5).map(|key| format!("`{}`", shown(key)));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
