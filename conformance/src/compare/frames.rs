//! Compares the frames that a client has sent in a realtime session.

use serde_json::{Map, Value};

use super::data;
use super::difference::{Check, Difference};
use super::schema;

/// Compares frames: null is not absent, schemas match as schemas, texts that are JSON as JSON, and a frame
/// may have an identifier where the reference has none. Those at the positions in `skipped` need only be
/// there.
pub(super) fn frames(expected: &Value, got: &Value, skipped: &[u64]) -> Check {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return Err(Difference::of_values(expected, got));
    };
    for index in 0..expected.len().max(got.len()) {
        let compare = |expected: &Value, got: &Value| {
            if skipped.contains(&(index as u64)) {
                return Ok(());
            }
            let mut got = got.clone();
            if let Some(fields) = got.as_object_mut()
                && expected.get("event_id").is_none()
            {
                fields.shift_remove("event_id");
            }
            frame(expected, &got)
        };
        data::pair(expected.get(index), got.get(index), compare)
            .map_err(|difference| difference.in_element(index))?;
    }
    Ok(())
}

fn frame(expected: &Value, got: &Value) -> Check {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => objects(expected, got),
        (Value::Array(_), Value::Array(_)) => data::elements(expected, got, frame),
        _ => data::data(expected, got),
    }
}

fn objects(expected: &Map<String, Value>, got: &Map<String, Value>) -> Check {
    let only_got = got.keys().filter(|name| !expected.contains_key(*name));
    for name in expected.keys().chain(only_got) {
        let compare = |expected: &Value, got: &Value| match name.as_str() {
            "parameters" => schema::schema(expected, got),
            _ => frame(expected, got),
        };
        data::pair(expected.get(name), got.get(name), compare)
            .map_err(|difference| difference.in_field(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_is_not_absent_in_a_frame() {
        let expected = json!([{"session": {"turn_detection": null}}]);
        assert!(frames(&expected, &json!([{"session": {}}]), &[]).is_err());
        assert!(frames(&json!([{"session": {}}]), &expected, &[]).is_err());
        assert!(frames(&expected, &expected, &[]).is_ok());
    }

    #[test]
    fn a_frame_may_have_an_identifier_of_its_own() {
        let got = json!([{"type": "session.update", "event_id": "mine"}]);
        assert!(frames(&json!([{"type": "session.update"}]), &got, &[]).is_ok());
        let expected = json!([{"type": "session.update", "event_id": "theirs"}]);
        assert!(frames(&expected, &got, &[]).is_err());
        assert!(frames(&expected, &got, &[0]).is_ok());
    }
}
