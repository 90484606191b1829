//! What somebody probably meant to write.

/// The name that somebody probably meant: the one of `known` that is closest to what was written, if
/// one is close enough.
///
/// ```
/// use switchboard_teamfile::closest;
///
/// assert_eq!(closest("Biling", ["Triage", "Billing"]), Some("Billing"));
/// assert_eq!(closest("Shipping", ["Triage", "Billing"]), None);
/// ```
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(written);
    // Of a name of one or two letters any other would be close.
    let limit = match folded.chars().count() {
        0..=2 if folded.is_ascii() => 0,
        length => (length / 3).clamp(1, 3),
    };
    let near = known.into_iter().filter_map(|name| {
        let name_folded = fold(name);
        if folded.len().abs_diff(name_folded.len()) > limit * 4 {
            return None;
        }
        let distance = strsim::osa_distance(&folded, &name_folded);
        (distance <= limit).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `did you mean "…"?`, where something is close.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    closest(written, known).map(|name| format!("did you mean {name:?}?"))
}

/// `a, b and c`, or what there is instead of an empty list.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const AT_MOST: usize = 20;
    let names: Vec<String> = names.into_iter().map(|name| format!("{name:?}")).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [all @ .., last] if names.len() <= AT_MOST => format!("{} and {last}", all.join(", ")),
        many => format!(
            "{} and {} more",
            many[..AT_MOST].join(", "),
            many.len() - AT_MOST
        ),
    }
}

/// Letters and digits in lower case: case, spaces and the kind of dash are what people mix up first.
/// Names longer than any that is worth a suggestion are cut.
fn fold(name: &str) -> String {
    let name = name.chars().take(64);
    let name = name.filter(|c| c.is_alphanumeric());
    name.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
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
    fn lists_are_sentences_and_end() {
        assert_eq!(listed([]), "none");
        assert_eq!(listed(["a"]), r#""a""#);
        assert_eq!(listed(["a", "b", "c"]), r#""a", "b" and "c""#);
        assert!(listed(vec!["x"; 50]).ends_with("and 30 more"));
    }
}
