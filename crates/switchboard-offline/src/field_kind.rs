//! Kinds of fields, detected by name and description.

use crate::entities::EntityKind;
use crate::text::identifier_words;

/// The kind of value that a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// An entity of this kind.
    Entity(EntityKind),
    /// An identifier: `ORD-123`, `#55`.
    Id,
    /// A currency code.
    Currency,
    /// A place, with the preposition that it follows if the field implies one, else "".
    Place(&'static str),
    /// A person's name.
    Person,
    /// Free text: what the user wrote.
    Prose,
    /// The text of the answer.
    Answer,
    /// Unknown.
    Other,
}

impl FieldKind {
    /// Returns the kind of a field by its name, or, if that is unknown, by its description.
    pub(crate) fn of(name: &str, description: &str) -> Self {
        let by_name = Self::by_words(&identifier_words(name));
        if by_name != Self::Other {
            return by_name;
        }
        let mut words = identifier_words(description);
        // Too common in prose to tell the kind.
        words.retain(|word| !matches!(word.as_str(), "to" | "from" | "no" | "order"));
        Self::by_words(&words)
    }

    fn by_words(words: &[String]) -> Self {
        let has = |known: &[&str]| {
            words.iter().any(|word| {
                known.iter().any(|known| {
                    if known.is_ascii() {
                        word == known || word.strip_suffix('s') == Some(known)
                    } else {
                        word.contains(known)
                    }
                })
            })
        };
        KEYWORDS
            .iter()
            .find(|(known, _)| has(known))
            .map_or(Self::Other, |(_, kind)| *kind)
    }
}

/// The keywords of each kind. The first entry with a match wins.
const KEYWORDS: [(&[&str], FieldKind); 15] = [
    (
        &["email", "mail", "邮箱", "邮件地址"],
        FieldKind::Entity(EntityKind::Email),
    ),
    (
        &["url", "link", "website", "网址", "链接"],
        FieldKind::Entity(EntityKind::Url),
    ),
    (
        &["phone", "mobile", "tel", "telephone", "电话", "手机"],
        FieldKind::Entity(EntityKind::Phone),
    ),
    (&["currency", "币种", "货币"], FieldKind::Currency),
    (
        &[
            "answer", "reply", "response", "output", "result", "回答", "答复", "回复",
        ],
        FieldKind::Answer,
    ),
    (
        &[
            "reason",
            "summary",
            "description",
            "message",
            "query",
            "question",
            "text",
            "content",
            "note",
            "comment",
            "detail",
            "issue",
            "problem",
            "topic",
            "subject",
            "input",
            "request",
            "prompt",
            "body",
            "search",
            "keyword",
            "context",
            "title",
            "complaint",
            "feedback",
            "原因",
            "描述",
            "摘要",
            "问题",
            "内容",
            "说明",
            "备注",
            "关键词",
            "理由",
            "详情",
            "主题",
        ],
        FieldKind::Prose,
    ),
    (
        &["date", "day", "deadline", "日期", "哪天"],
        FieldKind::Entity(EntityKind::Date),
    ),
    (
        &[
            "amount", "price", "total", "cost", "fee", "金额", "价格", "费用",
        ],
        FieldKind::Entity(EntityKind::Amount),
    ),
    (
        &["time", "hour", "时间", "几点"],
        FieldKind::Entity(EntityKind::Time),
    ),
    (
        &["origin", "departure", "from", "出发地", "始发"],
        FieldKind::Place("from"),
    ),
    (
        &["destination", "arrival", "to", "目的地"],
        FieldKind::Place("to"),
    ),
    (
        &[
            "city", "location", "place", "country", "town", "region", "城市", "地点", "地区",
            "国家",
        ],
        FieldKind::Place(""),
    ),
    (
        &[
            "id",
            "number",
            "no",
            "code",
            "ref",
            "reference",
            "order",
            "invoice",
            "ticket",
            "account",
            "tracking",
            "serial",
            "sku",
            "单号",
            "编号",
            "订单",
            "号码",
            "运单",
            "账号",
        ],
        FieldKind::Id,
    ),
    (&["name", "person", "姓名", "名字"], FieldKind::Person),
    (&["address", "street", "地址"], FieldKind::Other),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_follows_from_the_name_or_the_description() {
        assert_eq!(FieldKind::of("orderId", ""), FieldKind::Id);
        assert_eq!(
            FieldKind::of("customer_email", ""),
            FieldKind::Entity(EntityKind::Email)
        );
        assert_eq!(
            FieldKind::of("reason", "The order number"),
            FieldKind::Prose
        );
        assert_eq!(FieldKind::of("nr", "订单号"), FieldKind::Id);
        assert_eq!(FieldKind::of("colour", ""), FieldKind::Other);
    }
}
