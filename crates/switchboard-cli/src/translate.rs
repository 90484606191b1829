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

/// The part of the catalogue that a text is looked for in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Program,
    /// The texts of errors of models. In those, other texts are the words of a server, which are not translated.
    Models,
}

static PROGRAM: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    entries(&[
        include_str!("translate/zh/checks.txt"),
        include_str!("translate/zh/errors.txt"),
        include_str!("translate/zh/fields.txt"),
        include_str!("translate/zh/help.txt"),
    ])
});

static MODELS: LazyLock<Vec<Entry>> =
    LazyLock::new(|| entries(&[include_str!("translate/zh/models.txt")]));

fn entries(files: &[&'static str]) -> Vec<Entry> {
    let lines = files.iter().flat_map(|file| file.lines());
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
}

impl Scope {
    fn entries(self) -> &'static [Entry] {
        match self {
            Self::Program => &PROGRAM,
            Self::Models => &MODELS,
        }
    }

    /// Translates a text of this scope, and leaves out the advice of the library for programmers.
    fn translate(self, text: &str) -> Cow<'_, str> {
        let plain = without_library_advice(text);
        self.to_chinese(&plain).map_or(plain, Cow::Owned)
    }

    fn to_chinese(self, text: &str) -> Option<String> {
        // The error of a model begins with its address, and goes on with what the server says.
        if self == Self::Program && is_address(text.split(' ').next().unwrap_or_default()) {
            return Self::Models.to_chinese(text);
        }
        let found = self
            .entries()
            .iter()
            .find_map(|entry| Some((entry, entry.holes(text)?)));
        // A hole of a text of one clause must not swallow the next clause.
        let is_one_clause = |entry: &Entry| entry.literals.iter().all(|text| !text.contains("; "));
        if found.as_ref().is_none_or(|(entry, _)| is_one_clause(entry))
            && let Some(clauses) = self.clauses(text, found.is_some())
        {
            return Some(clauses);
        }
        match found {
            Some((entry, holes)) => Some(entry.filled(&holes, self)),
            None if self == Self::Models => None,
            None => described_field(text).or_else(|| list(text)),
        }
    }

    /// Translates the clauses at the end of a text that are known, and what is before them:
    /// `no key; set one; sent 3 times`. If `is_known`, the whole text is in the catalogue, and what is before the clauses
    /// must be as well.
    fn clauses(self, text: &str, is_known: bool) -> Option<String> {
        let of_clauses = if text.split(' ').any(is_address) {
            Self::Models
        } else {
            self
        };
        let mut head = text;
        let mut clauses = Vec::new();
        while let Some((before, clause)) = last_clause(head) {
            let translation = of_clauses.translate(clause);
            if translation == clause {
                break;
            }
            clauses.push(translation);
            head = before;
        }
        if clauses.is_empty() {
            return None;
        }
        let translation = self.translate(head);
        if is_known && translation == head {
            return None;
        }
        clauses.push(translation);
        clauses.reverse();
        Some(clauses.join("；"))
    }
}

/// Returns `true` for the address at the beginning of an error of a model: `http://localhost:11434/v1/responses:`.
fn is_address(word: &str) -> bool {
    let address = word.strip_suffix(':').unwrap_or_default();
    address.starts_with("http://") || address.starts_with("https://")
}

/// Splits a text before its last clause. Quoted text has no clauses.
fn last_clause(text: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let mut later = "";
    for (at, character) in text.char_indices().rev() {
        let rest = &text[at..];
        let is_escaped = text[..at].ends_with('\\');
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            ';' if !is_quoted && later.starts_with(' ') => return Some((&text[..at], &later[1..])),
            _ => {}
        }
        later = rest;
    }
    None
}

/// Translates a text of the program, and leaves out the advice of the library for programmers.
pub(crate) fn translate(text: &str, language: Language) -> Cow<'_, str> {
    match language {
        Language::En => without_library_advice(text),
        Language::Zh => Scope::Program.translate(text),
    }
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
    fn filled(&self, holes: &[&str], scope: Scope) -> String {
        let texts = holes.iter().map(|text| scope.translate(text));
        let texts: Vec<Cow<'_, str>> = texts.collect();
        let mut in_order = texts.iter();
        let mut out = String::new();
        let mut rest = self.translation;
        while let Some(start) = rest.find('{') {
            let (before, hole) = rest.split_at(start);
            out.push_str(before);
            let name = hole[1..].split('}').next().unwrap_or_default();
            let text = match name.parse::<usize>() {
                Ok(number) => texts.get(number.wrapping_sub(1)),
                Err(_) if name.is_empty() => in_order.next(),
                Err(_) => None,
            };
            // Other braces are part of the text.
            match text {
                Some(text) => out.push_str(text),
                None => out.push('{'),
            }
            rest = &hole[if text.is_some() { name.len() + 2 } else { 1 }..];
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{NOT_SHOWN, literals as source_texts};
