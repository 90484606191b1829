//! A dictionary of the words that say what a number is, made from the tables by language.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::tables::words::phones::{NEXT_PHONES, OWNERS, PHONES};
use super::tables::words::things::{BARE_THINGS, CARDS, NEXT_THINGS, NUMBER_WORDS, THINGS};

mod unaccented;

/// The meaning of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Phone,
    /// A word for phone, only right before a number.
    NextPhone,
    Thing,
    /// A word for another thing, only right before its number.
    NextThing,
    /// A word for another thing, only right before a bare number.
    BareThing,
    Card,
}

/// A word that was found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A word of a table, or its form without accents.
type Entry = Cow<'static, str>;

/// Words by language; see [`PHONES`].
type Table = &'static [(&'static str, &'static str)];

/// Words by their text. A word matches as a whole, by its beginning, its end, or a part of it.
struct Words<K> {
    whole: HashMap<Entry, K>,
    /// Entries of several words or with punctuation, by their first word.
    phrases: HashMap<Entry, Vec<(Entry, K)>>,
    beginnings: HashMap<Entry, K>,
    ends: HashMap<Entry, K>,
    parts: Vec<(Entry, K)>,
}

impl<K: Copy> Words<K> {
    fn new() -> Self {
        Self {
            whole: HashMap::new(),
            phrases: HashMap::new(),
            beginnings: HashMap::new(),
            ends: HashMap::new(),
            parts: Vec::new(),
        }
    }

    /// Makes the words of tables. A word that is in several is of the kind of the first. Words without accents come last, as one
    /// may be another word.
    fn of_tables(tables: &[(Table, K)]) -> Self {
        let mut words = Self::new();
        let entries = || {
            let entries = tables.iter().flat_map(|(table, kind)| {
                let words = table.iter().flat_map(|(_, words)| words.split('|'));
                words.map(|entry| (entry.trim(), *kind))
            });
            entries.filter(|(entry, _)| !entry.is_empty())
        };
        for (entry, kind) in entries() {
            words.add(Cow::Borrowed(entry), kind);
        }
        for (entry, kind) in entries() {
            for plain in unaccented::forms(entry) {
                words.add(Cow::Owned(plain), kind);
            }
        }
        words
    }

    /// Adds an entry of a table, unless it is there already.
    fn add(&mut self, entry: Entry, kind: K) {
        let (is_end, is_beginning) = (entry.starts_with('*'), entry.ends_with('*'));
        let word = match entry {
            Cow::Borrowed(entry) => Cow::Borrowed(entry.trim_matches('*')),
            Cow::Owned(entry) => Cow::Owned(entry.trim_matches('*').to_owned()),
        };
        match (is_end, is_beginning) {
            (true, true) => self.parts.push((word, kind)),
            (true, false) => drop(self.ends.entry(word).or_insert(kind)),
            (false, true) if !word.contains(' ') => {
                self.beginnings.entry(word).or_insert(kind);
            }
            (false, _) => {
                let first = &word[..word_len(&word)];
                if first.len() < word.len() && !word.starts_with(is_dense) {
                    let first = Cow::Owned(first.to_owned());
                    self.phrases.entry(first).or_default().push((word, kind));
                } else {
                    self.whole.entry(word).or_insert(kind);
                }
            }
        }
    }

    /// Returns the kind of the word that a text begins with, and the length of the text that says so.
    fn at_start(&self, text: &str, len: usize) -> Option<(K, usize)> {
        let word = &text[..len];
        let phrases = self.phrases.get(word).into_iter().flatten();
        let ends_whole = |phrase: &str| {
            let rest = &text[phrase.len()..];
            !rest.starts_with(is_word_char) || phrase.ends_with(|c: char| !is_word_char(c))
        };
        let phrase = phrases
            .filter(|(phrase, _)| text.starts_with(&**phrase) && ends_whole(phrase))
            .max_by_key(|(phrase, _)| phrase.len());
        if let Some((phrase, kind)) = phrase {
            return Some((*kind, phrase.len().max(len)));
        }
        if let Some(kind) = self.whole.get(word) {
            return Some((*kind, len));
        }
        let boundaries = || word.char_indices().map(|(at, _)| at).skip(1);
        let beginning = boundaries()
            .chain([len])
            .filter_map(|at| self.beginnings.get(&word[..at]))
            .last();
        let part = || {
            let part = self.parts.iter().find(|(part, _)| word.contains(&**part));
            part.map(|(_, kind)| kind)
        };
        // "Büronummer" is as good as "my number".
        let end = || {
            let end = boundaries().find_map(|at| Some((at, self.ends.get(&word[at..])?)));
            end.filter(|(at, _)| !is_owner(&word[..*at]))
                .map(|(_, kind)| kind)
        };
        let kind = beginning.or_else(part).or_else(end)?;
        Some((*kind, len))
    }
}

