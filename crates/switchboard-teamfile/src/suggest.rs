//! What somebody probably meant to write.

/// The name of `known` that is closest to `written`, if one is close enough to be meant.
pub(crate) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = fold(written);
    // Of a name of one or two letters any other would be close.
    let limit = match folded.len() {
        0..=2 if folded.iter().all(char::is_ascii) => 0,
        length => (length / 3).clamp(1, 3),
    };
    let near = known.into_iter().filter_map(|name| {
        let distance = distance(&folded, &fold(name), limit)?;
        Some((distance, name))
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
fn fold(name: &str) -> Vec<char> {
    let name = name.chars().take(64);
    let name = name.filter(|c| c.is_alphanumeric());
    name.flat_map(char::to_lowercase).collect()
}

/// How many letters must be put in, left out, changed or swapped with their neighbour; `None` if more
/// than `limit`.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Three rows of the usual table: a swap looks two rows back.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|distance| *distance <= limit)
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
