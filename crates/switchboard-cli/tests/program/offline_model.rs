//! Teams of a user's own on the offline model.

use serde_json::{Value, json};

use crate::support::Folder;

const HOTEL: &str = r#"
[agents.Reception]
instructions = "Greet guests and hand over."
tools = ["book_table"]
handoffs = [
    { to = "Housekeeping", payload = { properties = { request = { type = "string" }, room = { type = "integer" } }, required = ["request"] } },
    "Restaurant",
    "Terrace",
]

[agents.Housekeeping]
description = "Towels, cleaning and bed linen."

[agents.Restaurant]
description = "Dinner in the house, children's menu."
knowledge = [{ title = "Dress code", text = "Come as you are." }]

[agents.Terrace]
description = "Dinner outside."

[commands]
allow = ["date"]

[tools.book_table]
description = "Books a table."
parameters = { properties = { time = { type = "string" } }, required = ["time"] }
command.run = ["date"]
"#;

fn hotel() -> Folder {
    let folder = Folder::new();
    folder.write("hotel.toml", HOTEL);
    folder
}

/// Runs one message. Returns the agent that has the conversation, and the answer.
fn answer(message: &str) -> (String, String) {
    let ran = hotel().run(&["run", "hotel.toml", message, "--json"]);
    let finished = ran.events_of("run_finished").remove(0);
    let text = |field: &str| finished[field].as_str().unwrap().to_owned();
    (text("agent"), text("output"))
}

#[test]
fn a_message_that_fits_several_agents_is_asked_back() {
    let (agent, text) = answer("where do we get dinner");
    assert_eq!(agent, "Reception");
    assert_eq!(
        text,
        "Which of these do you mean?\n- Restaurant: Dinner in the house, children's menu\n- Terrace: Dinner outside"
    );
}

#[test]
fn a_message_that_fits_no_agent_is_asked_back_in_its_language() {
    let (agent, text) = answer("月亮离我们多远");
    assert_eq!(agent, "Reception");
    assert!(text.starts_with("我不太确定您需要什么。"), "{text}");
}

#[test]
fn optional_fields_of_a_payload_are_left_out_if_nothing_was_said_of_them() {
    let payload = |message: &str| -> Value {
        let ran = hotel().run(&["run", "hotel.toml", message, "--json"]);
        ran.events_of("handoff").remove(0)["payload"].clone()
    };
    assert_eq!(
        payload("two towels please"),
        json!({"request": "two towels please"})
    );
    assert_eq!(
        payload("towels for room 12"),
        json!({"request": "towels for room 12", "room": 12})
    );
}

#[test]
fn a_tool_that_shares_a_word_does_not_beat_a_handoff_that_fits_better() {
    let (agent, _) = answer("does the table have a children's menu for dinner");
    assert_eq!(agent, "Restaurant");
}

#[test]
fn the_knowledge_of_an_agent_counts_like_its_description() {
    let expected = ("Restaurant".to_owned(), "Come as you are.".to_owned());
    assert_eq!(answer("is there a dress code"), expected);
}

#[test]
fn the_screen_says_that_the_offline_model_answered_and_json_does_not() {
    let ran = hotel().run(&["run", "hotel.toml", "is there a dress code"]);
    assert!(
        ran.stdout.contains("Come as you are.\n\n") && ran.stdout.contains("(offline model)"),
        "{}",
        ran.stdout
    );
    let ran = hotel().run(&["run", "hotel.toml", "is there a dress code", "--json"]);
    assert!(!ran.stdout.contains("offline model"), "{}", ran.stdout);
}
