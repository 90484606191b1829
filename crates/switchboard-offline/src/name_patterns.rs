//! Patterns for the names of places and people.

use std::sync::OnceLock;

use regex::Regex;

/// Returns the patterns for places, each with the English preposition that it stands for.
pub(crate) fn place_patterns() -> &'static [(&'static str, Option<Regex>)] {
    static PLACES: OnceLock<Vec<(&str, Option<Regex>)>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let name = r"([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*){0,3})";
        let han = r"([\u{4e00}-\u{9fff}]{2,6}?)";
        let end = r"(?:的|天气|气温|酒店|机票|飞|到|去|有|$|[\s，。？！,.?!])";
        let patterns = [
            ("from", format!(r"\b(?i:from)\s+{name}")),
            ("to", format!(r"\b(?i:to)\s+{name}")),
            ("in", format!(r"\b(?i:in|at|near|for|of)\s+{name}")),
            ("from", format!("从{han}{end}")),
            ("to", format!("(?:去|到|飞){han}{end}")),
            ("in", format!("在{han}{end}")),
            (
                "in",
                format!(r"(?m)^{han}(?:今天|明天|后天|现在)?的?(?:天气|气温)"),
            ),
            ("from", r"\bfrom\s+([a-z]{3,30})\b".to_owned()),
            ("to", r"\bto\s+([a-z]{3,30})\b".to_owned()),
            ("in", r"\b(?:in|at|near)\s+([a-z]{3,30})\b".to_owned()),
        ];
        patterns
            .into_iter()
            .map(|(preposition, text)| (preposition, Regex::new(&text).ok()))
            .collect()
    })
}

/// Returns the pattern for the name that somebody introduces themselves with.
pub(crate) fn person_pattern() -> &'static Option<Regex> {
    static PERSON: OnceLock<Option<Regex>> = OnceLock::new();
    PERSON.get_or_init(|| {
        Regex::new(
            r"(?:(?i:my name is|i am|i'm|this is|name:)\s+([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*){0,2}))",
        )
        .ok()
    })
}
