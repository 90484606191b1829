//! Reading conditions.

use std::ops::Range;

use serde_json::Value;

use super::{Expr, Operator};
use crate::context::Context;
use crate::mistake::Mistake;

/// How deep a condition may be nested.
const DEEPEST: usize = 32;

/// The condition that is the whole text.
pub(super) fn whole(text: &str, context: &Context) -> Result<Expr, Mistake> {
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
    Ok(expr)
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
        // `not in`, where `not` is not the beginning of something else.
        let next = self.tokens.get(self.at..self.at + 2);
        let not_in = matches!(next, Some([(Token::Word(not), _), (Token::Word(within), _)])
            if not == "not" && within == "in");
        self.at += usize::from(not_in);
        let Some((_, operator)) = operators.into_iter().find(|(sign, _)| self.take(sign)) else {
            return Ok(left);
        };
        let right = self.value()?;
        let span = left.2.start..right.2.end;
        comparable(&left, operator, &right, &span)?;
        let compared = Expr::Compare(Box::new(left.0), operator, Box::new(right.0));
        let compared = if not_in {
            Expr::Not(Box::new(compared))
        } else {
            compared
        };
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
                        let help = format!("texts stand in quotes, as in '{path}'; {help}");
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
        if self.take(sign) {
            Ok(self.tokens[self.at - 1].1.end)
        } else {
            Err(Mistake::new(
                opened.clone(),
                format!("this is never closed with {sign:?}"),
            ))
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
        (Operator::In, _, List | Unknown) => match &right.0 {
            // In a list that is written here, there must be something it could be.
            Expr::Literal(Value::Array(items)) => {
                let could_be = |item: &Value| left.1 == Unknown || Type::of(item) == left.1;
                if !items.iter().any(could_be) {
                    let message = format!("no entry of this list is {}", left.1.word());
                    return Err(Mistake::new(right.2.clone(), message));
                }
                true
            }
            _ => true,
        },
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
    if fits {
        Ok(())
    } else {
        let (left, right) = (left.1.word(), right.1.word());
        let message = if left == right {
            format!("{left} has no order")
        } else {
            format!("{left} cannot be compared with {right}")
        };
        Err(Mistake::new(span.clone(), message))
    }
}
