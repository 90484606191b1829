//! The expectations of `switchboard test`, `--junit` and `--record`.

use serde_json::json;

use crate::support::Folder;

/// A team with a tool and guardrails.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.run(&["init", ".", "--force"]);
    folder
}

#[test]
fn words_tools_guardrails_and_turns_are_expected() {
    let folder = folder();
    folder.write(
        "cases.toml",
        r#"
[[cases]]
name = "all met"
message = "Where is invoice INV-1042?"
expect = "Billing"
tools = [{ tool = "find_invoice", arguments = { number = "INV-1042" } }]
never_says = "lawyer"
max_turns = 4

[[cases]]
name = "stopped"
message = "my password is hunter2"
guardrail = "no_passwords"
tools = []

[[cases]]
name = "none met"
message = "How do I get a refund?"
says = ["five working days", "by horse"]
never_says = "refunds"
tools = ["line_status"]
guardrail = "not_too_long"
turns = 9
"#,
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let cases = ran.events_of("case");
    assert_eq!(cases[0]["failures"], json!([]));
    assert_eq!(cases[0]["tools"][0]["tool"], "find_invoice");
    assert_eq!(cases[1]["failures"], json!([]));
    assert_eq!(cases[1]["guardrails"], json!(["no_passwords"]));
    let failures: Vec<&str> = cases[2]["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure.as_str().unwrap().split(", got").next().unwrap())
        .map(|failure| failure.split(": \"").next().unwrap())
        .collect();
    assert_eq!(
        failures,
        [
            "expected \"by horse\" in the answer",
            "the answer has \"refunds\", and must not",
            "expected the tool line_status, and none ran",
            "expected the guardrail not_too_long to fire, and none did",
            "expected 9 turns",
        ]
    );
}

#[test]
fn one_misspelt_case_does_not_hide_the_others() {
    let folder = folder();
    folder.write(
        "cases.toml",
        "[[cases]]\nmessage = 'I was charged twice'\nexpect = 'Billing'\n\
         [[cases]]\nmesage = 'Hi'\nexpect = 'Billing'\n\
         [[cases]]\nmessage = 'Hi'\nexpect = 'Biling'\n\
         [[cases]]\nname = 'last'\nmessage = 'The router is broken'\nexpect = 'Technical'\n",
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let verdicts: Vec<&str> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split("  ").next())
        .filter(|start| matches!(start.trim(), "ok" | "FAIL"))
        .collect();
    assert_eq!(verdicts, ["ok", "FAIL", "FAIL", "ok"], "{ran:?}");
    assert!(ran.stdout.contains("has no field \"mesage\""), "{ran:?}");
    assert!(ran.stdout.contains("did you mean \"Billing\"?"), "{ran:?}");
    assert!(ran.stdout.contains("FAILED: 2 passed, 2 failed"), "{ran:?}");
}

#[test]
fn results_are_written_for_services_that_read_junit() {
    let folder = folder();
    folder.write(
        "cases.toml",
        "[[cases]]\nname = 'a <b>'\nmessage = 'I was charged twice'\nexpect = 'Sales'\n\
         [[cases]]\nname = 'good'\nmessage = 'I was charged twice'\nexpect = 'Billing'\n\
         [[cases]]\nmesage = 'Hi'\n",
    );
    folder.run(&["test", "team.toml", "cases.toml", "--junit", "out.xml"]);
    let xml = folder.read("out.xml");
    assert!(
        xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""),
        "{xml}"
    );
    assert!(xml.contains("name=\"a &lt;b&gt;\""), "{xml}");
    assert!(
        xml.contains("<failure message=\"expected Sales, got Billing\">"),
        "{xml}"
    );
}

#[test]
fn a_recorded_chat_becomes_a_case_that_passes() {
    let folder = folder();
    let lines = "I was charged twice\nThe router is \"broken\"\n/save chat.jsonl\n";
    folder.run_with_input(&["chat", "team.toml"], lines);
    folder.write(
        "own.toml",
        "# mine\n[[cases]]\nmessage = 'Hi'\nexpect = 'Triage'\n",
    );
    let record = ["test", "team.toml", "own.toml", "--record", "chat.jsonl"];
    let ran = folder.run(&record);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "a case of 2 messages was added to own.toml\n"),
        "{ran:?}"
    );
    let written = folder.read("own.toml");
    assert!(written.starts_with("# mine\n[[cases]]\n"), "{written}");
    assert!(
        written.contains("messages = [\"I was charged twice\", \"The router is \\\"broken\\\"\"]"),
        "{written}"
    );
    let ran = folder.run(&["test", "team.toml", "own.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{written}");
    folder.write("other.toml", "[agents.Desk]\ninstructions = 'x'\n");
    let ran = folder.run(&["test", "other.toml", "own.toml", "--record", "chat.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(folder.read("own.toml"), written);
}

#[test]
fn a_recorded_case_has_the_agent_and_the_context_that_were_chosen() {
    let folder = Folder::new();
    let passes = |cases: &str| {
        let ran = folder.run(&["test", "team.toml", cases]);
        assert_eq!(ran.code, Some(0), "{ran:?}\n{}", folder.read(cases));
    };
    let record = |cases: &str, recording: &str| {
        let ran = folder.run(&["test", "team.toml", cases, "--record", recording]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        passes(cases);
        folder.read(cases)
    };
    let lines = "/agent Billing\nWhat do I owe?\n/save a.jsonl\n";
    folder.run_with_input(&["chat", "team.toml"], lines);
    let case = record("a.toml", "a.jsonl");
    assert!(
        case.contains("agent = \"Billing\"\nexpect = \"Billing\"\n"),
        "{case}"
    );

    let run = [
        "run",
        "team.toml",
        "What do I owe?",
        "-a",
        "Manager",
        "--json",
    ];
    folder.write("b.jsonl", &folder.run(&run).stdout);
    assert!(record("b.toml", "b.jsonl").contains("agent = \"Manager\"\n"));

    let run = [
        "run",
        "team.toml",
        "theatre tickets",
        "-c",
        "tier=premium",
        "--json",
    ];
    folder.write("c.jsonl", &folder.run(&run).stdout);
    let case = record("c.toml", "c.jsonl");
    assert!(
        case.contains("context = { \"tier\" = \"premium\" }\n"),
        "{case}"
    );
    assert!(case.contains("expect = \"Concierge\"\n"), "{case}");

    let lines = "/context tier=premium\ntheatre tickets\n/save d.jsonl\n";
    folder.run_with_input(&["chat", "team.toml"], lines);
    assert!(record("d.toml", "d.jsonl").contains("\"tier\" = \"premium\""));
}

#[test]
fn a_recording_that_no_case_can_repeat_is_told() {
    let folder = Folder::new();
    for (lines, problem) in [
        (
            "Hello\n/agent Billing\nHello\n",
            "the conversation was given to Billing between two messages",
        ),
        (
            "Hello\n/context tier=premium\nHello\n",
            "the context was changed between two messages",
        ),
    ] {
        folder.run_with_input(&["chat", "team.toml"], &format!("{lines}/save a.jsonl\n"));
        let ran = folder.run(&["test", "team.toml", "cases.toml", "--record", "a.jsonl"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let expected = format!("a.jsonl cannot become a case that passes: {problem}\n");
        assert!(ran.stderr.contains(&expected), "{ran:?}");
        assert!(!folder.path("cases.toml").exists());
        std::fs::remove_file(folder.path("a.jsonl")).unwrap();
    }
    let run = [
        "run",
        "team.toml",
        "My bill is wrong",
        "--max-turns",
        "1",
        "--json",
    ];
    folder.write("b.jsonl", &folder.run(&run).stdout);
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--record", "b.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!folder.path("cases.toml").exists());
}

#[test]
fn a_case_begins_with_its_agent() {
    let folder = Folder::new();
    let case =
        |agent: &str| format!("[[cases]]\nmessage = 'Hi'\nagent = '{agent}'\npath = ['Billing']\n");
    folder.write("cases.toml", &case("Billing"));
    let ran = folder.run(&["test", "team.toml", "cases.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    folder.write("cases.toml", &case("Biling"));
    let ran = folder.run(&["test", "team.toml", "cases.toml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("did you mean \"Billing\"?"), "{ran:?}");
}

#[test]
fn results_are_written_over_older_results_and_nothing_else() {
    let folder = Folder::new();
    folder.write(
        "cases.toml",
        "[[cases]]\nmessage = \"Hi\"\nexpect = \"Triage\"\n",
    );
    let team = folder.read("team.toml");
    let test = |file: &str| folder.run(&["test", "team.toml", "cases.toml", "--junit", file]);
    let ran = test("team.toml");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(
        ran.stderr
            .contains("team.toml is there already and is no report of JUnit")
    );
    assert_eq!(folder.read("team.toml"), team);
    for _ in 0..2 {
        assert_eq!(test("out.xml").code, Some(0));
    }
}

#[test]
fn a_recording_that_was_cut_makes_no_case() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "My bill is wrong", "--json"]);
    let lines: Vec<&str> = recorded.stdout.lines().collect();
    folder.write("cut.jsonl", &lines[..lines.len() - 2].join("\n"));
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--record", "cut.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("cut.jsonl is cut: it ends before its last run does")
    );
    assert!(!folder.path("cases.toml").exists());
}
