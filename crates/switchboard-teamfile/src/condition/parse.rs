//! The parser of conditions.

use std::ops::Range;

use serde_json::Value;

use super::{ArgumentNames, Expr, Operator};
use crate::context::Context;
use crate::diagnostics::ExpressionError;

/// The maximum nesting of a condition.
const MAX_DEPTH: usize = 32;

pub(super) fn parse(
    text: &str,
    context: &Context,
    arguments: Option<ArgumentNames<'_>>,
) -> Result<Expr, ExpressionError> {
    let mut parser = Parser {
        text,
        tokens: tokenize(text)?,
        position: 0,
        depth: 0,
        context,
        arguments,
    };
    let condition = parser.or()?;
    if let Some((_, span)) = parser.peek() {
        let error = ExpressionError::new(span.clone(), "the condition ends before this");
        return Err(error.help("join conditions with \"and\" or \"or\""));
    }
    condition.expect_bool()?;
    Ok(condition.expr)
}

/// The type of a value, as far as it is known from the defaults of the context and from schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Number,
    Text,
    List,
    Table,
    /// Any type: the default is null, or the schema leaves it open.
    Unknown,
}

impl Type {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Unknown,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Table,
        }
    }

    /// The type that a schema describes.
    pub(super) fn of_schema(schema: &Value) -> Self {
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => Self::Bool,
            Some("number" | "integer") => Self::Number,
            Some("string") => Self::Text,
            Some("array") => Self::List,
            Some("object") => Self::Table,
            _ => Self::Unknown,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::Table => "a table",
            Self::Unknown => "anything",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Literal(Value),
    Symbol(&'static str),
}

const SYMBOLS: [&str; 11] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ","];

fn tokenize(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(c) = text[start..].chars().next() {
        let rest = &text[start..];
        if c.is_whitespace() {
            start += c.len_utf8();
            continue;
        }
        let (token, length) = if let Some(symbol) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            (Token::Symbol(symbol), symbol.len())
        } else if c == '"' || c == '\'' {
            let Some(end) = rest[1..].find(c) else {
                let error = ExpressionError::new(start..text.len(), "this text is not closed");
                return Err(error.help(format!("close it with {c}")));
            };
            (Token::Literal(rest[1..=end].into()), end + 2)
        } else if c.is_ascii_digit() || c == '-' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let number = serde_json::from_str(&rest[..length])
                .map_err(|_| ExpressionError::new(start..start + length, "this is not a number"))?;
            (Token::Literal(number), length)
        } else if c.is_alphanumeric() || c == '_' {
            let is_part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let token = match &rest[..length] {
                "true" => Token::Literal(true.into()),
                "false" => Token::Literal(false.into()),
                word => Token::Word(word.to_owned()),
            };
            (token, length)
        } else {
            let span = start..start + c.len_utf8();
            let message = format!("{c:?} is not an operator of conditions");
            return Err(ExpressionError::new(span, message).help(match c {
                '=' => "compare with ==",
                '&' => "write \"and\"",
                '|' => "write \"or\"",
                '!' => "write \"not\"",
                _ => "there are ==, !=, <, <=, >, >=, in, and, or, not, parentheses and lists",
            }));
        };
        tokens.push((token, start..start + length));
        start += length;
    }
    Ok(tokens)
}

/// An expression with its type and its span.
struct Parsed {
    expr: Expr,
    type_: Type,
    span: Range<usize>,
}

impl Parsed {
    fn bool(expr: Expr, span: Range<usize>) -> Self {
        Self {
            expr,
            type_: Type::Bool,
            span,
        }
    }

    fn expect_bool(&self) -> Result<(), ExpressionError> {
        if matches!(self.type_, Type::Bool | Type::Unknown) {
            return Ok(());
        }
        let message = format!("this is {}, not a condition", self.type_.describe());
        Err(ExpressionError::new(self.span.clone(), message)
            .help("compare it with something, as in tier == \"gold\""))
    }
}

type ParseResult = Result<Parsed, ExpressionError>;

