//! The language of a text.

use crate::text::{MAX_CHARS, is_han, normalise, truncate_middle};

/// A language that the model replies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    /// Returns the language to reply to `text` in: Chinese if it has at least one Chinese character
    /// to six other letters.
    pub(crate) fn of(text: &str) -> Self {
        let (mut han, mut letters) = (0usize, 0usize);
        for c in text.chars().take(MAX_CHARS) {
            han += usize::from(is_han(c));
            letters += usize::from(c.is_alphabetic() && !is_han(c));
        }
        if han > 0 && han * 6 >= letters {
            Self::Chinese
        } else {
            Self::English
        }
    }
}

/// Returns the lower-case English name of the language of `text`, if it can be detected.
pub(crate) fn detect_language(text: &str) -> Option<&'static str> {
    let text = normalise(&truncate_middle(text));
    let by_script = text.chars().find_map(|c| match c {
        '\u{3040}'..='\u{30ff}' => Some("japanese"),
        '\u{ac00}'..='\u{d7af}' => Some("korean"),
        '\u{0400}'..='\u{04ff}' => Some("russian"),
        '\u{0600}'..='\u{06ff}' => Some("arabic"),
        _ => None,
    });
    by_script
        .or_else(|| detect_by_words(&text))
        .or_else(|| text.contains(is_han).then_some("chinese"))
}

/// Returns the language with the most common words in `text`, if there are at least two.
fn detect_by_words(text: &str) -> Option<&'static str> {
    let words = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty());
    let mut counts = [0usize; COMMON_WORDS.len()];
    for word in words {
        for (count, (_, common)) in counts.iter_mut().zip(COMMON_WORDS) {
            *count += usize::from(common.split(' ').any(|known| known == word));
        }
    }
    let most = (0..COMMON_WORDS.len()).rev().max_by_key(|at| counts[*at])?;
    (counts[most] >= 2).then_some(COMMON_WORDS[most].0)
}

/// The common words of each language.
const COMMON_WORDS: [(&str, &str); 6] = [
    (
        "english",
        "the is are my and you to it have what how where can not do i please with for",
    ),
    (
        "french",
        "le les je vous est et une mon ma mes pour pas bonjour merci où suis avec sur dans comment allez",
    ),
    (
        "german",
        "der die das ich und ist nicht mein meine bitte danke wo wie ein eine hallo mit kann für habe geht",
    ),
    (
        "italian",
        "il gli sono ciao grazie mio mia che non di per una dove voglio posso della è buongiorno stai",
    ),
    (
        "portuguese",
        "o os não meu minha obrigado obrigada olá você uma onde quero posso está com em eu bom dia",
    ),
    (
        "spanish",
        "el los hola gracias mi mis qué cómo como estás está dónde donde quiero puedo una no por favor con yo buenos días",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_detected_by_its_words_or_its_script() {
        for (text, expected) in [
            ("Hola, ¿cómo estás?", Some("spanish")),
            ("Where is my parcel?", Some("english")),
            ("Ich habe eine Frage", Some("german")),
            ("Bonjour, je suis perdu", Some("french")),
            ("你好", Some("chinese")),
            ("こんにちは", Some("japanese")),
            ("ORD-1", None),
        ] {
            assert_eq!(detect_language(text), expected, "{text}");
        }
    }

    #[test]
    fn the_reply_is_in_the_language_of_most_of_the_text() {
        assert_eq!(Language::of("退款 refund"), Language::Chinese);
        assert_eq!(
            Language::of("What does 退 mean in this letter?"),
            Language::English
        );
        assert_eq!(Language::of("123"), Language::English);
    }
}
