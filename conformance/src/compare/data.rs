//! Compares JSON values: strictly, or by the lenient rule for most of a run.

use serde_json::{Number, Value};

use super::difference::{Check, Difference};
use super::schema;

/// Compares strictly: keys have no order and `1` equals `1.0`, but nothing else is ignored.
pub(super) fn plain(expected: &Value, got: &Value) -> Check {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (name, expected) in expected {
                got.get(name)
                    .map_or_else(
                        || Err(Difference::missing(expected)),
                        |got| plain(expected, got),
                    )
                    .map_err(|difference| difference.in_field(name))?;
            }
            match got.iter().find(|(name, _)| !expected.contains_key(*name)) {
                Some((name, got)) => Err(Difference::unexpected(got).in_field(name)),
                None => Ok(()),
            }
        }
        (Value::Array(_), Value::Array(_)) => elements(expected, got, plain),
        _ => scalars(expected, got),
    }
}

/// Stands for an identifier that the library made up.
const MADE_UP: &str = "<made up>";

/// Compares leniently: absent equals null, and texts that are JSON or nested history are parsed.
pub(super) fn data(expected: &Value, got: &Value) -> Check {
    match (expected, got) {
        (Value::Object(_), Value::Object(_)) => {
            fields(expected, got, |_, expected, got| data(expected, got))
        }
        (Value::Array(_), Value::Array(_)) => elements(expected, got, data),
        (Value::String(expected), Value::String(got)) => texts(expected, got),
        _ => scalars(expected, got),
    }
}

/// Compares leniently, with the schemas of handoffs, tools and outputs as schemas. For model requests.
pub(super) fn data_with_schemas(expected: &Value, got: &Value) -> Check {
    match (expected, got) {
        (Value::Object(_), Value::Object(_)) => {
            fields(expected, got, |name, expected, got| match name {
                "input_json_schema" | "parameters" | "json_schema" => schema::schema(expected, got),
                _ => data_with_schemas(expected, got),
            })
        }
        (Value::Array(_), Value::Array(_)) => elements(expected, got, data_with_schemas),
        _ => data(expected, got),
    }
}

/// Compares two objects field by field. A missing field is null.
pub(super) fn fields(
    expected: &Value,
    got: &Value,
    compare: impl Fn(&str, &Value, &Value) -> Check,
) -> Check {
    let (Value::Object(expected), Value::Object(got)) = (expected, got) else {
        return Err(Difference::of_values(expected, got));
    };
    let only_got = got.keys().filter(|name| !expected.contains_key(*name));
    for name in expected.keys().chain(only_got) {
        let expected = expected.get(name).unwrap_or(&Value::Null);
        let got = got.get(name).unwrap_or(&Value::Null);
        compare(name, expected, got).map_err(|difference| difference.in_field(name))?;
    }
    Ok(())
}

/// Compares two lists element by element.
pub(super) fn elements(
    expected: &Value,
    got: &Value,
    compare: impl Fn(&Value, &Value) -> Check,
) -> Check {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return Err(Difference::of_values(expected, got));
    };
    for index in 0..expected.len().max(got.len()) {
        pair(expected.get(index), got.get(index), &compare)
            .map_err(|difference| difference.in_element(index))?;
    }
    Ok(())
}

/// Compares two elements, of which one may be missing.
pub(super) fn pair(
    expected: Option<&Value>,
    got: Option<&Value>,
    compare: impl Fn(&Value, &Value) -> Check,
) -> Check {
    match (expected, got) {
        (Some(expected), Some(got)) => compare(expected, got),
        (Some(expected), None) => Err(Difference::missing(expected)),
        (None, Some(got)) => Err(Difference::unexpected(got)),
        (None, None) => Ok(()),
    }
}

