//! Conditions over the context: `tier in ["premium", "gold"] and not banned`.

use std::ops::Range;

use serde_json::Value;

use crate::context::Context;

/// A mistake in a text within the file, by its bytes in that text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
    pub(crate) help: Option<String>,
}

impl Mistake {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            suggestion: None,
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

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

/// The longest condition, and the deepest.
const LONGEST: usize = 4096;
const DEEPEST: usize = 32;

impl Condition {
    /// Reads a condition over a context like this one: its paths must lead somewhere, and its sides
    /// must be comparable.
    pub(crate) fn parse(text: &str, context: &Context) -> Result<Self, Mistake> {
        if text.len() > LONGEST {
            return Err(Mistake::new(0..text.len(), "this condition is too long"));
        }
        let mut parser = Parser {
            text,
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
            context,
        };
        let (expr, kind, span) = parser.either()?;
        if let Some((_, span)) = parser.peek() {
            return Err(Mistake::new(span.clone(), "the condition ends before this")
                .help("join conditions with \"and\" or \"or\""));
        }
        needs_truth(kind, &span)?;
        Ok(Self(expr))
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
            Self::Equal => is_same(left, right),
            Self::Different => !is_same(left, right),
            Self::In => match right {
                Value::Array(items) => items.iter().any(|item| is_same(left, item)),
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
fn is_same(left: &Value, right: &Value) -> bool {
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

/// What is known of a value before it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Truth,
    Number,
    Text,
    List,
    Table,
    /// Anything: the context's default is null.
    Unknown,
}

impl Type {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Unknown,
            Value::Bool(_) => Self::Truth,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Table,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Truth => "true or false",
            Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::Table => "a table",
            Self::Unknown => "anything",
        }
    }
}

fn needs_truth(kind: Type, span: &Range<usize>) -> Result<(), Mistake> {
    match kind {
        Type::Truth | Type::Unknown => Ok(()),
        other => {
            let message = format!("this is {}, not a condition", other.word());
            Err(Mistake::new(span.clone(), message)
                .help("compare it with something, as in tier == \"gold\""))
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Literal(Value),
    Sign(&'static str),
}

const SIGNS: [&str; 11] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ","];

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Mistake> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let start = at;
        let token = if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            at += sign.len();
            Token::Sign(sign)
        } else if c == '"' || c == '\'' {
            let Some(end) = rest[1..].find(c) else {
                return Err(Mistake::new(start..text.len(), "this text has no end")
                    .help(format!("close it with {c}")));
            };
            at += end + 2;
            Token::Literal(rest[1..=end].into())
        } else if c.is_ascii_digit() || c == '-' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            at += end;
            match serde_json::from_str::<Value>(&rest[..end]) {
                Ok(number) => Token::Literal(number),
                Err(_) => return Err(Mistake::new(start..at, "this is not a number")),
            }
        } else if c.is_alphanumeric() || c == '_' {
            let is_part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            at += end;
            match &rest[..end] {
                "true" => Token::Literal(true.into()),
                "false" => Token::Literal(false.into()),
                word => Token::Word(word.to_owned()),
            }
        } else {
            let mistake = Mistake::new(
                start..start + c.len_utf8(),
                format!("{c:?} means nothing in a condition"),
            );
            return Err(match c {
                '=' => mistake.help("compare with =="),
                '&' => mistake.help("write \"and\""),
                '|' => mistake.help("write \"or\""),
                '!' => mistake.help("write \"not\""),
                _ => mistake.help(
                    "there are ==, !=, <, <=, >, >=, in, and, or, not, parentheses and lists",
                ),
            });
        };
        tokens.push((token, start..at));
    }
    Ok(tokens)
}