static WORDS: LazyLock<Words<Kind>> = LazyLock::new(|| {
    Words::of_tables(&[
        (PHONES, Kind::Phone),
        (CARDS, Kind::Card),
        (NEXT_PHONES, Kind::NextPhone),
        (THINGS, Kind::Thing),
        (NEXT_THINGS, Kind::NextThing),
        (BARE_THINGS, Kind::BareThing),
    ])
});

static OWNER_WORDS: LazyLock<Words<()>> = LazyLock::new(|| Words::of_tables(&[(OWNERS, ())]));

/// Finds the words of the dictionary in a text in small letters.
pub(super) fn find(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    // The beginning of the letters without spaces that are no word so far.
    let mut dense_start = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut start = at;
        let (kind, len) = if is_dense(c) {
            let number = || number_of_thing(&text[dense_start..at], rest);
            if let Some(len) = thai_number(rest) {
                (Some(Kind::NextThing), len)
            } else if let Some(word) = dense_word(rest) {
                (Some(word.0), word.1)
            } else if let Some(len) = number() {
                start = dense_start;
                (Some(Kind::NextThing), len)
            } else if rest.starts_with(KOREAN_NUMBER) && follows_korean_thing(&text[..at], &found) {
                (Some(Kind::NextThing), KOREAN_NUMBER.len())
            } else {
                at += c.len_utf8();
                continue;
            }
        } else if is_word_char(c) {
            let len = word_len(rest);
            let word = WORDS.at_start(rest, len).or_else(|| acronym(rest, len));
            (word.map(|(kind, _)| kind), word.map_or(len, |(_, len)| len))
        } else {
            let len = c.len_utf8();
            (WORDS.whole.get(&rest[..len]).copied(), len)
        };
        at += len;
        dense_start = at;
        found.extend(kind.map(|kind| Word {
            kind,
            start,
            end: at,
        }));
    }
    found
}

/// Returns the kind of an acronym with dots or dashes between its letters, as "d-u-n-s" and "s.i.r.e.t.", and its length.
fn acronym(text: &str, first_len: usize) -> Option<(Kind, usize)> {
    const MOST_LETTERS: usize = 8;
    let (first, mut rest) = text.split_at(first_len);
    let mut joined = first.to_owned();
    for letters in 1..=MOST_LETTERS {
        let Some(next) = rest.strip_prefix(['.', '-']) else {
            break;
        };
        let len = next.chars().next().map_or(0, char::len_utf8);
        let is_letter = next.starts_with(char::is_alphabetic) && word_len(next) == len;
        if !is_letter || joined.chars().count() != letters {
            break;
        }
        joined.push_str(&next[..len]);
        rest = &next[len..];
    }
    let kind = WORDS.whole.get(&*joined)?;
    (joined.chars().count() > 2).then_some((*kind, text.len() - rest.len()))
}

/// Returns the length of a Thai word for number with the noun after it, unless it is that of a phone or says whose it is.
fn thai_number(text: &str) -> Option<usize> {
    const NUMBERS: [&str; 4] = ["หมายเลข", "เลขที่", "เลข", "รหัส"];
    const PHONES: &str = "โทร|เบอร์|มือถือ|แฟกซ์|ติดต่อ|ไลน์|วอทส์|วอตส์|พร้อมเพย์|ฉัน|ผม|หนู|เรา|พี่|น้อง|แม่|พ่อ|บ้าน|ใหม่|เก่า|นี้|แฟน|สามี|ภรรยา|เพื่อน|ลูกชาย|ลูกสาว|คุณ|สำรอง|ฉุกเฉิน|ร้าน|ออฟฟิศ|ที่ทำงาน|สำนักงาน|โรงแรม|คลินิก|โรงเรียน|โรงพยาบาล|หมอ|คนขับ|สายด่วน|คือ";
    let number = NUMBERS.iter().find(|number| text.starts_with(**number))?;
    let is_thai = |c: char| ('\u{e01}'..='\u{e4e}').contains(&c);
    let len = text.find(|c: char| !is_thai(c)).unwrap_or(text.len());
    let noun = &text[number.len()..len];
    let is_phone = *number != "รหัส" && PHONES.split('|').any(|phone| noun.contains(phone));
    (noun.chars().count() > 1 && !is_phone).then_some(len)
}