fn scalars(expected: &Value, got: &Value) -> Check {
    let same = match (expected, got) {
        (Value::Number(expected), Value::Number(got)) => same_number(expected, got),
        _ => expected == got,
    };
    if same {
        return Ok(());
    }
    Err(Difference::of_values(expected, got))
}

/// Compares integers exactly, and an integer with a float as floats.
fn same_number(expected: &Number, got: &Number) -> bool {
    let has_float = expected.is_f64() || got.is_f64();
    expected == got || (has_float && expected.as_f64() == got.as_f64())
}

/// Compares two texts: byte for byte, then as JSON, then as text with fenced blocks, then as nested
/// history.
fn texts(expected: &str, got: &str) -> Check {
    if expected == got || (expected == MADE_UP && !got.is_empty()) {
        return Ok(());
    }
    if let (Some(expected), Some(got)) = (parse_json(expected), parse_json(got)) {
        return data(&expected, &got).map_err(Difference::in_json_text);
    }
    if let (Some(expected), Some(got)) = (fenced_parts(expected), fenced_parts(got)) {
        return fenced(&expected, &got);
    }
    if let (Some(expected), Some(got)) = (history_lines(expected), history_lines(got)) {
        return histories(&expected, &got);
    }
    Err(Difference::of_texts(expected, got))
}

