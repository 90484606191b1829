//! Values for a JSON schema, filled from what the user wrote.

use serde_json::{Map, Value};

use crate::choices::neutral;
use crate::extractor::Extractor;
use crate::language::Language;
use crate::schema::{
    MAX_DEPTH, MAX_SUBSCHEMAS, alternatives, choices, is_nullable, is_object, requires, resolve,
    smallest, type_of,
};
use crate::text::identifier_words;

/// The purpose of a value, which decides about required properties that the text does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Arguments of a tool: the user is asked for them.
    Tool,
    /// Payload of a handoff: the user is asked once for numbers, as zero would say something. The others get
    /// a minimal value, so that the handoff can take place.
    Handoff,
    /// Structured output: they say that the value is not known.
    Answer,
}

/// A value for a schema.
#[derive(Debug, PartialEq)]
pub(crate) struct Filled {
    pub(crate) value: Value,
    /// Labels of the required properties that the text does not give, to ask for them.
    pub(crate) missing: Vec<String>,
    /// The number of properties that the text gave.
    pub(crate) found: usize,
}

/// Creates a value for a schema.
pub(crate) fn fill_schema(schema: &str, extractor: &Extractor<'_>, purpose: Purpose) -> Filled {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut filler = Filler {
        root: &root,
        extractor,
        purpose,
        used: Vec::new(),
        missing: Vec::new(),
        found: 0,
        is_optional: false,
        subschemas: 0,
    };
    let value = match resolve(&root, &root) {
        schema if is_object(schema) => filler.object(schema, 0),
        schema => filler
            .value("response", schema, 0)
            .unwrap_or_else(|| filler.minimal(schema, 0)),
    };
    // Arguments are an object, even if the schema is invalid.
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
    extractor: &'a Extractor<'a>,
    purpose: Purpose,
    /// The positions of entities that are in use, so that the next field gets another.
    used: Vec<usize>,
    missing: Vec<String>,
    found: usize,
    /// Set within an optional property.
    is_optional: bool,
    /// The number of subschemas read, to bound the work.
    subschemas: usize,
}

impl<'a> Filler<'a> {
    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            let property = resolve(self.root, property);
            let is_required = requires(schema, name);
            let missing_before = self.missing.len();
            let was_optional = self.is_optional;
            self.is_optional |= !is_required;
            let mut value = self.value(name, property, depth + 1);
            self.is_optional = was_optional;
            // An optional object is left out rather than asking for the rest of it.
            if value.is_some() && !is_required && self.missing.len() > missing_before {
                self.missing.truncate(missing_before);
                value = None;
            }
            if value.is_some() {
                self.found += 1;
            } else if is_required {
                value = Some(self.fallback(name, property, depth));
            }
            fields.extend(value.map(|value| (name.clone(), value)));
        }
        Value::Object(fields)
    }

    /// Returns the value of a required property that the text does not give.
    fn fallback(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        if let Some(default) = schema.get("default") {
            return default.clone();
        }
        if is_nullable(schema) {
            return Value::Null;
        }
        // A flag that the user does not mention is taken to be off.
        let is_asked_for = match self.purpose {
            Purpose::Tool => schema["type"] != "boolean",
            Purpose::Handoff => {
                let description = schema["description"].as_str().unwrap_or_default();
                matches!(type_of(schema), "integer" | "number")
                    && !self.extractor.was_asked(name, description)
            }
            Purpose::Answer => false,
        };
        if is_asked_for {
            self.missing
                .push(label(name, schema, self.extractor.language));
        }
        self.minimal(schema, depth)
    }

    /// Returns the value that the text gives for a schema.
    fn value(&mut self, name: &str, schema: &'a Value, depth: usize) -> Option<Value> {
        self.subschemas += 1;
        if depth > MAX_DEPTH || self.subschemas > MAX_SUBSCHEMAS {
            return None;
        }
        if let Some(constant) = schema.get("const") {
            return Some(constant.clone());
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return self.extractor.choice(&choices);
        }
        if let Some(alternatives) = alternatives(schema) {
            return alternatives.iter().find_map(|alternative| {
                self.value(name, resolve(self.root, alternative), depth + 1)
            });
        }
        let description = schema["description"].as_str().unwrap_or_default();
        match type_of(schema) {
            "object" => Some(self.object(schema, depth)),
            "array" => self.array(name, resolve(self.root, &schema["items"]), depth),
            "string" => self
                .extractor
                .string(name, description, &mut self.used)
                .map(Value::from),
            "integer" => self
                .extractor
                .number(name, schema, self.is_optional, &mut self.used)
                .map(|number| Value::from(number as i64)),
            "number" => self
                .extractor
                .number(name, schema, self.is_optional, &mut self.used)
                .map(Value::from),
            "boolean" => self.extractor.boolean(name, description).map(Value::from),
            _ => None,
        }
    }

    fn array(&mut self, name: &str, items: &'a Value, depth: usize) -> Option<Value> {
        let choices = choices(items);
        let mut values = Vec::new();
        if !choices.is_empty() {
            values = self.extractor.choices(&choices);
        } else if matches!(type_of(items), "string" | "integer" | "number") {
            // A repeated value ends the loop: only entities are used up, free text is not.
            while let Some(value) = self.value(name, items, depth + 1)
                && !values.contains(&value)
            {
                values.push(value);
            }
        }
        (!values.is_empty()).then_some(Value::Array(values))
    }

    /// Returns a minimal value that a schema allows.
    fn minimal(&mut self, schema: &Value, depth: usize) -> Value {
        self.subschemas += 1;
        if let Some(constant) = schema.get("const").or_else(|| schema.get("default")) {
            return constant.clone();
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return neutral(&choices);
        }
        if is_nullable(schema) || depth > MAX_DEPTH || self.subschemas > 2 * MAX_SUBSCHEMAS {
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
        let fields =
            properties
                .filter(|(name, _)| requires(schema, name))
                .map(|(name, property)| {
                    let property = resolve(self.root, property);
                    (name.clone(), self.minimal(property, depth + 1))
                });
        Value::Object(fields.collect())
    }

    fn minimal_text(&self, schema: &Value) -> &str {
        let may_not_be_empty = schema["minLength"].as_u64().unwrap_or(0) > 0;
        match (self.purpose, self.extractor.language) {
            (Purpose::Answer, Language::English) => "not known",
            (Purpose::Answer, Language::Chinese) => "未知",
            _ if may_not_be_empty => "unknown",
            _ => "",
        }
    }
}

/// Returns the label of a property in a question to the user: its name, or in Chinese the first
/// sentence of its description if that is Chinese and short.
fn label(name: &str, schema: &Value, language: Language) -> String {
    let description = schema["description"].as_str().unwrap_or_default();
    let first = description
        .split(['.', '。', '\n'])
        .next()
        .unwrap_or_default()
        .trim();
    let is_short = !first.is_empty() && first.chars().count() <= 60;
    if is_short && language == Language::Chinese && Language::of(first) == language {
        first.to_owned()
    } else {
        identifier_words(name).join(" ")
    }
}
