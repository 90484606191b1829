//! `switchboard run`.

use serde_json::json;

use crate::support::{Folder, Ran};

const BILL: &str = "\
You        My bill is wrong
Triage     → Billing
             carried 3 of 3 items: 1 user message, 1 call, 1 output
Billing    A second charge is reversed.

           (offline model)
";

#[test]
fn a_message_needs_no_quotes() {
    let folder = Folder::new();
    let said = |words: &[&str]| {
        let args = [&["run", "team.toml", "--json"], words].concat();
        folder.run(&args).events()[0]["message"].clone()
    };
    assert_eq!(said(&["My", "bill", "is", "wrong"]), "My bill is wrong");
    assert_eq!(said(&["My  bill"]), "My  bill");
}

#[test]
fn a_message_is_answered_and_the_handoff_is_shown() {
    let ran = Folder::new().run(&["run", "team.toml", "My bill is wrong"]);
    assert_eq!(ran.without_times(), BILL);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_message_may_come_through_a_pipe() {
    let ran = Folder::new().run_with_input(&["run", "team.toml"], "My bill\nis wrong\n");
    let first = ran.stdout.lines().take(2).collect::<Vec<_>>();
    assert_eq!(first, ["You        My bill", "           is wrong"]);
}

#[test]
fn a_file_of_messages_is_one_conversation() {
    let folder = Folder::new();
    folder.write("in.txt", "My bill is wrong\n\nAnd the refund?\n");
    folder.write(
        "in.jsonl",
        "\"My bill is wrong\"\n{\"message\": \"And the refund?\"}\n",
    );
    for input in ["in.txt", "in.jsonl"] {
        let ran = folder.run(&["run", "team.toml", "--input", input, "--json"]);
        let started: Vec<_> = ran
            .events()
            .into_iter()
            .filter(|event| event["type"] == "run_started")
            .map(|event| (event["agent"].clone(), event["message"].clone()))
            .collect();
        assert_eq!(
            started,
            [
                (json!("Triage"), json!("My bill is wrong")),
                (json!("Billing"), json!("And the refund?")),
            ]
        );
    }
}

#[test]
fn machines_get_an_event_a_line() {
    let ran = Folder::new().run(&["run", "team.toml", "I want a manager", "--json"]);
    let events: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] != "text_delta")
        .collect();
    let said = "I call you back.\n\n(offline model)";
    let usage = events.last().unwrap()["usage"].clone();
    assert_eq!(
        events,
        [
            json!({
                "type": "run_started",
                "team": "team.toml",
                "agents": ["Triage", "Billing", "Manager", "Concierge"],
                "agent": "Triage",
                "model": "offline",
                "message": "I want a manager",
            }),
            json!({
                "type": "handoff",
                "from": "Triage",
                "to": "Manager",
                "tool": "transfer_to_manager",
                "payload": {"reason": "I want a manager"},
                "carried": {
                    "items": 3,
                    "of": 3,
                    "kinds": {"function_call": 1, "function_call_output": 1, "user_message": 1},
                },
            }),
            json!({"type": "agent_updated", "agent": "Manager", "model": "offline"}),
            json!({"type": "message", "agent": "Manager", "text": said}),
            json!({
                "type": "finished",
                "agent": "Manager",
                "output": said,
                "turns": 2,
                "usage": usage,
            }),
        ]
    );
}

#[test]
fn the_context_opens_a_way() {
    let folder = Folder::new();
    let last = |args: &[&str]| {
        let ran = folder.run(&[&["run", "team.toml", "theatre tickets", "--json"], args].concat());
        ran.events().last().unwrap()["agent"].clone()
    };
    assert_eq!(last(&[]), "Triage");
    assert_eq!(last(&["--context", "tier=premium"]), "Concierge");
}

#[test]
fn another_agent_may_begin() {
    let folder = Folder::new();
    let ran = folder.run(&[
        "run",
        "team.toml",
        "wrong bill",
        "--agent",
        "Billing",
        "--json",
    ]);
    assert_eq!(ran.types(), ["run_started", "message", "finished"]);
    let ran = folder.run(&["run", "team.toml", "wrong bill", "--agent", "Biling"]);
    let expected = Ran {
        code: Some(2),
        stdout: String::new(),
        stderr: "error: there is no agent \"Biling\"\n  help: did you mean \"Billing\"?\n"
            .to_owned(),
    };
    assert_eq!(ran, expected);
}

#[test]
fn too_many_turns_are_an_error_that_says_what_to_do() {
    let folder = Folder::new();
    let ran = folder.run(&["run", "team.toml", "wrong bill", "--max-turns", "1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--max-turns"), "{}", ran.stderr);
}

#[test]
fn a_trace_has_a_span_a_line() {
    let folder = Folder::new();
    let ran = folder.run(&["run", "team.toml", "wrong bill", "--trace", "trace.jsonl"]);
    assert_eq!(ran.code, Some(0));
    let spans = folder.read("trace.jsonl");
    let kinds: Vec<String> = spans
        .lines()
        .map(|line| {
            let span: serde_json::Value = serde_json::from_str(line).unwrap();
            span["data"]["type"].as_str().unwrap().to_owned()
        })
        .collect();
    let expected = [
        "generation",
        "handoff",
        "turn",
        "agent",
        "generation",
        "turn",
        "agent",
    ];
    assert_eq!(kinds, expected);
    let ran = folder.run(&["run", "team.toml", "Hi", "--trace", "no/such/folder.jsonl"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("cannot write no/such/folder.jsonl"),
        "{}",
        ran.stderr
    );
}

#[test]
fn who_says_nothing_is_told_how_to() {
    let folder = Folder::new();
    folder.write("empty.txt", "\n\n");
    for (args, what) in [
        (&["run", "team.toml"][..], "standard input is empty"),
        (
            &["run", "team.toml", "--input", "-"],
            "standard input is empty",
        ),
        (&["run", "team.toml", " "], "the message is empty"),
        (
            &["run", "team.toml", "--input", "empty.txt"],
            "empty.txt is empty",
        ),
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        let first = ran.stderr.lines().next().unwrap();
        assert_eq!(first, format!("error: there is nothing to say: {what}"));
    }
}

#[test]
fn a_team_file_with_mistakes_is_shown_with_their_places() {
    let folder = Folder::new();
    folder.write("bad.toml", "[agents.A]\nhandoffs = [\"BB\"]\n[agents.B]\n");
    let ran = folder.run(&["run", "bad.toml", "Hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("bad.toml:2:13"), "{}", ran.stderr);
}

#[test]
fn a_guardrail_that_stops_a_run_has_an_exit_code_of_its_own() {
    let folder = Folder::new();
    let guarded = "
        [agents.A]
        input_guardrails = [\"no secrets\"]
        [guardrails.\"no secrets\"]
        deny = [\"password\"]
    ";
    folder.write("guarded.toml", guarded);
    let ran = folder.run(&["run", "guarded.toml", "my password is 1234"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stdout
            .contains("guardrail \"no secrets\" stopped the run"),
        "{ran:?}"
    );
}
