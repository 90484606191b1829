//! What the application knows.

use std::fmt;

use serde_json::{Map, Value};

use crate::suggest::{did_you_mean, listed};

/// What the application knows: the file's `[context]`, and what was set over it. Conditions and tools
/// read it; models never see it.
#[derive(Clone, Default, PartialEq)]
pub struct Context(Map<String, Value>);

impl Context {
    pub(crate) fn new(values: Map<String, Value>) -> Self {
        Self(values)
    }

    /// The value of a key; `customer.tier` reaches into a table.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    /// The same with another value in a place that the file has, which must be of the same type.
    ///
    /// # Errors
    /// Where the file has no such value, or one of another type.
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Result<Self, String> {
        let value = value.into();
        let current = self.get(path).ok_or_else(|| self.none(path))?;
        let ptr_eq = std::mem::discriminant(current) == std::mem::discriminant(&value);
        if !ptr_eq && !current.is_null() {
            return Err(format!(
                "{path:?} is {current} in the file, and {value} is of another type"
            ));
        }
        self.put(path, value);
        Ok(self)
    }

    /// Every path that leads to a value which is not a table.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let top = self.0.iter().map(|(name, value)| (name.clone(), value));
        let mut open: Vec<(String, &Value)> = top.collect();
        while let Some((path, value)) = open.pop() {
            match value {
                Value::Object(fields) => {
                    let below = fields.iter();
                    open.extend(below.map(|(name, value)| (format!("{path}.{name}"), value)));
                }
                _ => paths.push(path),
            }
        }
        paths.sort();
        paths
    }

    /// What to say where there is no such path.
    pub(crate) fn no_such(&self, path: &str) -> (String, Option<String>, String) {
        let paths = self.paths();
        let known = || paths.iter().map(String::as_str);
        (
            format!("the context has no {path:?}"),
            did_you_mean(path, known()),
            if paths.is_empty() {
                "[context] is where values and their defaults are written".to_owned()
            } else {
                format!("[context] has {}", listed(known()))
            },
        )
    }

    /// Sets a value over the file's; text is read by the type of what the file has.
    pub(crate) fn set(&mut self, path: &str, text: &str) -> Result<(), String> {
        let value = self.get(path).ok_or_else(|| self.none(path))?;
        let read: Result<Value, &str> = match value {
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
        let read = read.map_err(|wanted| format!("{path:?} must be {wanted}, and is {text:?}"))?;
        self.put(path, read);
        Ok(())
    }

    fn none(&self, path: &str) -> String {
        let (message, suggestion, help) = self.no_such(path);
        let suggestion = suggestion.map(|text| format!(": {text}"));
        format!("{message}{}; {help}", suggestion.unwrap_or_default())
    }

    fn put(&mut self, path: &str, value: Value) {
        let mut parts = path.split('.');
        let mut at = parts.next().and_then(|first| self.0.get_mut(first));
        for part in parts {
            at = at.and_then(|value| value.get_mut(part));
        }
        if let Some(at) = at {
            *at = value;
        }
    }
}

/// Without its values, which may be secrets that tools send.
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
        for (path, text, wrong) in [
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
            assert_eq!(context.set(path, text).unwrap_err(), wrong);
        }
        assert_eq!(Value::Object(context.0), expected);
    }
}
