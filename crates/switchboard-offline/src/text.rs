//! Tokenization: words by their English stems, Chinese text character by character.

use std::collections::HashSet;
use std::sync::OnceLock;

use crate::han::to_simplified;

/// The maximum number of characters of a text that are read, half of them from each end.
pub(crate) const MAX_CHARS: usize = 8_000;
/// The maximum length of a word in bytes; the rest is dropped.
const MAX_WORD: usize = 40;

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// The stem of a word of letters or digits.
    Word(String),
    /// A Chinese character.
    Han(char),
    /// The end of a clause. No phrase spans it.
    Break,
}

/// Returns `true` if `c` is a Chinese character.
pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Returns `text` cut to [`MAX_CHARS`] characters by dropping its middle.
pub(crate) fn truncate_middle(text: &str) -> String {
    if text.len() <= MAX_CHARS {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_CHARS / 2).collect();
    let rest = &text[start.len()..];
    let mut end: Vec<char> = rest.chars().rev().take(MAX_CHARS / 2).collect();
    end.reverse();
    // The line break keeps the two ends from forming one word.
    if end.is_empty() {
        start
    } else {
        start + "\n" + &end.into_iter().collect::<String>()
    }
}

/// Returns `text` in lower case, with half-width characters for full-width ones and simplified
/// characters for traditional ones.
pub(crate) fn normalise(text: &str) -> String {
    text.chars()
        .map(half_width)
        .map(to_simplified)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the half-width form of a full-width character, and a straight quote for a curly one.
pub(crate) fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        '\u{2019}' | '\u{2018}' => '\'',
        _ => c,
    }
}

/// Splits a text into tokens, stop words included.
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    let text = normalise(&truncate_middle(text));
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        // `don't` becomes `dont`.
        if c == '\'' && !word.is_empty() {
            continue;
        }
        if c.is_alphanumeric() && !is_han(c) {
            if word.len() < MAX_WORD {
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

/// Returns the stem of a word: the same for `charges`, `charged` and `charging`, and for `insure` and
/// `insurance`.
///
/// Strips inflections, and endings that derive a noun or an adverb without changing the meaning.
/// Synonyms are the thesaurus's part.
pub(crate) fn stem(word: &str) -> String {
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
    let word = without_e(without_derivation(without_e(word)));
    match word.strip_suffix('y') {
        Some(base) if base.len() >= 3 => format!("{base}i"),
        // `cancelled`, but not `bill`.
        _ if word.len() > 6 && word.ends_with("ll") => word[..word.len() - 1].to_owned(),
        _ => word.to_owned(),
    }
}

fn without_e(word: &str) -> &str {
    word.strip_suffix('e')
        .filter(|base| base.len() >= 3)
        .unwrap_or(word)
}

/// The endings of derived words without a final `e`: the part to strip, the least length of the rest,
/// and the part that has to come before it.
const DERIVATIONS: [(&str, usize, &str); 11] = [
    ("ation", 5, ""),
    ("ion", 5, "t"),
    ("anc", 4, ""),
    ("enc", 5, ""),
    ("ment", 3, ""),
    ("ness", 3, ""),
    ("ity", 5, ""),
    ("y", 6, "er"),
    ("at", 5, ""),
    ("al", 4, ""),
    ("ly", 4, ""),
];

/// Returns a word without the ending that derives it: `insur` for `insuranc`, `deliver` for `delivery`.
fn without_derivation(word: &str) -> &str {
    let base = DERIVATIONS.iter().find_map(|(ending, least, before)| {
        let base = word.strip_suffix(ending)?;
        (base.len() >= *least && base.ends_with(before)).then_some(base)
    });
    base.unwrap_or(word)
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

/// Undoubles a final consonant: `shipp` becomes `ship`, but `bill` and `press` stay.
fn without_doubling(base: &str) -> &str {
    let bytes = base.as_bytes();
    match bytes {
        [.., a, b] if a == b && !b"lsz".contains(b) && bytes.len() > 3 => &base[..base.len() - 1],
        _ => base,
    }
}

/// Returns `true` for the stem of a stop word.
pub(crate) fn is_stop_word(stem: &str) -> bool {
    static WORDS: OnceLock<HashSet<String>> = OnceLock::new();
    let words = WORDS.get_or_init(|| STOP_WORDS.split_whitespace().map(self::stem).collect());
    words.contains(stem) || stem.len() < 2
}

/// Returns `true` for a Chinese character that is a stop word.
pub(crate) fn is_stop_char(c: char) -> bool {
    STOP_CHARS.contains(c)
}

/// Splits the name of a field or tool into lower-case words: `orderId` and `order_id` both become
/// "order", "id".
pub(crate) fn identifier_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars().take(200) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
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
    fn words_are_stemmed_and_chinese_characters_are_single_tokens() {
        assert_eq!(
            tokenize("Charges, 扣款ＡＰＩ"),
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
            &["bill", "bills", "billed", "billing"],
            &["freeze", "freezes", "freezing"],
            &["insure", "insured", "insurance"],
            &["vaccine", "vaccinated", "vaccination", "vaccinations"],
            &["deliver", "delivery", "delivered"],
            &["inspect", "inspection"],
            &["cancel", "cancelled", "cancellation"],
            &["manage", "management"],
            &["pay", "payment"],
            &["week", "weekly"],
            &["rent", "rental"],
            &["electric", "electricity"],
        ] {
            let stems: HashSet<String> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        let long = format!("start {} end", "x ".repeat(MAX_CHARS));
        let short = truncate_middle(&long);
        assert!(short.starts_with("start") && short.ends_with("end"));
        assert!(short.chars().count() <= MAX_CHARS + 1);
    }
}
