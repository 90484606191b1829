//! Units: what a number in a text counts or measures, and whether a field asks for that.

use std::ops::Range;

use crate::entities::EntityKind;
use crate::field_kind::FieldKind;
use crate::text::{identifier_words, is_han, is_stop_word, stem};

/// What a number counts or measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unit {
    /// An amount of money.
    Money,
    /// A day of a month, or a year.
    Date,
    /// A time of day.
    Time,
    /// A place in an order, with the word that follows: `5th floor`.
    Ordinal(String),
    /// A measure of this class, such as days or metres.
    Measure(Class),
    /// Things of this kind.
    Things(String),
    /// The number of a thing of this kind: `room 12`.
    Label(String),
}

/// A class of units that are named by several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    People,
    Second,
    Minute,
    Hour,
    Day,
    Night,
    Week,
    Month,
    Year,
    Percent,
    Distance,
    Weight,
    Length,
    Area,
    Volume,
    Temperature,
    Data,
}

/// The words of each class. A number is followed by one, a field has one in its name or description.
const CLASSES: [(Class, &[&str]); 17] = [
    (
        Class::People,
        &[
            "people",
            "person",
            "guest",
            "adult",
            "child",
            "children",
            "kid",
            "pax",
            "passenger",
            "traveller",
            "traveler",
            "participant",
            "attendee",
            "visitor",
            "player",
            "friend",
            "men",
            "women",
            "diner",
            "seat",
            "party",
            "人",
            "位",
            "大人",
            "小孩",
            "成人",
            "乘客",
            "客人",
        ],
    ),
    (Class::Second, &["second", "sec", "秒"]),
    (Class::Minute, &["minute", "min", "分钟"]),
    (Class::Hour, &["hour", "hr", "h", "小时", "钟头"]),
    (Class::Day, &["day", "天", "日"]),
    (Class::Night, &["night", "晚", "夜"]),
    (Class::Week, &["week", "wk", "周", "星期", "礼拜"]),
    (Class::Month, &["month", "个月", "月"]),
    (Class::Year, &["year", "yr", "yo", "age", "岁", "年"]),
    (
        Class::Percent,
        &["percent", "percentage", "pct", "discount", "%", "折"],
    ),
    (
        Class::Distance,
        &[
            "km",
            "kilometre",
            "kilometer",
            "mile",
            "distance",
            "公里",
            "英里",
            "里程",
        ],
    ),
    (
        Class::Weight,
        &[
            "kg", "kilo", "kilogram", "gram", "g", "lb", "lbs", "ounce", "oz", "ton", "weight",
            "公斤", "千克", "斤", "克", "吨", "重量",
        ],
    ),
    (
        Class::Length,
        &[
            "cm",
            "mm",
            "m",
            "metre",
            "meter",
            "centimetre",
            "centimeter",
            "inch",
            "feet",
            "foot",
            "ft",
            "length",
            "width",
            "height",
            "depth",
            "size",
            "米",
            "厘米",
            "英寸",
            "长",
            "高",
            "宽",
        ],
    ),
    (
        Class::Area,
        &["sqm", "m2", "area", "平米", "平方米", "平方", "面积"],
    ),
    (
        Class::Volume,
        &[
            "litre", "liter", "l", "ml", "gallon", "volume", "升", "毫升",
        ],
    ),
    (
        Class::Temperature,
        &[
            "degree",
            "celsius",
            "fahrenheit",
            "temperature",
            "°",
            "度",
            "温度",
        ],
    ),
    (Class::Data, &["gb", "mb", "tb", "gigabyte", "megabyte"]),
];

