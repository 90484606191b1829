//! The comparison rules of the conformance runner.
//!
//! The corpus records one implementation, and some of what it recorded is arbitrary: the order of
//! keys, the formatting of JSON inside texts, the order of two tools that ran concurrently. The rules
//! here are those of `cases/FORMAT.md` and allow for that. Everything else must match.
//!
//! A comparison returns the first [`Difference`], or `None`.

mod data;
mod difference;
mod error;
mod frames;
mod log;
mod schema;
mod spans;
mod stages;
mod unordered;

use serde_json::{Map, Value};

pub use difference::Difference;

use difference::Check;
use spans::Ending;

/// Compares plain JSON: object keys have no order and `1` equals `1.0`, but absent is not null.
pub fn plain(expected: &Value, got: &Value) -> Option<Difference> {
    data::plain(expected, got).err()
}

/// Compares items and handoff data: absent equals null, and texts that are JSON or nested history
/// are parsed before they are compared.
pub fn data(expected: &Value, got: &Value) -> Option<Difference> {
    data::data(expected, got).err()
}

/// Compares JSON schemas in a canonical form, in which references are resolved and nullable types are
/// an `anyOf`. The path of a difference is a path in that form.
pub fn schema(expected: &Value, got: &Value) -> Option<Difference> {
    schema::schema(expected, got).err()
}

/// Compares a run with the `expect` of its case. Only the keys of `expected` are compared, except that
/// an error on one side only is always a difference.
pub fn run(expected: &Value, got: &Value) -> Option<Difference> {
    let ending = Ending::of(expected);
    let compared = sections(expected, got, |name, expected, got| match name {
        "model_calls" => data::data_with_schemas(expected, got),
        "log" => log::log(expected, got),
        "spans" => spans::spans(expected, got, ending),
        _ => data::data(expected, got),
    });
    in_expect(compared)
}

/// Compares a run in stages with its case. The keys of a stage are compared like those of a run, and
/// those that the case says may differ are left out. The events are compared if it has any.
pub fn stages(case: &Value, has_events: bool, got: &Value) -> Option<Difference> {
    in_expect(stages::stages(case, has_events, got))
}

/// Compares a run with the two recordings of the reference: the plain one, and the one in which the
/// keys of `streamed_differs` replace those of `expected`. If neither matches, returns the difference
/// from the plain one.
pub fn run_either(
    expected: &Value,
    streamed_differs: Option<&Value>,
    got: &Value,
) -> Option<Difference> {
    let difference = run(expected, got)?;
    let matches_streamed = streamed_differs
        .map(|differs| overlay(expected, differs))
        .is_some_and(|streamed| run(&streamed, got).is_none());
    (!matches_streamed).then_some(difference)
}

/// Compares a realtime session with the `expect` of its case. Its tools run one at a time, so its log
/// is compared in order.
pub fn realtime(expected: &Value, got: &Value) -> Option<Difference> {
    in_expect(sections(expected, got, |_, expected, got| {
        data::data_with_schemas(expected, got)
    }))
}

/// Compares a realtime session on a WebSocket with the `expect` of its case. Frames of the reference that
/// the official types refuse are not to be sent, and are not compared.
pub fn realtime_wire(expected: &Value, got: &Value) -> Option<Difference> {
    let refused = expected["not_official"].as_array().into_iter().flatten();
    let refused: Vec<u64> = refused
        .filter_map(|entry| entry["frame"].as_u64())
        .collect();
    in_expect(sections(expected, got, |name, expected, got| match name {
        "not_official" => Ok(()),
        "client" => frames::frames(expected, got, &refused),
        _ => data::data(expected, got),
    }))
}

fn in_expect(check: Check) -> Option<Difference> {
    check.err().map(|difference| difference.in_field("expect"))
}

/// Compares the error, then every other expected key.
fn sections(
    expected: &Value,
    got: &Value,
    compare: impl Fn(&str, &Value, &Value) -> Check,
) -> Check {
    let compare_section = |name: &str| {
        let (expected, got) = (&expected[name], &got[name]);
        let check = match name {
            "error" => error::error(expected, got),
            "streamed_differs" => Ok(()),
            _ => compare(name, expected, got),
        };
        check.map_err(|difference| difference.in_field(name))
    };
    compare_section("error")?;
    let mut names = expected.as_object().into_iter().flat_map(Map::keys);
    names.try_for_each(|name| compare_section(name))
}

