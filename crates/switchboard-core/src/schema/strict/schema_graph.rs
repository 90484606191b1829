//! A JSON schema as a graph, in which several places can share a subschema.
//!
//! Maps are stored in one table and referred to by index, so a change to a shared map shows in all its
//! places. Sharing can close a cycle, or blow up the schema when it is written out again. The values
//! copied and written are therefore counted, and too many are an error.

use std::collections::HashMap;
use std::fmt;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use serde_json::{Number, Value};

use super::{FOREIGN_REF, MAX_DEPTH, StrictResult, TOO_LARGE, fail, truncated};
use crate::schema::references::percent_decoded;

/// The maximum depth of the result: two levels for each subschema, and one schema below the last.
const MAX_RESULT_DEPTH: usize = 3 * MAX_DEPTH;
/// The maximum number of visits to subschemas. One reached by several references counts each time.
const MAX_VISITS: usize = 100_000;
/// The maximum number of values copied, read and written, beyond those of the given schema.
const MAX_WORK: usize = 2_000_000;

/// The index of a map. Places with the same index share the map.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct MapId(usize);

/// The map of the whole schema, which is inserted first.
pub(super) const ROOT: MapId = MapId(0);

/// A value of the schema, cheap to clone. Lists are replaced, never changed.
#[derive(Clone)]
pub(super) enum Node {
    /// `null`, a boolean or a number.
    Plain(Value),
    Text(Rc<str>),
    List(Rc<[Node]>),
    Map(MapId),
}

impl Node {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Plain(Value::Null))
    }

    pub(super) fn is_false(&self) -> bool {
        matches!(self, Self::Plain(Value::Bool(false)))
    }
}

/// A map that keeps the insertion order of its keys.
#[derive(Clone, Default)]
pub(super) struct OrderedMap {
    keys: Vec<Rc<str>>,
    values: HashMap<Rc<str>, Node>,
}

impl OrderedMap {
    pub(super) fn keys(&self) -> &[Rc<str>] {
        &self.keys
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&Rc<str>, &Node)> {
        let keys = self.keys.iter();
        keys.filter_map(|key| Some((key, self.values.get(key)?)))
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.values.get(key)
    }

