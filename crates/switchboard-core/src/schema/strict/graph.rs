//! A JSON schema as a graph, in which several places can share a subschema.
//!
//! Maps live in one table and every other value holds handles to them, so a change to a shared map
//! is seen from all its places. Sharing can close a cycle, or grow without measure when the schema
//! is written out again; the values copied and written are counted, and too many are an error.

use std::collections::HashMap;
use std::fmt;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use serde_json::{Number, Value};

use super::{FOREIGN_REF, MAX_DEPTH, Step, TOO_LARGE, fault, shown};

/// How deep the result may nest: two levels for each subschema, and one schema below the last.
const MAX_RESULT_DEPTH: usize = 3 * MAX_DEPTH;
/// How many values may be copied, looked through and written, beyond those of the schema given.
const MAX_WORK: usize = 2_000_000;

/// A handle to a map; places with the same handle share the map.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct MapId(usize);

/// The schema as a whole, if it is a map: the first one taken in.
pub(super) const ROOT: MapId = MapId(0);

/// A value of the schema, cheap to clone. Lists are replaced and never changed.
#[derive(Clone)]
pub(super) enum Node {
    /// `null`, a boolean or a number.
    Plain(Value),
    /// A string.
    Text(Rc<str>),
    /// An array.
    List(Rc<[Node]>),
    /// An object.
    Map(MapId),
}

impl Node {
    /// Whether this is `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Plain(Value::Null))
    }

    /// Whether this is `false`.
    pub(super) fn is_false(&self) -> bool {
        matches!(self, Self::Plain(Value::Bool(false)))
    }
}

/// A map that keeps the order in which its keys came.
#[derive(Clone, Default)]
pub(super) struct OrderedMap {
    keys: Vec<Rc<str>>,
    values: HashMap<Rc<str>, Node>,
}

impl OrderedMap {
    /// The keys in order.
    pub(super) fn keys(&self) -> &[Rc<str>] {
        &self.keys
    }

