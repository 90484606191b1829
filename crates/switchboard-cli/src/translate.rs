//! Translations of the program's texts: help, errors and checks.
//!
//! The catalogue has the English texts and their translations. A text that it does not have stays English.

mod command_line;

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::screen::style::Language;

pub(crate) use command_line::{error_text, localized};

/// A text with holes, and its translation.
struct Entry {
    /// The text between the holes; one more than there are holes.
    literals: Vec<&'static str>,
    translation: &'static str,
}

static CHINESE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let lines = include_str!("translate/zh.txt").lines();
    let pairs = lines.filter_map(|line| line.split_once(" ||| "));
    let mut entries: Vec<Entry> = pairs
        .filter(|(english, _)| !english.starts_with('#'))
        .map(|(english, translation)| Entry {
            literals: english.split("{}").collect(),
            translation,
        })
        .collect();
    // The text with the fewest holes and the most words fits best.
    entries.sort_by_key(|entry| {
        let length: usize = entry.literals.iter().map(|text| text.len()).sum();
        (entry.literals.len(), std::cmp::Reverse(length))
    });
    entries
});

/// Translates a text of the program.
pub(crate) fn translate(text: &str, language: Language) -> Cow<'_, str> {
    if language == Language::En {
        return Cow::Borrowed(text);
    }
    let found = CHINESE
        .iter()
        .find_map(|entry| Some((entry, entry.holes(text)?)));
    match found {
        Some((entry, holes)) => Cow::Owned(entry.filled(&holes)),
        None => Cow::Borrowed(text),
    }
}

impl Entry {
    /// The texts in the holes, if the text is this one.
    fn holes<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let (first, rest) = self.literals.split_first()?;
        let mut text = text.strip_prefix(first)?;
        let mut holes = Vec::with_capacity(rest.len());
        for (index, literal) in rest.iter().enumerate() {
            let is_last = index + 1 == rest.len();
            let end = if is_last {
                text.strip_suffix(literal)?.len()
            } else {
                text.find(literal)?
            };
            holes.push(&text[..end]);
            text = &text[end + literal.len()..];
        }
        text.is_empty().then_some(holes)
    }

    /// The translation with these texts in its holes, which may themselves have a translation.
    fn filled(&self, holes: &[&str]) -> String {
        let texts: Vec<Cow<'_, str>> = holes
            .iter()
            .map(|text| translate(text, Language::Zh))
            .collect();
        let mut out = String::new();
        for (index, part) in self.translation.split("{}").enumerate() {
            if let Some(text) = index.checked_sub(1).and_then(|hole| texts.get(hole)) {
                out.push_str(text);
            }
            out.push_str(part);
        }
        for (index, text) in texts.iter().enumerate() {
            out = out.replace(&format!("{{{}}}", index + 1), text);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_translated_with_what_is_in_their_holes() {
        let zh = |text| translate(text, Language::Zh).into_owned();
        assert_eq!(zh("there is no agent \"Biling\""), "没有成员“Biling”");
        assert_eq!(
            zh("there is no price of the model \"m\", which \"A\" uses"),
            "\"A\" 使用的模型 \"m\" 没有价格"
        );
        assert_eq!(zh("something new"), "something new");
        assert_eq!(
            translate("there is no agent \"x\"", Language::En),
            "there is no agent \"x\""
        );
    }

    #[test]
    fn every_translation_has_the_holes_of_its_text() {
        for entry in CHINESE.iter() {
            let holes = entry.literals.len() - 1;
            let in_order = entry.translation.matches("{}").count();
            let numbered =
                (1..=holes).filter(|number| entry.translation.contains(&format!("{{{number}}}")));
            let count = if in_order > 0 {
                in_order
            } else {
                numbered.count()
            };
            assert_eq!(count, holes, "{}", entry.translation);
        }
    }
}
