//! The words before a number that say what it is.

use std::sync::LazyLock;

use regex::Regex;

use super::dictionary::{self, Kind, Word};
use super::numbers::last_bytes;
use super::tables::words::phones::NO_PHONES;
use super::tables::words::things::{BILLS, NUMBER_WORDS, OFFICES};

mod numbered;

/// The place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Text,
    /// A number of JSON after its key. Most of them count something.
    JsonNumber,
}

/// The meaning of a word before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Phone,
    /// A card, also one that is none of a payment network.
    Card,
    /// Something that is neither a phone nor a person, as an order or an amount.
    Other,
    /// Something that only a bare number counts or names, as a process.
    OtherBare,
}

/// A word before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) meaning: Meaning,
    /// The number of bytes between the word and the number.
    pub(super) distance: usize,
    /// Nothing but punctuation and words as "number is" stands between.
    pub(super) is_adjacent: bool,
}

impl Label {
    /// A number right after a word for card is none of a phone.
    fn for_phones(self) -> Self {
        let meaning = match self.meaning {
            Meaning::Card => Meaning::Other,
            meaning => meaning,
        };
        Self { meaning, ..self }
    }
}

/// Words for phones that make a longer word mean a phone wherever they stand in it, as in "Diensttelefonnummer".
const PHONE_INSIDE: &str = "tele[fp]on|telefoon|telefax|faxnum|phone|handy|mobil|rufnum|notruf|notfall|hotline|whatsapp|kontaktnum|festnetz|\
    durchwahl|servicenum|wählnum|[電电][話话]|手[机機]|携[帯带帶]|[連连]絡先|[联聯]絡|ケータイ|スマホ|ファック?ス|ファクシミリ|テレ[フホ]|フリーダイヤル|\
    モバイル|(?:緊急|直通|内線|代表|自宅)番|전화|휴대|핸드폰|모바일|팩스|연락|(?:대표|비상|긴급|자택|사무실|회사|직장)번";

/// Words for cards that make a longer word mean a card wherever they stand in it.
const CARD_INSIDE: &str = "karte|kort|kaart|card|tarjeta|cartão|cartao|kártya|カード|카드|卡";

/// Matches words for phones in its first group and words for cards in its second, anywhere in a longer word.
static INSIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!("({PHONE_INSIDE})|({CARD_INSIDE})").replace("    ", "")).ok()
});

/// Matches what may stand between a word and the number that it names.
static GAP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "ids|key|was|of|at|on|to|es|e|me|my|our|us|es el|le|la|el|to|al|au|para|på|til|mig|meg|mi|mir|unter|sie|mich|hier|\
        ao|di|do|en|ke|na|no|op|pe|po|pod|sa|se|sem|till|via|на|по|за|στο|στον|על|على|به";
    Regex::new(&format!(
        r#"^(?:[\s.:#=/"',()\-°ºª№&+{{\[：，|]|\b(?:{words}|{IS}|{MY}|{NUMBER_WORDS})\b|{DENSE_IS})*$"#
    ).replace("    ", ""))
    .ok()
});

/// Matches what may stand between a word and the number that comes right after it: no words of a sentence, as in
/// "send requests to 4155552671".
static STRICT_GAP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"^(?:[\s.:#=/"'(\-°ºª№{{\[：]|\b(?:{IS}|{MY}|{COUNTRIES}|{NUMBER_WORDS})\b|{DENSE_IS})*$"#
    ).replace("    ", ""))
    .ok()
});

/// Words for "is" between a word and its number.
const IS: &str = "is|are|ist|sind|lautet|lauten|est|sont|er|är|è|é|jest|je|este|είναι|هو|هي|است|הוא|היא|है|là|adalah|ialah|ids";

/// Words for "my" that follow what is mine.
const MY: &str = "meu|mea|μου|שלי|من|saya|anda|kami|yangu|im|ime|min|mitt|mine|ko|namin|của em|của tôi|của mình|của anh|của chị";

