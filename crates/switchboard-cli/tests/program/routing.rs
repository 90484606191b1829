//! `switchboard test`.

use serde_json::{Value, json};

use crate::support::Folder;

const CASES: &str = r#"
[[cases]]
name = "wrong bill"
message = "My bill is wrong"
expect = "Billing"
path = ["Triage", "Billing"]
forbidden = ["Manager"]

[[cases]]
message = "I want a manager"
expect = "Manager"
payload = { reason = "I want a manager" }

[[cases]]
message = "theatre tickets"
expect = "Concierge"
context = { tier = "premium" }
"#;

#[test]
fn cases_that_pass_are_shown_as_a_table() {
    let folder = Folder::new();
    folder.write("cases.toml", CASES);
    let ran = folder.run(&["test", "team.toml", "cases.toml"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "ok    wrong bill        Triage → Billing",
            "ok    I want a manager  Triage → Manager",
            "ok    theatre tickets   Triage → Concierge",
            "",
        ]
    );
    assert!(
        lines[4].starts_with("ok: 3 passed, 0 failed in "),
        "{}",
        ran.stdout
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn cases_that_fail_have_reasons_and_keep_the_order_of_the_file() {
    let folder = Folder::new();
    let failing = "[[cases]]\nmessage = \"My bill is wrong\"\nexpect = \"Manager\"\n";
    folder.write("cases.toml", &format!("{failing}{CASES}"));
    for jobs in ["1", "8"] {
        let ran = folder.run(&["test", "team.toml", "cases.toml", "--jobs", jobs, "--json"]);
        let mut events = ran.events();
        for event in &mut events {
            for field in ["payload", "answers", "tools", "guardrails", "turns"] {
                event.as_object_mut().unwrap().remove(field);
            }
        }
        let case = |name: &str, to: &str, failures: Value| json!({"type": "case", "name": name, "path": ["Triage", to], "failures": failures});
        assert_eq!(
            events,
            [
                case(
                    "My bill is wrong",
                    "Billing",
                    json!(["expected Manager, got Billing"])
                ),
                case("wrong bill", "Billing", json!([])),
                case("I want a manager", "Manager", json!([])),
                case("theatre tickets", "Concierge", json!([])),
                json!({"type": "summary", "passed": 3, "failed": 1}),
            ]
        );
        assert_eq!(ran.code, Some(1));
    }
    let ran = folder.run(&["test", "team.toml", "cases.toml"]);
    assert!(
        ran.stdout.contains("FAIL  My bill is wrong"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn cases_that_cannot_be_parsed_are_a_usage_error() {
    let folder = Folder::new();
    folder.write(
        "cases.toml",
        "expekt = \"Billing\"\n[[cases]]\nmessage = \"Hi\"\n",
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("expekt"), "{}", ran.stderr);
}