/// The classes that a field for a duration takes.
const DURATIONS: [Class; 8] = [
    Class::Second,
    Class::Minute,
    Class::Hour,
    Class::Day,
    Class::Night,
    Class::Week,
    Class::Month,
    Class::Year,
];
/// The classes that a quantity may be of.
const COUNTED: [Class; 5] = [
    Class::People,
    Class::Weight,
    Class::Length,
    Class::Area,
    Class::Volume,
];
/// Words of a field for a duration.
const DURATION_WORDS: &[&str] = &["duration", "stay", "period", "term", "long", "时长", "期限"];
/// Words of a field for an amount of money.
const MONEY_WORDS: &[&str] = &[
    "amount", "price", "total", "cost", "fee", "budget", "value", "sum", "balance", "pay", "paid",
    "salary", "income", "deposit", "refund", "credit", "debt", "limit", "spend", "money", "charge",
    "worth", "tip", "fine", "damage", "loan", "euro", "eur", "dollar", "usd", "pound", "gbp",
    "yuan", "钱", "元", "金额", "价", "费", "预算", "款", "额",
];
/// Words of a field that counts whatever the text counts.
const QUANTITY_WORDS: &[&str] = &[
    "quantity", "qty", "count", "amount", "many", "piece", "unit", "item", "copy", "number",
    "数量", "件数", "个数",
];
/// Words before a number that is the number of a thing.
const LABELS: &[&str] = &[
    "room",
    "table",
    "ticket",
    "gate",
    "floor",
    "seat",
    "flight",
    "invoice",
    "account",
    "platform",
    "suite",
    "page",
    "chapter",
    "apartment",
    "flat",
    "house",
    "bus",
    "train",
    "car",
    "pitch",
    "locker",
    "box",
    "zip",
    "pin",
    "version",
    "booking",
    "order",
    "line",
];
/// Those of them that may also be a verb: `order 4 pizzas`.
const VERBS: &[&str] = &["order", "line"];

/// The number of words after a number that are read for its unit.
const WORDS_AFTER: usize = 2;

/// Returns what the number at `span` counts or measures. `None` if the text does not say.
pub(crate) fn unit_of(text: &str, kind: EntityKind, span: &Range<usize>) -> Option<Unit> {
    if kind == EntityKind::Amount {
        return Some(Unit::Money);
    }
    let number = &text[span.clone()];
    let digits = number.trim_start_matches('-');
    let small = digits.parse::<u32>().ok();
    let before = words_before(text, span.start);
    let previous = |at: usize| before.get(at).map_or("", String::as_str);
    let after = unit_after(text, number, span.end);
    let is_label = LABELS.contains(&previous(0));
    match after {
        Some(Unit::Things(_)) if is_label && !VERBS.contains(&previous(0)) => {}
        Some(unit) => return Some(unit),
        None => {}
    }
    if is_label {
        return Some(Unit::Label(stem(previous(0))));
    }
    let is_money_word = |word: &str| {
        matches!(
            word,
            "paid"
                | "pay"
                | "pays"
                | "paying"
                | "cost"
                | "costs"
                | "costing"
                | "price"
                | "priced"
                | "charged"
                | "charge"
                | "worth"
                | "owe"
                | "owed"
                | "spent"
                | "spend"
        )
    };
    let is_joined = matches!(
        previous(0),
        "of" | "is" | "was" | "me" | "you" | "us" | "him" | "her" | "them" | "for"
    );
    if is_money_word(previous(0)) || (is_joined && is_money_word(previous(1))) {
        return Some(Unit::Money);
    }
    let is_year = digits.len() == 4 && small.is_some_and(|year| (1900..2100).contains(&year));
    let is_day = small.is_some_and(|day| (1..=31).contains(&day));
    let is_hour = small.is_some_and(|hour| hour <= 24);
    match previous(0) {
        "in" | "since" | "year" if is_year => Some(Unit::Date),
        "on" if is_day => Some(Unit::Date),
        "at" | "until" | "till" | "past" | "by" | "from" | "before" | "after" | "since"
        | "between"
            if is_hour =>
        {
            Some(Unit::Time)
        }
        "to" | "and"
            if is_hour
                && before
                    .iter()
                    .skip(1)
                    .any(|word| word == "from" || word == "between") =>
        {
            Some(Unit::Time)
        }
        _ => None,
    }
}

