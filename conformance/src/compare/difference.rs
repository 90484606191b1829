//! Where two values first part ways, and how that is told to a reader.

use std::fmt;

use serde_json::Value;

/// How many characters of a value a printed difference shows.
const SHOWN: usize = 200;

/// How many of those are the part before the two values part.
const LEAD_IN: usize = 40;

/// What a comparison finds: nothing, or the first difference.
pub(super) type Check = Result<(), Difference>;

/// The first place where what a run gave is not what the corpus expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The way to the place, as in `expect.new_items[3].raw.call_id`. A string read as JSON adds
    /// `(json)`, a line of nested history adds `(line N)`.
    pub path: String,
    /// What the corpus has there, as JSON, or in words where it is no value.
    pub expected: String,
    /// What the run gave there, likewise.
    pub got: String,
}

impl Difference {
    /// Two values that are not the same, at the place itself.
    pub(super) fn of_values(expected: &Value, got: &Value) -> Self {
        Self::in_words(expected.to_string(), got.to_string())
    }

    /// Two texts that are not the same, at the place itself.
    pub(super) fn of_texts(expected: &str, got: &str) -> Self {
        Self::of_values(&expected.into(), &got.into())
    }

    /// A value that is not there.
    pub(super) fn missing(expected: &Value) -> Self {
        Self::in_words(expected.to_string(), "nothing")
    }

    /// A value that should not be there.
    pub(super) fn unexpected(got: &Value) -> Self {
        Self::in_words("nothing", got.to_string())
    }

    /// A difference that is not one between two values.
    pub(super) fn in_words(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            expected: expected.into(),
            got: got.into(),
        }
    }

    /// The same difference, seen from the object whose field it is in.
    pub(super) fn in_field(self, name: &str) -> Self {
        self.under(name)
    }

    /// The same difference, seen from the list whose element it is in.
    pub(super) fn in_element(self, index: usize) -> Self {
        self.under(&format!("[{index}]"))
    }

    /// The same difference, seen from the text that was read as JSON.
    pub(super) fn in_json_text(self) -> Self {
        self.under("(json)")
    }

    /// The same difference, seen from the text whose line it is in, lines counted from zero.
    pub(super) fn in_line(self, index: usize) -> Self {
        self.under(&format!("(line {})", index + 1))
    }

    fn under(mut self, step: &str) -> Self {
        let needs_dot = !self.path.is_empty() && !self.path.starts_with(['[', '(']);
        let dot = if needs_dot { "." } else { "" };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = common_prefix(&self.expected, &self.got);
        let expected = excerpt(&self.expected, same);
        let got = excerpt(&self.got, same);
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {expected}, got {got}")
    }
}

/// How many characters two texts have in common before they part.
fn common_prefix(left: &str, right: &str) -> usize {
    left.chars()
        .zip(right.chars())
        .take_while(|(left, right)| left == right)
        .count()
}

/// A long text cut down to the part where it starts to differ.
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
        let difference = Difference::in_words(expected, got);

        let printed = difference.to_string();

        assert!(printed.contains("left") && printed.contains("right"));
        assert!(printed.chars().count() < 2 * SHOWN + 40);
    }
}
