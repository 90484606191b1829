//! The schemas of arguments and payloads.

use serde_json::{Map, Value};

use super::Planner;
use crate::document::{Step, way};
use crate::suggest::{closest, listed};
use crate::types::SchemaShape;

/// What a schema of an object may have at its top.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "strict",
    "then",
    "title",
    "type",
    "unevaluatedProperties",
    "writeOnly",
];

impl Planner<'_> {
    /// The schema at the end of a way, of an object that has no fields but those it describes.
    pub(super) fn schema(
        &mut self,
        at: &[Step<'_>],
        shape: Option<&SchemaShape>,
    ) -> Option<Map<String, Value>> {
        let (mut schema, file) = match shape? {
            SchemaShape::Inline(schema) => (schema.clone(), None),
            SchemaShape::File(file) => {
                let read = self.files.table(&file.file);
                let read = self.named(&[at, way!["file"]].concat(), read)?;
                (read, Some(file.file.as_str()))
            }
        };
        let place = match file {
            Some(_) => [at, way!["file"]].concat(),
            None => at.to_vec(),
        };
        schema.entry("type").or_insert_with(|| "object".into());
        let is_sound = self.check_schema(&place, file, &schema);
        if !is_sound {
            return None;
        }
        // A schema that names fields has no others: a model adds no fields of its own to what a server or a colleague is sent.
        let says_more = [
            "additionalProperties",
            "patternProperties",
            "unevaluatedProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "$ref",
        ];
        let has_more = says_more
            .iter()
            .any(|keyword| schema.contains_key(*keyword));
        if schema.contains_key("properties") && !has_more {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        Some(schema)
    }

    /// Whether a schema can be used; what is wrong with it is noted.
    fn check_schema(
        &mut self,
        at: &[Step<'_>],
        file: Option<&str>,
        schema: &Map<String, Value>,
    ) -> bool {
        let told = |message: String| match file {
            Some(file) => format!("{file}: {message}"),
            None => message,
        };
        let before = self.problems.count();
        if schema["type"] != "object" {
            let problem = self.problem(
                "bad-schema",
                at,
                told("the schema must be one of an object".into()),
            );
            let problem = problem.help("write type = \"object\", and what it holds as properties");
            self.problems.add(problem);
        }
        for name in schema
            .keys()
            .filter(|name| !KEYWORDS.contains(&name.as_str()))
        {
            let way = match file {
                Some(_) => at.to_vec(),
                None => [at, way![name]].concat(),
            };
            let message = told(format!("{name:?} means nothing in a schema"));
            let near = closest(name, KEYWORDS.iter().copied().chain(["file"]));
            let problem = self.problem_of_name("bad-schema", &way, message);
            let problem = problem.suggestion(near.map(|near| format!("did you mean {near:?}?")));
            let help = format!(
                "fields go under properties, as in properties = {{ {name} = {{ type = \"string\" }} }}"
            );
            self.problems.add(problem.help(help));
        }
        if let Err(error) = jsonschema::meta::validate(&Value::Object(schema.clone())) {
            let pointer = error.instance_path().as_str().to_owned();
            let steps: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
            let mut way = at.to_vec();
            if file.is_none() {
                way.extend(steps.iter().map(|step| match step.parse::<usize>() {
                    Ok(item) => Step::Item(item),
                    Err(_) => Step::Field(step),
                }));
            }
            let place = match file {
                Some(_) => format!(" at {pointer}"),
                None => String::new(),
            };
            let message = told(format!("this is not a schema{place}: {error}"));
            let problem = self.problem("bad-schema", &way, message);
            let problem = match steps.last().map(String::as_str) {
                Some("required") => problem.help("write required = [\"name\"] beside properties"),
                Some("type") => problem.help(
                    "types are \"string\", \"integer\", \"number\", \"boolean\", \"array\" and \"object\"",
                ),
                _ => problem,
            };
            self.problems.add(problem);
        }
        self.check_required(at, file, schema);
        self.problems.count() == before
    }

    /// Fields that are required and not described are mostly misspelt.
    fn check_required(&mut self, at: &[Step<'_>], file: Option<&str>, schema: &Map<String, Value>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        let required = schema.get("required").and_then(Value::as_array);
        for (number, name) in required.into_iter().flatten().enumerate() {
            let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) else {
                continue;
            };
            let way = match file {
                Some(_) => at.to_vec(),
                None => [at, way!["required", number]].concat(),
            };
            let known = || properties.keys().map(String::as_str);
            let near = closest(name, known());
            let problem = self.problem(
                "bad-schema",
                &way,
                format!("no property is called {name:?}"),
            );
            let problem = problem.suggestion(near.map(|near| format!("did you mean {near:?}?")));
            self.problems
                .add(problem.help(format!("properties are {}", listed(known()))));
        }
    }
}

/// A step of a JSON pointer.
fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