/// Returns the unit that follows a number.
fn unit_after(text: &str, number: &str, end: usize) -> Option<Unit> {
    // A Chinese number may end with its measure word, as in 两天.
    let measure = number
        .chars()
        .next_back()
        .filter(|c| is_han(*c) && number.chars().count() > 1);
    let after: String = measure
        .into_iter()
        .chain(text[end..].chars().take(64))
        .collect();
    let after = after.to_lowercase();
    let is_attached = after.starts_with(|c: char| c.is_alphanumeric());
    let rest = after.trim_start_matches([' ', '-']);
    if rest.starts_with(|c: char| is_han(c) || "%°".contains(c)) {
        let counted = rest
            .strip_prefix('个')
            .filter(|rest| !rest.starts_with('月'));
        return han_unit(counted.unwrap_or(rest).trim_start());
    }
    let mut words = Vec::new();
    let mut rest = rest;
    while words.len() < WORDS_AFTER {
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(length);
        if word.is_empty() {
            break;
        }
        words.push(word);
        rest = match tail.strip_prefix([' ', '-']) {
            Some(rest) => rest,
            None => break,
        };
    }
    let first = *words.first()?;
    if is_attached && matches!(first, "st" | "nd" | "rd" | "th") {
        return Some(Unit::Ordinal(
            words.get(1).map(|word| stem(word)).unwrap_or_default(),
        ));
    }
    if first == "o" || first == "oclock" || first == "uhr" {
        return Some(Unit::Time);
    }
    if matches!(first, "square" | "sq") {
        return Some(Unit::Measure(Class::Area));
    }
    if first == "of" && matches!(words.get(1), Some(&("us" | "them" | "you"))) {
        return Some(Unit::Measure(Class::People));
    }
    if let Some(unit) = word_unit(first) {
        return Some(unit);
    }
    // An adjective: `4 hungry people`.
    let is_adjective = !is_stop_word(&stem(first)) && !is_number_word(first);
    words
        .get(1)
        .filter(|_| is_adjective)
        .and_then(|word| word_unit(word))
}

