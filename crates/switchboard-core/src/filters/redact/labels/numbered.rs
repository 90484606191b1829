//! Numbers of things that no table lists: a word for number with a noun next to it, as in "locker number" and "numéro de casier".

use super::super::dictionary::{is_dense, is_number_word, is_owner};

/// A word of a clause, from its end.
struct Token<'t> {
    word: String,
    is_capital: bool,
    /// All of it is in capitals, as an abbreviation.
    is_acronym: bool,
    /// The text after the word, up to the next one or the number.
    gap: &'t str,
}

/// Returns `true` if the last words of a clause are a word for number and a noun that says of what.
pub(super) fn is_number_of_thing(clause: &str) -> bool {
    const MOST_WORDS: usize = 6;
    let mut tokens = last_tokens(clause, MOST_WORDS);
    // "the locker number is"
    while tokens.len() > 1 && is_copula(&tokens[0].word) && is_number_word(&tokens[1].word) {
        tokens.remove(0);
    }
    let Some(last) = tokens.first() else {
        return false;
    };
    let ends_near = |gap: &str| gap.chars().all(|c| " .:#=/\"'(-_°ºª№：\t".contains(c));
    if !ends_near(last.gap) {
        return false;
    }
    if is_number_word(&last.word) {
        // "locker number", "Fahrgest.-Nr."
        return tokens.get(1).is_some_and(|noun| {
            let stands_next =
                noun.gap.chars().all(|c| " .-_'’/".contains(c)) && noun.gap.len() <= 3;
            let is_own = tokens
                .get(2)
                .is_some_and(|owner| is_possessive(&owner.word));
            // "my airtel number"
            stands_next && is_thing(noun) && !is_own
        });
    }
    // "numéro de casier", "número da apólice", "číslo smlouvy"
    let is_plain_gap = |token: &Token<'_>| {
        matches!(
            token.gap,
            " " | "_" | "'" | "’" | "° " | "º " | ". " | "° de "
        )
    };
    let Some(number) = tokens
        .iter()
        .skip(1)
        .take(3)
        .position(|token| is_number_word(&token.word))
    else {
        return false;
    };
    let number = number + 1;
    let between = &tokens[1..number];
    // An adjective or a verb may stand next to the word: "número gratuito", "номер изменился".
    let has_noun_next = matches!(
        &*tokens[number].word,
        "رقم"
            | "الرقم"
            | "شماره"
            | "نمبر"
            | "מספר"
            | "מס"
            | "số"
            | "mã"
            | "nomor"
            | "nombor"
            | "kode"
            | "کد"
            | "كود"
            | "קוד"
            | "nr"
            | "broj"
            | "číslo"
            | "αριθμός"
            | "αρ"
            | "código"
            | "codigo"
            | "codice"
            | "cod"
            | "kód"
            | "koodi"
            | "κωδικός"
            | "код"
    );
    let needs_of = !has_noun_next;
    let is_of = |word: &str| is_of(word) || (word == "i" && tokens[number].word == "numri");
    if needs_of && !between.iter().any(|token| is_of(&token.word)) {
        return false;
    }
    is_thing(last)
        && !matches!(
            &*tokens[number].word,
            "number" | "numbers" | "id" | "code" | "no" | "n" | "br" | "kod" | "on"
        )
        && tokens[1..=number].iter().all(is_plain_gap)
        && between
            .iter()
            .all(|token| is_of(&token.word) || (between.len() == 1 && is_thing(token)))
}

/// Returns `true` for a noun in small letters or an abbreviation that is no word for whose number it is.
fn is_thing(token: &Token<'_>) -> bool {
    let letters = token.word.chars().count();
    let is_letters = token.word.chars().all(|c| !c.is_ascii_digit());
    is_letters
        && letters >= 2
        && (!token.is_capital
            || token.is_acronym
            || token.gap.contains('-')
            || token.gap.contains('.'))
        && !is_owner(&token.word)
        && !is_of(&token.word)
        && !is_copula(&token.word)
        && !is_number_word(&token.word)
}

fn is_possessive(word: &str) -> bool {
    const WORDS: &str = "my|mine|our|his|her|their|your|mein|meine|meiner|unsere|ihre|seine|mijn|mon|notre|son|mi|nuestro|su|meu|minha|nosso|mio|nostro|min|mitt|mit|mina|\
        mój|moje|můj|moj|moja|мой|моя|мій|моят|benim|मेरा|मेरी";
    WORDS.split('|').any(|own| own.trim() == word)
}

fn is_of(word: &str) -> bool {
    const OF: &str = "ng|de|du|des|d|del|della|dello|dell|di|do|da|dos|das|van|von|av|af|of|des|der|la|l|el|o|a|za|al|ya|wa";
    OF.split('|').any(|of| of == word)
}

fn is_copula(word: &str) -> bool {
    const IS: &str =
        "is|are|was|ist|lautet|est|es|er|är|è|é|jest|to|je|este|on|e|είναι|هو|است|הוא|है|là|adalah";
    IS.split('|').any(|is| is == word)
}

/// Returns the last words of a clause, the last one first.
fn last_tokens(clause: &str, most: usize) -> Vec<Token<'_>> {
    let is_word =
        |c: char| (c.is_alphanumeric() || super::super::normalize::is_mark(c)) && !is_dense(c);
    let mut tokens = Vec::new();
    let mut rest = clause;
    while tokens.len() < most {
        super::super::count_steps(1);
        let until_word = rest.trim_end_matches(|c: char| !is_word(c) && !is_dense(c));
        if until_word.is_empty() || until_word.ends_with(is_dense) {
            break;
        }
        let before = until_word.trim_end_matches(is_word);
        let word = &until_word[before.len()..];
        let mut letters = word.chars();
        let is_capital = letters.next().is_some_and(char::is_uppercase);
        tokens.push(Token {
            word: word.to_lowercase(),
            is_capital,
            is_acronym: is_capital
                && word.chars().count() > 1
                && letters.all(|c| !c.is_lowercase()),
            gap: &rest[until_word.len()..],
        });
        rest = before;
    }
    // The first word of a sentence has a capital letter anyway.
    if tokens.len() < most
        && let Some(first) = tokens.last_mut()
        && rest.trim().is_empty()
    {
        first.is_capital &= first.is_acronym;
    }
    tokens
}
