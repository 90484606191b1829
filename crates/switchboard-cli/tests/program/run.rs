//! `switchboard run`.

use serde_json::json;

use crate::support::{Folder, Ran};

const BILL: &str = "\
You        My bill is wrong
Triage     → Billing
             carried 3 of 3 items
Billing    A second charge is reversed.

           (offline model)
";

#[test]
fn a_message_needs_no_quotes() {
    let folder = Folder::new();
    let message = |words: &[&str]| {
        let args = [&["run", "team.toml", "--json"], words].concat();
        folder.run(&args).events()[0]["input"].clone()
    };
    assert_eq!(message(&["My", "bill", "is", "wrong"]), "My bill is wrong");
    assert_eq!(message(&["My  bill"]), "My  bill");
}

#[test]
fn a_message_is_answered_and_the_handoff_is_shown() {
    let ran = Folder::new().run(&["run", "team.toml", "My bill is wrong"]);
    assert_eq!(ran.without_times(), BILL);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_message_is_read_from_a_pipe() {
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
            .events_of("run_started")
            .into_iter()
            .map(|event| (event["agent"].clone(), event["input"].clone()))
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
fn json_is_the_stream_of_the_run() {
    let ran = Folder::new().run(&["run", "team.toml", "I want a manager", "--json"]);
    let events: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] != "text_delta" && event["type"] != "usage")
        .collect();
    let text = "I call you back.";
    let items: Vec<_> = ran
        .events_of("item")
        .into_iter()
        .map(|event| event["item"].clone())
        .collect();
    let call_id = items[0]["raw_item"]["call_id"].clone();
    let usage = events.last().unwrap()["usage"].clone();
    assert_eq!(
        events,
        [
            json!({
                "type": "run_started",
                "agent": "Triage",
                "turn": 0,
                "version": 1,
                "agents": ["Triage", "Billing", "Manager", "Concierge"],
                "input": "I want a manager",
            }),
            json!({"type": "agent_updated", "agent": "Triage", "turn": 0, "model": "offline"}),
            json!({"type": "turn_started", "agent": "Triage", "turn": 1}),
            json!({
                "type": "item",
                "agent": "Triage",
                "turn": 1,
                "name": "handoff_requested",
                "item": items[0],
            }),
            json!({
                "type": "item",
                "agent": "Triage",
                "turn": 1,
                "name": "handoff_occured",
                "item": items[1],
            }),
            json!({
                "type": "handoff",
                "agent": "Triage",
                "turn": 1,
                "from": "Triage",
                "to": "Manager",
                "tool": "transfer_to_manager",
                "call_id": call_id,
                "payload": {"reason": "I want a manager"},
                "status": "taken",
                "carried_items": 3,
                "of_items": 3,
            }),
            json!({"type": "agent_updated", "agent": "Manager", "turn": 1, "model": "offline"}),
            json!({"type": "turn_started", "agent": "Manager", "turn": 2}),
            json!({
                "type": "item",
                "agent": "Manager",
                "turn": 2,
                "name": "message_output_created",
                "text": text,
                "item": items[2],
            }),
            json!({
                "type": "run_finished",
                "agent": "Manager",
                "turn": 2,
                "output": text,
                "turns": 2,
                "usage": usage,
            }),
        ]
    );
}

#[test]
fn the_context_enables_a_handoff() {
    let folder = Folder::new();
    let last = |args: &[&str]| {
        let ran = folder.run(&[&["run", "team.toml", "theatre tickets", "--json"], args].concat());
        ran.events().last().unwrap()["agent"].clone()
    };
    assert_eq!(last(&[]), "Triage");
    assert_eq!(last(&["--context", "tier=premium"]), "Concierge");
}

#[test]
fn another_agent_can_begin() {
    let folder = Folder::new();
    let ran = folder.run(&[
        "run",
        "team.toml",
        "wrong bill",
        "--agent",
        "Billing",
        "--json",
    ]);
    let agents: Vec<_> = ran
        .events_of("agent_updated")
        .into_iter()
        .map(|event| event["agent"].clone())
        .collect();
    assert_eq!(agents, ["Billing"]);
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
fn too_many_turns_are_an_error_with_advice() {
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
        "task",
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
fn a_missing_message_is_an_error_with_advice() {
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
fn the_problems_of_a_team_file_are_shown_with_their_positions() {
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