fn is_number_word(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the unit that an English word names after a number: one of a class, or the plural of a thing.
fn word_unit(word: &str) -> Option<Unit> {
    let stemmed = stem(word);
    if matches!(
        word,
        "euro" | "euros" | "dollars" | "dollar" | "pounds" | "pound" | "bucks" | "quid" | "cents"
    ) {
        return Some(Unit::Money);
    }
    if matches!(word, "pm" | "am") {
        return Some(Unit::Time);
    }
    let is_in = |(_, words): &&(Class, &[&str])| {
        words
            .iter()
            .any(|known| *known == word || stem(known) == stemmed)
    };
    if let Some((class, _)) = CLASSES.iter().find(is_in) {
        return Some(Unit::Measure(*class));
    }
    let is_plural =
        word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !is_stop_word(&stemmed);
    let is_plural = is_plural
        && !matches!(
            word,
            "always" | "please" | "this" | "thus" | "perhaps" | "plus"
        );
    is_plural.then_some(Unit::Things(stemmed))
}

/// Returns the unit that Chinese text begins with.
fn han_unit(text: &str) -> Option<Unit> {
    if text.starts_with(['元', '块']) {
        return Some(Unit::Money);
    }
    if text.starts_with('点') {
        return Some(Unit::Time);
    }
    if text.starts_with('号') {
        return Some(Unit::Date);
    }
    let units = CLASSES.iter().flat_map(|(class, words)| {
        let words = words.iter().filter(|word| text.starts_with(**word));
        words.map(move |word| (word.len(), *class))
    });
    let longest = units.max_by_key(|(length, _)| *length);
    longest.map(|(_, class)| Unit::Measure(class))
}

/// Returns up to four words before a number within its clause, the nearest first, without those that only
/// say how exact it is.
fn words_before(text: &str, start: usize) -> Vec<String> {
    let mut clauses = text[..start].rsplit([',', ';', '!', '?', '\n', '(', '，', '。', '；']);
    let clause = clauses.next().unwrap_or_default().to_lowercase();
    clause
        .rsplit(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .filter(|word| {
            !matches!(
                *word,
                "the" | "about" | "around" | "approximately" | "only" | "just" | "exactly"
            )
        })
        .take(4)
        .map(str::to_owned)
        .collect()
}

/// What a field asks for, by its name and description.
#[derive(Debug)]
pub(crate) struct Field {
    kind: FieldKind,
    /// The stems of its name.
    name: Vec<String>,
    /// The stems of its name and description.
    words: Vec<String>,
}

impl Field {
    pub(crate) fn new(name: &str, description: &str) -> Self {
        let stems = |text: &str| -> Vec<String> {
            let words = identifier_words(text).into_iter();
            words
                .map(|word| if word.is_ascii() { stem(&word) } else { word })
                .collect()
        };
        let own = stems(name);
        let words = own.iter().cloned().chain(stems(description)).collect();
        Self {
            kind: FieldKind::of(name, description),
            name: own,
            words,
        }
    }

    /// Returns `true` if the field may ask for a number with this unit.
    pub(crate) fn takes(&self, unit: &Unit) -> bool {
        match unit {
            Unit::Money => {
                let is_amount = self.kind == FieldKind::Entity(EntityKind::Amount);
                is_amount || has(self.telling(), MONEY_WORDS) || self.is_bare()
            }
            Unit::Date => {
                matches!(self.kind, FieldKind::Entity(EntityKind::Date))
                    || has(&self.words, &["year", "month", "dai", "day"])
            }
            Unit::Time => matches!(self.kind, FieldKind::Entity(EntityKind::Time)),
            Unit::Ordinal(word) | Unit::Label(word) => {
                self.words.contains(word) || self.has_label_kind(unit)
            }
            Unit::Measure(class) => self.takes_class(*class),
            Unit::Things(word) => {
                self.words.contains(word) || self.counts_anything() || self.is_bare()
            }
        }
    }

    /// A number after "order" may be any identifier, and one after "room" none but a room's.
    fn has_label_kind(&self, unit: &Unit) -> bool {
        let Unit::Label(word) = unit else {
            return false;
        };
        self.is_bare()
            || (self.kind == FieldKind::Id
                && self.class().is_none()
                && matches!(
                    word.as_str(),
                    "order" | "ticket" | "invoic" | "account" | "book" | "track"
                ))
    }

    fn takes_class(&self, class: Class) -> bool {
        let named = CLASSES
            .iter()
            .find(|(of, _)| *of == class)
            .map_or(&[][..], |(_, words)| words);
        has(self.telling(), named)
            || (DURATIONS.contains(&class) && has(&self.words, DURATION_WORDS))
            || (self.counts_anything() && COUNTED.contains(&class))
            || self.is_bare()
    }

    /// The words that tell what it asks for: those of its name, if they name people or a duration, else all.
    fn telling(&self) -> &[String] {
        let is_told = |class: Class| class == Class::People || DURATIONS.contains(&class);
        if self.class().is_some_and(is_told) {
            &self.name
        } else {
            &self.words
        }
    }

    /// The class that its name names.
    fn class(&self) -> Option<Class> {
        let classes = CLASSES.iter().find(|(_, words)| has(&self.name, words));
        classes.map(|(class, _)| *class)
    }

    /// A quantity of whatever it is.
    fn counts_anything(&self) -> bool {
        self.class().is_none() && self.kind != FieldKind::Id && has(&self.words, QUANTITY_WORDS)
    }

    /// Its name says nothing, as those of a calculator's operands.
    fn is_bare(&self) -> bool {
        let says_nothing = |word: &String| {
            word.len() <= 2
                || matches!(
                    word.as_str(),
                    "number"
                        | "valu"
                        | "num"
                        | "input"
                        | "operand"
                        | "first"
                        | "second"
                        | "left"
                        | "right"
                )
        };
        self.name.iter().all(says_nothing) && self.words.len() == self.name.len()
    }
}

/// Returns `true` if one of `words` is known; a Chinese one, if it contains a known one.
fn has(words: &[String], known: &[&str]) -> bool {
    words.iter().any(|word| {
        known.iter().any(|known| {
            if known.is_ascii() {
                word == known || *word == stem(known)
            } else {
                word.contains(known)
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{find_entities, prepare};

    /// The first number that a field takes.
    fn number(text: &str, name: &str, description: &str) -> Option<f64> {
        let text = prepare(text);
        let field = Field::new(name, description);
        find_entities(&text).iter().find_map(|entity| {
            let is_number = matches!(entity.kind, EntityKind::Number | EntityKind::Amount);
            let unit = unit_of(&text, entity.kind, &entity.span);
            let fits = unit.is_none_or(|unit| field.takes(&unit));
            (is_number && fits).then(|| entity.number()).flatten()
        })
    }

    #[test]
    fn a_number_with_another_unit_is_not_taken() {
        for (text, name) in [
            ("The 20 euro towel is dirty, I paid 45", "room"),
            ("Do you have lights for 50 euros?", "size"),
            ("reserve a table on 12 May", "guests"),
            ("reserve a table on the 12th", "guests"),
            ("reserve a table on 12", "guests"),
            ("a table for 8pm", "guests"),
            ("a table at 8", "guests"),
            ("a table from 6 to 8", "guests"),
            ("a table in 20 minutes", "guests"),
            ("it costs 30", "guests"),
            ("I am in room 12, a table please", "guests"),
            ("we have 2 dogs", "guests"),
            ("we have 2 big dogs", "guests"),
            ("for 3 nights", "rooms"),
            ("20% off", "quantity"),
            ("it weighs 5 kg", "days"),
            ("the 5th floor", "room"),
            ("since 2019", "quantity"),
            ("住两天", "guests"),
            ("花了50元", "人数"),
            ("12号吃饭", "人数"),
        ] {
            assert_eq!(number(text, name, ""), None, "{name}: {text}");
        }
    }

    #[test]
    fn a_number_with_a_fitting_unit_or_none_is_taken() {
        for (text, name, expected) in [
            ("a table for 4", "guests", 4.0),
            ("a table for 4 at 8", "guests", 4.0),
            ("at 8, we are 4 hungry people", "guests", 4.0),
            ("six of us on 12 May", "guests", 6.0),
            ("4 adults for 3 nights", "nights", 3.0),
            ("4 adults for 3 nights", "party_size", 4.0),
            ("4 bikes for 2 days", "days", 2.0),
            ("4 bikes for 2 days", "bikes", 4.0),
            ("for 2 weeks", "duration", 2.0),
            ("a roof of 80 square metres", "roof_area", 80.0),
            ("book 4 seats please", "seats", 4.0),
            ("order 4 pizzas", "pizzas", 4.0),
            ("towels for room 12", "room", 12.0),
            ("a budget of 100 dollars", "budget", 100.0),
            ("I paid 45", "amount", 45.0),
            ("3 kg of apples", "quantity", 3.0),
            ("the 5th floor", "floor", 5.0),
            ("he is 7 years old", "age", 7.0),
            ("add 2 apples and 3 pears", "a", 2.0),
            ("cancel order 5512", "order_number", 5512.0),
            ("四个人", "人数", 4.0),
            ("两位，三晚", "nights", 3.0),
        ] {
            assert_eq!(number(text, name, ""), Some(expected), "{name}: {text}");
        }
    }
}
