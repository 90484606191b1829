//! The differences between two lists of items.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_core::Item;

/// The largest table of an exact comparison. Longer lists are compared item by item from both ends.
const MAX_TABLE: usize = 4_000_000;

/// One line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DiffLine {
    /// `same`, `removed`, `changed` or `added`.
    status: &'static str,
    /// The index in the first list.
    record: Option<usize>,
    /// The index in the second list.
    seen: Option<usize>,
}

impl DiffLine {
    const fn new(status: &'static str, record: Option<usize>, seen: Option<usize>) -> Self {
        Self {
            status,
            record,
            seen,
        }
    }
}

/// Compares two lists of items.
pub(super) fn diff(record: &[Item], seen: &[Item]) -> Vec<DiffLine> {
    let start = record.iter().zip(seen).take_while(|(a, b)| a == b).count();
    let (left, right) = (&record[start..], &seen[start..]);
    let end = left
        .iter()
        .rev()
        .zip(right.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let left = &left[..left.len() - end];
    let right = &right[..right.len() - end];
    let mut lines: Vec<DiffLine> = (0..start)
        .map(|at| DiffLine::new("same", Some(at), Some(at)))
        .collect();
    lines.extend(middle(left, right, start));
    lines.extend((0..end).rev().map(|back| {
        let (a, b) = (record.len() - 1 - back, seen.len() - 1 - back);
        DiffLine::new("same", Some(a), Some(b))
    }));
    lines
}

/// Compares what is between the common ends, which begins at index `start` of both lists.
fn middle(left: &[Item], right: &[Item], start: usize) -> Vec<DiffLine> {
    let pairs = common(left, right);
    let mut lines = Vec::new();
    let (mut a, mut b) = (0, 0);
    let ends = [(left.len(), right.len())];
    for (next_a, next_b) in pairs.into_iter().chain(ends) {
        let (removed, added) = (next_a - a, next_b - b);
        // Items that stand in each other's place are one that was changed, if they are of one kind.
        let paired = removed.min(added);
        let is_like = |offset: usize| {
            left.get(a + offset)
                .zip(right.get(b + offset))
                .is_some_and(|(old, new)| old.kind() == new.kind() && old.role() == new.role())
        };
        let changed = if removed == added {
            (0..paired).take_while(|at| is_like(*at)).count()
        } else {
            0
        };
        for at in 0..changed {
            lines.push(DiffLine::new(
                "changed",
                Some(start + a + at),
                Some(start + b + at),
            ));
        }
        for at in changed..removed {
            lines.push(DiffLine::new("removed", Some(start + a + at), None));
        }
        for at in changed..added {
            lines.push(DiffLine::new("added", None, Some(start + b + at)));
        }
        if next_a < left.len() && next_b < right.len() {
            lines.push(DiffLine::new(
                "same",
                Some(start + next_a),
                Some(start + next_b),
            ));
        }
        (a, b) = (next_a + 1, next_b + 1);
    }
    lines
}

/// The indexes of a longest common subsequence.
fn common(left: &[Item], right: &[Item]) -> Vec<(usize, usize)> {
    let width = right.len() + 1;
    if (left.len() + 1).saturating_mul(width) > MAX_TABLE {
        return Vec::new();
    }
    let mut lengths = vec![0_u32; (left.len() + 1) * width];
    for a in (0..left.len()).rev() {
        for b in (0..right.len()).rev() {
            lengths[a * width + b] = if left[a] == right[b] {
                lengths[(a + 1) * width + b + 1] + 1
            } else {
                lengths[(a + 1) * width + b].max(lengths[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut pairs = Vec::new();
    while a < left.len() && b < right.len() {
        if left[a] == right[b] {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if lengths[(a + 1) * width + b] >= lengths[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(texts: &str) -> Vec<Item> {
        texts.split_whitespace().map(Item::user).collect()
    }

    /// The comparison as text: ` a`, `-a`, `+a`, `~a>b`.
    fn shown(record: &str, seen: &str) -> String {
        let (record, seen) = (items(record), items(seen));
        let text = |items: &[Item], at: Option<usize>| {
            let item = at.and_then(|at| items.get(at));
            item.and_then(Item::text).unwrap_or_default().into_owned()
        };
        let lines = diff(&record, &seen).into_iter().map(|line| {
            let (old, new) = (text(&record, line.record), text(&seen, line.seen));
            match line.status {
                "same" => {
                    assert_eq!(old, new);
                    old
                }
                "removed" => format!("-{old}"),
                "added" => format!("+{new}"),
                _ => format!("~{old}>{new}"),
            }
        });
        lines.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_was_removed_added_and_changed_is_found() {
        assert_eq!(shown("a b c", "a b c"), "a b c");
        assert_eq!(shown("a b c", "a c"), "a -b c");
        assert_eq!(shown("a b c", "n a b c"), "+n a b c");
        assert_eq!(shown("a b c", "a x c"), "a ~b>x c");
        assert_eq!(shown("a b c d e", "b d"), "-a b -c d -e");
        assert_eq!(shown("a b", ""), "-a -b");
        assert_eq!(shown("", "a"), "+a");
        assert_eq!(shown("a b c d", "x b c y z"), "~a>x b c -d +y +z");
        assert_eq!(shown("", ""), "");
    }
}
