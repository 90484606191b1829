//! Parses the answers of a person who decides about a call.

/// An answer. Words after it are for the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    Approve(Option<&'a str>),
    ApproveAlways(Option<&'a str>),
    Reject(Option<&'a str>),
    RejectAlways(Option<&'a str>),
    /// Show all of the arguments.
    ShowAll,
    Help,
    Empty,
    Unclear,
}

impl<'a> From<&'a str> for Answer<'a> {
    fn from(line: &'a str) -> Self {
        let line = line.trim();
        let (answer, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let words = words.trim();
        let words = (!words.is_empty()).then_some(words);
        let answer = answer.trim_end_matches([',', ':', ';', '.', '!']);
        match (answer.to_lowercase().as_str(), words) {
            ("", None) => Self::Empty,
            ("y" | "yes" | "是", words) => Self::Approve(words),
            // With words, "a" may be the beginning of a sentence.
            ("a", None) => Self::ApproveAlways(None),
            ("always", words) => Self::ApproveAlways(words),
            ("n" | "no" | "否", words) => Self::Reject(words),
            ("never", words) => Self::RejectAlways(words),
            ("s" | "show", None) => Self::ShowAll,
            ("?" | "h" | "help", None) => Self::Help,
            _ => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_one_word_with_words_for_the_model() {
        for (line, answer) in [
            ("y", Answer::Approve(None)),
            (" Yes ", Answer::Approve(None)),
            ("y, but hurry", Answer::Approve(Some("but hurry"))),
            (
                "n because it was paid",
                Answer::Reject(Some("because it was paid")),
            ),
            ("No: paid", Answer::Reject(Some("paid"))),
            ("a", Answer::ApproveAlways(None)),
            ("never again", Answer::RejectAlways(Some("again"))),
            ("s", Answer::ShowAll),
            ("?", Answer::Help),
            ("", Answer::Empty),
            // Nothing but a clear answer approves.
            ("a refund is wrong here", Answer::Unclear),
            ("yep", Answer::Unclear),
            ("ok", Answer::Unclear),
            ("yn", Answer::Unclear),
            ("show me", Answer::Unclear),
        ] {
            assert_eq!(Answer::from(line), answer, "{line}");
        }
    }
}