/// Codes of countries before a number of a register.
const COUNTRIES: &str =
    "be|nl|de|fr|pt|pl|cz|sk|hu|ro|bg|hr|si|gb|ie|lu|dk|se|fi|ee|lv|lt|cy|mt|ch|jel|szám";

/// Words for "is" in Chinese, Japanese, Korean and Thai, with words for number.
const DENSE_IS: &str = "号码|號碼|号|號|码|碼|番号|番號|番|번호|는|은|は|是|为|為|的|คือ";

/// Matches the beginning of an identifier that goes on with a number, as `10.1000/` and `2026-A/`.
static BEGUN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\w.\-]*\d[\w.\-]*[/.:_\-]$").ok());

/// Matches words and signs after which a number counts something, as in "7 of 12" and "more than 12".
static COUNTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:\d\S* ?(?:of|out of|von|sur|van|av|af|из)|\b(?:more|less|fewer|greater|higher|lower|larger|smaller)\s+than|\b(?:mehr|weniger|größer|kleiner|höher) als|(?:plus|moins) de|(?:más|menos|mais|più|meno) d[ei]|(?:meer|minder|groter|kleiner) dan|(?:mer|mere|fler|färre|mindre|større|större) [äe]n[nd]?|(?:больше|меньше|более|менее|більше|менше|повече|по-малко)(?: чем| ніж| от)?|(?:więcej|mniej) niż|(?:více|méně) než|(?:lebih|kurang) dari|(?:nhiều|ít|lớn|nhỏ) hơn|mai (?:mult|puțin) de|enemmän kuin|több,? mint|(?:超过|大于|小于|多于|少于|超過|大於|小於)|[≥≤≈×^])\s*$").ok()
});

/// The bytes before a number in which words are searched.
const WINDOW: usize = 72;

/// The bytes before a number of which the words are read one by one.
const NEAR: usize = 48;

/// Returns the last word before a number that says what it is.
pub(super) fn nearest(before: &str) -> Option<Label> {
    let label = last_label(before, |label| {
        label.meaning != Meaning::Card || label.is_adjacent
    });
    let label = label.map(Label::for_phones);
    let may_be_numbered = |label: Label| match label.meaning {
        Meaning::Phone => false,
        Meaning::OtherBare => true,
        Meaning::Card | Meaning::Other => !label.is_adjacent,
    };
    if label.is_none_or(may_be_numbered)
        && numbered::is_number_of_thing(clause(last_bytes(before, NEAR)))
    {
        return Some(Label {
            meaning: Meaning::Other,
            distance: 0,
            is_adjacent: true,
        });
    }
    label
}

/// Returns what the name of a column or a key says of its value.
pub(super) fn meaning_of_key(key: &str) -> Option<Meaning> {
    let label = nearest(&format!("{key}: ")).filter(|label| label.is_adjacent);
    label.map(|label| label.meaning)
}

/// Returns `true` if the last word before a number says that it is that of another thing than a card.
pub(super) fn is_no_card(before: &str) -> bool {
    last_label(before, |_| true).is_some_and(|label| label.meaning == Meaning::Other)
}

fn clause(window: &str) -> &str {
    let end = window.rfind(['\n', ';', '!', '?', '。']);
    end.map_or(window, |end| &window[end..])
}

fn last_label(before: &str, is_meant: impl Fn(&Label) -> bool) -> Option<Label> {
    super::count_steps(WINDOW);
    let text = clause(last_bytes(before, WINDOW))
        .to_lowercase()
        .replace('_', " ");
    let words = dictionary::find(&text);
    let mut last = None;
    let mut before = None;
    for word in words {
        let is_phone = last.is_some_and(|last: Label| last.meaning == Meaning::Phone);
        let label = label(&text, word).map(|label| match before {
            Some(phone) if is_phone_of(&text, phone, word) => Label {
                meaning: Meaning::Phone,
                ..label
            },
            // "SMS the reference to 071 123 4592"
            _ if is_phone && is_destination(&text[word.end..]) => Label {
                meaning: Meaning::Phone,
                ..label
            },
            _ => label,
        });
        // "sipariş numaram" is "my order number".
        let is_number_of_thing = before.is_some_and(|thing: Word| {
            word.kind == Kind::NextPhone
                && dictionary::is_number_word(&text[word.start..word.end])
                && matches!(thing.kind, Kind::Thing | Kind::NextThing)
                && text[thing.end.min(word.start)..word.start] == *" "
        });
        let label = label.filter(|_| !is_number_of_thing).filter(|label| {
            let is_near_phone = last.is_some_and(|last: Label| last.meaning == Meaning::Phone);
            is_meant(label) && !(label.meaning == Meaning::OtherBare && is_near_phone)
        });
        last = label.or(last);
        before = Some(word);
    }
    last
}

