//! Conditions over the context: `tier in ["premium", "gold"] and not banned`. Those for approvals also
//! refer to the arguments of a call: `arguments.amount > 100`.

mod arguments;
mod parse;

use std::cmp::Ordering;

use serde_json::Value;

use crate::context::Context;
use crate::diagnostics::ExpressionError;
pub(crate) use arguments::ArgumentNames;

/// A condition: values of the context, arguments and literals, compared with `==`, `!=`, `<`, `<=`, `>`, `>=` and
/// `in`, joined with `and`, `or`, `not` and parentheses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition(Expr);

#[derive(Debug, Clone, PartialEq)]
enum Expr {
    Literal(Value),
    Path(String),
    /// The path of an argument, without the prefix; empty for all arguments.
    Argument(String),
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
        Self::parse_with(text, context, None)
    }

    /// Parses a condition that may refer to the arguments of a call.
    pub(crate) fn parse_with(
        text: &str,
        context: &Context,
        arguments: Option<ArgumentNames<'_>>,
    ) -> Result<Self, ExpressionError> {
        if text.len() > MAX_LENGTH {
            return Err(ExpressionError::new(
                0..text.len(),
                "this condition is too long",
            ));
        }
        parse::parse(text, context, arguments).map(Self)
    }

    /// Returns `true` if the condition holds.
    pub(crate) fn holds(&self, context: &Context) -> bool {
        self.decide(context, &Value::Null) == Some(true)
    }

    /// Returns `true` if the condition holds for a call with these arguments. `None` if that cannot be
    /// decided: an argument is of another type than the value it is compared with, or is absent where
    /// an order is asked for.
    pub(crate) fn decide(&self, context: &Context, arguments: &Value) -> Option<bool> {
        self.0.decide(context, arguments)
    }
}

impl Expr {
    fn decide(&self, context: &Context, arguments: &Value) -> Option<bool> {
        match self {
            Self::Not(inner) => Some(!inner.decide(context, arguments)?),
            Self::And(all) => any(all, false, context, arguments).map(|found| !found),
            Self::Or(all) => any(all, true, context, arguments),
            Self::Compare(left, operator, right) => {
                let is_argument = [left, right].iter().any(|side| side.is_argument());
                let left = left.evaluate(context, arguments)?;
                let right = right.evaluate(context, arguments)?;
                if is_argument && !operator.can_apply(&left, &right) {
                    return None;
                }
                Some(operator.apply(&left, &right))
            }
            value => match value.evaluate(context, arguments)? {
                Value::Bool(value) => Some(value),
                Value::Null => Some(false),
                _ if self.is_argument() => None,
                _ => Some(false),
            },
        }
    }

    fn evaluate(&self, context: &Context, arguments: &Value) -> Option<Value> {
        Some(match self {
            Self::Literal(value) => value.clone(),
            Self::Path(path) => context.get(path).cloned().unwrap_or_default(),
            Self::Argument(path) => arguments::get(arguments, path).cloned().unwrap_or_default(),
            _ => Value::Bool(self.decide(context, arguments)?),
        })
    }

    fn is_argument(&self) -> bool {
        matches!(self, Self::Argument(_))
    }
}

/// Returns `true` if one of the conditions is `wanted`; `None` if none is and one cannot be decided.
fn any(conditions: &[Expr], wanted: bool, context: &Context, arguments: &Value) -> Option<bool> {
    let mut is_open = false;
    for condition in conditions {
        match condition.decide(context, arguments) {
            Some(holds) if holds == wanted => return Some(true),
            Some(_) => {}
            None => is_open = true,
        }
    }
    (!is_open).then_some(false)
}

