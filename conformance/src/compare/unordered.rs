//! Compares lists in which the order of some neighbouring entries is arbitrary.

use serde_json::Value;

use super::data::pair;
use super::difference::{Check, Difference};

/// Compares two lists in order, except that each run of consecutive entries for which `is_unordered`
/// holds is compared as a set.
pub(super) fn compare_lists(
    expected: &[Value],
    got: &[Value],
    is_unordered: impl Fn(&Value) -> bool,
    compare: impl Fn(&Value, &Value) -> Check,
) -> Check {
    // What matched so far has the same length on both sides.
    let mut index = 0;
    while index < expected.len().max(got.len()) {
        let expected_run = run_at(expected, index, &is_unordered);
        let got_run = run_at(got, index, &is_unordered);
        if expected_run.is_empty() && got_run.is_empty() {
            pair(expected.get(index), got.get(index), &compare)
                .map_err(|difference| difference.in_element(index))?;
            index += 1;
            continue;
        }
        compare_sets(expected_run, got_run, index, &compare)?;
        index += expected_run.len();
    }
    Ok(())
}

/// The unordered entries from `index` on, up to the first ordered one.
pub(super) fn run_at(
    entries: &[Value],
    index: usize,
    is_unordered: impl Fn(&Value) -> bool,
) -> &[Value] {
    let rest = entries.get(index..).unwrap_or_default();
    let length = rest.iter().take_while(|entry| is_unordered(entry)).count();
    &rest[..length]
}

/// Matches every expected entry with one of `got`. The difference is the first that is left over.
fn compare_sets(
    expected: &[Value],
    got: &[Value],
    first_index: usize,
    compare: impl Fn(&Value, &Value) -> Check,
) -> Check {
    let mut unmatched_got: Vec<&Value> = got.iter().collect();
    let mut unmatched_expected = None;
    for (offset, entry) in expected.iter().enumerate() {
        match unmatched_got
            .iter()
            .position(|got| compare(entry, got).is_ok())
        {
            Some(position) => {
                unmatched_got.remove(position);
            }
            None => unmatched_expected = unmatched_expected.or(Some((offset, entry))),
        }
    }
    match (unmatched_expected, unmatched_got.first()) {
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
        compare_lists(lists.0, lists.1, Value::is_number, data).err()
    }

    #[test]
    fn unordered_entries_match_in_any_order_within_their_run() {
        assert_eq!(
            difference(json!(["a", 1, 2, 2, "b", 3]), json!(["a", 2, 1, 2, "b", 3])),
            None
        );
    }

    #[test]
    fn unordered_entries_do_not_move_past_ordered_ones() {
        let difference = difference(json!(["a", 1, "b", 2]), json!(["a", 2, "b", 1]));

        assert_eq!(
            difference.map(|difference| difference.path).as_deref(),
            Some("[1]")
        );
    }

    #[test]
    fn ordered_entries_match_in_order() {
        let difference = difference(json!([1, "a", "b"]), json!([1, "b", "a"]));

        assert_eq!(
            difference.unwrap().to_string(),
            r#"[1]: expected "a", got "b""#
        );
    }

    #[test]
    fn a_missing_or_unexpected_entry_is_a_difference() {
        let missing = difference(json!([1, 2, 2]), json!([2, 1])).unwrap();
        let unexpected = difference(json!([1, "a"]), json!([1, 2, "a"])).unwrap();
        let at_the_end = difference(json!(["a"]), json!(["a", "b"])).unwrap();

        assert_eq!(missing.to_string(), "[2]: expected 2, got nothing");
        assert_eq!(unexpected.to_string(), "[1]: expected nothing, got 2");
        assert_eq!(at_the_end.to_string(), r#"[1]: expected nothing, got "b""#);
    }
}
