//! Text as tokens: English words by their stem, Chinese character by character.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::han::simplified;

/// The most characters of a text that are read. Of a longer one, the beginning and the end are.
pub(super) const LONGEST: usize = 8_000;
/// The longest word that is one; the rest of it is dropped.
const LONGEST_WORD: usize = 40;

/// One piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word in letters or digits: its stem.
    Word(String),
    /// A Chinese character.
    Han(char),
    /// The end of a clause: no phrase goes across it.
    Break,
}

/// The language an answer is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

impl Language {
    /// The language of a text: Chinese where a third of it is, a Chinese character counting as
    /// much as three letters.
    pub(super) fn of(text: &str) -> Self {
        let (mut han, mut letters) = (0usize, 0usize);
        for c in text.chars().take(LONGEST) {
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

/// Whether this is a Chinese character.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// The part of a text that is read.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST / 2).collect();
    let rest = &text[start.len()..];
    let mut end: Vec<char> = rest.chars().rev().take(LONGEST / 2).collect();
    end.reverse();
    // The two halves meet in a line break, so that no word is made of both.
    if end.is_empty() {
        start
    } else {
        start + "\n" + &end.into_iter().collect::<String>()
    }
}

/// Full-width letters, digits and signs as the plain ones, in lower case; traditional characters
/// as the simplified ones.
pub(super) fn normalised(text: &str) -> String {
    text.chars()
        .map(half_width)
        .map(simplified)
        .flat_map(char::to_lowercase)
        .collect()
}

/// A full-width character as the plain one.
pub(super) fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        '\u{2019}' | '\u{2018}' => '\'',
        _ => c,
    }
}

/// The tokens of a text, stop words included.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let text = normalised(&shortened(text));
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        // `don't` is one word, as is the hurried `dont`.
        if c == '\'' && !word.is_empty() {
            continue;
        }
        if c.is_alphanumeric() && !is_han(c) {
            if word.len() < LONGEST_WORD {
                word.push(c);
            }
            continue;
        }
        end_word(&mut word, &mut tokens);
        if is_han(c) {
            tokens.push(Token::Han(c));
        } else if is_break(c) && !matches!(tokens.last(), None | Some(Token::Break)) {
            tokens.push(Token::Break);
        }
    }
    end_word(&mut word, &mut tokens);
    tokens
}

fn end_word(word: &mut String, tokens: &mut Vec<Token>) {
    if !word.is_empty() {
        tokens.push(Token::Word(stem(word)));
        word.clear();
    }
}

fn is_break(c: char) -> bool {
    matches!(
        c,
        '.' | ',' | ';' | ':' | '!' | '?' | '\n' | '(' | ')' | '。' | '、' | '…' | '“' | '”'
    )
}

/// A word without its ending: `charges`, `charged` and `charging` become one.
///
/// Light on purpose: what is one idea in two words (`deliver`, `shipping`) is the thesaurus's.
pub(super) fn stem(word: &str) -> String {
    if word.len() < 4 || !word.is_ascii() || word.bytes().any(|b| b.is_ascii_digit()) {
        return word.to_owned();
    }
    let word = without_plural(word);
    let base = ["ing", "ed"].iter().find_map(|ending| {
        let base = word.strip_suffix(ending)?;
        let has_vowel = base.bytes().any(|b| b"aeiouy".contains(&b));
        (base.len() >= 3 && has_vowel).then_some(base)
    });
    let word = match base {
        Some(base) => without_doubling(base),
        None => &word,
    };
    let word = word
        .strip_suffix('e')
        .filter(|w| w.len() >= 3)
        .unwrap_or(word);
    match word.strip_suffix('y') {
        Some(base) if base.len() >= 3 => format!("{base}i"),
        _ => word.to_owned(),
    }
}

fn without_plural(word: &str) -> String {
    if let Some(base) = word.strip_suffix("ies") {
        return format!("{base}y");
    }
    for ending in ["sses", "shes", "ches", "xes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(base) if !base.ends_with(['s', 'u', 'i']) => base.to_owned(),
        _ => word.to_owned(),
    }
}

/// `shipp` as `ship`; `bill` and `press` stay.
fn without_doubling(base: &str) -> &str {
    let bytes = base.as_bytes();
    match bytes {
        [.., a, b] if a == b && !b"lsz".contains(b) && bytes.len() > 3 => &base[..base.len() - 1],
        _ => base,
    }
}

/// Whether a stemmed word says nothing about a topic.
pub(super) fn is_stop_word(stem: &str) -> bool {
    static WORDS: OnceLock<HashSet<String>> = OnceLock::new();
    let words = WORDS.get_or_init(|| STOP_WORDS.split_whitespace().map(self::stem).collect());
    words.contains(stem) || stem.len() < 2
}

/// Whether a Chinese character says nothing about a topic.
pub(super) fn is_stop_char(c: char) -> bool {
    STOP_CHARS.contains(c)
}

const STOP_WORDS: &str = "\
a about after again all also always am an and any anybody anyone anything are arent as ask asked at \
be because been before being best both but by came can cannot cant come could couldnt day days dear \
did didnt do does doesnt doing done dont down each else even ever every everything few find for from \
get getting give go goes going gone good got gotta guys had handle handles has hasnt have havent \
having he hello help helps her here hers hey hi him his how i id if ill im in into is isnt it its ive \
just keep keeps know let lets like look looking lot made make makes many may maybe me might more most \
much must my myself name need needed needs never new no nobody not nothing now of off ok on once one \
only or other our out over own please put question questions really regarding right said same say \
saying says see seem seems she should show since so some someone something still such sure take takes \
tell than thank thanks that thats the their them then there theres these they theyre thing things \
think this those though to today told tomorrow too tried tries try trying two under until up us use \
used user using very want wanted wants was wasnt way we well went were werent what whats when whenever \
where wheres whether which while who whos why will wish with without wont work working would wouldnt \
yes yesterday yet you youre your yours agent agents colleague request requests assist assists support \
team customer customers client clients people person";

const STOP_CHARS: &str = "的了吗呢吧啊呀哦嘛么是我你您他她它们这那哪个些在有和与或及也都就还又很太请帮想要会能可以不没给把被让对为从到去来说看下上里中一二三怎什谁几多少点好用于其并等后前时候";

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Token {
        Token::Word(text.to_owned())
    }

    #[test]
    fn words_are_stemmed_and_characters_stand_alone() {
        assert_eq!(
            tokens("Charges, 扣款ＡＰＩ"),
            [
                word("charg"),
                Token::Break,
                Token::Han('扣'),
                Token::Han('款'),
                word("api")
            ]
        );
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["charge", "charges", "charged", "charging"][..],
            &["ship", "ships", "shipped", "shipping"],
            &["delivery", "deliveries"],
            &["bill", "bills", "billed", "billing"],
            &["freeze", "freezes", "freezing"],
        ] {
            let stems: HashSet<String> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
    }

    #[test]
    fn the_language_is_that_of_most_of_the_text() {
        assert_eq!(Language::of("退款 refund"), Language::Chinese);
        assert_eq!(
            Language::of("What does 退 mean in this letter?"),
            Language::English
        );
        assert_eq!(Language::of("123"), Language::English);
    }

    #[test]
    fn of_a_long_text_both_ends_are_read() {
        let long = format!("start {} end", "x ".repeat(LONGEST));
        let short = shortened(&long);
        assert!(short.starts_with("start") && short.ends_with("end"));
        assert!(short.chars().count() <= LONGEST + 1);
    }
}
