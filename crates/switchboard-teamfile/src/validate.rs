//! Whether a file has the form that the schema describes.
//!
//! The schema is our own and uses a part of JSON Schema; this knows that part, and says what is wrong
//! in the words of the file. A test holds it against a validator of all of JSON Schema.

mod fitting;
mod place;

use serde_json::{Map, Value};

pub(crate) use fitting::fitting;
use place::Place;

use crate::document::{Entry, Kind, Node};
use crate::problem::{Problem, Problems, Source};
use crate::schema::SCHEMA;
use crate::suggest::{closest, listed};

/// Adds a problem for everything in which the file has not the form of a schema of ours.
pub(crate) fn check(root: &Node, schema: &Value, problems: &mut Problems) {
    let source = problems.source().clone();
    let mut found = Vec::new();
    Checker { source: &source }.check(root, Place::top(schema), &mut found);
    for problem in found {
        problems.add(problem);
    }
}

struct Checker<'s> {
    source: &'s Source,
}

impl Checker<'_> {
    fn check(&self, node: &Node, place: Place<'_>, found: &mut Vec<Problem>) {
        let place = place.resolved();
        let forms = place.forms();
        let fitting: Vec<Place<'_>> = forms
            .iter()
            .copied()
            .filter(|form| is_of_type(node, form))
            .collect();
        match fitting.as_slice() {
            [] => found.push(self.wrong_type(node, place, &forms)),
            [one] => self.check_one(node, *one, found),
            several => self.check_several(node, place, several, found),
        }
    }

    /// Of several forms of one type: any that fits, or else what is wrong with the likeliest.
    fn check_several(
        &self,
        node: &Node,
        place: Place<'_>,
        forms: &[Place<'_>],
        found: &mut Vec<Problem>,
    ) {
        if matches!(node.kind, Kind::Text(_)) {
            // Texts are told apart by what may be written.
            let all: Vec<&str> = forms.iter().flat_map(choices).collect();
            // A form that names none takes any.
            if forms.iter().all(|form| !choices(form).is_empty()) {
                self.check_choice(node, place, &all, found);
            }
            return;
        }
        let mut likeliest: Option<(usize, Vec<Problem>)> = None;
        for form in forms {
            let mut wrong = Vec::new();
            self.check_one(node, *form, &mut wrong);
            if wrong.is_empty() {
                return;
            }
            let known = |entry: &&Entry| {
                form.properties()
                    .is_some_and(|properties| properties.contains_key(&entry.name))
            };
            let fields = node.entries().iter().filter(known).count();
            if likeliest.as_ref().is_none_or(|(most, _)| fields > *most) {
                likeliest = Some((fields, wrong));
            }
        }
        match likeliest {
            Some((0, _)) => found.push(self.none_of(node, place, forms)),
            Some((_, wrong)) => found.extend(wrong),
            None => {}
        }
    }

    fn check_one(&self, node: &Node, place: Place<'_>, found: &mut Vec<Problem>) {
        match &node.kind {
            Kind::Table(entries) => self.check_table(node, entries, place, found),
            Kind::List(items) => {
                if let Some(schema) = place.schema.get("items") {
                    for item in items {
                        self.check(item, place.to(schema, None), found);
                    }
                }
            }
            Kind::Text(_) => {
                let choices = choices(&place);
                if !choices.is_empty() {
                    self.check_choice(node, place, &choices, found);
                }
            }
            Kind::Number(number) => self.check_bounds(node, number.as_f64(), place, found),
            Kind::Null | Kind::Bool(_) => {}
        }
    }

    fn check_table(
        &self,
        node: &Node,
        entries: &[Entry],
        place: Place<'_>,
        found: &mut Vec<Problem>,
    ) {
        let none = Map::new();
        let properties = place.properties().unwrap_or(&none);
        for entry in entries {
            match (
                properties.get(&entry.name),
                place.schema.get("additionalProperties"),
            ) {
                (Some(schema), _) => self.check(&entry.value, place.to(schema, Some(entry)), found),
                (None, Some(Value::Bool(false))) => {
                    found.push(self.unknown_field(entry, place, properties));
                }
                (None, Some(schema @ Value::Object(_))) => {
                    self.check(&entry.value, place.to(schema, Some(entry)), found);
                }
                (None, _) => {}
            }
        }
        // A field that was misspelt is missing too, and that is one mistake.
        let unknown = entries
            .iter()
            .filter(|entry| !properties.contains_key(&entry.name));
        let meant: Vec<&str> = unknown
            .filter_map(|entry| closest(&entry.name, properties.keys().map(String::as_str)))
            .collect();
        let required = place.schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if node.field(name).is_none() && !meant.contains(&name) {
                found.push(self.missing(node, name, place, properties));
            }
        }
    }

    fn unknown_field(
        &self,
        entry: &Entry,
        place: Place<'_>,
        properties: &Map<String, Value>,
    ) -> Problem {
        let known = || properties.keys().map(String::as_str);
        let message = format!(
            "{} has no field {:?}",
            with_article(place.called),
            entry.name
        );
        let near = closest(&entry.name, known());
        let problem = self
            .source
            .problem("unknown-field", entry.name_span.clone(), message)
            .suggestion(near.map(|near| format!("did you mean {near:?}?")));
        match near.and_then(|near| properties[near]["description"].as_str()) {
            Some(described) => problem.help(format!(
                "{near}: {described}",
                near = near.unwrap_or_default()
            )),
            None if is_of_agent(&entry.name) && place.called != "agent" => problem.help(
                "it is a field of an agent: write it above the tables that belong to the agent",
            ),
            None => problem.help(format!("its fields are {}", listed(known()))),
        }
    }

    fn missing(
        &self,
        node: &Node,
        name: &str,
        place: Place<'_>,
        properties: &Map<String, Value>,
    ) -> Problem {
        let span = match place.field {
            Some(entry) if entry.value.span == node.span => entry.name_span.clone(),
            _ => node.span.clone(),
        };
        let message = format!("{} needs {name:?}", with_article(place.called));
        let problem = self.source.problem("missing-field", span, message);
        match properties
            .get(name)
            .and_then(|field| field["description"].as_str())
        {
            Some(described) => problem.help(format!("{name}: {described}")),
            None => problem,
        }
    }

    fn check_choice(
        &self,
        node: &Node,
        place: Place<'_>,
        choices: &[&str],
        found: &mut Vec<Problem>,
    ) {
        let Kind::Text(text) = &node.kind else { return };
        if choices.contains(&text.as_str()) {
            return;
        }
        let near = closest(text, choices.iter().copied());
        let message = format!("there is no {} {text:?}", place.called);
        let mut help = format!("there are {}", listed(choices.iter().copied()));
        let tables: Vec<String> = place.forms().iter().filter_map(table_form).collect();
        if !tables.is_empty() {
            help.push_str(&format!("; and as tables {}", tables.join(", ")));
        }
        found.push(
            self.source
                .problem("unknown-choice", node.span.clone(), message)
                .suggestion(near.map(|near| format!("did you mean {near:?}?")))
                .help(help),
        );
    }

    /// A table that is none of the tables it could be.
    fn none_of(&self, node: &Node, place: Place<'_>, forms: &[Place<'_>]) -> Problem {
        let known = || forms.iter().filter_map(Place::properties);
        let known = || known().flat_map(|properties| properties.keys().map(String::as_str));
        let tables: Vec<String> = forms.iter().filter_map(table_form).collect();
        let first = node.entries().first();
        let span = first.map_or_else(|| node.span.clone(), |entry| entry.name_span.clone());
        let message = match first {
            Some(entry) => format!(
                "{} has no field {:?}",
                with_article(place.called),
                entry.name
            ),
            None => format!("{} cannot be empty", with_article(place.called)),
        };
        let near = first.and_then(|entry| closest(&entry.name, known()));
        self.source
            .problem("unknown-field", span, message)
            .suggestion(near.map(|near| format!("did you mean {near:?}?")))
            .help(format!("it is one of {}", tables.join(", ")))
    }

    fn wrong_type(&self, node: &Node, place: Place<'_>, forms: &[Place<'_>]) -> Problem {
        let mut expected: Vec<&str> = Vec::new();
        for kind in forms.iter().flat_map(Place::types) {
            let word = type_word(kind);
            if kind != "null" && !expected.contains(&word) {
                expected.push(word);
            }
        }
        let expected = match expected.as_slice() {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            [one] => (*one).to_owned(),
            _ => "something else".to_owned(),
        };
        let what = match place.field {
            Some(entry) if entry.value.span == node.span => format!("{:?}", entry.name),
            Some(entry) => format!("what is in {:?}", entry.name),
            None => with_article(place.called),
        };
        let message = format!("{what} must be {expected}, and this is {}", kind_word(node));
        let problem = self
            .source
            .problem("wrong-type", node.span.clone(), message);
        let described = place.schema["description"].as_str();
        match (place.called, described) {
            ("variable", _) => problem.help("write { env = \"NAME\" }: keys stay out of files"),
            ("command", _) => problem.help("write it as in command.run = [\"date\", \"+%s\"]"),
            ("http call", _) => problem.help("write it as in http.url = \"https://…\""),
            ("knowledge", _) => {
                problem.help("write { title = \"…\", text = \"…\" } or { file = \"faq.md\" }")
            }
            ("agent", _) => problem.help("write it as in [agents.Billing]"),
            (_, Some(described)) => problem.help(described.to_owned()),
            (_, None) => problem,
        }
    }

    fn check_bounds(
        &self,
        node: &Node,
        number: Option<f64>,
        place: Place<'_>,
        found: &mut Vec<Problem>,
    ) {
        let bound = |key: &str| place.schema.get(key).and_then(Value::as_f64);
        let greatest = bound("maximum");
        let number = number.unwrap_or(f64::MAX);
        let wrong = match (bound("minimum"), bound("exclusiveMinimum"), greatest) {
            (Some(least), ..) if number < least => format!("at least {least}"),
            (_, Some(limit), _) if number <= limit => format!("more than {limit}"),
            (.., Some(greatest)) if number > greatest => format!("at most {greatest}"),
            _ => return,
        };
        let what = match place.field {
            Some(entry) => format!("{:?}", entry.name),
            None => "this".to_owned(),
        };
        let message = format!("{what} must be {wrong}");
        found.push(
            self.source
                .problem("out-of-range", node.span.clone(), message),
        );
    }
}

