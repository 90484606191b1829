//! The file of cases, and what a case asks for.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::conversation::Desk;
use crate::failure::Failure;

/// A file of cases.
#[derive(Debug)]
pub(super) struct Cases {
    pub(super) list: Vec<Case>,
}

/// A case: what is said, and where it must lead.
#[derive(Debug, PartialEq)]
pub(super) struct Case {
    /// How it is called in the table.
    pub(super) name: String,
    /// What is said.
    pub(super) messages: Vec<String>,
    /// Set in the context.
    pub(super) context: Vec<(String, String)>,
    /// Who must have the conversation at the end.
    expect: Option<String>,
    /// What the last handoff must bring, among others.
    payload: Option<Value>,
    /// Who must not get the conversation.
    forbidden: Vec<String>,
    /// Who must have had it, in this order.
    path: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    #[serde(default)]
    cases: Vec<toml::Spanned<WrittenCase>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    name: Option<String>,
    message: Option<String>,
    #[serde(default)]
    messages: Vec<String>,
    #[serde(default)]
    context: toml::Table,
    expect: Option<String>,
    payload: Option<Value>,
    #[serde(default)]
    forbidden: Vec<String>,
    #[serde(default)]
    path: Vec<String>,
}

impl Cases {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, &error))?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let file: WrittenFile = toml::from_str(text).map_err(|error| {
            Failure::usage(
                format!("{shown} cannot be read as cases\n{error}"),
                "`switchboard test --help` shows how cases are written",
            )
        })?;
        let mut list = Vec::new();
        for case in file.cases {
            let line = 1 + text[..case.span().start].matches('\n').count();
            list.push(case.into_inner().read().map_err(|(problem, help)| {
                Failure::usage(format!("{shown}:{line}: {problem}"), help)
            })?);
        }
        match list.is_empty() {
            false => Ok(Self { list }),
            true => Err(Failure::usage(
                format!("{shown} has no cases"),
                "add one: [[cases]] with `message` and `expect`",
            )),
        }
    }
}

impl WrittenCase {
    fn read(self) -> Result<Case, (&'static str, &'static str)> {
        let messages = match (self.message, self.messages) {
            (Some(message), others) if others.is_empty() => vec![message],
            (None, messages) if !messages.is_empty() => messages,
            (Some(_), _) => {
                return Err((
                    "the case has both `message` and `messages`",
                    "keep one of them",
                ));
            }
            (None, _) => {
                return Err((
                    "the case says nothing",
                    "give it `message = \"...\"`, or `messages = [...]` for several",
                ));
            }
        };
        let asks_for_something = self.expect.is_some()
            || self.payload.is_some()
            || !self.forbidden.is_empty()
            || !self.path.is_empty();
        if !asks_for_something {
            return Err((
                "the case asks for nothing, so it could not fail",
                "give it `expect`, `path`, `forbidden` or `payload`",
            ));
        }
        let mut context = Vec::new();
        flatten("", &self.context, &mut context);
        Ok(Case {
            name: self.name.unwrap_or_else(|| messages.join(" / ")),
            messages,
            context,
            expect: self.expect,
            payload: self.payload,
            forbidden: self.forbidden,
            path: self.path,
        })
    }
}

/// The values of a table with the paths that lead to them: `customer.tier`.
fn flatten(before: &str, table: &toml::Table, into: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let key = match before {
            "" => key.clone(),
            before => format!("{before}.{key}"),
        };
        match value {
            toml::Value::Table(table) => flatten(&key, table, into),
            toml::Value::String(text) => into.push((key, text.clone())),
            other => into.push((key, other.to_string())),
        }
    }
}

impl Case {
    /// Whether the team has the agents that the case names.
    pub(super) fn fits(&self, desk: &Desk, file: &Path) -> Result<(), Failure> {
        let named = self.expect.iter().chain(&self.forbidden).chain(&self.path);
        for name in named {
            desk.agent(name).map_err(|failure| match failure {
                Failure::Said {
                    exit,
                    message,
                    help,
                } => Failure::Said {
                    exit,
                    message: format!("{}, case \"{}\": {message}", file.display(), self.name),
                    help,
                },
                other => other,
            })?;
        }
        Ok(())
    }

