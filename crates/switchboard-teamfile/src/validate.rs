//! Validates a file against its JSON Schema.
//!
//! The schema is generated from our own types and uses a part of JSON Schema only. A validator for
//! that part can give each problem a position and a message in terms of the file; a test compares it
//! with a complete JSON Schema validator.

mod schema_node;
mod valid_parts;

use serde_json::{Map, Value};

use schema_node::SchemaNode;
pub(crate) use valid_parts::valid_parts;

use crate::diagnostics::{Problem, Problems, Source};
use crate::document::{Entry, Kind, Node};
use crate::schema::SCHEMA;
use crate::suggest::{closest, did_you_mean, quoted_list};

/// Adds a problem for every violation of the schema.
pub(crate) fn validate(root: &Node, schema: &Value, problems: &mut Problems) {
    for problem in violations(root, SchemaNode::root(schema), problems.source()) {
        problems.add(problem);
    }
}

fn violations(node: &Node, schema: SchemaNode<'_>, source: &Source) -> Vec<Problem> {
    let mut validator = Validator {
        source,
        found: Vec::new(),
    };
    validator.check(node, schema);
    validator.found
}

struct Validator<'s> {
    source: &'s Source,
    found: Vec<Problem>,
}

impl Validator<'_> {
    fn check(&mut self, node: &Node, schema: SchemaNode<'_>) {
        let schema = schema.dereferenced();
        let variants = schema.variants();
        let of_type: Vec<SchemaNode<'_>> = variants
            .iter()
            .copied()
            .filter(|variant| has_type(node, variant))
            .collect();
        match of_type.as_slice() {
            [] => self.found.push(self.wrong_type(node, schema, &variants)),
            [one] => self.check_variant(node, *one),
            several => self.check_variants(node, schema, several),
        }
    }

    /// Checks a value against several variants of one type. If none matches, reports the problems of
    /// the variant that knows most of the value's fields.
    fn check_variants(&mut self, node: &Node, schema: SchemaNode<'_>, variants: &[SchemaNode<'_>]) {
        if matches!(node.kind, Kind::Text(_)) {
            let choices: Vec<&str> = variants.iter().flat_map(SchemaNode::choices).collect();
            // A variant without choices accepts any text.
            if variants.iter().all(|variant| !variant.choices().is_empty()) {
                self.check_choice(node, schema, &choices);
            }
            return;
        }
        let mut best: Option<(usize, Vec<Problem>)> = None;
        for variant in variants {
            let before = self.found.len();
            self.check_variant(node, *variant);
            let problems = self.found.split_off(before);
            if problems.is_empty() {
                return;
            }
            let is_known = |entry: &&Entry| {
                let properties = variant.properties();
                properties.is_some_and(|properties| properties.contains_key(&entry.name))
            };
            let known = node.entries().iter().filter(is_known).count();
            if best.as_ref().is_none_or(|(most, _)| known > *most) {
                best = Some((known, problems));
            }
        }
        match best {
            Some((0, _)) => self.found.push(self.no_variant(node, schema, variants)),
            Some((_, problems)) => self.found.extend(problems),
            None => {}
        }
    }

    fn check_variant(&mut self, node: &Node, schema: SchemaNode<'_>) {
        match &node.kind {
            Kind::Table(entries) => self.check_table(node, entries, schema),
            Kind::List(items) => {
                if let Some(of_item) = schema.get("items") {
                    for item in items {
                        self.check(item, schema.child(of_item, None));
                    }
                }
            }
            Kind::Text(_) => {
                let choices = schema.choices();
                if !choices.is_empty() {
                    self.check_choice(node, schema, &choices);
                }
            }
            Kind::Number(number) => self.check_bounds(node, number.as_f64(), schema),
            Kind::Null | Kind::Bool(_) => {}
        }
    }

    fn check_table(&mut self, node: &Node, entries: &[Entry], schema: SchemaNode<'_>) {
        let no_properties = Map::new();
        let properties = schema.properties().unwrap_or(&no_properties);
        for entry in entries {
            let additional = schema.get("additionalProperties");
            match (properties.get(&entry.name), additional) {
                (Some(of_field), _) | (None, Some(of_field @ Value::Object(_))) => {
                    self.check(&entry.value, schema.child(of_field, Some(entry)));
                }
                (None, Some(Value::Bool(false))) => {
                    self.found
                        .push(self.unknown_field(entry, schema, properties));
                }
                (None, _) => {}
            }
        }
        // A misspelt field is reported as unknown, not as missing too.
        let misspelt: Vec<&str> = entries
            .iter()
            .filter(|entry| !properties.contains_key(&entry.name))
            .filter_map(|entry| closest(&entry.name, properties.keys().map(String::as_str)))
            .collect();
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if node.field(name).is_none() && !misspelt.contains(&name) {
                self.found
                    .push(self.missing_field(node, name, schema, properties));
            }
        }
    }

    fn unknown_field(
        &self,
        entry: &Entry,
        schema: SchemaNode<'_>,
        properties: &Map<String, Value>,
    ) -> Problem {
        let known = || properties.keys().map(String::as_str);
        let message = no_field(schema, entry);
        let problem = self
            .source
            .problem("unknown-field", entry.name_span.clone(), message)
            .suggestion(did_you_mean(&entry.name, known()));
        let described = closest(&entry.name, known())
            .and_then(|name| Some((name, properties[name]["description"].as_str()?)));
        match described {
            Some((name, description)) => problem.help(format!("{name}: {description}")),
            None if is_agent_field(&entry.name) && schema.type_name != "agent" => problem.help(
                "it is a field of an agent: write it above the tables that belong to the agent",
            ),
            None => problem.help(format!("its fields are {}", quoted_list(known()))),
        }
    }

    fn missing_field(
        &self,
        node: &Node,
        name: &str,
        schema: SchemaNode<'_>,
        properties: &Map<String, Value>,
    ) -> Problem {
        let span = match schema.field {
            Some(entry) if entry.value.span == node.span => entry.name_span.clone(),
            _ => node.span.clone(),
        };
        let message = format!("{} needs {name:?}", with_article(schema.type_name));
        let problem = self.source.problem("missing-field", span, message);
        let field = properties.get(name);
        match field.and_then(|field| field["description"].as_str()) {
            Some(description) => problem.help(format!("{name}: {description}")),
            None => problem,
        }
    }

    fn check_choice(&mut self, node: &Node, schema: SchemaNode<'_>, choices: &[&str]) {
        let Kind::Text(text) = &node.kind else { return };
        if choices.contains(&text.as_str()) {
            return;
        }
        let message = format!("there is no {} {text:?}", schema.type_name);
        let mut help = format!("there are {}", quoted_list(choices.iter().copied()));
        let tables = table_examples(&schema.variants());
        if !tables.is_empty() {
            help.push_str(&format!("; and as tables {tables}"));
        }
        self.found.push(
            self.source
                .problem("unknown-choice", node.span.clone(), message)
                .suggestion(did_you_mean(text, choices.iter().copied()))
                .help(help),
        );
    }

    /// The problem of a table that has no field of any variant.
    fn no_variant(
        &self,
        node: &Node,
        schema: SchemaNode<'_>,
        variants: &[SchemaNode<'_>],
    ) -> Problem {
        let known = variants.iter().filter_map(SchemaNode::properties);
        let known = known.flat_map(|properties| properties.keys().map(String::as_str));
        let (span, message, suggestion) = match node.entries().first() {
            Some(entry) => (
                &entry.name_span,
                no_field(schema, entry),
                did_you_mean(&entry.name, known),
            ),
            None => {
                let message = format!("{} cannot be empty", with_article(schema.type_name));
                (&node.span, message, None)
            }
        };
        self.source
            .problem("unknown-field", span.clone(), message)
            .suggestion(suggestion)
            .help(format!("it is one of {}", table_examples(variants)))
    }

    fn wrong_type(
        &self,
        node: &Node,
        schema: SchemaNode<'_>,
        variants: &[SchemaNode<'_>],
    ) -> Problem {
        let mut expected: Vec<&str> = Vec::new();
        for json_type in variants.iter().flat_map(SchemaNode::types) {
            let description = describe_type(json_type);
            if json_type != "null" && !expected.contains(&description) {
                expected.push(description);
            }
        }
        let expected = match expected.as_slice() {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            [one] => (*one).to_owned(),
            _ => "something else".to_owned(),
        };
        let subject = match schema.field {
            Some(entry) if entry.value.span == node.span => format!("{:?}", entry.name),
            Some(entry) => format!("an entry of {:?}", entry.name),
            None => with_article(schema.type_name),
        };
        let message = format!(
            "{subject} must be {expected}, and this is {}",
            describe_kind(node)
        );
        let problem = self
            .source
            .problem("wrong-type", node.span.clone(), message);
        // A field of a type has the type's name as well.
        let definition = &schema.root["$defs"][schema.type_name];
        let type_name = if std::ptr::eq(schema.schema, definition) {
            schema.type_name
        } else {
            ""
        };
        let help = match type_name {
            "variable" => "write { env = \"NAME\" }: keys stay out of files",
            "command" => "write it as in command.run = [\"date\", \"+%s\"]",
            "http call" => "write it as in http.url = \"https://…\"",
            "knowledge" => "write { title = \"…\", text = \"…\" } or { file = \"faq.md\" }",
            "agent" => "write it as in [agents.Billing]",
            _ => match schema.schema["description"].as_str() {
                Some(description) => description,
                None => return problem,
            },
        };
        problem.help(help)
    }

    fn check_bounds(&mut self, node: &Node, number: Option<f64>, schema: SchemaNode<'_>) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let bounds = (
            bound("minimum"),
            bound("exclusiveMinimum"),
            bound("maximum"),
        );
        let number = number.unwrap_or(f64::MAX);
        let expected = match bounds {
            (Some(minimum), ..) if number < minimum => format!("at least {minimum}"),
            (_, Some(limit), _) if number <= limit => format!("more than {limit}"),
            (.., Some(maximum)) if number > maximum => format!("at most {maximum}"),
            _ => return,
        };
        let subject = match schema.field {
            Some(entry) => format!("{:?}", entry.name),
            None => "this".to_owned(),
        };
        let message = format!("{subject} must be {expected}");
        let problem = self
            .source
            .problem("out-of-range", node.span.clone(), message);
        self.found.push(problem);
    }
}

