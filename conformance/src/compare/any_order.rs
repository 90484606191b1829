//! Lists in which some neighbours ran side by side, so that their order says nothing.

use serde_json::Value;

use super::data::pair;
use super::difference::{Check, Difference};

/// Compares two lists in order, save that each unbroken run of entries picked out by `is_free`
/// matches as a set.
pub(super) fn in_order_but_for_runs(
    expected: &[Value],
    got: &[Value],
    is_free: impl Fn(&Value) -> bool,
    compare: impl Fn(&Value, &Value) -> Check,
) -> Check {
    // What matched so far is equally long on both sides, so one index serves both.
    let mut index = 0;
    while index < expected.len().max(got.len()) {
        let expected_run = run_at(expected, index, &is_free);
        let got_run = run_at(got, index, &is_free);
        if expected_run.is_empty() && got_run.is_empty() {
            pair(expected.get(index), got.get(index), &compare)
                .map_err(|difference| difference.in_element(index))?;
            index += 1;
            continue;
        }
        as_set(expected_run, got_run, index, &compare)?;
        index += expected_run.len();
    }
    Ok(())
}

/// The entries from `index` on that are free, up to the first that is not.
pub(super) fn run_at(
    entries: &[Value],
    index: usize,
    is_free: impl Fn(&Value) -> bool,
) -> &[Value] {
    let rest = entries.get(index..).unwrap_or_default();
    let length = rest.iter().take_while(|entry| is_free(entry)).count();
    &rest[..length]
}

/// Pairs every expected entry with one it matches. What is left over is the difference, told at
/// the place of the expected entry.
fn as_set(
    expected: &[Value],
    got: &[Value],
    first_index: usize,
    compare: impl Fn(&Value, &Value) -> Check,
) -> Check {
    let mut got_left: Vec<&Value> = got.iter().collect();
    let mut expected_left = None;
    for (offset, entry) in expected.iter().enumerate() {
        match got_left.iter().position(|got| compare(entry, got).is_ok()) {
            Some(position) => {
                got_left.remove(position);
            }
            None => expected_left = expected_left.or(Some((offset, entry))),
        }
    }
    match (expected_left, got_left.first()) {
        (None, None) => Ok(()),
        (None, Some(got)) => {
            Err(Difference::unexpected(got).in_element(first_index + expected.len()))
        }
        (Some((offset, entry)), got) => pair(Some(entry), got.copied(), compare)
            .map_err(|difference| difference.in_element(first_index + offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::data;
    use super::*;
    use serde_json::json;

    fn difference(expected: Value, got: Value) -> Option<Difference> {
        let lists = (expected.as_array().unwrap(), got.as_array().unwrap());
        in_order_but_for_runs(lists.0, lists.1, Value::is_number, data).err()
    }

    #[test]
    fn free_entries_match_in_any_order_within_their_run() {
        assert_eq!(
            difference(json!(["a", 1, 2, 2, "b", 3]), json!(["a", 2, 1, 2, "b", 3])),
            None
        );
    }

    #[test]
    fn free_entries_do_not_move_past_the_others() {
        let difference = difference(json!(["a", 1, "b", 2]), json!(["a", 2, "b", 1]));

        assert_eq!(difference.map(|found| found.path).as_deref(), Some("[1]"));
    }

    #[test]
    fn the_others_match_in_order() {
        let difference = difference(json!([1, "a", "b"]), json!([1, "b", "a"]));

        assert_eq!(
            difference.unwrap().to_string(),
            r#"[1]: expected "a", got "b""#
        );
    }

    #[test]
    fn a_missing_or_unexpected_entry_is_told() {
        let missing = difference(json!([1, 2, 2]), json!([2, 1])).unwrap();
        let unexpected = difference(json!([1, "a"]), json!([1, 2, "a"])).unwrap();
        let at_the_end = difference(json!(["a"]), json!(["a", "b"])).unwrap();

        assert_eq!(missing.to_string(), "[2]: expected 2, got nothing");
        assert_eq!(unexpected.to_string(), "[1]: expected nothing, got 2");
        assert_eq!(at_the_end.to_string(), r#"[1]: expected nothing, got "b""#);
    }
}
