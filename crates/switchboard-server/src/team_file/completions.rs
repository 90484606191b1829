//! Completions in a team file in TOML, from its schema and its own names.

use serde_json::Value;
use switchboard_teamfile::TeamFile;

use crate::team_source::{Completion, Completions};

/// The completions at a place: names of fields at the beginning of a line or in a header, values behind `=`.
pub(super) fn at(text: &str, line: usize, column: usize) -> Completions {
    let lines: Vec<&str> = text.lines().collect();
    let current = line.checked_sub(1).and_then(|at| lines.get(at).copied());
    let before: String = current
        .unwrap_or_default()
        .chars()
        .take(column.saturating_sub(1))
        .collect();
    let schema = Schema(TeamFile::schema());
    let found = match before.trim_start() {
        header if header.starts_with('[') => in_header(&schema, header, text),
        field => match field.split_once('=') {
            None => in_table(&schema, &table_before(&lines, line), field),
            Some((name, value)) => {
                let mut path = table_before(&lines, line);
                path.extend(keys(name));
                in_value(&schema, &path, value, text)
            }
        },
    };
    let (typed, items) = found;
    Completions {
        start_column: column.saturating_sub(typed.chars().count()).max(1),
        items,
    }
}

/// The path of the table that a line is in.
fn table_before(lines: &[&str], line: usize) -> Vec<String> {
    let above = lines.iter().take(line.saturating_sub(1)).rev();
    let mut headers = above
        .map(|line| line.trim())
        .filter(|line| line.starts_with('['));
    headers.next().map(header_path).unwrap_or_default()
}

fn header_path(header: &str) -> Vec<String> {
    let inside = header.trim_start_matches('[');
    let end = inside.find(']').unwrap_or(inside.len());
    keys(&inside[..end])
}

/// The keys of a dotted path, without quotes.
fn keys(path: &str) -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut quote = None;
    for character in path.trim().chars() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, '.') => keys.push(String::new()),
            (None, blank) if blank.is_whitespace() => {}
            (_, other) => {
                if let Some(last) = keys.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    keys
}

/// The end of a text that is being typed: what follows the last character that is part of no word.
fn typed(text: &str) -> &str {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, character)| is_word(*character))
        .last();
    start.map_or("", |(at, _)| &text[at..])
}

type Found<'a> = (&'a str, Vec<Completion>);

/// The names of tables in a header that is being typed.
fn in_header<'a>(schema: &Schema, header: &'a str, text: &str) -> Found<'a> {
    let inside = header.trim_start_matches('[');
    if inside.contains(']') {
        return ("", Vec::new());
    }
    let typed = typed(inside);
    let mut path = keys(inside);
    path.pop();
    let Some(node) = schema.at(&path) else {
        return (typed, Vec::new());
    };
    let mut items = Vec::new();
    for (name, field) in schema.fields(node) {
        if matches_typed(name, typed) && schema.is_table(field) {
            items.push(schema.completion(name, name.to_owned(), field));
        }
    }
    if path.is_empty() {
        return (typed, items);
    }
    for name in names(text, &path) {
        if matches_typed(&name, typed) {
            items.push(plain(&name, "name"));
        }
    }
    (typed, items)
}

/// The names of fields of a table.
fn in_table<'a>(schema: &Schema, path: &[String], field: &'a str) -> Found<'a> {
    let typed = typed(field);
    let mut path = path.to_vec();
    let mut given = keys(field);
    given.pop();
    path.extend(given);
    let Some(node) = schema.at(&path) else {
        return (typed, Vec::new());
    };
    let fields = schema.fields(node);
    let fields = fields
        .into_iter()
        .filter(|(name, _)| matches_typed(name, typed));
    let items = fields.map(|(name, field)| {
        let insert = format!("{name} = {}", schema.opening(field));
        schema.completion(name, insert, field)
    });
    (typed, items.collect())
}

