//! Resolves the JSON Schemas of arguments and payloads.

use serde_json::{Map, Value};

use super::Resolver;
use crate::document::{Step, steps};
use crate::suggest::{did_you_mean, quoted_list};
use crate::types::SchemaSpec;

/// The keywords that the schema of an object may have.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "$anchor", "$comment", "$defs", "$id", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const",
    "default", "definitions", "dependentRequired", "dependentSchemas", "deprecated", "description", "else", "enum",
    "examples", "if", "maxProperties", "minProperties", "not", "oneOf", "patternProperties", "properties",
    "propertyNames", "readOnly", "required", "strict", "then", "title", "type", "unevaluatedProperties", "writeOnly",
];

/// The keywords with which a schema decides about further properties itself.
#[rustfmt::skip]
const OPEN_KEYWORDS: [&str; 7] = [
    "additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref",
];

/// The position of a schema, for its problems.
#[derive(Clone, Copy)]
struct SchemaPosition<'a> {
    /// The path of the schema, or of the reference to its file.
    path: &'a [Step<'a>],
    file: Option<&'a str>,
}

impl<'a> SchemaPosition<'a> {
    /// The path of a part of the schema; that of the reference if the schema is in another file.
    fn at(self, path: &[Step<'a>]) -> Vec<Step<'a>> {
        match self.file {
            Some(_) => self.path.to_vec(),
            None => [self.path, path].concat(),
        }
    }

    fn message(self, message: String) -> String {
        match self.file {
            Some(file) => format!("{file}: {message}"),
            None => message,
        }
    }
}

impl Resolver<'_> {
    /// Resolves the schema of an object. If it lists properties, it allows no others.
    pub(super) fn schema(
        &mut self,
        path: &[Step<'_>],
        spec: Option<&SchemaSpec>,
    ) -> Option<Map<String, Value>> {
        let file_path = [path, steps!["file"]].concat();
        let (mut schema, position) = match spec? {
            SchemaSpec::Inline(schema) => (schema.clone(), SchemaPosition { path, file: None }),
            SchemaSpec::File(file) => {
                let content = self.files.read_table(file.reference());
                let position = SchemaPosition {
                    path: &file_path,
                    file: Some(&file.file),
                };
                (self.file_content(&file_path, content)?, position)
            }
        };
        schema.entry("type").or_insert_with(|| "object".into());
        if !self.is_schema_valid(position, &schema) {
            return None;
        }
        let is_open = OPEN_KEYWORDS.iter().any(|key| schema.contains_key(*key));
        if schema.contains_key("properties") && !is_open {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        Some(schema)
    }

    /// Reports the problems of a schema. Returns `true` if there are none.
    fn is_schema_valid(
        &mut self,
        position: SchemaPosition<'_>,
        schema: &Map<String, Value>,
    ) -> bool {
        let count_before = self.problems.count();
        if schema["type"] != "object" {
            let message = position.message("the schema must be that of an object".to_owned());
            let help = "write type = \"object\", and its fields under properties";
            self.report("bad-schema", position.path, message, help);
        }
        let is_unknown = |name: &&String| !KEYWORDS.contains(&name.as_str());
        for name in schema.keys().filter(is_unknown) {
            let message = position.message(format!("a schema has no keyword {name:?}"));
            let help = format!(
                "fields go under properties, as in properties = {{ {name} = {{ type = \"string\" }} }}"
            );
            let known = KEYWORDS.iter().copied().chain(["file"]);
            self.problems.add(
                self.name_problem("bad-schema", &position.at(steps![name]), message)
                    .suggestion(did_you_mean(name, known))
                    .help(help),
            );
        }
        if let Err(error) = jsonschema::meta::validate(&Value::Object(schema.clone())) {
            let pointer = error.instance_path().as_str().to_owned();
            let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
            let names: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
            let steps: Vec<Step<'_>> = names
                .iter()
                .map(|name| match name.parse() {
                    Ok(index) => Step::Item(index),
                    Err(_) => Step::Field(name),
                })
                .collect();
            let location = match position.file {
                Some(_) => format!(" at {pointer}"),
                None => String::new(),
            };
            let message = position.message(format!("this is not a schema{location}: {error}"));
            let problem = self.problem("bad-schema", &position.at(&steps), message);
            self.problems.add(match names.last().map(String::as_str) {
                Some("required") => problem.help("write required = [\"name\"] beside properties"),
                Some("type") => problem.help(
                    "types are \"string\", \"integer\", \"number\", \"boolean\", \"array\" and \"object\"",
                ),
                _ => problem,
            });
        }
        self.check_required(position, schema);
        if self.problems.count() == count_before
            && let Err(error) = switchboard_core::schema::check(&Value::Object(schema.clone()))
        {
            let help = "use fewer alternatives (anyOf, oneOf, allOf) inside each other";
            self.report("bad-schema", position.path, position.message(error), help);
        }
        self.problems.count() == count_before
    }

    /// Reports required properties that the schema does not describe: most are misspelt.
    fn check_required(&mut self, position: SchemaPosition<'_>, schema: &Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let (Some(properties), Some(required)) = (properties, required) else {
            return;
        };
        let known = || properties.keys().map(String::as_str);
        for (index, name) in required.iter().enumerate() {
            let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) else {
                continue;
            };
            let message = format!("there is no property {name:?}");
            self.problems.add(
                self.problem(
                    "bad-schema",
                    &position.at(steps!["required", index]),
                    message,
                )
                .suggestion(did_you_mean(name, known()))
                .help(format!("properties are {}", quoted_list(known()))),
            );
        }
    }
}