/// Returns `true` if the text between a word and a number says that something goes there.
fn is_destination(gap: &str) -> bool {
    const TO: &str = "to|on|at|an|auf|unter|au|à|sur|al|a|para|no|ao|para o|su|naar|op|till|på|til|na|pod|do|на|за|по|la|ke|numeroon|numaraya";
    let words = gap.trim_matches(' ');
    gap.starts_with(' ') && TO.split('|').any(|to| to == words)
}

/// Beginnings of words for people, whose numbers may be phones or passports.
const PEOPLE: &str = "customer|client|employee|passenger|student|donor|subscriber|kund|asiaka|abonn|klient|kunde|klant|cliente|клиент|клієнт|абонент|zákaz|ügyfél|müşteri|pacient|patient|пациент|пацієнт|πελάτ|pelanggan|usuari|utente|member|العميل|عميل|مشتری";

/// Returns `true` if a word for phone and the next word mean the phone of somebody, as in "teléfono del cliente" and
/// "telefon klienta". After a verb, as in "call for order 12", they do not.
fn is_phone_of(text: &str, phone: Word, thing: Word) -> bool {
    const NOUNS: &str = "tel|тел|phone|mobil|móvil|celular|cellul|handy|fax|gsm|whatsapp|puh|τηλ|κιν|моб|тлф|tlf|tél|telé|หมาย";
    static OF: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^[\s.]+(?:\w+\s+){0,3}(?:of|for|on|with|to|del|de|du|sur|au|do|da|no|na|di|sul|al|des|der|zum|zur|auf|von|vom|van|voor|op|av|af|på|til|till|für|för|pour|para|per|su|za|w|do|k|u|на|в|для|к|до|у|pentru|dla)\s+(?:(?:the|my|your|this|that|la|las|los|el|mi|mon|ma|le|les|l|il|lo|der|die|das|dem|den|mein\w*|o|a|os|as|het|de)\s+|[ld]['’])*$|^[\s.]+(?:[ld]['’])$",
        )
        .ok()
    });
    let begins = |word: Word, beginnings: &str| {
        let word = &text[word.start..word.end];
        beginnings
            .split('|')
            .any(|beginning| word.starts_with(beginning))
    };
    let between = &text[phone.end.min(thing.start)..thing.start];
    let follows = |between: &str| {
        matches!(between.trim_start_matches([' ', '.']), "" | "the ")
            || OF.as_ref().is_some_and(|of| of.is_match(between))
    };
    let is_of = OF.as_ref().is_some_and(|of| of.is_match(between));
    phone.kind == Kind::Phone
        && matches!(thing.kind, Kind::NextThing | Kind::BareThing)
        && ((begins(phone, NOUNS) && is_of) || (begins(thing, PEOPLE) && follows(between)))
}

