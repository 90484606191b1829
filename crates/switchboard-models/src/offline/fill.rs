//! Filling a JSON schema from what the user said.

use serde_json::{Map, Value};

use super::fields::{Source, minimal_choice};
use super::text::Language;

/// How deep a schema is followed, and how many of its parts are looked at.
const DEEPEST: usize = 8;
const MOST_PARTS: usize = 500;

/// What a value is made for, which decides what becomes of a part that the text does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A tool's arguments: the user is asked.
    Tool,
    /// A handoff's payload: the smallest value that will do, so that the handoff is not lost.
    Handoff,
    /// An answer: the field says that it is not known.
    Answer,
}

/// A value made from a schema.
#[derive(Debug, PartialEq)]
pub(super) struct Filled {
    pub(super) value: Value,
    /// What was required and not found, in the words to ask for it.
    pub(super) missing: Vec<String>,
    /// How many parts the text gave.
    pub(super) found: usize,
}

/// Fills a schema.
pub(super) fn fill(schema: &str, source: &Source<'_>, purpose: Purpose) -> Filled {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut filler = Filler {
        root: &root,
        source,
        purpose,
        used: Vec::new(),
        missing: Vec::new(),
        found: 0,
        parts: 0,
    };
    let value = match resolve(&root, &root) {
        schema if is_object(schema) => filler.object(schema, 0),
        schema => filler
            .value("response", schema, 0)
            .unwrap_or_else(|| filler.minimal(schema, 0)),
    };
    Filled {
        value,
        missing: filler.missing,
        found: filler.found,
    }
}

/// Whether a tool with this schema must be told something.
pub(super) fn has_required(schema: &str) -> bool {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    schema["required"]
        .as_array()
        .is_some_and(|names| !names.is_empty())
}

struct Filler<'a> {
    root: &'a Value,
    source: &'a Source<'a>,
    purpose: Purpose,
    /// The facts that have gone into a field, so that the next gets another.
    used: Vec<usize>,
    missing: Vec<String>,
    found: usize,
    parts: usize,
}

impl<'a> Filler<'a> {
    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let properties = schema["properties"].as_object();
        for (name, part) in properties.into_iter().flatten() {
            let part = resolve(self.root, part);
            let is_required = requires(schema, name);
            let lacked = self.missing.len();
            let value = match self.value(name, part, depth + 1) {
                // Half an object that nobody asked for is worse than none.
                Some(_) if !is_required && self.missing.len() > lacked => {
                    self.missing.truncate(lacked);
                    None
                }
                value => value,
            };
            match value {
                Some(value) => {
                    self.found += 1;
                    fields.insert(name.clone(), value);
                }
                None if is_required => {
                    let value = self.without(name, part, depth);
                    fields.insert(name.clone(), value);
                }
                None => {}
            }
        }
        Value::Object(fields)
    }

    /// The value of a required part that the text does not give.
    fn without(&mut self, name: &str, part: &Value, depth: usize) -> Value {
        if let Some(default) = part.get("default") {
            return default.clone();
        }
        if is_nullable(part) {
            return Value::Null;
        }
        // What nobody mentions is not wanted: no reason to ask.
        if self.purpose == Purpose::Tool && part["type"] != "boolean" {
            self.missing.push(label(name, part, self.source.language));
        }
        self.minimal(part, depth)
    }

    fn value(&mut self, name: &str, schema: &'a Value, depth: usize) -> Option<Value> {
        self.parts += 1;
        if depth > DEEPEST || self.parts > MOST_PARTS {
            return None;
        }
        if let Some(constant) = schema.get("const") {
            return Some(constant.clone());
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return self.source.choice(&choices);
        }
        if let Some(alternatives) = alternatives(schema) {
            let mut alternatives = alternatives.iter().map(|part| resolve(self.root, part));
            return alternatives.find_map(|part| self.value(name, part, depth + 1));
        }
        let about = schema["description"].as_str().unwrap_or_default();
        match type_of(schema) {
            "object" => Some(self.object(schema, depth)),
            "array" => self.array(name, resolve(self.root, &schema["items"]), depth),
            "string" => {
                let is_answer = self.purpose == Purpose::Answer;
                self.source
                    .string(name, about, is_answer, &mut self.used)
                    .map(Value::from)
            }
            kind @ ("integer" | "number") => {
                let number = self.source.number(name, about, schema, &mut self.used)?;
                Some(match kind {
                    "integer" => Value::from(number as i64),
                    _ => Value::from(number),
                })
            }
            "boolean" => self.source.boolean(name, about).map(Value::from),
            _ => None,
        }
    }

    fn array(&mut self, name: &str, items: &'a Value, depth: usize) -> Option<Value> {
        let choices = choices(items);
        let values = match choices.is_empty() {
            false => self.source.mentioned(&choices),
            true if matches!(type_of(items), "string" | "integer" | "number") => {
                let mut values = Vec::new();
                while let Some(value) = self.value(name, items, depth + 1) {
                    // Free text is the same each time.
                    if values.contains(&value) {
                        break;
                    }
                    values.push(value);
                }
                values
            }
            true => Vec::new(),
        };
        (!values.is_empty()).then_some(Value::Array(values))
    }

    /// The smallest value a schema takes.
    fn minimal(&self, schema: &Value, depth: usize) -> Value {
        if let Some(constant) = schema.get("const").or_else(|| schema.get("default")) {
            return constant.clone();
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return minimal_choice(&choices);
        }
        if is_nullable(schema) || depth > DEEPEST {
            return Value::Null;
        }
        if let Some(first) = alternatives(schema).and_then(|all| all.first()) {
            return self.minimal(resolve(self.root, first), depth + 1);
        }
        match type_of(schema) {
            "object" => self.minimal_object(schema, depth),
            "array" => {
                let item = resolve(self.root, &schema["items"]);
                let fewest = schema["minItems"].as_u64().unwrap_or(0).min(10);
                (0..fewest).map(|_| self.minimal(item, depth + 1)).collect()
            }
            "string" => Value::from(self.minimal_text(schema)),
            "integer" => Value::from(smallest(schema) as i64),
            "number" => Value::from(smallest(schema)),
            "boolean" => Value::from(false),
            _ => Value::Null,
        }
    }

    fn minimal_object(&self, schema: &Value, depth: usize) -> Value {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let required = properties.filter(|(name, _)| requires(schema, name));
        let fields = required.map(|(name, part)| {
            (
                name.clone(),
                self.minimal(resolve(self.root, part), depth + 1),
            )
        });
        Value::Object(fields.collect())
    }

    fn minimal_text(&self, schema: &Value) -> &str {
        let must_say = schema["minLength"].as_u64().unwrap_or(0) > 0;
        match (self.purpose, self.source.language) {
            (Purpose::Answer, Language::English) => "not known (offline model)",
            (Purpose::Answer, Language::Chinese) => "未知（离线模型）",
            _ if must_say => "unknown",
            _ => "",
        }
    }
}

