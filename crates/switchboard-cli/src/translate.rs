//! Translations of the program's texts: help, errors and checks.
//!
//! The catalogue has the English texts and their translations. A text that it does not have stays English.

mod command_line;

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::library_advice::without_library_advice;
use crate::screen::style::Language;

pub(crate) use command_line::{error_text, localized};

/// A text with holes, and its translation.
struct Entry {
    /// The text between the holes; one more than there are holes.
    literals: Vec<&'static str>,
    translation: &'static str,
}

static CHINESE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let files = [
        include_str!("translate/zh/checks.txt"),
        include_str!("translate/zh/errors.txt"),
        include_str!("translate/zh/fields.txt"),
        include_str!("translate/zh/help.txt"),
    ];
    let lines = files.into_iter().flat_map(str::lines);
    let pairs = lines.filter_map(|line| line.split_once(" ||| "));
    let mut entries: Vec<Entry> = pairs
        .filter(|(english, _)| !english.starts_with('#'))
        .map(|(english, translation)| Entry {
            literals: english.split("{}").collect(),
            translation,
        })
        .collect();
    // The text with the most words and the fewest holes fits best.
    entries.sort_by_key(|entry| {
        let length: usize = entry.literals.iter().map(|text| text.len()).sum();
        (std::cmp::Reverse(length), entry.literals.len())
    });
    entries
});

/// Translates a text of the program, and leaves out the advice of the library for programmers.
pub(crate) fn translate(text: &str, language: Language) -> Cow<'_, str> {
    let plain = without_library_advice(text);
    match language {
        Language::En => plain,
        Language::Zh => to_chinese(&plain).map_or(plain, Cow::Owned),
    }
}

fn to_chinese(text: &str) -> Option<String> {
    let found = CHINESE
        .iter()
        .find_map(|entry| Some((entry, entry.holes(text)?)));
    // A hole of a text of one clause must not swallow the next clause.
    let is_one_clause = |entry: &Entry| entry.literals.iter().all(|text| !text.contains("; "));
    if found.as_ref().is_none_or(|(entry, _)| is_one_clause(entry))
        && let Some(clauses) = clauses(text, found.is_some())
    {
        return Some(clauses);
    }
    match found {
        Some((entry, holes)) => Some(entry.filled(&holes)),
        None => described_field(text).or_else(|| list(text)),
    }
}

/// Translates the clauses of a text, at least one of them, or all: `no key; set one; sent 3 times`.
fn clauses(text: &str, all: bool) -> Option<String> {
    if !text.contains("; ") {
        return None;
    }
    let parts: Vec<&str> = text.split("; ").collect();
    let translations: Vec<Cow<'_, str>> = parts
        .iter()
        .map(|part| translate(part, Language::Zh))
        .collect();
    let is_translated = |(part, translation): (&&str, &Cow<'_, str>)| **part != **translation;
    let mut are_translated = parts.iter().zip(&translations).map(is_translated);
    let is_known = if all {
        are_translated.all(|is_translated| is_translated)
    } else {
        are_translated.any(|is_translated| is_translated)
    };
    is_known.then(|| translations.join("；"))
}

/// Translates the name of a field with its description: `tools: The names of its tools.`
fn described_field(text: &str) -> Option<String> {
    let (name, description) = text.split_once(": ")?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    let translation = translate(description, Language::Zh);
    (is_name && translation != description).then(|| format!("{name}：{translation}"))
}

/// Translates a list of quoted names or of known texts: `"a", "b" and "c"`, `a list or a table`.
fn list(text: &str) -> Option<String> {
    let (rest, word, last) =
        [(" and ", "和"), (" or ", "或")]
            .into_iter()
            .find_map(|(word, chinese)| {
                let (rest, last) = text.rsplit_once(word)?;
                Some((rest, chinese, last))
            })?;
    let part = |part: &str| {
        let is_name = part.len() > 1 && part.starts_with('"') && part.ends_with('"');
        let translation = translate(part, Language::Zh);
        (is_name || translation != part).then(|| translation.into_owned())
    };
    let parts: Option<Vec<String>> = rest.split(", ").map(part).collect();
    Some(format!("{} {word} {}", parts?.join("、"), part(last)?))
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
mod tests;
#[cfg(test)]
pub(crate) use tests::{NOT_SHOWN, literals as source_texts};
