//! Checks the result of a case against its expectations.

use serde_json::Value;
use switchboard_teamfile::Case;

/// Returns a text for each expectation that was not met.
pub(super) fn failures(case: &Case, path: &[String], payload: Option<&Value>) -> Vec<String> {
    let mut failures = Vec::new();
    if let (Some(expected), Some(last)) = (&case.expect, path.last())
        && expected != last
    {
        failures.push(format!("expected {expected}, got {last}"));
    }
    if !case.path.is_empty() && case.path != path {
        let (expected, got) = (case.path.join(" → "), path.join(" → "));
        failures.push(format!("expected the path {expected}, got {got}"));
    }
    let forbidden = case.forbidden.iter().filter(|name| path.contains(name));
    failures.extend(forbidden.map(|name| format!("{name} got the conversation, and must not")));
    match (&case.payload, payload) {
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
    failures
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
        let path = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let sent = json!({"reason": "bill", "amount": 3.0, "more": true});
        assert_eq!(
            failures(case, &path(&["Triage", "Billing"]), Some(&sent)),
            Vec::<String>::new()
        );
        assert_eq!(
            failures(
                case,
                &path(&["Triage", "Sales"]),
                Some(&json!({"reason": "car"}))
            ),
            [
                "expected Billing, got Sales",
                "expected the path Triage → Billing, got Triage → Sales",
                "Sales got the conversation, and must not",
                "expected {\"reason\":\"bill\",\"amount\":3} in the payload, got {\"reason\":\"car\"}",
            ]
        );
        assert_eq!(
            failures(case, &path(&["Triage"]), None).last().unwrap(),
            "expected the payload {\"reason\":\"bill\",\"amount\":3}, and nobody handed over"
        );
    }
}