/// What to call a part when asking for it: its description where it is short and in the user's
/// language, otherwise its name.
pub(super) fn label(name: &str, schema: &Value, language: Language) -> String {
    let about = schema["description"].as_str().unwrap_or_default();
    let first = about
        .split(['.', '。', '\n'])
        .next()
        .unwrap_or_default()
        .trim();
    let fits = !first.is_empty() && first.chars().count() <= 60 && Language::of(first) == language;
    match fits && language == Language::Chinese {
        true => first.to_owned(),
        false => super::fields::words_of(name).join(" "),
    }
}

/// The schema that a reference leads to.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEEPEST {
        // A single `allOf` is how some writers add words to a reference.
        let only = schema["allOf"].as_array().filter(|all| all.len() == 1);
        let next = match (schema["$ref"].as_str(), only) {
            (Some(path), _) => path.strip_prefix('#').and_then(|path| root.pointer(path)),
            (None, Some(all)) => all.first(),
            (None, None) => None,
        };
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn requires(schema: &Value, name: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|known| known == name))
}

fn is_object(schema: &Value) -> bool {
    type_of(schema) == "object"
}

fn type_of(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(name) => name,
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema["properties"].is_object() => "object",
        _ => "",
    }
}

fn is_nullable(schema: &Value) -> bool {
    let is_null = |part: &Value| part["type"] == "null";
    schema["type"] == "null"
        || schema["type"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == "null"))
        || all_alternatives(schema).is_some_and(|all| all.iter().any(is_null))
}

fn all_alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["anyOf"]
        .as_array()
        .or_else(|| schema["oneOf"].as_array())
}

fn alternatives(schema: &Value) -> Option<&[Value]> {
    all_alternatives(schema)
        .map(Vec::as_slice)
        .filter(|all| !all.is_empty())
}

/// The values a schema allows, where it lists them.
fn choices(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().take(MOST_PARTS).cloned().collect();
    }
    let parts = all_alternatives(schema).into_iter().flatten();
    let constants: Option<Vec<Value>> = parts.map(|part| part.get("const").cloned()).collect();
    constants.unwrap_or_default()
}

fn smallest(schema: &Value) -> f64 {
    let least = schema["minimum"].as_f64();
    let above = schema["exclusiveMinimum"]
        .as_f64()
        .map(|bound| bound.floor() + 1.0);
    let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    least.or(above).unwrap_or(0.0).max(0.0).min(most)
}
