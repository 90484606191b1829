//! Suggestions for misspelt names.

/// Returns the name of `known` that is most similar to `written`, if one is similar enough to be a
/// misspelling of it.
///
/// ```
/// use switchboard_teamfile::closest;
///
/// assert_eq!(closest("Biling", ["Triage", "Billing"]), Some("Billing"));
/// assert_eq!(closest("Shipping", ["Triage", "Billing"]), None);
/// ```
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(written);
    // Any name is similar to one of one or two letters.
    let limit = match folded.chars().count() {
        0..=2 if folded.is_ascii() => 0,
        length => (length / 3).clamp(1, 3),
    };
    let similar = known.into_iter().filter_map(|name| {
        let name_folded = fold(name);
        if folded.len().abs_diff(name_folded.len()) > limit * 4 {
            return None;
        }
        let distance = strsim::osa_distance(&folded, &name_folded);
        (distance <= limit).then_some((distance, name))
    });
    let (_, name) = similar.min_by_key(|(distance, _)| *distance)?;
    Some(name)
}

/// Returns `did you mean "…"?` if a name is similar enough.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    closest(written, known).map(|name| format!("did you mean {name:?}?"))
}

/// Formats names as `"a", "b" and "c"`, at most 20 of them.
pub(crate) fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 20;
    let names: Vec<String> = names.into_iter().map(|name| format!("{name:?}")).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [all @ .., last] if names.len() <= MAX_NAMES => format!("{} and {last}", all.join(", ")),
        many => format!(
            "{} and {} more",
            many[..MAX_NAMES].join(", "),
            many.len() - MAX_NAMES
        ),
    }
}

/// Returns the letters and digits of a name in lower case, cut to 64 characters: case, spaces and
/// dashes do not count.
fn fold(name: &str) -> String {
    let name = name.chars().take(64).filter(|c| c.is_alphanumeric());
    name.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_matched_and_other_words_are_not() {
        let agents = ["Triage", "Billing", "Technical support", "账单"];
        for (written, meant) in [
            ("Biling", Some("Billing")),
            ("billing", Some("Billing")),
            ("Traige", Some("Triage")),
            ("technical-support", Some("Technical support")),
            ("账簿", Some("账单")),
            ("Shipping", None),
            ("", None),
        ] {
            assert_eq!(closest(written, agents), meant, "{written}");
        }
    }

    #[test]
    fn lists_are_joined_with_and_and_cut() {
        assert_eq!(quoted_list([]), "none");
        assert_eq!(quoted_list(["a"]), r#""a""#);
        assert_eq!(quoted_list(["a", "b", "c"]), r#""a", "b" and "c""#);
        assert!(quoted_list(vec!["x"; 50]).ends_with("and 30 more"));
    }
}
