//! Filling a JSON schema from what the user said.

use serde_json::{Map, Value};

use super::choices as allowed;
use super::fields::Source;
use super::schema::{
    DEEPEST, MOST_PARTS, alternatives, choices, is_nullable, is_object, requires, resolve,
    smallest, type_of,
};
use super::text::Language;

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
    // Arguments are an object, also where the schema cannot be read.
    let value = match value {
        Value::Object(_) => value,
        _ if purpose != Purpose::Answer => Value::Object(Map::new()),
        value => value,
    };
    Filled {
        value,
        missing: filler.missing,
        found: filler.found,
    }
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
    fn minimal(&mut self, schema: &Value, depth: usize) -> Value {
        self.parts += 1;
        if let Some(constant) = schema.get("const").or_else(|| schema.get("default")) {
            return constant.clone();
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return allowed::minimal(&choices);
        }
        if is_nullable(schema) || depth > DEEPEST || self.parts > 2 * MOST_PARTS {
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

    fn minimal_object(&mut self, schema: &Value, depth: usize) -> Value {
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
    if fits && language == Language::Chinese {
        first.to_owned()
    } else {
        super::fields::words_of(name).join(" ")
    }
}