const KOREAN_NUMBER: &str = "번호";

/// Returns `true` after a noun that stands apart from the word for number, as in "고객 번호", and is none for a phone.
fn follows_korean_thing(before: &str, found: &[Word]) -> bool {
    let words = before.trim_end_matches(' ');
    let noun = words.trim_end_matches(is_dense);
    let noun = &words[noun.len()..];
    let is_named = found.last().is_some_and(|word| word.end == words.len());
    // "연락 가능한 번호": an adjective says nothing of what it is.
    let is_adjective = noun.ends_with(['한', '는', '던']);
    words.len() < before.len()
        && noun.chars().count() >= 2
        && !is_named
        && !is_adjective
        && !is_owner(noun)
}

/// Returns the length of the word for number that a text begins with, after letters that say of what, as in 合同号 and 고객번호.
fn number_of_thing(before: &str, text: &str) -> Option<usize> {
    const LONG: [&str; 3] = ["番号", "番號", "번호"];
    const SHORT: [&str; 4] = ["号", "號", "码", "碼"];
    /// Letters before a word for number that say whose it is, or that it is that of a phone.
    const OWNERS: &str = "番号號个個的我你您他她它们們这這那本新旧老该該机機话話系打线線私信急班家司人务務板宅店方公同此下上面呼叫用拨撥の이그제내집";
    let last = before.chars().next_back()?;
    let is_two = before.chars().count() >= 2;
    let begins =
        |words: &[&'static str]| words.iter().find(|word| text.starts_with(**word)).copied();
    // 号码 alone mostly is that of a phone.
    if begins(&["号码", "號碼"]).is_some() {
        return None;
    }
    let number = begins(&LONG)
        .filter(|_| is_two)
        .or_else(|| begins(&SHORT))?;
    (is_dense(last) && !OWNERS.contains(last)).then_some(number.len())
}

/// Returns the longest word that a text in a script without spaces begins with.
fn dense_word(text: &str) -> Option<(Kind, usize)> {
    const LONGEST: usize = 12;
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let words = ends
        .take(LONGEST)
        .filter_map(|end| Some((*WORDS.whole.get(&text[..end])?, end)));
    words.last()
}

/// Returns `true` for words that say whose number it is, or which of them.
pub(super) fn is_owner(word: &str) -> bool {
    OWNER_WORDS.at_start(word, word.len()).is_some()
}

pub(super) fn is_number_word(word: &str) -> bool {
    static NUMBERS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let mut words: Vec<&str> = NUMBER_WORDS.split('|').map(str::trim).collect();
        words.sort_unstable();
        words
    });
    NUMBERS.binary_search(&word).is_ok()
}

/// Returns the length of the word that a text begins with.
fn word_len(text: &str) -> usize {
    text.find(|c: char| !is_word_char(c) || is_dense(c))
        .unwrap_or(text.len())
        .max(text.chars().next().map_or(0, char::len_utf8))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || super::normalize::is_mark(c)
}

/// Returns `true` for letters of scripts whose words are not divided by spaces, and of Korean.
pub(super) fn is_dense(c: char) -> bool {
    super::emails::is_dense(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_as_a_whole_and_by_their_parts() {
        let kinds = |text: &str| find(text).iter().map(|word| word.kind).collect::<Vec<_>>();
        assert_eq!(kinds("my telephones"), [Kind::Phone]);
        assert_eq!(kinds("hotel"), []);
        assert_eq!(kinds("nota fiscal 7"), [Kind::NextThing]);
        assert_eq!(kinds("vorgangsnr"), [Kind::NextThing]);
        assert_eq!(kinds("d-u-n-s and s.i.r.e.t."), [Kind::NextThing; 2]);
        assert_eq!(kinds("a-b-c"), []);
        assert_eq!(kinds("电话 合同号"), [Kind::Phone, Kind::NextThing]);
    }
}
