//! Which language a text is in, for colleagues who are there for one.

use super::text::{is_han, normalised};

/// The name of the language a text is in, where that shows.
pub(super) fn language(text: &str) -> Option<&'static str> {
    let text = normalised(&super::text::shortened(text));
    let by_script = text.chars().find_map(|c| match c {
        '\u{3040}'..='\u{30ff}' => Some("japanese"),
        '\u{ac00}'..='\u{d7af}' => Some("korean"),
        '\u{0400}'..='\u{04ff}' => Some("russian"),
        '\u{0600}'..='\u{06ff}' => Some("arabic"),
        _ => None,
    });
    by_script
        .or_else(|| by_words(&text))
        .or_else(|| text.contains(is_han).then_some("chinese"))
}

/// The language of which there are most common words, two at least.
fn by_words(text: &str) -> Option<&'static str> {
    let words = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty());
    let mut counts = [0usize; COMMON.len()];
    for word in words {
        for (count, (_, common)) in counts.iter_mut().zip(COMMON) {
            *count += usize::from(common.split(' ').any(|known| known == word));
        }
    }
    let most = (0..COMMON.len()).rev().max_by_key(|at| counts[*at])?;
    (counts[most] >= 2).then_some(COMMON[most].0)
}

/// Common words, of each language those that the others lack.
const COMMON: [(&str, &str); 6] = [
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
    fn a_language_is_known_by_its_words_or_its_script() {
        for (text, expected) in [
            ("Hola, ¿cómo estás?", Some("spanish")),
            ("Where is my parcel?", Some("english")),
            ("Ich habe eine Frage", Some("german")),
            ("Bonjour, je suis perdu", Some("french")),
            ("你好", Some("chinese")),
            ("こんにちは", Some("japanese")),
            ("ORD-1", None),
        ] {
            assert_eq!(language(text), expected, "{text}");
        }
    }
}