fn overlay(expected: &Value, differs: &Value) -> Value {
    let mut streamed = expected.clone();
    if let (Value::Object(streamed), Value::Object(differs)) = (&mut streamed, differs) {
        streamed.extend(differs.clone());
    }
    streamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finished() -> Value {
        json!({
            "final_output": "Done.",
            "last_agent": "B",
            "responses": 2,
            "new_items": [{"type": "tool_call_item", "raw": {"arguments": "{\"x\": 1}"}}],
            "model_calls": [{"system": "s", "input": [], "tools": [], "handoffs": [
                {"tool_name": "t", "input_json_schema": {"enum": ["a"]}, "strict": true}]}],
            "log": [{"run_hook": "tool_start", "tool": "a"}, {"run_hook": "tool_start", "tool": "b"}],
            "spans": [{"type": "agent", "name": "B", "handoffs": [], "tools": [], "children": []}],
            "stream": ["agent_updated:B", "message_output_created"],
        })
    }

    fn failed() -> Value {
        json!({
            "error": {"type": "MaxTurnsExceeded", "message": "Max turns (3) exceeded"},
            "spans": [{"type": "agent", "name": "B", "handoffs": [], "tools": [], "children": []}],
        })
    }

    fn with(mut run: Value, pointer: &str, value: Value) -> Value {
        *run.pointer_mut(pointer).unwrap() = value;
        run
    }

    fn path_of(difference: Option<Difference>) -> Option<String> {
        difference.map(|difference| difference.path)
    }

    #[test]
    fn a_run_matches_each_section_by_its_own_rule() {
        let schema = json!({"const": "a", "title": "T"});
        let got = with(
            finished(),
            "/model_calls/0/handoffs/0/input_json_schema",
            schema,
        );
        let got = with(got, "/log/0/tool", json!("b"));
        let got = with(got, "/log/1/tool", json!("a"));
        let got = with(got, "/new_items/0/raw/arguments", json!("{\"x\":1.0}"));

        assert_eq!(run(&finished(), &got), None);
    }

    #[test]
    fn a_difference_is_found_in_every_section() {
        let changes = [
            ("/final_output", "expect.final_output"),
            ("/last_agent", "expect.last_agent"),
            ("/responses", "expect.responses"),
            (
                "/new_items/0/raw/arguments",
                "expect.new_items[0].raw.arguments",
            ),
            ("/model_calls/0/system", "expect.model_calls[0].system"),
            (
                "/model_calls/0/handoffs/0/strict",
                "expect.model_calls[0].handoffs[0].strict",
            ),
            ("/log/1/tool", "expect.log[1].tool"),
            ("/spans/0/name", "expect.spans[0].name"),
            ("/stream/1", "expect.stream[1]"),
        ];

        for (pointer, path) in changes {
            let got = with(finished(), pointer, json!("changed"));
            assert_eq!(path_of(run(&finished(), &got)).as_deref(), Some(path));
        }
    }

    #[test]
    fn a_key_that_is_not_expected_is_not_compared() {
        let mut got = finished();
        got["session_items"] = json!([1]);

        assert_eq!(run(&finished(), &got), None);
        assert_eq!(
            path_of(run(&got, &finished())).as_deref(),
            Some("expect.session_items")
        );
    }

    #[test]
    fn an_error_on_one_side_only_is_a_difference() {
        assert_eq!(
            path_of(run(&failed(), &finished())).as_deref(),
            Some("expect.error")
        );
        assert_eq!(
            path_of(run(&finished(), &failed())).as_deref(),
            Some("expect.error")
        );
    }

    #[test]
    fn the_last_agent_of_a_failed_run_need_not_have_reached_a_model() {
        let tools = json!(["t"]);

        assert_eq!(
            run(&failed(), &with(failed(), "/spans/0/tools", tools.clone())),
            None
        );
        assert_eq!(
            path_of(run(&finished(), &with(finished(), "/spans/0/tools", tools))).as_deref(),
            Some("expect.spans[0].tools[0]")
        );
    }

    #[test]
    fn a_run_may_match_the_streamed_recording_instead() {
        let expected = finished();
        let differs = json!({"stream": ["agent_updated:B"]});
        let streamed = with(finished(), "/stream", json!(["agent_updated:B"]));
        let neither = with(finished(), "/stream", json!([]));

        assert_eq!(run_either(&expected, Some(&differs), &expected), None);
        assert_eq!(run_either(&expected, Some(&differs), &streamed), None);
        assert_eq!(
            path_of(run_either(&expected, None, &streamed)).as_deref(),
            Some("expect.stream[1]")
        );
        assert_eq!(
            run_either(&expected, Some(&differs), &neither),
            run(&expected, &neither)
        );
    }

    #[test]
    fn streamed_differs_is_not_compared() {
        let mut expected = finished();
        expected["streamed_differs"] = json!({"stream": []});

        assert_eq!(run(&expected, &finished()), None);
    }

    #[test]
    fn a_realtime_session_keeps_its_log_in_order() {
        let expected = json!({"connect": {"handoffs": [{"input_json_schema": {"enum": ["a"]}}]},
                              "log": [{"tool": "a"}, {"tool": "b"}]});
        let other_schema = json!({"const": "a"});
        let got = with(
            expected.clone(),
            "/connect/handoffs/0/input_json_schema",
            other_schema,
        );
        let swapped = with(got.clone(), "/log", json!([{"tool": "b"}, {"tool": "a"}]));

        assert_eq!(realtime(&expected, &got), None);
        assert_eq!(
            path_of(realtime(&expected, &swapped)).as_deref(),
            Some("expect.log[0].tool")
        );
    }

    #[test]
    fn paths_start_at_the_compared_value() {
        assert_eq!(
            path_of(plain(&json!({"a": [1]}), &json!({"a": [2]}))).as_deref(),
            Some("a[0]")
        );
        assert_eq!(
            path_of(data(&json!({"a": 1}), &json!({}))).as_deref(),
            Some("a")
        );
        assert_eq!(
            path_of(schema(&json!({"type": "a"}), &json!({}))).as_deref(),
            Some("type")
        );
    }
}
