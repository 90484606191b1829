//! What a field is for, by its name and description.

use super::facts::Kind;
use super::fields::words_of;

/// What a field is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A fact of this kind.
    Fact(Kind),
    /// What identifies a thing: `ORD-123`, `#55`.
    Id,
    /// The code of a currency.
    Currency,
    /// A place; the word that leads to it, where the field says.
    Place(&'static str),
    /// Somebody's name.
    Person,
    /// What the user said, in words.
    Prose,
    /// What is answered.
    Answer,
    /// Nothing known.
    Other,
}

impl Role {
    /// What a field is for; where its name does not say, its description may.
    pub(super) fn of(name: &str, about: &str) -> Self {
        match Self::named(&words_of(name)) {
            Self::Other => {
                // In a sentence these are not about the field.
                let mut words = words_of(about);
                words.retain(|word| !matches!(word.as_str(), "to" | "from" | "no" | "order"));
                Self::named(&words)
            }
            role => role,
        }
    }

    fn named(words: &[String]) -> Self {
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
        let roles = ROLES.iter();
        roles
            .into_iter()
            .find(|(known, _)| has(known))
            .map_or(Self::Other, |(_, role)| *role)
    }
}

/// The words that tell what a field is for; the first that fits counts.
const ROLES: [(&[&str], Role); 15] = [
    (
        &["email", "mail", "邮箱", "邮件地址"],
        Role::Fact(Kind::Email),
    ),
    (
        &["url", "link", "website", "网址", "链接"],
        Role::Fact(Kind::Url),
    ),
    (
        &["phone", "mobile", "tel", "telephone", "电话", "手机"],
        Role::Fact(Kind::Phone),
    ),
    (&["currency", "币种", "货币"], Role::Currency),
    (
        &[
            "answer", "reply", "response", "output", "result", "回答", "答复", "回复",
        ],
        Role::Answer,
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
        Role::Prose,
    ),
    (
        &["date", "day", "deadline", "日期", "哪天"],
        Role::Fact(Kind::Date),
    ),
    (
        &[
            "amount", "price", "total", "cost", "fee", "金额", "价格", "费用",
        ],
        Role::Fact(Kind::Amount),
    ),
    (&["time", "hour", "时间", "几点"], Role::Fact(Kind::Time)),
    (
        &["origin", "departure", "from", "出发地", "始发"],
        Role::Place("from"),
    ),
    (
        &["destination", "arrival", "to", "目的地"],
        Role::Place("to"),
    ),
    (
        &[
            "city", "location", "place", "country", "town", "region", "城市", "地点", "地区",
            "国家",
        ],
        Role::Place(""),
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
        Role::Id,
    ),
    (&["name", "person", "姓名", "名字"], Role::Person),
    (&["address", "street", "地址"], Role::Other),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_a_field_is_for() {
        assert_eq!(Role::of("orderId", ""), Role::Id);
        assert_eq!(Role::of("customer_email", ""), Role::Fact(Kind::Email));
        assert_eq!(Role::of("reason", "The order number"), Role::Prose);
        assert_eq!(Role::of("nr", "订单号"), Role::Id);
        assert_eq!(Role::of("colour", ""), Role::Other);
    }
}
