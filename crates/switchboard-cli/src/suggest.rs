//! What the user probably meant.

/// The name nearest to what was written, if one is near.
pub(crate) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    let scored = names.map(|name| (strsim::jaro_winkler(&written, &name.to_lowercase()), name));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(score, _)| *score > 0.75)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_a_wild_guess_is_not() {
        let names = ["Triage", "Billing", "Technical"];
        let nearest = |written| nearest(written, names.into_iter());
        assert_eq!(nearest("biling"), Some("Billing"));
        assert_eq!(nearest("Tecnical"), Some("Technical"));
        assert_eq!(nearest("xyz"), None);
    }
}