/// The values of a field.
fn in_value<'a>(schema: &Schema, path: &[String], value: &'a str, text: &str) -> Found<'a> {
    let is_quoted = value.matches('"').count() % 2 == 1;
    let start = value.rfind('"').map_or(0, |at| at + 1);
    let typed = if is_quoted {
        &value[start..]
    } else {
        typed(value)
    };
    let quoted = |name: &str| {
        if is_quoted {
            name.to_owned()
        } else {
            format!("\"{name}\"")
        }
    };
    let field = path.last().map(String::as_str).unwrap_or_default();
    let references: &[&str] = match field {
        "handoffs" | "start" | "to" | "agent" => &["agents"],
        "tools" => &["tools"],
        "model" => &["models"],
        "guardrails" | "input_guardrails" | "output_guardrails" => &["guardrails"],
        _ => &[],
    };
    let mut items = Vec::new();
    for table in references {
        for name in names(text, &[(*table).to_owned()]) {
            if matches_typed(&name, typed) {
                let insert = quoted(&name);
                items.push(Completion {
                    insert,
                    ..plain(&name, table)
                });
            }
        }
    }
    if let Some(node) = schema.at(path) {
        for value in schema.values(node) {
            if let Some(name) = value.as_str()
                && matches_typed(name, typed)
            {
                let insert = quoted(name);
                items.push(Completion {
                    insert,
                    ..plain(name, "value")
                });
            } else if value.is_boolean() && !is_quoted {
                items.push(plain(&value.to_string(), "boolean"));
            }
        }
    }
    (typed, items)
}

fn plain(name: &str, detail: &str) -> Completion {
    Completion {
        label: name.to_owned(),
        insert: name.to_owned(),
        detail: detail.to_owned(),
        documentation: None,
    }
}

/// The names of the tables that a file has inside of a table, in its order.
fn names(text: &str, path: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        if !line.starts_with('[') {
            continue;
        }
        let header = header_path(line);
        if header.len() > path.len()
            && header.starts_with(path)
            && !names.contains(&header[path.len()])
        {
            names.push(header[path.len()].clone());
        }
    }
    names
}

fn matches_typed(name: &str, typed: &str) -> bool {
    name.to_lowercase().starts_with(&typed.to_lowercase())
}

/// A JSON Schema, as the types of team files make it.
struct Schema<'a>(&'a Value);

