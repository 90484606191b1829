//! Events of agents inside calls: agents that tools ask, and agents that answer side by side.

use fake_provider::Reply;
use serde_json::{Value, json};

use crate::approvals::Desk;

/// The calls around an event, outermost first, with its agent and its type.
fn place(event: &Value) -> String {
    if event["type"] == "inner" {
        let call = event["call_id"].as_str().unwrap();
        return format!("{call} > {}", place(&event["event"]));
    }
    let text = |field: &str| event[field].as_str().unwrap().to_owned();
    format!("{} {}", text("agent"), text("type"))
}

fn ask(id: &str) -> Reply {
    Reply::call(id, "ask_expert", r#"{"input":"?"}"#)
}

#[test]
fn json_has_the_events_of_an_agent_that_a_tool_asks() {
    let desk = Desk::new([ask("a1"), Reply::text("42"), Reply::text("Done.")]);
    let ran = desk.send("What?", &["--json"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let inner = ran.events_of("inner");
    let places: Vec<String> = inner.iter().map(place).collect();
    assert_eq!(
        places,
        [
            "a1 > Expert run_started",
            "a1 > Expert agent_updated",
            "a1 > Expert turn_started",
            "a1 > Expert text_delta",
            "a1 > Expert usage",
            "a1 > Expert item",
            "a1 > Expert run_finished",
        ]
    );
    assert_eq!(inner[3]["tool"], "ask_expert");
    assert_eq!(inner[3]["agent"], "Desk");
    assert_eq!(inner[3]["event"]["text"], "42");
    // On the screen the answer is the output of the tool, once.
    let desk = Desk::new([ask("a1"), Reply::text("42"), Reply::text("Done.")]);
    let ran = desk.send("What?", &[], "");
    assert_eq!(ran.stdout.matches("42").count(), 1, "{ran:?}");
}

#[test]
fn agents_side_by_side_are_told_apart_by_their_calls() {
    let team = r#"
[agents.Triage]
handoffs = ["North", "South"]

[agents.North]
description = "The north."

[agents.South]
description = "The south."

[run]
several_handoffs = { fan_out = {} }
"#;
    let call = |id: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id,
            "name": format!("transfer_to_{id}"), "arguments": "{}"})
    };
    let both = || Reply::items([call("north"), call("south")]);
    for is_json in [true, false] {
        let answers = [
            Reply::text("Fine."),
            Reply::text("Fine."),
            Reply::text("Both are fine."),
        ];
        let desk = Desk::new([both()].into_iter().chain(answers));
        desk.folder.write("team.toml", team);
        if is_json {
            let ran = desk.send("How is it?", &["--json"], "");
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let mut places: Vec<String> = ran.events_of("inner").iter().map(place).collect();
            places.retain(|place| place.ends_with("text_delta") || place.ends_with("finished"));
            places.sort();
            assert_eq!(
                places,
                [
                    "north > North run_finished",
                    "north > North text_delta",
                    "south > South run_finished",
                    "south > South text_delta",
                ]
            );
            continue;
        }
        let ran = desk.send("How is it?", &[], "");
        for line in [
            "Triage  → North",
            "Triage  → South",
            "North: Fine.",
            "South: Fine.",
            "Triage  Both are fine.",
        ] {
            assert!(ran.stdout.contains(line), "{line}: {ran:?}");
        }
    }
}
