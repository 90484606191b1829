//! Sessions that are encrypted with a key of the environment, shown by the bytes of the database and by
//! the requests that the provider received.

use fake_provider::Reply;
use serde_json::json;

use crate::conversations::{Desk, words};
use crate::support::Ran;

const FIRST: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const SECOND: &str = "EjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrze8=";

const TEAM: &str = "[agents.Desk]\n";

/// Sends a message with these variables.
fn send(desk: &Desk, message: &str, variables: &[(&str, &str)]) -> Ran {
    let mut command = desk.command(message, &[]);
    let ran = Ran::of(command.envs(variables.iter().copied()).spawn().unwrap());
    for (_, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
        for printed in [&ran.stdout, &ran.stderr] {
            assert!(!printed.contains(value), "{ran:?}");
        }
        assert!(!desk.stored().contains(value));
    }
    ran
}

fn with_key(key: &str) -> Vec<(&str, &str)> {
    vec![("SWITCHBOARD_STORE_KEY", key)]
}

fn desk(answers: usize) -> Desk {
    let answer = |number: usize| {
        let content =
            json!([{"type": "output_text", "text": "Hello pomegranate!", "annotations": []}]);
        let id = format!("msg_{number}");
        Reply::items([
            json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
            "content": content}),
        ])
    };
    Desk::new(TEAM, (0..answers).map(answer))
}

/// The program's report of a session that cannot be used.
fn refused(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    (ran.stderr.clone() + &ran.stdout).replace('\n', " ")
}

#[test]
fn with_a_key_nothing_that_was_said_is_readable_in_the_file_and_the_session_goes_on() {
    let desk = desk(2);
    for message in ["I like pomegranates", "Which fruit?"] {
        let ran = send(&desk, message, &with_key(FIRST));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(
        words(&desk.requests()[1]),
        [r#""I like pomegranates""#, r#""Which fruit?""#]
    );
    let stored = desk.stored();
    assert!(stored.contains("tuesday"), "the name is readable");
    assert!(!stored.contains("pomegranate"));
    assert!(!stored.contains("fruit"));
}

#[test]
fn a_missing_or_wrong_key_is_told_before_anything_is_run_or_stored() {
    let desk = desk(2);
    assert_eq!(
        send(&desk, "I like pomegranates", &with_key(FIRST)).code,
        Some(0)
    );
    let told = refused(&send(&desk, "Hi", &[]));
    assert!(told.contains("\"tuesday\" is encrypted"), "{told}");
    assert!(told.contains("set SWITCHBOARD_STORE_KEY"), "{told}");
    let told = refused(&send(&desk, "Hi", &with_key(SECOND)));
    assert!(told.contains("is another key than the one"), "{told}");
    assert!(told.contains("SWITCHBOARD_STORE_OLD_KEYS"), "{told}");
    let chat = ["chat", "team.toml", "--session", "tuesday"];
    let ran = desk.folder.run_with_input(&chat, "/history\n");
    assert!(
        refused(&ran).contains("set SWITCHBOARD_STORE_KEY"),
        "{ran:?}"
    );
    assert_eq!(desk.requests().len(), 1);
    let ran = send(&desk, "And pears", &with_key(FIRST));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        words(&desk.requests()[1]),
        [r#""I like pomegranates""#, r#""And pears""#]
    );
}

#[test]
fn what_is_no_key_is_an_error_and_nothing_is_stored_readable() {
    let desk = desk(0);
    for (variables, problem) in [
        (with_key("hunter2"), "32 random bytes in base64"),
        (with_key(""), "must have one key"),
        (
            vec![("SWITCHBOARD_STORE_OLD_KEYS", FIRST)],
            "SWITCHBOARD_STORE_KEY is not",
        ),
    ] {
        let ran = send(&desk, "Hi", &variables);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(problem), "{ran:?}");
    }
    assert_eq!(desk.requests().len(), 0);
    assert_eq!(desk.stored(), "");
}

#[test]
fn a_session_gets_a_new_key_with_its_next_message() {
    let desk = desk(3);
    assert_eq!(send(&desk, "1", &with_key(FIRST)).code, Some(0));
    let mut both = with_key(SECOND);
    both.push(("SWITCHBOARD_STORE_OLD_KEYS", FIRST));
    assert_eq!(send(&desk, "2", &both).code, Some(0));
    let ran = send(&desk, "3", &with_key(SECOND));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(words(&desk.requests()[2]).len(), 3);
    refused(&send(&desk, "4", &with_key(FIRST)));
}

#[test]
fn a_readable_session_is_not_continued_as_if_it_were_encrypted() {
    let desk = desk(1);
    assert_eq!(send(&desk, "Hi", &[]).code, Some(0));
    let told = refused(&send(&desk, "I like pomegranates", &with_key(FIRST)));
    assert!(told.contains("was stored without encryption"), "{told}");
    assert!(told.contains("unset SWITCHBOARD_STORE_KEY"), "{told}");
    assert_eq!(desk.requests().len(), 1);
}