    pub(super) fn map(&self, key: &str) -> Option<MapId> {
        match self.values.get(key)? {
            Node::Map(map) => Some(*map),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> Option<Rc<[Node]>> {
        match self.values.get(key)? {
            Node::List(list) => Some(list.clone()),
            _ => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<Rc<str>> {
        match self.values.get(key)? {
            Node::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Sets a key. A new key goes to the end.
    pub(super) fn set(&mut self, key: impl Into<Rc<str>>, value: Node) {
        let key = key.into();
        if self.values.insert(key.clone(), value).is_none() {
            self.keys.push(key);
        }
    }

    pub(super) fn set_all(&mut self, other: &Self) {
        for (key, value) in other.entries() {
            self.set(key.clone(), value.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        if self.values.remove(key).is_some() {
            self.keys.retain(|other| **other != *key);
        }
    }
}

/// The maps of a schema, and the work on them that is still allowed.
pub(super) struct SchemaGraph {
    maps: Vec<OrderedMap>,
    /// The cost of the given schema.
    size: usize,
    work_left: usize,
    visits_left: usize,
}

impl SchemaGraph {
    /// Returns the graph of a schema whose depth has been checked, and the node of the whole.
    pub(super) fn of(schema: Value) -> (Self, Node) {
        let mut graph = Self {
            maps: Vec::new(),
            size: 0,
            work_left: MAX_WORK,
            visits_left: MAX_VISITS,
        };
        let root = graph.insert(schema);
        (graph, root)
    }

    fn insert(&mut self, value: Value) -> Node {
        self.size += value.as_str().map_or(1, cost);
        match value {
            Value::String(text) => Node::Text(text.into()),
            Value::Array(list) => {
                Node::List(list.into_iter().map(|item| self.insert(item)).collect())
            }
            Value::Object(object) => {
                let map = self.add(OrderedMap::default());
                for (key, value) in object {
                    self.size += cost(&key);
                    let node = self.insert(value);
                    self[map].set(key, node);
                }
                Node::Map(map)
            }
            plain => Node::Plain(plain),
        }
    }

    pub(super) fn add(&mut self, map: OrderedMap) -> MapId {
        self.maps.push(map);
        MapId(self.maps.len() - 1)
    }

    /// Copies a map; its values stay shared. Copying an entry costs as much as writing four.
    pub(super) fn copy(&mut self, map: MapId) -> StrictResult<OrderedMap> {
        let keys = self[map].keys.iter();
        self.spend(keys.map(|key| 4 * cost(key)).sum())?;
        Ok(self[map].clone())
    }

    /// Returns the map that the `$ref` of a schema points to, in its current state.
    pub(super) fn resolve(&mut self, schema: MapId) -> StrictResult<MapId> {
        let Some(text) = self[schema].text("$ref") else {
            return fail("a `$ref` has to be a string like `#/$defs/Name`");
        };
        self.spend(cost(&text))?;
        let name = truncated(&text);
        let Some(pointer) = text.strip_prefix("#/").and_then(percent_decoded) else {
            return fail(format!(
                "the `$ref` `{name}` is no pointer into this schema; write it like `#/$defs/Name`"
            ));
        };
        let mut target = ROOT;
        for segment in pointer.split('/') {
            self.spend(1)?;
            let key = segment.replace("~1", "/").replace("~0", "~");
            let Some(next) = self[target].map(&key) else {
                let key = truncated(&key);
                return fail(format!(
                    "the `$ref` `{name}` finds no JSON object at `{key}`; define or correct it"
                ));
            };
            if self.is_resource(next) {
                return fail(FOREIGN_REF);
            }
            target = next;
        }
        Ok(target)
    }

    /// Returns `true` if a schema has an `$id`, which makes it a root for references.
    pub(super) fn is_resource(&self, schema: MapId) -> bool {
        self[schema].text("$id").is_some()
    }

    /// Converts a node to JSON: shared maps are copied, and a cycle exceeds the limits.
    ///
    /// The allowance for the given schema, twice its size because names of properties are also listed
    /// in `required`, is added only here, so that no `$ref` can use it up.
    pub(super) fn into_schema(mut self, node: &Node) -> StrictResult<Value> {
        self.work_left += 2 * self.size;
        self.write(node, 0)
    }

    fn write(&mut self, node: &Node, depth: usize) -> StrictResult<Value> {
        if depth == MAX_RESULT_DEPTH {
            return fail("`$ref`s make the schema contain itself; break the circle");
        }
        self.spend(if let Node::Text(text) = node {
            cost(text)
        } else {
            1
        })?;
        Ok(match node {
            Node::Plain(value) => value.clone(),
            Node::Text(text) => Value::from(&**text),
            Node::List(list) => {
                let items = list.iter().map(|item| self.write(item, depth + 1));
                items.collect::<StrictResult<_>>()?
            }
            Node::Map(map) => {
                let mut object = serde_json::Map::new();
                for key in self[*map].keys.clone() {
                    self.spend(cost(&key))?;
                    if let Some(value) = self[*map].get(&key).cloned() {
                        object.insert(key.to_string(), self.write(&value, depth + 1)?);
                    }
                }
                Value::Object(object)
            }
        })
    }

    /// Returns `true` for `null`, `false`, zero, and an empty string, list or map.
    pub(super) fn is_falsy(&self, node: &Node) -> bool {
        match node {
            Node::Plain(Value::Number(number)) => number.as_f64() == Some(0.0),
            Node::Plain(plain) => *plain != Value::Bool(true),
            Node::Text(text) => text.is_empty(),
            Node::List(list) => list.is_empty(),
            Node::Map(map) => self[*map].keys.is_empty(),
        }
    }

    /// Returns `true` if two nodes are equal as JSON, `1` and `1.0` included.
    pub(super) fn equal(&mut self, left: &Node, right: &Node) -> StrictResult<bool> {
        Ok(equal_values(&self.write(left, 0)?, &self.write(right, 0)?))
    }

    /// Spends work, counted in values.
    pub(super) fn spend(&mut self, values: usize) -> StrictResult<()> {
        subtract(&mut self.work_left, values)
    }

    /// Counts a visit to a subschema.
    pub(super) fn visit(&mut self) -> StrictResult<()> {
        subtract(&mut self.visits_left, 1)
    }
}

fn subtract(left: &mut usize, spent: usize) -> StrictResult<()> {
    match left.checked_sub(spent) {
        Some(rest) => *left = rest,
        None => return fail(TOO_LARGE),
    }
    Ok(())
}

impl Index<MapId> for SchemaGraph {
    type Output = OrderedMap;

    fn index(&self, map: MapId) -> &OrderedMap {
        &self.maps[map.0]
    }
}

impl IndexMut<MapId> for SchemaGraph {
    fn index_mut(&mut self, map: MapId) -> &mut OrderedMap {
        &mut self.maps[map.0]
    }
}

/// Rejects objects and lists that nest too deep. Does not recurse beyond the limit itself.
pub(super) fn check_depth(value: &Value, depth: usize) -> StrictResult<()> {
    if !value.is_object() && !value.is_array() {
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return fail(format!(
            "the schema nests more than {MAX_DEPTH} levels deep; flatten it"
        ));
    }
    let check = |key: &dyn fmt::Display, child: &Value| {
        check_depth(child, depth + 1).map_err(|error| error.below(&[&key.to_string()]))
    };
    match value {
        Value::Array(list) => {
            (list.iter().enumerate()).try_for_each(|(key, child)| check(&key, child))
        }
        Value::Object(map) => map.iter().try_for_each(|(key, child)| check(key, child)),
        _ => Ok(()),
    }
}

/// Drops a value of any depth. The derived drop recurses, and may overflow the stack.
pub(super) fn drop_iteratively(value: Value) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(list) => pending.extend(list),
            Value::Object(map) => pending.extend(map.into_iter().map(|(_, child)| child)),
            _ => {}
        }
    }
}

/// The cost of a text: that of any value, and more if it is long.
pub(super) fn cost(text: &str) -> usize {
    1 + text.len() / 64
}

fn equal_values(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let whole = |number: &Number| number.as_i128().or(Some(number.as_f64()? as i128));
            left.as_f64() == right.as_f64() && whole(left) == whole(right)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal_values(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            let has_equal = |(key, l)| right.get(key).is_some_and(|r| equal_values(l, r));
            left.len() == right.len() && left.iter().all(has_equal)
        }
        _ => left == right,
    }
}