/// The texts that a form allows, if it names them.
fn choices<'a>(form: &Place<'a>) -> Vec<&'a str> {
    let one = form.schema.get("const").and_then(Value::as_str);
    let several = form.schema.get("enum").and_then(Value::as_array);
    let several = several.into_iter().flatten().filter_map(Value::as_str);
    one.into_iter().chain(several).collect()
}

/// `{ keep_last = … }`, for a form that is a table with required fields.
fn table_form(form: &Place<'_>) -> Option<String> {
    let required = form.schema.get("required")?.as_array()?;
    let fields: Vec<String> = required
        .iter()
        .filter_map(Value::as_str)
        .map(|name| format!("{name} = …"))
        .collect();
    Some(format!("{{ {} }}", fields.join(", ")))
}

fn is_of_type(node: &Node, place: &Place<'_>) -> bool {
    let types = place.types();
    types.is_empty()
        || types.iter().any(|kind| match &node.kind {
            Kind::Null => *kind == "null",
            Kind::Bool(_) => *kind == "boolean",
            Kind::Number(number) => {
                // 3.0 is a whole number to JSON Schema.
                let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
                *kind == "number" || *kind == "integer" && is_whole
            }
            Kind::Text(_) => *kind == "string",
            Kind::List(_) => *kind == "array",
            Kind::Table(_) => *kind == "object",
        })
}

fn type_word(kind: &str) -> &str {
    match kind {
        "string" => "text in quotes",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

fn kind_word(node: &Node) -> &'static str {
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

/// Whether an agent has a field of this name.
fn is_of_agent(name: &str) -> bool {
    SCHEMA["$defs"]["agent"]["properties"].get(name).is_some()
}