/// Parses a text that is a JSON object or list.
fn parse_json(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Splits a text at the fences of its blocks: every second part is the content of a block. Returns
/// `None` if there is no block.
fn fenced_parts(text: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = text.split("```").collect();
    (parts.len() > 1 && parts.len() % 2 == 1).then_some(parts)
}

/// Compares texts with fenced blocks: blocks as JSON or as schemas, the rest byte for byte.
fn fenced(expected: &[&str], got: &[&str]) -> Check {
    for index in 0..expected.len().max(got.len()) {
        let (expected, got) = (expected.get(index).copied(), got.get(index).copied());
        let (expected, got) = (expected.unwrap_or_default(), got.unwrap_or_default());
        let is_block = index % 2 == 1;
        let compared = match (parse_json(expected), parse_json(got)) {
            (Some(expected), Some(got)) if is_block && is_schema(&expected) => {
                schema::schema(&expected, &got)
            }
            (Some(expected), Some(got)) if is_block => data(&expected, &got),
            _ if expected == got => Ok(()),
            _ => Err(Difference::of_texts(expected, got)),
        };
        compared.map_err(|difference| difference.in_field(&format!("(part {})", index + 1)))?;
    }
    Ok(())
}

fn is_schema(value: &Value) -> bool {
    value["properties"].is_object() && value["type"].is_string()
}

/// Splits a nested-history message into a heading, a start marker, records and an end marker. Users
/// choose the markers, so the message is recognized by its numbered records.
fn history_lines(text: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = text.split('\n').collect();
    let [_heading, _start, records @ .., _end] = lines.as_slice() else {
        return None;
    };
    let has_records = records.iter().any(|line| record(line).is_some());
    has_records.then_some(lines)
}

/// Splits a line like `3. user: Hello` into its number and its text.
fn record(line: &str) -> Option<(&str, &str)> {
    let (number, text) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.chars().all(char::is_numeric);
    is_number.then_some((number, text))
}

fn histories(expected: &[&str], got: &[&str]) -> Check {
    for index in 0..expected.len().max(got.len()) {
        history_line(expected.get(index), got.get(index))
            .map_err(|difference| difference.in_line(index))?;
    }
    Ok(())
}

fn history_line(expected: Option<&&str>, got: Option<&&str>) -> Check {
    match (expected, got) {
        (Some(expected), Some(got)) => match (record(expected), record(got)) {
            (Some((number, expected)), Some((same_number, got))) if number == same_number => {
                texts(expected, got)
            }
            _ => texts(expected, got),
        },
        (Some(expected), None) => Err(Difference::missing(&Value::from(*expected))),
        (None, Some(got)) => Err(Difference::unexpected(&Value::from(*got))),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HEAD: &str = "For context, here is the conversation so far between the user and the \
                        previous agent:";

    fn history(records: &str) -> String {
        format!("{HEAD}\n<CONVERSATION HISTORY>\n{records}\n</CONVERSATION HISTORY>")
    }

    fn path_of(check: Check) -> Option<String> {
        check.err().map(|difference| difference.path)
    }

    #[test]
    fn plain_ignores_key_order_and_the_format_of_numbers() {
        let expected = json!({"a": 1, "b": [1.5, {"c": 2.0}]});
        let got = json!({"b": [1.5, {"c": 2}], "a": 1.0});

        assert_eq!(plain(&expected, &got), Ok(()));
    }

    #[test]
    fn plain_distinguishes_absent_from_null() {
        let with_null = json!({"a": null});
        let without = json!({});

        assert_eq!(path_of(plain(&with_null, &without)).as_deref(), Some("a"));
        assert_eq!(path_of(plain(&without, &with_null)).as_deref(), Some("a"));
    }

    #[test]
    fn plain_does_not_parse_texts_as_json() {
        assert!(plain(&json!("{\"a\":1}"), &json!("{\"a\": 1}")).is_err());
    }

    #[test]
    fn large_whole_numbers_are_compared_exactly() {
        let expected = json!(9_007_199_254_740_993_u64);

        assert!(plain(&expected, &json!(9_007_199_254_740_992_u64)).is_err());
    }

    #[test]
    fn data_treats_absent_as_null() {
        let expected = json!({"a": null, "b": 1});
        let got = json!({"b": 1, "c": null});

        assert_eq!(data(&expected, &got), Ok(()));
        assert_eq!(
            path_of(data(&json!({}), &json!({"a": 0}))).as_deref(),
            Some("a")
        );
    }

    #[test]
    fn a_list_that_is_longer_or_shorter_differs_where_it_ends() {
        let short = json!([1]);
        let long = json!([1, null]);

        assert_eq!(path_of(data(&short, &long)).as_deref(), Some("[1]"));
        assert_eq!(path_of(data(&long, &short)).as_deref(), Some("[1]"));
    }

    #[test]
    fn texts_that_are_json_match_as_json_however_deep() {
        let expected = json!({"output": "{\"a\": \"[1, {\\\"b\\\": null}]\", \"c\": \"\\u6280\"}"});
        let got = json!({"output": "{\"c\":\"技\",\"a\":\"[1.0,{}]\"}"});

        assert_eq!(data(&expected, &got), Ok(()));
    }

    #[test]
    fn a_difference_inside_a_json_text_has_its_path() {
        let expected = json!({"arguments": "{\"q\": {\"id\": 1}}"});
        let got = json!({"arguments": "{\"q\": {\"id\": 2}}"});

        let path = path_of(data(&expected, &got));

        assert_eq!(path.as_deref(), Some("arguments(json).q.id"));
    }

    #[test]
    fn texts_that_are_json_scalars_are_not_parsed() {
        assert!(data(&json!("1"), &json!("1.0")).is_err());
    }

    #[test]
    fn history_matches_record_by_record() {
        let expected =
            history("1. user: Hi\n2. {\"id\": \"fc\", \"arguments\": \"{\\\"x\\\": 1}\"}");
        let got = history("1. user: Hi\n2. {\"arguments\":\"{\\\"x\\\":1}\",\"id\":\"fc\"}");

        assert_eq!(data(&json!(expected), &json!(got)), Ok(()));
    }

    #[test]
    fn history_with_custom_markers_matches() {
        let expected = json!("Head\n<<H\n1. {\"a\": 1, \"b\": 2}\nH>>");
        let got = json!("Head\n<<H\n1. {\"b\":2,\"a\":1}\nH>>");

        assert_eq!(data(&expected, &got), Ok(()));
    }

    #[test]
    fn history_inside_json_inside_a_record_matches() {
        let inner = |record: Value| history(&format!("1. {record}"));
        let outer = |content: String| {
            history(&format!(
                "1. {}",
                json!({"role": "assistant", "content": content})
            ))
        };
        let expected = outer(inner(json!({"a": 1, "b": 2})));
        let got = outer(inner(json!({"b": 2, "a": 1})));
        let other = outer(inner(json!({"b": 2, "a": 3})));

        assert_ne!(expected, got);
        assert_eq!(data(&json!(expected), &json!(got)), Ok(()));
        assert_eq!(
            path_of(data(&json!(expected), &json!(other))).as_deref(),
            Some("(line 3)(json).content(line 3)(json).a")
        );
    }

    #[test]
    fn history_with_another_number_head_marker_or_record_differs() {
        let expected = json!(history("1. user: Hi\n2. user: Ho"));
        let others = [
            history("1. user: Hi\n3. user: Ho"),
            history("1. user: Hi\n2. user: No"),
            history("1. user: Hi"),
            history("1. user: Hi\n2. user: Ho\n3. user: Hey"),
            history("1. user: Hi\n2. user: Ho").replace("For context", "In short"),
            history("1. user: Hi\n2. user: Ho").replace("<CONVERSATION", "<OTHER"),
            history("1. user: Hi\n2. user: Ho").replace("</CONVERSATION", "</OTHER"),
        ];

        for other in others {
            assert!(data(&expected, &json!(other)).is_err(), "{other}");
        }
    }

    #[test]
    fn a_number_before_equal_json_counts() {
        let expected = json!(history("1. {\"a\": 1}"));
        let got = json!(history("2. {\"a\": 1}"));

        assert_eq!(path_of(data(&expected, &got)).as_deref(), Some("(line 3)"));
    }

    #[test]
    fn schemas_in_model_requests_are_compared_as_schemas() {
        let expected = json!([{"handoffs": [{"input_json_schema": {"type": "string"}}]}]);
        let got = json!([{"handoffs": [{"input_json_schema": {"type": "string", "title": "T"}}]}]);

        assert!(data(&expected, &got).is_err());
        assert_eq!(data_with_schemas(&expected, &got), Ok(()));
    }
    #[test]
    fn an_identifier_that_was_made_up_matches_any_other() {
        let item = |id: Value| json!({"id": id, "type": "message"});
        let expected = item(json!("<made up>"));

        assert_eq!(data(&expected, &item(json!("msg_run_1"))), Ok(()));
        for id in [json!(""), Value::Null] {
            assert_eq!(data(&expected, &item(id)).unwrap_err().path, "id");
        }
    }

    #[test]
    fn fenced_blocks_are_compared_as_json_and_schemas_as_schemas() {
        let text = |head: &str, data: &str, schema: &str| {
            json!(format!(
                "{head}\n\n```\n{data}\n```\n\nSchema:\n\n```\n{schema}\n```\n"
            ))
        };
        let schema = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;
        let titled = r#"{"title": "T", "properties": {"a": {"type": "string"}}, "type": "object"}"#;
        let other = r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#;
        let expected = text("Data:", r#"{"a": 1, "b": 2}"#, schema);

        let same = text("Data:", "{\n  \"b\": 2.0,\n  \"a\": 1\n}", titled);
        assert_eq!(data(&expected, &same), Ok(()));
        for (got, path) in [
            (text("Date:", r#"{"a": 1, "b": 2}"#, schema), "(part 1)"),
            (text("Data:", r#"{"a": 1, "b": 3}"#, schema), "(part 2).b"),
            (
                text("Data:", r#"{"a": 1, "b": 2}"#, other),
                "(part 4).properties.a.type",
            ),
            (json!("Data:\n\n```\n{}\n```\n"), "(part 2).a"),
        ] {
            assert_eq!(path_of(data(&expected, &got)).as_deref(), Some(path));
        }
    }
}
