//! Checks strict schemas: objects are closed and every property is required.

use serde_json::Value;

use crate::error::Problem;

/// Checks the parameters of a strict function.
pub(super) fn function(name: &str, schema: &Value, param: String) -> Result<(), Problem> {
    check_root(schema).map_err(|problem| {
        let message = format!("Invalid schema for function '{name}': {problem}");
        Problem::new("invalid_function_parameters", param, message)
    })
}

/// Checks a strict output format, which has a `name` and a `schema`.
pub(super) fn output(format: &Value, param: &str) -> Result<(), Problem> {
    check_root(&format["schema"]).map_err(|problem| {
        let name = format["name"].as_str().unwrap_or_default();
        let message = format!("Invalid schema for response_format '{name}': {problem}");
        Problem::new("invalid_json_schema", param.to_owned(), message)
    })
}

fn check_root(schema: &Value) -> Result<(), String> {
    if schema["type"] != "object" {
        return Err("schema must be a JSON Schema of 'type: \"object\"'.".to_owned());
    }
    check_schema(schema, &mut Vec::new())
}

fn check_schema<'a>(schema: &'a Value, path: &mut Vec<&'a str>) -> Result<(), String> {
    if is_object(schema) {
        check_object(schema)
            .map_err(|problem| format!("In context=({}), {problem}", path.join(", ")))?;
    }
    for field in ["properties", "$defs", "definitions"] {
        for (name, inner) in schema[field].as_object().into_iter().flatten() {
            path.extend([field, name]);
            check_schema(inner, path)?;
            path.truncate(path.len() - 2);
        }
    }
    let lists = ["anyOf", "oneOf", "allOf", "prefixItems"].into_iter();
    let inner = lists.flat_map(|field| {
        let alternatives = schema[field].as_array().into_iter().flatten();
        alternatives.map(move |inner| (field, inner))
    });
    let items = schema.get("items").map(|items| ("items", items));
    for (field, inner) in inner.chain(items) {
        path.push(field);
        check_schema(inner, path)?;
        path.pop();
    }
    Ok(())
}

fn is_object(schema: &Value) -> bool {
    let kind = &schema["type"];
    let has_object = |kinds: &Vec<Value>| kinds.iter().any(|kind| kind == "object");
    kind == "object" || kind.as_array().is_some_and(has_object) || schema["properties"].is_object()
}

fn check_object(schema: &Value) -> Result<(), String> {
    if schema["additionalProperties"] != false {
        return Err(
            "'additionalProperties' is required to be supplied and to be false.".to_owned(),
        );
    }
    let required = super::list(schema, "required");
    let mut names = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name);
    match names.find(|name| !required.iter().any(|required| *required == name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!(
            "'required' is required to be supplied and to be an array including every key in \
             properties. Missing '{name}'."
        )),
    }
}