/// Returns the label that a word is, unless it only is one right before the number.
fn label(text: &str, word: Word) -> Option<Label> {
    let gap = &text[word.end..];
    let word_text = &text[word.start..word.end];
    if matches!(word.kind, Kind::Thing | Kind::NextThing)
        && OFFICES.iter().any(|office| word_text.ends_with(office))
    {
        return None;
    }
    let is_phone_word = matches!(word.kind, Kind::Phone | Kind::NextPhone);
    let meaning = match Inside::of(word_text) {
        _ if is_phone_word && BILLS.iter().any(|bill| word_text.ends_with(bill)) => Meaning::Other,
        _ if is_phone_word => Meaning::Phone,
        _ if word.kind == Kind::Card => Meaning::Card,
        _ if word_text.contains(' ') => Meaning::Other,
        Inside::Phone => Meaning::Phone,
        Inside::Card => Meaning::Card,
        Inside::Other if word.kind == Kind::BareThing => Meaning::OtherBare,
        Inside::Other => Meaning::Other,
    };
    let is_phone = meaning == Meaning::Phone;
    let named = if is_phone {
        gap
    } else {
        without_begun_identifier(gap)
    };
    let allowed = match word.kind {
        Kind::NextThing | Kind::BareThing if !is_phone => &STRICT_GAP,
        _ => &GAP,
    };
    let mut is_adjacent = allowed
        .as_ref()
        .is_some_and(|allowed| allowed.is_match(named));
    let is_weak = match word.kind {
        Kind::Phone | Kind::Card => false,
        Kind::NextPhone => true,
        Kind::Thing => matches!(word_text, "$" | "€"),
        Kind::NextThing | Kind::BareThing => !is_phone,
    };
    // "the clinic's line, 617-555-0111"
    is_adjacent &= !(is_weak && gap.starts_with(','));
    (is_adjacent || !is_weak || meaning == Meaning::Card).then_some(Label {
        meaning,
        distance: gap.len(),
        is_adjacent,
    })
}

/// The meaning of the parts of a long word.
enum Inside {
    Phone,
    Card,
    Other,
}

impl Inside {
    fn of(word: &str) -> Self {
        let is_no_phone = NO_PHONES.iter().any(|other| word.contains(other));
        let words = INSIDE
            .iter()
            .flat_map(|inside| inside.captures_iter(word))
            .filter(|words| !(is_no_phone && words.get_match().as_str() == "mobil"));
        let mut found = Self::Other;
        for words in words {
            if words.get(1).is_some() {
                return Self::Phone;
            }
            found = Self::Card;
        }
        found
    }
}

/// Returns the text between a word and the identifier that a number is part of: the word names all of it, as
/// in "doi:10.1000/4155552671".
fn without_begun_identifier(gap: &str) -> &str {
    let begun = BEGUN.as_ref().and_then(|begun| begun.find(gap));
    begun.map_or(gap, |begun| &gap[..begun.start()])
}

/// Returns `true` if the text before a number says that it counts something.
pub(super) fn is_counted(before: &str) -> bool {
    let near = last_bytes(before, 24);
    super::count_steps(near.len());
    COUNTED
        .as_ref()
        .is_some_and(|counted| counted.is_match(near))
}

/// Returns `true` if a number continues a path, an identifier that began with letters and digits, or a DOI.
pub(super) fn continues_path(before: &str) -> bool {
    let Some(path) = before.strip_suffix('/') else {
        return false;
    };
    let token = last_bytes(path, 64).rsplit(char::is_whitespace).next();
    let token = token.unwrap_or_default();
    // "home/415…" and "415-…(h)/415-…" may be one of two phones.
    let is_plain = token
        .chars()
        .all(|c| c.is_alphanumeric() || "./:_-%".contains(c));
    // "Tel:030-1234567/0171-1234567": the word and the sign before the first number are no part of it.
    let mut parts = token.rsplit(|c: char| c == ':' || !c.is_ascii());
    let begun = parts.next().unwrap_or_default();
    let has_digit = begun.contains(|c: char| c.is_ascii_digit());
    let is_named =
        begun.starts_with(char::is_alphabetic) && has_digit && !begins_with_phone_word(begun);
    is_plain
        && (is_named
            || begun.starts_with("10.")
            || (token.starts_with('/') && token.contains(char::is_alphabetic)))
}