fn no_field(schema: SchemaNode<'_>, entry: &Entry) -> String {
    let table = with_article(schema.type_name);
    format!("{table} has no field {:?}", entry.name)
}

/// `{ keep_last = … }, { note = … }`, for the variants that are tables with required fields.
fn table_examples(variants: &[SchemaNode<'_>]) -> String {
    let example = |variant: &SchemaNode<'_>| {
        let required = variant.get("required")?.as_array()?;
        let fields: Vec<String> = required
            .iter()
            .filter_map(Value::as_str)
            .map(|name| format!("{name} = …"))
            .collect();
        Some(format!("{{ {} }}", fields.join(", ")))
    };
    let examples: Vec<String> = variants.iter().filter_map(example).collect();
    examples.join(", ")
}

fn has_type(node: &Node, schema: &SchemaNode<'_>) -> bool {
    let types = schema.types();
    types.is_empty()
        || types.iter().any(|json_type| match &node.kind {
            Kind::Null => *json_type == "null",
            Kind::Bool(_) => *json_type == "boolean",
            Kind::Number(number) => {
                // 3.0 is an integer in JSON Schema.
                let is_integer = number.as_f64().is_some_and(|number| number.fract() == 0.0);
                *json_type == "number" || *json_type == "integer" && is_integer
            }
            Kind::Text(_) => *json_type == "string",
            Kind::List(_) => *json_type == "array",
            Kind::Table(_) => *json_type == "object",
        })
}

fn describe_type(json_type: &str) -> &str {
    match json_type {
        "string" => "text in quotes",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

fn describe_kind(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Null => "null",
        Kind::Bool(_) => "true or false",
        Kind::Number(number) if number.is_f64() => "a number with a fraction",
        Kind::Number(_) => "a number",
        Kind::Text(_) => "text",
        Kind::List(_) => "a list",
        Kind::Table(_) => "a table",
    }
}

fn with_article(name: &str) -> String {
    match name {
        "records" | "knowledge" | "settings" | "run settings" | "text" => name.to_owned(),
        _ if name.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn is_agent_field(name: &str) -> bool {
    SCHEMA["$defs"]["agent"]["properties"].get(name).is_some()
}