/// A recursive-descent parser; `or` binds weakest.
struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    position: usize,
    depth: usize,
    context: &'a Context,
    arguments: Option<ArgumentNames<'a>>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&(Token, Range<usize>)> {
        self.tokens.get(self.position)
    }

    /// Skips a word or symbol if it is next. Returns `true` if it was.
    fn take(&mut self, expected: &str) -> bool {
        let is_next = match self.peek() {
            Some((Token::Word(word), _)) => word == expected,
            Some((Token::Symbol(symbol), _)) => *symbol == expected,
            _ => false,
        };
        self.position += usize::from(is_next);
        is_next
    }

    fn or(&mut self) -> ParseResult {
        self.joined("or", Self::and, Expr::Or)
    }

    fn and(&mut self) -> ParseResult {
        self.joined("and", Self::not, Expr::And)
    }

    /// Parses one or more operands that are joined with `word`.
    fn joined(
        &mut self,
        word: &str,
        operand: fn(&mut Self) -> ParseResult,
        join: fn(Vec<Expr>) -> Expr,
    ) -> ParseResult {
        let first = operand(self)?;
        if !self.take(word) {
            return Ok(first);
        }
        first.expect_bool()?;
        let mut span = first.span;
        let mut operands = vec![first.expr];
        loop {
            let next = operand(self)?;
            next.expect_bool()?;
            span.end = next.span.end;
            operands.push(next.expr);
            if !self.take(word) {
                return Ok(Parsed::bool(join(operands), span));
            }
        }
    }

    fn not(&mut self) -> ParseResult {
        let start = self.peek().map_or(self.text.len(), |(_, span)| span.start);
        if !self.take("not") {
            return self.comparison();
        }
        let operand = self.nested(Self::not)?;
        operand.expect_bool()?;
        let span = start..operand.span.end;
        Ok(Parsed::bool(Expr::Not(Box::new(operand.expr)), span))
    }

    fn comparison(&mut self) -> ParseResult {
        let left = self.value()?;
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("in", Operator::In),
        ];
        let next = self.tokens.get(self.position..self.position + 2);
        let is_not_in = matches!(next, Some([(Token::Word(first), _), (Token::Word(second), _)])
            if first == "not" && second == "in");
        self.position += usize::from(is_not_in);
        let operator = operators.into_iter().find(|(symbol, _)| self.take(symbol));
        let Some((_, operator)) = operator else {
            return Ok(left);
        };
        let right = self.value()?;
        let span = left.span.start..right.span.end;
        check_types(&left, operator, &right, &span)?;
        let mut expr = Expr::Compare(Box::new(left.expr), operator, Box::new(right.expr));
        if is_not_in {
            expr = Expr::Not(Box::new(expr));
        }
        Ok(Parsed::bool(expr, span))
    }

    fn value(&mut self) -> ParseResult {
        let Some((token, span)) = self.peek().cloned() else {
            let end = self.text.len();
            return Err(ExpressionError::new(
                end..end,
                "the condition is incomplete",
            ));
        };
        self.position += 1;
        match token {
            Token::Literal(value) => Ok(Parsed {
                type_: Type::of(&value),
                expr: Expr::Literal(value),
                span,
            }),
            Token::Word(word) => {
                if let Some(arguments) = &self.arguments
                    && let Some(path) = arguments.path(&word)
                {
                    return Ok(Parsed {
                        type_: arguments.type_of(path, &span)?,
                        expr: Expr::Argument(path.to_owned()),
                        span,
                    });
                }
                // Templates require the prefix; conditions allow it.
                let path = word.strip_prefix("context.").unwrap_or(&word);
                let Some(value) = self.context.get(path) else {
                    let (message, suggestion, help) = self.context.unknown_path(path);
                    let help = format!("write text in quotes, as in '{path}'; {help}");
                    return Err(ExpressionError {
                        suggestion,
                        ..ExpressionError::new(span, message).help(help)
                    });
                };
                Ok(Parsed {
                    expr: Expr::Path(path.to_owned()),
                    type_: Type::of(value),
                    span,
                })
            }
            Token::Symbol("(") => {
                let inner = self.nested(Self::or)?;
                let end = self.closing(")", &span)?;
                Ok(Parsed {
                    span: span.start..end,
                    ..inner
                })
            }
            Token::Symbol("[") => self.list(&span),
            Token::Symbol(symbol) => {
                let message = format!("a value is missing before {symbol:?}");
                Err(ExpressionError::new(span, message))
            }
        }
    }

    fn list(&mut self, opening: &Range<usize>) -> ParseResult {
        let mut items = Vec::new();
        while !self.take("]") {
            let item = self.nested(Self::value)?;
            let Expr::Literal(value) = item.expr else {
                return Err(ExpressionError::new(
                    item.span,
                    "a list can hold only literals",
                ));
            };
            items.push(value);
            if !self.take(",") {
                self.closing("]", opening)?;
                break;
            }
        }
        let end = self.tokens[self.position - 1].1.end;
        Ok(Parsed {
            expr: Expr::Literal(items.into()),
            type_: Type::List,
            span: opening.start..end,
        })
    }

    /// Skips a closing symbol and returns its end.
    fn closing(&mut self, symbol: &str, opening: &Range<usize>) -> Result<usize, ExpressionError> {
        if self.take(symbol) {
            return Ok(self.tokens[self.position - 1].1.end);
        }
        let message = format!("this is not closed with {symbol:?}");
        Err(ExpressionError::new(opening.clone(), message))
    }

    fn nested(&mut self, parse: fn(&mut Self) -> ParseResult) -> ParseResult {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = "this condition is nested too deeply";
            return Err(ExpressionError::new(0..self.text.len(), message));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

/// Rejects comparisons that can never hold.
fn check_types(
    left: &Parsed,
    operator: Operator,
    right: &Parsed,
    span: &Range<usize>,
) -> Result<(), ExpressionError> {
    use Type::{List, Number, Text, Unknown};
    let (left_name, right_name) = (left.type_.describe(), right.type_.describe());
    let is_comparable = match (operator, left.type_, right.type_) {
        (Operator::In, left_type, List | Unknown) => {
            let matches = |item: &Value| left_type == Unknown || Type::of(item) == left_type;
            if let Expr::Literal(Value::Array(items)) = &right.expr
                && !items.iter().any(matches)
            {
                let message = format!("no entry of this list is {left_name}");
                return Err(ExpressionError::new(right.span.clone(), message));
            }
            true
        }
        (Operator::In, ..) => {
            let message = format!("\"in\" needs a list after it, and this is {right_name}");
            return Err(ExpressionError::new(right.span.clone(), message));
        }
        (_, Unknown, _) | (_, _, Unknown) => true,
        (Operator::Equal | Operator::NotEqual, left, right) => left == right,
        (_, left, right) => left == right && matches!(left, Number | Text),
    };
    if is_comparable {
        return Ok(());
    }
    let message = if left.type_ == right.type_ {
        format!("{left_name} has no order")
    } else {
        format!("{left_name} cannot be compared with {right_name}")
    };
    Err(ExpressionError::new(span.clone(), message))
}
