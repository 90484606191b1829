//! The first difference between two values, and its display form.

use std::fmt;

use serde_json::Value;

/// The maximum number of characters of a value in a printed difference.
const SHOWN: usize = 200;

/// The number of those that precede the first different character.
const LEAD_IN: usize = 40;

/// The result of a comparison.
pub(super) type Check = Result<(), Difference>;

/// The first difference between the corpus and a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path to the value, as in `expect.new_items[3].raw.call_id`. A text parsed as JSON adds
    /// `(json)`, a line of nested history adds `(line N)`.
    pub path: String,
    /// The value in the corpus as JSON, or a description if it is not a value.
    pub expected: String,
    /// The value of the run, likewise.
    pub got: String,
}

impl Difference {
    /// A difference between two values. The path is empty.
    pub(super) fn of_values(expected: &Value, got: &Value) -> Self {
        Self::described(expected.to_string(), got.to_string())
    }

    /// A difference between two texts. The path is empty.
    pub(super) fn of_texts(expected: &str, got: &str) -> Self {
        Self::of_values(&expected.into(), &got.into())
    }

    /// An expected value that is missing.
    pub(super) fn missing(expected: &Value) -> Self {
        Self::described(expected.to_string(), "nothing")
    }

    /// A value that is not expected.
    pub(super) fn unexpected(got: &Value) -> Self {
        Self::described("nothing", got.to_string())
    }

    /// A difference with descriptions instead of values.
    pub(super) fn described(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            expected: expected.into(),
            got: got.into(),
        }
    }

    /// Prefixes the path with a field name.
    pub(super) fn in_field(self, name: &str) -> Self {
        self.prefixed(name)
    }

    /// Prefixes the path with an index.
    pub(super) fn in_element(self, index: usize) -> Self {
        self.prefixed(&format!("[{index}]"))
    }

    /// Prefixes the path with the marker of a text parsed as JSON.
    pub(super) fn in_json_text(self) -> Self {
        self.prefixed("(json)")
    }

    /// Prefixes the path with a line number. `index` is counted from 0.
    pub(super) fn in_line(self, index: usize) -> Self {
        self.prefixed(&format!("(line {})", index + 1))
    }

    fn prefixed(mut self, step: &str) -> Self {
        let needs_dot = !self.path.is_empty() && !self.path.starts_with(['[', '(']);
        let dot = if needs_dot { "." } else { "" };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differs_at = common_prefix(&self.expected, &self.got);
        let expected = excerpt(&self.expected, differs_at);
        let got = excerpt(&self.got, differs_at);
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {expected}, got {got}")
    }
}

/// The number of characters in the common prefix of two texts.
fn common_prefix(left: &str, right: &str) -> usize {
    left.chars()
        .zip(right.chars())
        .take_while(|(left, right)| left == right)
        .count()
}

/// Cuts a long text down to the part around its first different character.
fn excerpt(text: &str, differs_at: usize) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let start = differs_at.saturating_sub(LEAD_IN).min(length - SHOWN);
    let shown: String = text.chars().skip(start).take(SHOWN).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + SHOWN < length { "…" } else { "" };
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_reads_as_path_expected_got() {
        let difference = Difference::of_texts("a", "b")
            .in_field("call_id")
            .in_field("raw")
            .in_element(3)
            .in_field("new_items")
            .in_field("expect");

        assert_eq!(
            difference.to_string(),
            r#"expect.new_items[3].raw.call_id: expected "a", got "b""#
        );
    }

    #[test]
    fn a_difference_of_the_whole_value_has_no_path() {
        let difference = Difference::missing(&Value::from(1));

        assert_eq!(difference.to_string(), "expected 1, got nothing");
    }

    #[test]
    fn a_long_value_is_cut_to_the_part_that_differs() {
        let expected = format!("{}left{}", "界".repeat(300), "z".repeat(300));
        let got = format!("{}right", "界".repeat(300));
        let difference = Difference::described(expected, got);

        let printed = difference.to_string();

        assert!(printed.contains("left") && printed.contains("right"));
        assert!(printed.chars().count() < 2 * SHOWN + 40);
    }
}
