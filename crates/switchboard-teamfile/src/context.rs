//! The application's values that conditions and tools read.

use std::fmt;

use serde_json::{Map, Value};

use crate::suggest::{did_you_mean, quoted_list};

/// The application's values: the file's `[context]` with those that were set since. Conditions and
/// tools read them; models never see them.
#[derive(Clone, Default, PartialEq)]
pub struct Context(Map<String, Value>);

impl Context {
    pub(crate) fn new(values: Map<String, Value>) -> Self {
        Self(values)
    }

    /// Returns the value at a path; `customer.tier` is a field of a table.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    /// Replaces a value of the file by one of the same type.
    ///
    /// # Errors
    /// If the file has no such value, or one of another type.
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Result<Self, String> {
        let value = value.into();
        let current = self.get_mut(path)?;
        let same_type = std::mem::discriminant(current) == std::mem::discriminant(&value);
        if !same_type && !current.is_null() {
            return Err(format!(
                "{path:?} is {current} in the file, and {value} is of another type"
            ));
        }
        *current = value;
        Ok(self)
    }

    /// Replaces a value of the file by one in text, parsed by the type of the current value.
    ///
    /// # Errors
    /// If the file has no such value, or the text is not of its type.
    pub fn parse_value(mut self, path: &str, text: &str) -> Result<Self, String> {
        self.set(path, text)?;
        Ok(self)
    }

    /// The values that are not tables, with their paths: `customer.tier`.
    pub fn values(&self) -> Vec<(String, Value)> {
        let values = flatten(&self.0).into_iter();
        values.map(|(path, value)| (path, value.clone())).collect()
    }

    /// The message, suggestion and help for a path that does not exist.
    pub(crate) fn unknown_path(&self, path: &str) -> (String, Option<String>, String) {
        let mut paths: Vec<String> = flatten(&self.0).into_iter().map(|(path, _)| path).collect();
        paths.sort();
        let known = || paths.iter().map(String::as_str);
        (
            format!("the context has no {path:?}"),
            did_you_mean(path, known()),
            if paths.is_empty() {
                "[context] is where values and their defaults are written".to_owned()
            } else {
                format!("[context] has {}", quoted_list(known()))
            },
        )
    }

    /// Sets a value of the file from text, parsed by the type of the current value.
    pub(crate) fn set(&mut self, path: &str, text: &str) -> Result<(), String> {
        let current = self.get_mut(path)?;
        let parsed: Result<Value, &str> = match current {
            Value::String(_) => Ok(text.into()),
            Value::Bool(_) => text
                .parse::<bool>()
                .map(Value::from)
                .map_err(|_| "true or false"),
            Value::Number(_) => match serde_json::from_str(text) {
                Ok(number @ Value::Number(_)) => Ok(number),
                _ => Err("a number"),
            },
            Value::Array(_) => match serde_json::from_str(text) {
                Ok(list @ Value::Array(_)) => Ok(list),
                _ => Err("a list, as in [\"a\", \"b\"]"),
            },
            Value::Object(_) => Err("set by its fields, as in customer.tier=gold"),
            Value::Null => Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
        };
        *current =
            parsed.map_err(|expected| format!("{path:?} must be {expected}, and is {text:?}"))?;
        Ok(())
    }

    fn get_mut(&mut self, path: &str) -> Result<&mut Value, String> {
        if self.get(path).is_none() {
            let (message, suggestion, help) = self.unknown_path(path);
            let suggestion = suggestion.map(|text| format!(": {text}"));
            return Err(format!(
                "{message}{}; {help}",
                suggestion.unwrap_or_default()
            ));
        }
        let mut parts = path.split('.');
        let first = self.0.get_mut(parts.next().unwrap_or_default());
        let value =
            first.and_then(|first| parts.try_fold(first, |value, part| value.get_mut(part)));
        value.ok_or_else(|| format!("the context has no {path:?}"))
    }
}

/// Lists the values of a table that are not tables, with their paths: `customer.tier`.
pub(crate) fn flatten(table: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut values = Vec::new();
    for (name, value) in table {
        match value {
            Value::Object(fields) => {
                let nested = flatten(fields).into_iter();
                values.extend(nested.map(|(path, value)| (format!("{name}.{path}"), value)));
            }
            value => values.push((name.clone(), value)),
        }
    }
    values
}

/// Omits the values, which may be secrets that tools send.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_set_by_the_type_of_their_defaults() {
        let Value::Object(values) = json!({
            "tier": "free", "age": 0, "banned": false, "tags": [], "customer": { "id": "none" }
        }) else {
            panic!()
        };
        let mut context = Context::new(values);
        for (path, text) in [
            ("tier", "5"),
            ("age", "41"),
            ("banned", "true"),
            ("tags", r#"["new"]"#),
            ("customer.id", "C-1"),
        ] {
            context.set(path, text).unwrap();
        }
        let expected = json!({
            "tier": "5", "age": 41, "banned": true, "tags": ["new"], "customer": { "id": "C-1" }
        });
        assert_eq!(Value::Object(context.0.clone()), expected);
        for (path, text, message) in [
            ("age", "old", r#""age" must be a number, and is "old""#),
            (
                "banned",
                "yes",
                r#""banned" must be true or false, and is "yes""#,
            ),
            (
                "customer",
                "x",
                r#""customer" must be set by its fields, as in customer.tier=gold, and is "x""#,
            ),
            (
                "teir",
                "x",
                r#"the context has no "teir": did you mean "tier"?; [context] has "age", "banned", "customer.id", "tags" and "tier""#,
            ),
        ] {
            assert_eq!(context.set(path, text).unwrap_err(), message);
        }
        assert_eq!(Value::Object(context.0), expected);
    }
}
