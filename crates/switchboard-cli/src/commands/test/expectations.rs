//! Checks the result of a case against its expectations.

use serde_json::Value;
use switchboard_teamfile::{Case, ExpectedCall};

use super::observed::{Call, Observed, RunError};

/// Returns a text for each expectation that was not met.
pub(super) fn failures(case: &Case, observed: &Observed) -> Vec<String> {
    let mut failures = Vec::new();
    // A guardrail that is expected to fire may stop the run.
    let is_unexpected = |error: &&RunError| {
        error.guardrail.is_none() || error.guardrail.as_ref() != case.guardrail.as_ref()
    };
    let errors = observed.errors.iter().filter(is_unexpected);
    failures.extend(errors.map(|error| error.message.clone()));
    let path = &observed.path;
    if let (Some(expected), Some(last)) = (&case.expect, path.last())
        && expected != last
    {
        failures.push(format!("expected {expected}, got {last}"));
    }
    if !case.path.is_empty() && case.path != *path {
        let (expected, got) = (case.path.join(" → "), path.join(" → "));
        failures.push(format!("expected the path {expected}, got {got}"));
    }
    let forbidden = case.forbidden.iter().filter(|name| path.contains(name));
    failures.extend(forbidden.map(|name| format!("{name} got the conversation, and must not")));
    match (&case.payload, &observed.payload) {
        (Some(expected), None) => {
            failures.push(format!(
                "expected the payload {expected}, and nobody handed over"
            ));
        }
        (Some(expected), Some(sent)) if !contains(sent, expected) => {
            failures.push(format!("expected {expected} in the payload, got {sent}"));
        }
        _ => {}
    }
    words(case, observed, &mut failures);
    if let Some(expected) = &case.tools {
        failures.extend(tools(expected, &observed.calls));
    }
    if let Some(guardrail) = &case.guardrail
        && !observed.guardrails.contains(guardrail)
    {
        let fired = match observed.guardrails.as_slice() {
            [] => "none did".to_owned(),
            fired => format!("{} did", fired.join(", ")),
        };
        failures.push(format!(
            "expected the guardrail {guardrail} to fire, and {fired}"
        ));
    }
    let turns = observed.turns;
    if let Some(expected) = case.turns.filter(|expected| *expected != turns) {
        failures.push(format!("expected {expected} turns, got {turns}"));
    }
    if let Some(most) = case.max_turns.filter(|most| turns > *most) {
        failures.push(format!("expected at most {most} turns, got {turns}"));
    }
    failures
}

/// Checks the words of the answers.
fn words(case: &Case, observed: &Observed, failures: &mut Vec<String>) {
    let answers = observed.answers.join("\n");
    let lower = answers.to_lowercase();
    let said = |words: &&String| lower.contains(&words.to_lowercase());
    let missing = case.says.iter().filter(|words| !said(words));
    failures
        .extend(missing.map(|words| format!("expected {words:?} in the answer, got {answers:?}")));
    let unwanted = case.never_says.iter().filter(said);
    failures.extend(
        unwanted.map(|words| format!("the answer has {words:?}, and must not: {answers:?}")),
    );
}

/// Checks that the expected calls were made in their order, among others.
fn tools(expected: &[ExpectedCall], calls: &[Call]) -> Option<String> {
    let got = match calls {
        [] => "none ran".to_owned(),
        calls => {
            let calls = calls
                .iter()
                .map(|call| format!("{} {}", call.tool, call.arguments));
            format!("these ran: {}", calls.collect::<Vec<_>>().join(", "))
        }
    };
    if expected.is_empty() && !calls.is_empty() {
        return Some(format!("expected no tools, and {got}"));
    }
    let mut calls = calls.iter();
    let missing = expected.iter().find(|expected| {
        !calls.any(|call| {
            let arguments = expected.arguments.as_ref();
            call.tool == expected.tool
                && arguments.is_none_or(|arguments| contains(&call.arguments, arguments))
        })
    })?;
    let arguments = missing.arguments.as_ref();
    let arguments = arguments.map(|arguments| format!(" with {arguments}"));
    let arguments = arguments.unwrap_or_default();
    Some(format!(
        "expected the tool {}{arguments}, and {got}",
        missing.tool
    ))
}

/// Returns `true` if a value has all expected fields and is otherwise equal. `3` equals `3.0`.
fn contains(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(fields), Value::Object(expected)) => {
            expected.iter().all(|(key, expected)| {
                fields
                    .get(key)
                    .is_some_and(|value| contains(value, expected))
            })
        }
        (Value::Array(values), Value::Array(expected)) => {
            values.len() == expected.len()
                && values
                    .iter()
                    .zip(expected)
                    .all(|(value, expected)| contains(value, expected))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (value, expected) => value == expected,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_teamfile::TeamFile;

    use super::*;

    #[test]
    fn each_unmet_expectation_is_a_failure() {
        let text = r#"
            [[cases]]
            message = "Hi"
            expect = "Billing"
            path = ["Triage", "Billing"]
            forbidden = ["Sales"]
            payload = { reason = "bill", amount = 3 }
        "#;
        let team = "[agents.Triage]\n[agents.Billing]\n[agents.Sales]\n";
        let team = TeamFile::parse(team, "team.toml").unwrap();
        let case = &Case::parse_all(text, "cases.toml", &team).unwrap()[0];
        let observed = |names: &[&str], payload: Option<Value>| Observed {
            path: names.iter().map(|name| (*name).to_owned()).collect(),
            payload,
            ..Observed::default()
        };
        let sent = json!({"reason": "bill", "amount": 3.0, "more": true});
        assert_eq!(
            failures(case, &observed(&["Triage", "Billing"], Some(sent))),
            Vec::<String>::new()
        );
        assert_eq!(
            failures(
                case,
                &observed(&["Triage", "Sales"], Some(json!({"reason": "car"})))
            ),
            [
                "expected Billing, got Sales",
                "expected the path Triage → Billing, got Triage → Sales",
                "Sales got the conversation, and must not",
                "expected {\"reason\":\"bill\",\"amount\":3} in the payload, got {\"reason\":\"car\"}",
            ]
        );
        assert_eq!(
            failures(case, &observed(&["Triage"], None)).last().unwrap(),
            "expected the payload {\"reason\":\"bill\",\"amount\":3}, and nobody handed over"
        );
    }
}