impl<'a> Schema<'a> {
    /// Follows references.
    fn resolved(&self, mut node: &'a Value) -> &'a Value {
        for _ in 0..16 {
            let Some(reference) = node["$ref"].as_str() else {
                break;
            };
            let pointer = reference.trim_start_matches('#');
            match self.0.pointer(pointer) {
                Some(found) => node = found,
                None => break,
            }
        }
        node
    }

    /// The node and its alternatives.
    fn variants(&self, node: &'a Value) -> Vec<&'a Value> {
        let node = self.resolved(node);
        let mut variants = vec![node];
        for word in ["anyOf", "oneOf", "allOf"] {
            if let Some(others) = node[word].as_array() {
                variants.extend(others.iter().map(|other| self.resolved(other)));
            }
        }
        variants
    }

    /// The node at a path of names; items of lists have no name of their own.
    fn at(&self, path: &[String]) -> Option<&'a Value> {
        path.iter()
            .try_fold(self.0, |node, name| self.child(node, name))
    }

    fn child(&self, node: &'a Value, name: &str) -> Option<&'a Value> {
        for variant in self.variants(node) {
            if let Some(field) = variant["properties"].get(name) {
                return Some(field);
            }
            if variant["additionalProperties"].is_object() {
                return Some(&variant["additionalProperties"]);
            }
            if variant["items"].is_object()
                && let Some(field) = self.child(&variant["items"], name)
            {
                return Some(field);
            }
        }
        None
    }

    /// The fields of a table, or of the tables in a list.
    fn fields(&self, node: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let mut fields = Vec::new();
        for variant in self.variants(node) {
            if let Some(properties) = variant["properties"].as_object() {
                fields.extend(
                    properties
                        .iter()
                        .map(|(name, field)| (name.as_str(), field)),
                );
            }
            if variant["items"].is_object() {
                fields.extend(self.fields(&variant["items"]));
            }
        }
        fields.sort_unstable_by_key(|(name, _)| *name);
        fields.dedup_by_key(|(name, _)| *name);
        fields
    }

    /// The values that a node lists.
    fn values(&self, node: &'a Value) -> Vec<Value> {
        let mut values = Vec::new();
        for variant in self.variants(node) {
            values.extend(variant["enum"].as_array().into_iter().flatten().cloned());
            values.extend(variant.get("const").cloned());
            if variant["type"] == "boolean" {
                values.extend([true.into(), false.into()]);
            }
            if variant["items"].is_object() {
                values.extend(self.values(&variant["items"]));
            }
        }
        values
    }

    fn kind(&self, node: &'a Value) -> &'a str {
        let mut variants = self.variants(node).into_iter();
        let kind = variants.find_map(|variant| variant["type"].as_str());
        kind.unwrap_or("value")
    }

    /// Returns `true` if a header can name the node.
    fn is_table(&self, node: &'a Value) -> bool {
        let mut variants = self.variants(node).into_iter();
        variants.any(|variant| variant["type"] == "object" || variant["items"].is_object())
    }

    /// The beginning of a value of the node.
    fn opening(&self, node: &'a Value) -> &'static str {
        match self.kind(node) {
            "string" => "\"",
            "array" => "[",
            "object" => "{ ",
            _ => "",
        }
    }

    fn completion(&self, name: &str, insert: String, node: &'a Value) -> Completion {
        let own = node["description"].as_str();
        let description = own.or_else(|| self.resolved(node)["description"].as_str());
        Completion {
            label: name.to_owned(),
            insert,
            detail: self.kind(node).to_owned(),
            documentation: description.map(ToOwned::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[agents.Triage]\nhandoffs = [\"Billing\"]\n\n[agents.Billing]\n\n[agents.\"Second line\"]\n";

    /// The labels at the end of a text that is typed after [`FILE`].
    fn labels(typed: &str) -> (usize, Vec<String>) {
        let text = format!("{FILE}{typed}");
        let line = text.lines().count();
        let column = text
            .lines()
            .last()
            .map_or(1, |line| line.chars().count() + 1);
        let found = at(&text, line, column);
        let labels = found.items.into_iter().map(|item| item.label);
        (found.start_column, labels.collect())
    }

    #[test]
    fn fields_of_the_table_are_offered() {
        let (start, found) = labels("[agents.New]\nhand");
        assert_eq!((start, found), (1, vec!["handoffs".to_owned()]));
        let (_, all) = labels("[agents.New]\ndescription = \"x\"\n  i");
        assert!(all.contains(&"instructions".to_owned()), "{all:?}");
        assert!(all.iter().all(|name| name.starts_with('i')), "{all:?}");
    }

    #[test]
    fn the_names_of_agents_are_offered_where_they_belong() {
        let (start, found) = labels("[agents.New]\nhandoffs = [\"Bi");
        assert_eq!((start, found), (14, vec!["Billing".to_owned()]));
        let (_, found) = labels("[agents.New]\nhandoffs = [");
        assert_eq!(found, ["Triage", "Billing", "Second line", "New"]);
    }

    #[test]
    fn tables_are_offered_in_a_header() {
        let (start, found) = labels("[ag");
        assert_eq!((start, found), (2, vec!["agents".to_owned()]));
    }

    #[test]
    fn a_place_outside_of_the_text_has_no_completions_or_those_of_the_top() {
        let found = at("", 99, 99);
        assert!(found.items.iter().any(|item| item.label == "agents"));
        assert_eq!(at("x", 0, 0).start_column, 1);
    }
}
