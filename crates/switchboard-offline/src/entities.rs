//! Entities in a text: numbers, identifiers, addresses, dates, amounts.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use crate::text::{half_width, truncate_middle};

/// The maximum number of entities of one text.
const MAX_ENTITIES: usize = 64;

/// The kind of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntityKind {
    Email,
    Url,
    Date,
    Time,
    Amount,
    Phone,
    Id,
    Number,
}

/// An entity in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entity {
    pub(crate) kind: EntityKind,
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

impl Entity {
    /// Returns the number that the entity states, if any.
    pub(crate) fn number(&self) -> Option<f64> {
        if let Some(number) = spelled_number(&self.text) {
            return Some(number);
        }
        let digits: String = self
            .text
            .chars()
            .filter(|c| c.is_ascii_digit() || "-.".contains(*c))
            .collect();
        let digits = digits.trim_matches(['-', '.'].as_slice());
        let sign = if self.text.starts_with('-') {
            -1.0
        } else {
            1.0
        };
        digits
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(|number| number * sign)
    }
}

/// Returns the entities of a text in order. Of two that overlap, the more specific one is kept.
pub(crate) fn find_entities(text: &str) -> Vec<Entity> {
    let mut entities: Vec<Entity> = Vec::new();
    for (kind, pattern) in patterns() {
        for found in pattern.find_iter(text).take(MAX_ENTITIES) {
            let span = found.range();
            let overlaps = entities
                .iter()
                .any(|entity| span.start < entity.span.end && entity.span.start < span.end);
            if !overlaps && entities.len() < MAX_ENTITIES {
                entities.push(Entity {
                    kind: *kind,
                    text: found.as_str().trim().to_owned(),
                    span,
                });
            }
        }
    }
    entities.sort_by_key(|entity| entity.span.start);
    entities
}

/// Prepares a text for [`find_entities`]: truncated, and with half-width characters.
pub(crate) fn prepare(text: &str) -> String {
    truncate_middle(text).chars().map(half_width).collect()
}

/// Returns the ISO code of the currency that a text names.
pub(crate) fn currency(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    CURRENCIES
        .iter()
        .find(|(_, words)| words.iter().any(|word| text.contains(word)))
        .map(|(code, _)| *code)
}

const CURRENCIES: [(&str, &[&str]); 7] = [
    ("HKD", &["hkd", "hk$", "港币", "港元"]),
    ("USD", &["$", "usd", "dollar", "美元", "美金", "刀"]),
    ("EUR", &["€", "eur", "欧元"]),
    ("GBP", &["£", "gbp", "pound", "英镑"]),
    ("JPY", &["jpy", "yen", "日元"]),
    ("INR", &["₹", "inr", "rupee", "卢比"]),
    (
        "CNY",
        &["¥", "￥", "cny", "rmb", "yuan", "元", "块", "人民币"],
    ),
];

/// Parses a number from zero to twelve in words.
fn spelled_number(word: &str) -> Option<f64> {
    let word = word.to_lowercase();
    // In Chinese a measure word follows the number, as in 两件.
    let word = word.trim_end_matches(|c| MEASURE_WORDS.contains(c));
    NUMBER_WORDS
        .iter()
        .position(|words| words.contains(&word))
        .map(|number| number as f64)
}

const MEASURE_WORDS: &str = "个件套位人台份张次晚天间年月只本名盒瓶";

const NUMBER_WORDS: [&[&str]; 13] = [
    &["zero", "零"],
    &["one", "一"],
    &["two", "二", "两"],
    &["three", "三"],
    &["four", "四"],
    &["five", "五"],
    &["six", "六"],
    &["seven", "七"],
    &["eight", "八"],
    &["nine", "九"],
    &["ten", "十"],
    &["eleven", "十一"],
    &["twelve", "十二"],
];

/// Returns the patterns of each kind, the more specific first.
fn patterns() -> &'static [(EntityKind, Regex)] {
    static PATTERNS: OnceLock<Vec<(EntityKind, Regex)>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        PATTERN_TEXTS
            .iter()
            .filter_map(|(kind, text)| Some((*kind, Regex::new(text).ok()?)))
            .collect()
    })
}

