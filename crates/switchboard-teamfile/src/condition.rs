//! Conditions over the context: `tier in ["premium", "gold"] and not banned`.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

use crate::context::Context;
use crate::diagnostics::ExpressionError;

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
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// The maximum length of a condition, in bytes.
const MAX_LENGTH: usize = 4096;

impl Condition {
    /// Parses a condition. Its paths must exist in the context, and its comparisons must be between
    /// values of one type.
    pub(crate) fn parse(text: &str, context: &Context) -> Result<Self, ExpressionError> {
        if text.len() > MAX_LENGTH {
            return Err(ExpressionError::new(
                0..text.len(),
                "this condition is too long",
            ));
        }
        parse::parse(text, context).map(Self)
    }

    /// Returns `true` if the condition holds.
    pub(crate) fn holds(&self, context: &Context) -> bool {
        self.0.holds(context)
    }
}

impl Expr {
    fn holds(&self, context: &Context) -> bool {
        self.evaluate(context) == Value::Bool(true)
    }

    fn evaluate(&self, context: &Context) -> Value {
        match self {
            Self::Literal(value) => value.clone(),
            Self::Path(path) => context.get(path).cloned().unwrap_or_default(),
            Self::Not(inner) => Value::Bool(!inner.holds(context)),
            Self::And(all) => Value::Bool(all.iter().all(|expr| expr.holds(context))),
            Self::Or(any) => Value::Bool(any.iter().any(|expr| expr.holds(context))),
            Self::Compare(left, operator, right) => {
                let (left, right) = (left.evaluate(context), right.evaluate(context));
                Value::Bool(operator.apply(&left, &right))
            }
        }
    }
}

impl Operator {
    fn apply(self, left: &Value, right: &Value) -> bool {
        let order = compare(left, right);
        match self {
            Self::Equal => equal(left, right),
            Self::NotEqual => !equal(left, right),
            Self::In => match right {
                Value::Array(items) => items.iter().any(|item| equal(left, item)),
                _ => false,
            },
            Self::Less => order.is_some_and(Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order.is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// Compares for equality. Numbers are equal by value: `1` equals `1.0`.
fn equal(left: &Value, right: &Value) -> bool {
    match compare(left, right) {
        Some(order) => order.is_eq(),
        None => left == right,
    }
}

/// Orders two texts or two numbers.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
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
    fn conditions_are_parsed_and_evaluated() {
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
    fn errors_have_the_span_of_their_cause() {
        for (text, at, message) in [
            ("teir == 'gold'", "teir", "the context has no \"teir\""),
            ("tier = 'gold'", "=", "'=' is not an operator of conditions"),
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
                "\"in\" needs a list after it, and this is text",
            ),
            ("age >", "", "the condition is incomplete"),
            ("(age > 3", "(", "this is not closed with \")\""),
            ("age in [1, 2", "[", "this is not closed with \"]\""),
            ("banned banned", "banned", "the condition ends before this"),
            ("banned and tier", "tier", "this is text, not a condition"),
            ("tier == 'gold", "'gold", "this text is not closed"),
            ("age == 4x", "4x", "this is not a number"),
            ("== 4", "==", "a value is missing before \"==\""),
            ("", "", "the condition is incomplete"),
            ("tags == [age]", "age", "a list can hold only literals"),
        ] {
            let error = Condition::parse(text, &context()).unwrap_err();
            assert_eq!(&text[error.span.clone()], at, "{text}: {error:?}");
            assert_eq!(error.message, message, "{text}");
        }
        let deep = format!("{}banned{}", "(".repeat(500), ")".repeat(500));
        let error = Condition::parse(&deep, &context()).unwrap_err();
        assert_eq!(error.message, "this condition is nested too deeply");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[a-z'\"<>=!()\\[\\], .0-9银-]{0,60}") {
            if let Err(error) = Condition::parse(&text, &context()) {
                prop_assert!(text.get(error.span).is_some());
            }
        }
    }
}
