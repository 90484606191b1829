//! What can be taken out of a text as it stands: numbers, names of things, addresses, dates.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use super::text::half_width;

/// The most facts taken from one text.
const MOST: usize = 64;

/// What a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Email,
    Url,
    Date,
    Time,
    Amount,
    Phone,
    Id,
    Number,
}

/// Something a text says, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

impl Fact {
    /// The number in it, where there is one.
    pub(super) fn number(&self) -> Option<f64> {
        if let Some(number) = spelled(&self.text) {
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

/// The facts of a text, in their order; of two that overlap the more telling one.
pub(super) fn facts(text: &str) -> Vec<Fact> {
    let mut found: Vec<Fact> = Vec::new();
    for (kind, pattern) in patterns() {
        for matched in pattern.find_iter(text).take(MOST) {
            let at = matched.range();
            let is_free = found
                .iter()
                .all(|fact| fact.at.end <= at.start || at.end <= fact.at.start);
            if is_free && found.len() < MOST {
                let text = matched.as_str().trim().to_owned();
                found.push(Fact {
                    kind: *kind,
                    text,
                    at,
                });
            }
        }
    }
    found.sort_by_key(|fact| fact.at.start);
    found
}

/// A text as facts are looked for in it: plain digits and signs, upper and lower case kept.
pub(super) fn plain(text: &str) -> String {
    super::text::shortened(text)
        .chars()
        .map(half_width)
        .collect()
}

/// The ISO code of the currency a text names.
pub(super) fn currency(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let named = CURRENCIES
        .iter()
        .find(|(_, words)| words.iter().any(|word| text.contains(word)));
    named.map(|(code, _)| *code)
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

/// A number in words.
fn spelled(word: &str) -> Option<f64> {
    let word = word.to_lowercase();
    // In Chinese a measure word follows: 两件.
    let word = word.trim_end_matches(|c| MEASURES.contains(c));
    let at = NUMBER_WORDS
        .iter()
        .position(|words| words.contains(&word))?;
    Some(at as f64)
}

const MEASURES: &str = "个件套位人台份张次晚天间年月只本名盒瓶";

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

/// The kinds of facts and how they look, the more telling first.
fn patterns() -> &'static [(Kind, Regex)] {
    static PATTERNS: OnceLock<Vec<(Kind, Regex)>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let patterns = PATTERN_TEXTS.iter();
        patterns
            .filter_map(|(kind, text)| Some((*kind, Regex::new(text).ok()?)))
            .collect()
    })
}

const PATTERN_TEXTS: [(Kind, &str); 12] = [
    (
        Kind::Email,
        r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}\.[A-Za-z]{2,24}",
    ),
    (Kind::Url, r"https?://[^\s，。）)>]{1,500}"),
    (
        Kind::Date,
        r"(?-u:\b)\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?-u:\b)|\d{4}年\d{1,2}月\d{1,2}[日号]|\d{1,2}月\d{1,2}[日号]|(?-u:\b)\d{1,2}[./]\d{1,2}[./]\d{4}(?-u:\b)",
    ),
    (
        Kind::Date,
        r"(?i)(?-u:\b)(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\s+\d{1,4}(?:st|nd|rd|th)?(?-u:\b)(?:,?\s+\d{4}(?-u:\b))?",
    ),
    (
        Kind::Date,
        r"(?i)(?-u:\b)(?:today|tomorrow|tonight|yesterday|(?:next\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?-u:\b)|今天|明天|后天|昨天|(?:下?周|星期)[一二三四五六日天]",
    ),
    (
        Kind::Time,
        r"(?i)(?-u:\b)\d{1,2}:\d{2}(?:\s?[ap]m)?(?-u:\b)|(?-u:\b)\d{1,2}\s?[ap]m(?-u:\b)|[上下]午\d{1,2}点(?:半|\d{1,2}分)?|\d{1,2}点(?:半|\d{1,2}分)?",
    ),
    (
        Kind::Amount,
        r"(?i)(?:hk\$|us\$|[$€£¥₹]|(?-u:\b)(?:usd|eur|gbp|cny|rmb))\s?\d[\d,]*(?:\.\d+)?|(?-u:\b)\d[\d,]*(?:\.\d+)?\s?(?:usd(?-u:\b)|eur(?-u:\b)|gbp(?-u:\b)|cny(?-u:\b)|rmb(?-u:\b)|dollars?(?-u:\b)|euros?(?-u:\b)|pounds?(?-u:\b)|yuan(?-u:\b)|[€£¥]|美元|欧元|英镑|人民币|元|块)",
    ),
    (
        Kind::Id,
        r"(?-u:\b)[A-Za-z]{1,10}[-_]?[A-Za-z0-9]{0,10}[-_]\d[A-Za-z0-9_-]{0,40}(?-u:\b)|#\s?[A-Za-z0-9][A-Za-z0-9-]{0,40}|(?-u:\b)[A-Z]{1,6}\d{2,30}(?-u:\b)",
    ),
    (
        Kind::Phone,
        r"\+\d[\d\s().-]{6,18}\d(?-u:\b)|(?-u:\b)1[3-9]\d{9}(?-u:\b)|(?-u:\b)\(?\d{3}\)?[\s.-]\d{3,4}[\s.-]\d{4}(?-u:\b)",
    ),
    (
        Kind::Number,
        r"-?(?-u:\b)\d{1,3}(?:,\d{3})+(?:\.\d+)?(?-u:\b)|-?(?-u:\b)\d+(?:\.\d+)?",
    ),
    (
        Kind::Number,
        r"(?i)(?-u:\b)(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?-u:\b)",
    ),
    (
        Kind::Number,
        r"(?:十[一二]|[一二两三四五六七八九十])(?:[个件套位人台份张次晚天间年月只本名盒瓶])",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Kind, String)> {
        facts(&plain(text))
            .into_iter()
            .map(|fact| (fact.kind, fact.text))
            .collect()
    }

    #[test]
    fn facts_are_told_apart() {
        let text =
            "Order ORD-123 of 2024-05-06, $12.50, write to a.b@example.com or +49 30 1234567";
        let expected = [
            (Kind::Id, "ORD-123"),
            (Kind::Date, "2024-05-06"),
            (Kind::Amount, "$12.50"),
            (Kind::Email, "a.b@example.com"),
            (Kind::Phone, "+49 30 1234567"),
        ];
        assert_eq!(
            found(text),
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
        let chinese = found("订单#8812，5月6日付了99元，两件，明天下午3点");
        let expected = [
            (Kind::Id, "#8812"),
            (Kind::Date, "5月6日"),
            (Kind::Amount, "99元"),
            (Kind::Number, "两件"),
            (Kind::Date, "明天"),
            (Kind::Time, "下午3点"),
        ];
        assert_eq!(
            chinese,
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
    }

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(patterns().len(), PATTERN_TEXTS.len());
    }

    #[test]
    fn numbers_are_read() {
        let number = |text: &str| facts(text).first().and_then(Fact::number);
        assert_eq!(number("1,234.5"), Some(1234.5));
        assert_eq!(number("-3"), Some(-3.0));
        assert_eq!(number("seven"), Some(7.0));
        assert_eq!(number("$20"), Some(20.0));
    }

    #[test]
    fn currencies_are_named_by_their_code() {
        assert_eq!(currency("99元"), Some("CNY"));
        assert_eq!(currency("12 EUR"), Some("EUR"));
        assert_eq!(currency("12"), None);
    }
}