impl Operator {
    /// Returns `true` if the values are of types that can be compared. Null equals nothing, and has
    /// no order.
    fn can_apply(self, left: &Value, right: &Value) -> bool {
        let same_type = |left: &Value, right: &Value| {
            std::mem::discriminant(left) == std::mem::discriminant(right)
        };
        match (self, left, right) {
            (Self::Equal | Self::NotEqual | Self::In, Value::Null, _)
            | (Self::Equal | Self::NotEqual | Self::In, _, Value::Null) => true,
            (Self::Equal | Self::NotEqual, ..) => same_type(left, right),
            (Self::In, _, Value::Array(items)) => {
                items.is_empty() || items.iter().any(|item| same_type(left, item))
            }
            (Self::In, ..) => false,
            _ => compare(left, right).is_some(),
        }
    }

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

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "amount": { "type": "number" },
                "express": { "type": "boolean" },
                "currency": { "enum": ["EUR", "USD"] },
                "to": { "type": "object", "properties": { "country": { "type": "string" } } },
                "tags": { "type": "array" },
                "note": {},
            },
        })
    }

    fn with_arguments(text: &str) -> Result<Condition, ExpressionError> {
        let schema = schema();
        let names = ArgumentNames::of_tool(Some(&schema));
        Condition::parse_with(text, &context(), Some(names))
    }

    #[test]
    fn conditions_on_arguments_are_undecided_where_an_argument_does_not_fit() {
        let over = "arguments.amount > 100";
        for (text, arguments, decided) in [
            (over, json!({ "amount": 100.5 }), Some(true)),
            (over, json!({ "amount": 100 }), Some(false)),
            (over, json!({}), None),
            (over, json!({ "amount": null }), None),
            (over, json!({ "amount": "5000" }), None),
            (over, json!("5000"), None),
            ("arguments.amount > 1 or true", json!({}), Some(true)),
            ("arguments.amount > 1 and banned", json!({}), Some(false)),
            ("not (arguments.amount > 1)", json!({}), None),
            (
                "arguments.amount > age",
                json!({ "amount": 42 }),
                Some(true),
            ),
            ("arguments.express", json!({}), Some(false)),
            ("arguments.express", json!({ "express": true }), Some(true)),
            ("arguments.express", json!({ "express": "yes" }), None),
            (
                "arguments.currency == 'EUR'",
                json!({ "currency": "EUR" }),
                Some(true),
            ),
            ("arguments.currency == 'EUR'", json!({}), Some(false)),
            ("arguments.currency != 'EUR'", json!({}), Some(true)),
            (
                "arguments.currency == 'EUR'",
                json!({ "currency": 7 }),
                None,
            ),
            (
                "arguments.currency in ['EUR']",
                json!({ "currency": "USD" }),
                Some(false),
            ),
            (
                "arguments.currency in ['EUR']",
                json!({ "currency": 7 }),
                None,
            ),
            (
                "'vip' in arguments.tags",
                json!({ "tags": ["vip"] }),
                Some(true),
            ),
            ("'vip' in arguments.tags", json!({ "tags": "vip" }), None),
            (
                "arguments.to.country == 'DE'",
                json!({ "to": { "country": "DE" } }),
                Some(true),
            ),
            (
                "arguments.note.any == 1",
                json!({ "note": { "any": 1 } }),
                Some(true),
            ),
            ("tier == 'gold'", json!({}), Some(true)),
        ] {
            let condition = with_arguments(text).unwrap();
            assert_eq!(
                condition.decide(&context(), &arguments),
                decided,
                "{text} {arguments}"
            );
        }
    }

    #[test]
    fn conditions_on_arguments_are_checked_against_their_schema() {
        for (text, at, message) in [
            (
                "arguments.amout > 1",
                "arguments.amout",
                "the tool has no argument \"amout\"",
            ),
            (
                "arguments.to.city == 'x'",
                "arguments.to.city",
                "the tool has no argument \"to.city\"",
            ),
            (
                "arguments.amount.x == 1",
                "arguments.amount.x",
                "the tool has no argument \"amount.x\"",
            ),
            (
                "arguments.amount",
                "arguments.amount",
                "this is a number, not a condition",
            ),
            (
                "arguments.amount == 'x'",
                "arguments.amount == 'x'",
                "a number cannot be compared with text",
            ),
            (
                "arguments == 1",
                "arguments == 1",
                "a table cannot be compared with a number",
            ),
            (
                "payload.amount > 1",
                "payload.amount",
                "the context has no \"payload.amount\"",
            ),
        ] {
            let error = with_arguments(text).unwrap_err();
            assert_eq!(&text[error.span.clone()], at, "{text}: {error:?}");
            assert_eq!(error.message, message, "{text}");
        }
        let error = Condition::parse("arguments.amount > 1", &context()).unwrap_err();
        assert_eq!(error.message, "the context has no \"arguments.amount\"");
        let none = Some(ArgumentNames::of_handoff(None));
        let error = Condition::parse_with("payload.x == 1", &context(), none).unwrap_err();
        assert_eq!(error.message, "the handoff has no payload");
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
