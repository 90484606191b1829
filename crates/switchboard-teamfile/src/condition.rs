//! Conditions over the context: `tier in ["premium", "gold"] and not banned`.

mod parse;

use serde_json::Value;

use crate::context::Context;
use crate::mistake::Mistake;

/// A condition: values of the context and literals, compared with `==`, `!=`, `<`, `<=`, `>`, `>=` and
/// `in`, joined with `and`, `or`, `not` and parentheses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition(Expr);

#[derive(Debug, Clone, PartialEq)]
enum Expr {
    Literal(Value),
    Path(String),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Compare(Box<Self>, Operator, Box<Self>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Different,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
}

/// The longest condition.
const LONGEST: usize = 4096;

impl Condition {
    /// Reads a condition over a context like this one: its paths must lead somewhere, and its sides
    /// must be comparable.
    pub(crate) fn parse(text: &str, context: &Context) -> Result<Self, Mistake> {
        if text.len() > LONGEST {
            return Err(Mistake::new(0..text.len(), "this condition is too long"));
        }
        parse::whole(text, context).map(Self)
    }

    /// Whether it holds.
    pub(crate) fn holds(&self, context: &Context) -> bool {
        self.0.value(context) == Value::Bool(true)
    }
}

impl Expr {
    fn value(&self, context: &Context) -> Value {
        let holds = |expr: &Self| expr.value(context) == Value::Bool(true);
        match self {
            Self::Literal(value) => value.clone(),
            Self::Path(path) => context.get(path).cloned().unwrap_or_default(),
            Self::Not(inner) => Value::Bool(!holds(inner)),
            Self::And(all) => Value::Bool(all.iter().all(holds)),
            Self::Or(any) => Value::Bool(any.iter().any(holds)),
            Self::Compare(left, operator, right) => {
                let (left, right) = (left.value(context), right.value(context));
                Value::Bool(operator.holds(&left, &right))
            }
        }
    }
}

impl Operator {
    fn holds(self, left: &Value, right: &Value) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match self {
            Self::Equal => ptr_eq(left, right),
            Self::Different => !ptr_eq(left, right),
            Self::In => match right {
                Value::Array(items) => items.iter().any(|item| ptr_eq(left, item)),
                _ => false,
            },
            Self::Less => matches!(order(left, right), Some(Less)),
            Self::AtMost => matches!(order(left, right), Some(Less | Equal)),
            Self::More => matches!(order(left, right), Some(Greater)),
            Self::AtLeast => matches!(order(left, right), Some(Greater | Equal)),
        }
    }
}

/// Numbers by their value: `1` and `1.0` are the same.
fn ptr_eq(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => {
            order(left, right) == Some(std::cmp::Ordering::Equal)
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn context() -> Context {
        let Value::Object(values) = json!({
            "tier": "gold", "age": 41, "banned": false, "tags": ["new"], "nobody": null,
            "customer": { "country": "DE", "spent": 12.5 },
        }) else {
            panic!()
        };
        Context::new(values)
    }

    #[test]
    fn conditions_are_read_as_they_are_said() {
        for (text, holds) in [
            ("tier == 'gold'", true),
            ("tier != \"gold\"", false),
            ("tier in ['gold', 'premium'] and not banned", true),
            ("banned or age >= 18 and age < 42", true),
            ("(banned or age >= 18) and age < 41", false),
            ("not (tier == 'gold')", false),
            ("not not banned == false", true),
            ("customer.country == 'DE'", true),
            ("context.customer.spent > 12", true),
            ("age == 41.0", true),
            ("age in [1, 2]", false),
            ("tier not in ['basic', 'silver']", true),
            ("not banned and age not in [41]", false),
            ("'new' in tags", true),
            ("nobody == 'somebody'", false),
            ("nobody", false),
            ("-1 < age", true),
            ("tier > 'bronze'", true),
            ("true", true),
        ] {
            let condition = Condition::parse(text, &context()).unwrap();
            assert_eq!(condition.holds(&context()), holds, "{text}");
        }
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (text, at, message) in [
            ("teir == 'gold'", "teir", "the context has no \"teir\""),
            ("tier = 'gold'", "=", "'=' means nothing in a condition"),
            ("tier", "tier", "this is text, not a condition"),
            (
                "tier == 5",
                "tier == 5",
                "text cannot be compared with a number",
            ),
            (
                "banned < true",
                "banned < true",
                "true or false has no order",
            ),
            (
                "age in tier",
                "tier",
                "\"in\" needs a list behind it, and this is text",
            ),
            (
                "age >",
                "",
                "something is missing at the end of this condition",
            ),
            ("(age > 3", "(", "this is never closed with \")\""),
            ("age in [1, 2", "[", "this is never closed with \"]\""),
            ("banned banned", "banned", "the condition ends before this"),
            ("banned and tier", "tier", "this is text, not a condition"),
            ("tier == 'gold", "'gold", "this text has no end"),
            ("age == 4x", "4x", "this is not a number"),
            ("== 4", "==", "a value is missing before \"==\""),
            ("", "", "something is missing at the end of this condition"),
            (
                "tags == [age]",
                "age",
                "a list here holds texts and numbers",
            ),
        ] {
            let mistake = Condition::parse(text, &context()).unwrap_err();
            assert_eq!(&text[mistake.span.clone()], at, "{text}: {mistake:?}");
            assert_eq!(mistake.message, message, "{text}");
        }
        let deep = format!("{}banned{}", "(".repeat(500), ")".repeat(500));
        let mistake = Condition::parse(&deep, &context()).unwrap_err();
        assert_eq!(mistake.message, "this condition is nested too deeply");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z'\"<>=!()\\[\\], .0-9银-]{0,60}") {
            if let Err(mistake) = Condition::parse(&text, &context()) {
                prop_assert!(text.get(mistake.span).is_some());
            }
        }
    }
}