    /// The entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Rc<str>, &Node)> {
        self.keys
            .iter()
            .filter_map(|key| Some((key, self.values.get(key)?)))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.values.get(key)
    }

    /// The value of a key, if it is a map.
    pub(super) fn map(&self, key: &str) -> Option<MapId> {
        match self.values.get(key)? {
            Node::Map(map) => Some(*map),
            _ => None,
        }
    }

    /// The value of a key, if it is a list.
    pub(super) fn list(&self, key: &str) -> Option<Rc<[Node]>> {
        match self.values.get(key)? {
            Node::List(list) => Some(list.clone()),
            _ => None,
        }
    }

    /// The value of a key, if it is a text.
    pub(super) fn text(&self, key: &str) -> Option<Rc<str>> {
        match self.values.get(key)? {
            Node::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Sets a key, in its place if it is there and at the end otherwise.
    pub(super) fn set(&mut self, key: impl Into<Rc<str>>, value: Node) {
        let key = key.into();
        if self.values.insert(key.clone(), value).is_none() {
            self.keys.push(key);
        }
    }

    /// Sets every key of another map.
    pub(super) fn set_all(&mut self, other: &Self) {
        for (key, value) in other.entries() {
            self.set(key.clone(), value.clone());
        }
    }

    /// Takes a key out, if it is there.
    pub(super) fn remove(&mut self, key: &str) {
        if self.values.remove(key).is_some() {
            self.keys.retain(|other| **other != *key);
        }
    }
}

/// The maps of a schema, and how much work on them is still allowed.
pub(super) struct Graph {
    maps: Vec<OrderedMap>,
    /// What the schema given weighs.
    size: usize,
    work_left: usize,
}

impl Graph {
    /// The graph of a schema, whose depth has been checked, and the node of the whole.
    pub(super) fn of(schema: Value) -> (Self, Node) {
        let mut graph = Self {
            maps: Vec::new(),
            size: 0,
            work_left: MAX_WORK,
        };
        let root = graph.take_in(schema);
        (graph, root)
    }

    /// Takes a value in.
    fn take_in(&mut self, value: Value) -> Node {
        match value {
            Value::String(text) => {
                self.size += weight(&text);
                Node::Text(text.into())
            }
            Value::Array(list) => {
                self.size += 1;
                Node::List(list.into_iter().map(|item| self.take_in(item)).collect())
            }
            Value::Object(object) => {
                self.size += 1;
                let map = self.add(OrderedMap::default());
                for (key, value) in object {
                    self.size += weight(&key);
                    let node = self.take_in(value);
                    self[map].set(key, node);
                }
                Node::Map(map)
            }
            plain => {
                self.size += 1;
                Node::Plain(plain)
            }
        }
    }

    /// Adds a map.
    pub(super) fn add(&mut self, map: OrderedMap) -> MapId {
        self.maps.push(map);
        MapId(self.maps.len() - 1)
    }

    /// A copy of a map, its values still shared. An entry copied is as much work as four written.
    pub(super) fn copy(&mut self, map: MapId) -> Step<OrderedMap> {
        let keys = self[map].keys.iter();
        self.work(keys.map(|key| 4 * weight(key)).sum())?;
        Ok(self[map].clone())
    }

    /// The map that the `$ref` of a schema points to, as it is by now.
    pub(super) fn resolve(&mut self, schema: MapId) -> Step<MapId> {
        let Some(text) = self[schema].text("$ref") else {
            return Err(fault("a `$ref` has to be a string like `#/$defs/Name`"));
        };
        self.work(weight(&text))?;
        let name = shown(&text);
        let Some(pointer) = text.strip_prefix("#/").and_then(percent_decoded) else {
            return Err(fault(format!(
                "the `$ref` `{name}` is no pointer into this schema; write it like `#/$defs/Name`"
            )));
        };
        let mut target = ROOT;
        for segment in pointer.split('/') {
            self.work(1)?;
            let key = segment.replace("~1", "/").replace("~0", "~");
            let Some(next) = self[target].map(&key) else {
                let key = shown(&key);
                return Err(fault(format!(
                    "the `$ref` `{name}` finds no JSON object at `{key}`; define or correct it"
                )));
            };
            if self.is_resource(next) {
                return Err(fault(FOREIGN_REF));
            }
            target = next;
        }
        Ok(target)
    }

    /// Whether a schema has an `$id`, which makes it a document of its own for references.
    pub(super) fn is_resource(&self, schema: MapId) -> bool {
        self[schema].text("$id").is_some()
    }

    /// The schema of a node as JSON: what is shared is copied, and a cycle runs into the bounds.
    ///
    /// Room for twice the schema given, its property names being required as well, is added only
    /// here, so that no `$ref` can draw on it.
    pub(super) fn into_schema(mut self, node: &Node) -> Step<Value> {
        self.work_left += 2 * self.size;
        self.write(node, 0)
    }

    /// Writes out a node that stands below some levels.
    fn write(&mut self, node: &Node, depth: usize) -> Step<Value> {
        if depth == MAX_RESULT_DEPTH {
            return Err(fault(
                "`$ref`s make the schema contain itself; break the circle",
            ));
        }
        match node {
            Node::Plain(value) => self.work(1).map(|()| value.clone()),
            Node::Text(text) => self.work(weight(text)).map(|()| Value::from(&**text)),
            Node::List(list) => {
                self.work(1)?;
                list.iter()
                    .map(|item| self.write(item, depth + 1))
                    .collect()
            }
            Node::Map(map) => {
                self.work(1)?;
                let mut object = serde_json::Map::new();
                for key in self[*map].keys.clone() {
                    self.work(weight(&key))?;
                    if let Some(value) = self[*map].get(&key).cloned() {
                        object.insert(key.to_string(), self.write(&value, depth + 1)?);
                    }
                }
                Ok(Value::Object(object))
            }
        }
    }

    /// Whether a node holds nothing: `null`, `false`, zero, or an empty text, list or map.
    pub(super) fn is_blank(&self, node: &Node) -> bool {
        match node {
            Node::Plain(Value::Number(number)) => number.as_f64() == Some(0.0),
            Node::Plain(plain) => *plain != Value::Bool(true),
            Node::Text(text) => text.is_empty(),
            Node::List(list) => list.is_empty(),
            Node::Map(map) => self[*map].keys.is_empty(),
        }
    }

    /// Whether two nodes are equal as JSON, `1` and `1.0` included.
    pub(super) fn equal(&mut self, left: &Node, right: &Node) -> Step<bool> {
        Ok(equal_values(&self.write(left, 0)?, &self.write(right, 0)?))
    }

    /// Counts work, in values touched.
    pub(super) fn work(&mut self, values: usize) -> Step<()> {
        self.work_left = self
            .work_left
            .checked_sub(values)
            .ok_or_else(|| fault(TOO_LARGE))?;
        Ok(())
    }
}

impl Index<MapId> for Graph {
    type Output = OrderedMap;

    fn index(&self, map: MapId) -> &OrderedMap {
        &self.maps[map.0]
    }
}

impl IndexMut<MapId> for Graph {
    fn index_mut(&mut self, map: MapId) -> &mut OrderedMap {
        &mut self.maps[map.0]
    }
}

/// Refuses objects and lists that nest too deep. Never goes deeper than the limit itself.
pub(super) fn check_depth(value: &Value, depth: usize) -> Step<()> {
    if depth > MAX_DEPTH {
        return Err(fault(format!(
            "the schema nests more than {MAX_DEPTH} levels deep; flatten it"
        )));
    }
    let check_child = |key: &dyn fmt::Display, child: &Value| {
        let is_container = child.is_object() || child.is_array();
        let checked = if is_container {
            check_depth(child, depth + 1)
        } else {
            Ok(())
        };
        checked.map_err(|error| error.below(&[&key.to_string()]))
    };
    match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .try_for_each(|(key, child)| check_child(&key, child)),
        Value::Object(map) => map
            .iter()
            .try_for_each(|(key, child)| check_child(key, child)),
        _ => Ok(()),
    }
}

/// Drops a value of any depth; the usual way recurses, and may overflow the stack.
pub(super) fn dismantle(value: Value) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(list) => pending.extend(list),
            Value::Object(map) => pending.extend(map.into_iter().map(|(_, child)| child)),
            _ => {}
        }
    }
}

/// A URI fragment with its `%XX` escapes decoded, if that gives UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(code.unwrap_or(b'%'));
        decoded.extend(part.bytes().skip(if code.is_some() { 2 } else { 0 }));
    }
    String::from_utf8(decoded).ok()
}

/// How much work a text is: as much as any value, and more if it is long.
pub(super) fn weight(text: &str) -> usize {
    1 + text.len() / 64
}

/// Whether two values are equal as JSON.
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