/// Returns `true` after capital letters and a slash, with which the numbers of documents begin: "FV/", "INV/".
pub(super) fn continues_capitals(before: &str) -> bool {
    const LONGEST: usize = 32;
    let Some(token) = before.strip_suffix('/') else {
        return false;
    };
    let letters = last_bytes(token, LONGEST)
        .rsplit(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    letters.chars().count() > 1 && letters.chars().all(char::is_uppercase)
}

/// Returns `true` if a word for phone comes before the number, as in "Tel.030-1234567".
pub(super) fn begins_with_phone_word(token: &str) -> bool {
    let token = token.to_lowercase();
    let words = dictionary::find(&token);
    words
        .first()
        .is_some_and(|word| word.start == 0 && word.kind == Kind::Phone)
}

/// Returns `true` if the words right before a number say that it is neither a phone nor a person's.
pub(super) fn is_of_another_thing(before: &str) -> bool {
    nearest(before).is_some_and(|label| label.is_adjacent && label.meaning == Meaning::Other)
}

/// Returns `true` if the text between a word and a number has a word for another number.
pub(super) fn has_another_label(gap: &str) -> bool {
    let text = gap.to_lowercase();
    let is_meant = |word: &str| matches!(word, "ref" | "№" | "编号" | "編號");
    // "passport, document number 1234567"
    let is_document = |word: &str| {
        const DOCUMENTS: &str = "doc|dok|док|id|serie|séri|seri|сери|code|kod|код|เลข|证件|證件";
        let beginnings = DOCUMENTS.split('|').chain(PEOPLE.split('|'));
        let mut beginnings = beginnings.filter(|beginning| word.starts_with(beginning));
        beginnings.next().is_some() || dictionary::is_number_word(word)
    };
    let mut words = dictionary::find(&text).into_iter().filter(|word| {
        let is_adjacent = || {
            let gap = STRICT_GAP.as_ref();
            gap.is_some_and(|gap| gap.is_match(&text[word.end..]))
        };
        match word.kind {
            Kind::Phone => true,
            Kind::Thing => is_adjacent(),
            Kind::NextThing => is_adjacent() && !is_document(&text[word.start..word.end]),
            _ => false,
        }
    });
    words.any(|word| !is_meant(&text[word.start..word.end]))
}

/// Returns the words of a JSON key: those of `contactPhone` are "contact Phone".
pub(super) fn words_of_key(key: &str) -> String {
    super::count_steps(key.len());
    let mut words = String::with_capacity(key.len() + 4);
    let mut was_small = false;
    for c in key.chars() {
        if was_small && c.is_uppercase() {
            words.push(' ');
        }
        was_small = c.is_lowercase();
        words.push(c);
    }
    words
}

/// Returns `true` for the words of a key that say only that its value is a number, or which one: the key around it may
/// say of what, as in `{"phone": {"number": …}}` and `{"phones": {"home": …}}`.
pub(super) fn says_number(words: &str) -> bool {
    const WORDS: &str = "number|no|nr|num|value|raw|digits|formatted|full|national|international|nummer|número|numero|numéro|номер|\
        号码|號碼|号|番号|번호|رقم";
    let words = words.to_lowercase();
    WORDS.split('|').any(|word| word.trim() == words.trim()) || dictionary::is_owner(&words)
}

/// Returns `true` after the key of a value, as in `"count": ` and `count=`.
pub(super) fn follows_key(before: &str) -> bool {
    let before = before.trim_end_matches(' ');
    match before.strip_suffix(':') {
        Some(key) => key.ends_with(['"', '\'']),
        None => before.ends_with('='),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(
            [&INSIDE, &GAP, &STRICT_GAP, &BEGUN, &COUNTED]
                .iter()
                .all(|pattern| pattern.is_some())
        );
    }

    #[test]
    fn the_nearest_word_counts() {
        let meaning =
            |before: &str| nearest(before).map(|label| (label.meaning, label.is_adjacent));
        assert_eq!(meaning("order "), Some((Meaning::Other, true)));
        assert_eq!(meaning("order 7, phone no. "), Some((Meaning::Phone, true)));
        assert_eq!(
            meaning("call about order number "),
            Some((Meaning::Other, true))
        );
        assert_eq!(
            meaning("my order, placed on Monday, "),
            Some((Meaning::Other, false))
        );
        assert_eq!(meaning("hotel "), None);
        assert_eq!(meaning("customer_phone: "), Some((Meaning::Phone, true)));
    }
}