    /// What is not as the case asks.
    pub(super) fn failures(&self, path: &[String], payload: Option<&Value>) -> Vec<String> {
        let mut failures = Vec::new();
        if let (Some(expected), Some(last)) = (&self.expect, path.last())
            && expected != last
        {
            failures.push(format!("expected {expected}, got {last}"));
        }
        if !self.path.is_empty() && self.path != path {
            let (expected, got) = (self.path.join(" → "), path.join(" → "));
            failures.push(format!("expected the path {expected}, got {got}"));
        }
        let forbidden = self.forbidden.iter().filter(|name| path.contains(name));
        failures.extend(forbidden.map(|name| format!("{name} got the conversation, and must not")));
        match (&self.payload, payload) {
            (Some(expected), None) => {
                failures.push(format!(
                    "expected the payload {expected}, and nobody handed over"
                ));
            }
            (Some(expected), Some(sent)) if !holds(sent, expected) => {
                failures.push(format!("expected {expected} in the payload, got {sent}"));
            }
            _ => {}
        }
        failures
    }
}

/// Whether a value has all that is expected of it: an object may hold more, all else is the same.
/// Numbers are the same if they are worth the same.
fn holds(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(fields), Value::Object(expected)) => expected
            .iter()
            .all(|(key, expected)| fields.get(key).is_some_and(|value| holds(value, expected))),
        (Value::Array(values), Value::Array(expected)) => {
            values.len() == expected.len()
                && values
                    .iter()
                    .zip(expected)
                    .all(|(value, expected)| holds(value, expected))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (value, expected) => value == expected,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::standin;

    fn read(text: &str) -> Result<Vec<Case>, String> {
        let cases = Cases::parse(text, Path::new("cases.toml"));
        cases
            .map(|cases| cases.list)
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_case_is_read_with_all_it_asks_for() {
        let text = r#"
            [[cases]]
            name = "wrong bill"
            messages = ["Hi", "My bill is wrong"]
            context = { tier = "premium", customer = { id = 42 } }
            expect = "Billing"
            path = ["Triage", "Billing"]
            forbidden = ["Sales"]
            payload = { reason = "bill" }
        "#;
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expected = Case {
            name: "wrong bill".to_owned(),
            messages: vec!["Hi".to_owned(), "My bill is wrong".to_owned()],
            context: vec![pair("tier", "premium"), pair("customer.id", "42")],
            expect: Some("Billing".to_owned()),
            payload: Some(json!({"reason": "bill"})),
            forbidden: vec!["Sales".to_owned()],
            path: vec!["Triage".to_owned(), "Billing".to_owned()],
        };
        assert_eq!(read(text), Ok(vec![expected]));
    }

    #[test]
    fn a_case_that_cannot_be_tried_is_named_with_its_line() {
        for (text, problem) in [
            ("", "cases.toml has no cases"),
            (
                "[[cases]]\nexpect = \"A\"",
                "cases.toml:1: the case says nothing",
            ),
            (
                "\n[[cases]]\nmessage = \"Hi\"",
                "cases.toml:2: the case asks for nothing",
            ),
            (
                "[[cases]]\nmessage = \"Hi\"\nmessages = [\"Hi\"]\nexpect = \"A\"",
                "cases.toml:1: the case has both",
            ),
            ("[[cases]]\nmesage = \"Hi\"", "unknown field `mesage`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains(problem) && error.contains("help: "),
                "{error}"
            );
        }
    }

    #[test]
    fn an_agent_that_the_team_has_not_is_a_mistake_in_the_case() {
        let cases = read("[[cases]]\nmessage = \"Hi\"\nexpect = \"Biling\"").unwrap();
        let error = cases[0]
            .fits(&standin::desk(), Path::new("cases.toml"))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "error: cases.toml, case \"Hi\": there is no agent \"Biling\"\n  help: did you mean \
             \"Billing\"?"
        );
    }

    #[test]
    fn each_thing_that_is_not_as_asked_is_a_failure() {
        let text = r#"
            [[cases]]
            message = "Hi"
            expect = "Billing"
            path = ["Triage", "Billing"]
            forbidden = ["Sales"]
            payload = { reason = "bill", amount = 3 }
        "#;
        let case = &read(text).unwrap()[0];
        let path = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let sent = json!({"reason": "bill", "amount": 3.0, "more": true});
        assert_eq!(
            case.failures(&path(&["Triage", "Billing"]), Some(&sent)),
            Vec::<String>::new()
        );
        assert_eq!(
            case.failures(&path(&["Triage", "Sales"]), Some(&json!({"reason": "car"}))),
            [
                "expected Billing, got Sales",
                "expected the path Triage → Billing, got Triage → Sales",
                "Sales got the conversation, and must not",
                "expected {\"reason\":\"bill\",\"amount\":3} in the payload, got {\"reason\":\"car\"}",
            ]
        );
        assert_eq!(
            case.failures(&path(&["Triage"]), None).last().unwrap(),
            "expected the payload {\"reason\":\"bill\",\"amount\":3}, and nobody handed over"
        );
    }
}