/// A part of a condition, what it will be, and where it stands.
type Read = (Expr, Type, Range<usize>);

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
    context: &'a Context,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&(Token, Range<usize>)> {
        self.tokens.get(self.at)
    }

    /// Steps over a word or sign, if it is next.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = match self.peek() {
            Some((Token::Word(word), _)) => word == wanted,
            Some((Token::Sign(sign), _)) => *sign == wanted,
            _ => false,
        };
        self.at += usize::from(is_next);
        is_next
    }

    fn either(&mut self) -> Result<Read, Mistake> {
        self.joined("or", Self::all, Expr::Or)
    }

    fn all(&mut self) -> Result<Read, Mistake> {
        self.joined("and", Self::not, Expr::And)
    }

    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Read, Mistake>,
        join: fn(Vec<Expr>) -> Expr,
    ) -> Result<Read, Mistake> {
        let first = part(self)?;
        if !self.take(word) {
            return Ok(first);
        }
        let (first, kind, mut span) = first;
        needs_truth(kind, &span)?;
        let mut parts = vec![first];
        loop {
            let (next, kind, next_span) = part(self)?;
            needs_truth(kind, &next_span)?;
            span.end = next_span.end;
            parts.push(next);
            if !self.take(word) {
                return Ok((join(parts), Type::Truth, span));
            }
        }
    }

    fn not(&mut self) -> Result<Read, Mistake> {
        let start = self.peek().map_or(self.text.len(), |(_, span)| span.start);
        if !self.take("not") {
            return self.comparison();
        }
        let (inner, kind, span) = self.deeper(Self::not)?;
        needs_truth(kind, &span)?;
        Ok((Expr::Not(Box::new(inner)), Type::Truth, start..span.end))
    }

    fn comparison(&mut self) -> Result<Read, Mistake> {
        let left = self.value()?;
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::Different),
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("<", Operator::Less),
            (">", Operator::More),
            ("in", Operator::In),
        ];
        let Some((_, operator)) = operators.into_iter().find(|(sign, _)| self.take(sign)) else {
            return Ok(left);
        };
        let right = self.value()?;
        let span = left.2.start..right.2.end;
        comparable(&left, operator, &right, &span)?;
        let compared = Expr::Compare(Box::new(left.0), operator, Box::new(right.0));
        Ok((compared, Type::Truth, span))
    }

    fn value(&mut self) -> Result<Read, Mistake> {
        let Some((token, span)) = self.peek().cloned() else {
            let end = self.text.len();
            return Err(Mistake::new(
                end..end,
                "something is missing at the end of this condition",
            ));
        };
        self.at += 1;
        match token {
            Token::Literal(value) => {
                let kind = Type::of(&value);
                Ok((Expr::Literal(value), kind, span))
            }
            Token::Word(word) => {
                // In tools the context has its name in front; here it may have it as well.
                let path = word.strip_prefix("context.").unwrap_or(&word);
                match self.context.get(path) {
                    Some(value) => Ok((Expr::Path(path.to_owned()), Type::of(value), span)),
                    None => {
                        let (message, suggestion, help) = self.context.no_such(path);
                        Err(Mistake {
                            suggestion,
                            ..Mistake::new(span, message).help(help)
                        })
                    }
                }
            }
            Token::Sign("(") => {
                let (inner, kind, _) = self.deeper(Self::either)?;
                let end = self.closed(")", &span)?;
                Ok((inner, kind, span.start..end))
            }
            Token::Sign("[") => {
                let mut items = Vec::new();
                while !self.take("]") {
                    let (item, _, item_span) = self.deeper(Self::value)?;
                    let Expr::Literal(item) = item else {
                        return Err(Mistake::new(
                            item_span,
                            "a list here holds texts and numbers",
                        ));
                    };
                    items.push(item);
                    if !self.take(",") {
                        self.closed("]", &span)?;
                        break;
                    }
                }
                let end = self.tokens[self.at - 1].1.end;
                Ok((Expr::Literal(items.into()), Type::List, span.start..end))
            }
            Token::Sign(sign) => Err(Mistake::new(
                span,
                format!("a value is missing before {sign:?}"),
            )),
        }
    }

    fn closed(&mut self, sign: &str, opened: &Range<usize>) -> Result<usize, Mistake> {
        match self.take(sign) {
            true => Ok(self.tokens[self.at - 1].1.end),
            false => Err(Mistake::new(
                opened.clone(),
                format!("this is never closed with {sign:?}"),
            )),
        }
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Result<Read, Mistake>) -> Result<Read, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Mistake::new(
                0..self.text.len(),
                "this condition is nested too deeply",
            ));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// Comparisons that can never hold are mistakes.
fn comparable(
    left: &Read,
    operator: Operator,
    right: &Read,
    span: &Range<usize>,
) -> Result<(), Mistake> {
    use Type::{List, Number, Text, Unknown};
    let fits = match (operator, left.1, right.1) {
        (Operator::In, _, List | Unknown) => true,
        (Operator::In, ..) => {
            let message = format!(
                "\"in\" needs a list behind it, and this is {}",
                right.1.word()
            );
            return Err(Mistake::new(right.2.clone(), message));
        }
        (_, Unknown, _) | (_, _, Unknown) => true,
        (Operator::Equal | Operator::Different, left, right) => left == right,
        (_, left, right) => left == right && matches!(left, Number | Text),
    };
    match fits {
        true => Ok(()),
        false => {
            let (left, right) = (left.1.word(), right.1.word());
            let message = match left == right {
                true => format!("{left} has no order"),
                false => format!("{left} cannot be compared with {right}"),
            };
            Err(Mistake::new(span.clone(), message))
        }
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
            ("age in []", false),
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