const PATTERN_TEXTS: [(EntityKind, &str); 13] = [
    (
        EntityKind::Email,
        r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}\.[A-Za-z]{2,24}",
    ),
    (EntityKind::Url, r"https?://[^\s，。）)>]{1,500}"),
    (
        EntityKind::Date,
        r"(?-u:\b)\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?-u:\b)|\d{4}年\d{1,2}月\d{1,2}[日号]|\d{1,2}月\d{1,2}[日号]|(?-u:\b)\d{1,2}[./]\d{1,2}[./]\d{4}(?-u:\b)",
    ),
    (
        EntityKind::Date,
        r"(?i)(?-u:\b)\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?-u:\b)(?:,?\s+\d{4}(?-u:\b))?|(?-u:\b)may\s+\d{1,2}(?:st|nd|rd|th)?(?-u:\b)(?:,?\s+\d{4}(?-u:\b))?",
    ),
    (
        EntityKind::Date,
        r"(?i)(?-u:\b)(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\s+\d{1,4}(?:st|nd|rd|th)?(?-u:\b)(?:,?\s+\d{4}(?-u:\b))?",
    ),
    (
        EntityKind::Date,
        r"(?i)(?-u:\b)(?:today|tomorrow|tonight|yesterday|(?:next\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?-u:\b)|今天|明天|后天|昨天|(?:下?周|星期)[一二三四五六日天]",
    ),
    (
        EntityKind::Time,
        r"(?i)(?-u:\b)\d{1,2}:\d{2}(?:\s?[ap]m)?(?-u:\b)|(?-u:\b)\d{1,2}\s?[ap]m(?-u:\b)|[上下]午\d{1,2}点(?:半|\d{1,2}分)?|\d{1,2}点(?:半|\d{1,2}分)?",
    ),
    (
        EntityKind::Amount,
        r"(?i)(?:hk\$|us\$|[$€£¥₹]|(?-u:\b)(?:usd|eur|gbp|cny|rmb))\s?\d[\d,]*(?:\.\d+)?|(?-u:\b)\d[\d,]*(?:\.\d+)?\s?(?:usd(?-u:\b)|eur(?-u:\b)|gbp(?-u:\b)|cny(?-u:\b)|rmb(?-u:\b)|dollars?(?-u:\b)|euros?(?-u:\b)|pounds?(?-u:\b)|yuan(?-u:\b)|[€£¥]|美元|欧元|英镑|人民币|元|块)",
    ),
    (
        EntityKind::Id,
        r"(?-u:\b)[A-Za-z]{1,10}[-_]?[A-Za-z0-9]{0,10}[-_]\d[A-Za-z0-9_-]{0,40}(?-u:\b)|#\s?[A-Za-z0-9][A-Za-z0-9-]{0,40}|(?-u:\b)[A-Z]{1,6}\d{2,30}(?-u:\b)",
    ),
    (
        EntityKind::Phone,
        r"\+\d[\d\s().-]{6,18}\d(?-u:\b)|(?-u:\b)1[3-9]\d{9}(?-u:\b)|(?-u:\b)\(?\d{3}\)?[\s.-]\d{3,4}[\s.-]\d{4}(?-u:\b)",
    ),
    (
        EntityKind::Number,
        r"-?(?-u:\b)\d{1,3}(?:,\d{3})+(?:\.\d+)?(?-u:\b)|-?(?-u:\b)\d+(?:\.\d+)?",
    ),
    (
        EntityKind::Number,
        r"(?i)(?-u:\b)(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?-u:\b)",
    ),
    (
        EntityKind::Number,
        r"(?:十[一二]|[一二两三四五六七八九十])(?:[个件套位人台份张次晚天间年月只本名盒瓶])",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(EntityKind, String)> {
        find_entities(&prepare(text))
            .into_iter()
            .map(|entity| (entity.kind, entity.text))
            .collect()
    }

    #[test]
    fn entities_are_found_by_kind() {
        let text =
            "Order ORD-123 of 2024-05-06, $12.50, write to a.b@example.com or +49 30 1234567";
        let expected = [
            (EntityKind::Id, "ORD-123"),
            (EntityKind::Date, "2024-05-06"),
            (EntityKind::Amount, "$12.50"),
            (EntityKind::Email, "a.b@example.com"),
            (EntityKind::Phone, "+49 30 1234567"),
        ];
        assert_eq!(
            found(text),
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
        let chinese = found("订单#8812，5月6日付了99元，两件，明天下午3点");
        let expected = [
            (EntityKind::Id, "#8812"),
            (EntityKind::Date, "5月6日"),
            (EntityKind::Amount, "99元"),
            (EntityKind::Number, "两件"),
            (EntityKind::Date, "明天"),
            (EntityKind::Time, "下午3点"),
        ];
        assert_eq!(
            chinese,
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
    }

    #[test]
    fn every_pattern_is_valid() {
        assert_eq!(patterns().len(), PATTERN_TEXTS.len());
    }

    #[test]
    fn numbers_are_parsed() {
        let number = |text: &str| find_entities(text).first().and_then(Entity::number);
        assert_eq!(number("1,234.5"), Some(1234.5));
        assert_eq!(number("-3"), Some(-3.0));
        assert_eq!(number("seven"), Some(7.0));
        assert_eq!(number("$20"), Some(20.0));
    }

    #[test]
    fn currencies_are_given_by_their_code() {
        assert_eq!(currency("99元"), Some("CNY"));
        assert_eq!(currency("12 EUR"), Some("EUR"));
        assert_eq!(currency("12"), None);
    }
}
