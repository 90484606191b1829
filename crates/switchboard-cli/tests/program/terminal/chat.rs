//! `switchboard chat` in a terminal: editing, commands, streaming.

use std::time::Duration;

use fake_provider::{FakeProvider, Reply};
use serde_json::json;
use terminal::{Key, Size};

use super::{DEFAULT_SIZE, chat, enter, hanging_reply, open, with_model};
use crate::support::Folder;

#[test]
fn a_line_can_be_edited_before_it_is_sent() {
    let mut terminal = chat(&Folder::new());
    terminal.type_text("y bill is wrongg");
    terminal.press(Key::Backspace);
    terminal.press(Key::Home);
    terminal.type_text("M");
    terminal.press(Key::End);
    terminal.type_text("?");
    terminal.press(Key::Left);
    terminal.type_text("!");
    terminal
        .wait_for("You → Triage> My bill is wrong!?")
        .unwrap();
    terminal.press(Key::Enter);
    terminal.wait_for("You → Billing> ").unwrap();
    enter(&mut terminal, "/history");
    terminal.wait_for("You      My bill is wrong!?").unwrap();
}

#[test]
fn alt_enter_makes_a_new_line_of_the_same_message() {
    let folder = Folder::new();
    let mut terminal = chat(&folder);
    terminal.type_text("My bill");
    terminal.press(Key::AltEnter);
    terminal.type_text("is wrong");
    terminal.press(Key::Enter);
    terminal.wait_for("You → Billing> ").unwrap();
    enter(&mut terminal, "/history");
    terminal
        .wait_for("You      My bill\n         is wrong")
        .unwrap();
}

#[test]
fn the_team_is_drawn_in_the_terminal() {
    let folder = Folder::new();
    let mut terminal = open(&folder, &["graph", "team.toml"], DEFAULT_SIZE, &[]);
    terminal.wait_for("Triage\n├─▶ Billing\n").unwrap();
    assert!(terminal.wait_exit().unwrap().success());
}

#[test]
fn the_history_of_lines_is_there_in_the_next_chat() {
    let folder = Folder::new();
    let mut terminal = chat(&folder);
    enter(&mut terminal, "My bill is wrong");
    terminal.wait_for("You → Billing> ").unwrap();
    enter(&mut terminal, " my secret");
    terminal
        .wait_until("an answer to the second line", |screen| {
            screen.matches("You → Billing>").count() == 2
        })
        .unwrap();
    terminal.press(Key::Up);
    terminal
        .wait_for("You → Billing> My bill is wrong")
        .unwrap();
    drop(terminal);
    let mut terminal = chat(&folder);
    terminal.press(Key::Up);
    terminal.wait_for("You → Triage> My bill is wrong").unwrap();
}

#[test]
fn a_message_that_a_guardrail_refuses_or_changes_is_not_in_the_history_of_lines() {
    let folder = Folder::new();
    folder.write(
        "team.toml",
        r#"
        [agents.Triage]
        input_guardrails = ["no_secrets", "polite"]
        [guardrails.no_secrets]
        patterns = ['my password is']
        [guardrails.polite]
        deny = ["blast"]
        then = "redact"
        "#,
    );
    let mut terminal = chat(&folder);
    for (line, answers) in [
        ("Hello there", 2),
        ("my password is hunter2", 3),
        ("blast this bill", 4),
        ("/agents", 5),
    ] {
        enter(&mut terminal, line);
        let prompts = |screen: &str| screen.matches("You → Triage>").count() == answers;
        terminal.wait_until("the next prompt", prompts).unwrap();
    }
    // The line can still be changed and sent again.
    terminal.press(Key::Up);
    terminal.press(Key::Up);
    terminal.press(Key::Up);
    terminal
        .wait_for("> my password is hunter2\n")
        .unwrap_or_else(|error| panic!("{error}"));
    drop(terminal);
    assert_eq!(folder.read("data/history"), "#V2\nHello there\n/agents\n");
}

#[test]
fn handoffs_are_shown_and_the_prompt_names_the_agent() {
    let folder = Folder::new();
    let mut terminal = chat(&folder);
    enter(&mut terminal, "My bill is wrong");
    terminal.wait_for("You → Billing> ").unwrap();
    let shown = terminal.screen();
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(
        shown[..6],
        [
            "team.toml: Triage will answer. /help lists commands, Ctrl-D leaves.",
            "You → Triage> My bill is wrong",
            "Triage     → Billing",
            "             carried 3 of 3 items",
            "Billing    A second charge is reversed.",
            "",
        ],
    );
    enter(&mut terminal, "/reset");
    terminal
        .wait_for("Forgotten; a new conversation begins.\nYou → Triage> ")
        .unwrap();
}

#[test]
fn text_and_handoffs_are_shown_before_the_answer_is_complete() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let replies = [
        Reply::call("c1", "transfer_to_billing", "{}"),
        hanging_reply(),
    ];
    let mut terminal = with_model(&folder, &provider, &["chat", "team.toml"], replies);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "Hi");
    terminal.wait_for("Triage     → Billing\n").unwrap();
    terminal.wait_for("Billing    word word").unwrap();
}

#[test]
fn commands_work_and_a_misspelt_one_gets_a_suggestion() {
    let folder = Folder::new();
    let mut terminal = chat(&folder);
    for (typed, answer) in [
        (
            "/agents",
            "* Triage     Finds the right colleague. [offline]",
        ),
        ("/history", "Nothing has been said yet."),
        ("/graph", "├─▶ Billing"),
        ("/save chat.jsonl", "There is nothing to save yet."),
        ("/help", "/save FILE    write what happened to a file"),
        (
            "/agnets",
            "there is no command /agnets: did you mean /agents?",
        ),
        ("/xyzzy", "there is no command /xyzzy: /help lists them"),
    ] {
        enter(&mut terminal, typed);
        terminal.wait_for(answer).unwrap();
    }
    enter(&mut terminal, "/quit");
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
}

#[test]
fn tab_completes_commands() {
    let mut terminal = chat(&Folder::new());
    terminal.type_text("/ag");
    terminal.press(Key::Tab);
    terminal.wait_for("> /agents ").unwrap();
    terminal.press(Key::Enter);
    terminal.wait_for("* Triage").unwrap();
}

#[test]
fn a_session_continues_in_another_process_with_the_agent_that_had_it() {
    let folder = Folder::new();
    let args = ["chat", "team.toml", "--session", "tuesday"];
    let mut terminal = open(&folder, &args, DEFAULT_SIZE, &[]);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "My bill is wrong");
    terminal.wait_for("You → Billing> ").unwrap();
    terminal.press(Key::CtrlD);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let mut terminal = open(&folder, &args, DEFAULT_SIZE, &[]);
    terminal
        .wait_for("going on with Billing, 4 items so far.")
        .unwrap();
    terminal.wait_for("You → Billing> ").unwrap();
}

#[test]
fn a_wrong_key_and_a_missing_server_do_not_end_the_chat() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let refused = json!({"error": {"message": "Incorrect API key provided"}});
    let replies = [Reply::status(401, refused), Reply::text("Here I am.")];
    let mut terminal = with_model(&folder, &provider, &["chat", "team.toml"], replies);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "Hi");
    terminal.wait_for("help: check the key").unwrap();
    enter(&mut terminal, "Hi again");
    terminal.wait_for("Here I am.").unwrap();

    let unused = "http://127.0.0.1:9/v1";
    let args = [
        "chat",
        "team.toml",
        "--model",
        "chat/x",
        "--base-url",
        unused,
    ];
    let mut terminal = open(&folder, &args, DEFAULT_SIZE, &[]);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "Hi");
    terminal.wait_for("--base-url").unwrap();
    enter(&mut terminal, "/agents");
    terminal.wait_for("* Triage").unwrap();
}

#[test]
fn a_message_in_progress_fits_a_resized_terminal() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let text = "word ".repeat(80);
    let slow = Reply::text(&text)
        .pieces(5)
        .pace(Duration::from_millis(100));
    let mut terminal = with_model(&folder, &provider, &["run", "team.toml", "Hi"], [slow]);
    terminal.wait_for("word word").unwrap();
    let narrow = Size {
        columns: 48,
        rows: 24,
    };
    terminal.resize(narrow).unwrap();
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let shown = terminal.screen();
    // A line that the terminal wraps begins at its edge: at most the one in progress.
    let wrapped = shown
        .lines()
        .filter(|line| line.starts_with(['w', 'o', 'r', 'd']));
    assert!(wrapped.count() <= 1, "{shown}");
}

#[test]
fn a_terminal_can_be_resized_during_a_message_and_at_the_prompt() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let replies = [hanging_reply(), Reply::text(&"more ".repeat(20))];
    let mut terminal = with_model(&folder, &provider, &["chat", "team.toml"], replies);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "Hi");
    terminal.wait_for("word word").unwrap();
    let narrow = Size {
        columns: 50,
        rows: 24,
    };
    terminal.resize(narrow).unwrap();
    terminal.press(Key::CtrlC);
    terminal.wait_for("You → Triage> ").unwrap();
    terminal.type_text("Go ");
    terminal.wait_for("You → Triage> Go ").unwrap();
    terminal
        .resize(Size {
            columns: 60,
            rows: 24,
        })
        .unwrap();
    enter(&mut terminal, "on");
    terminal.wait_for("more more").unwrap();
    terminal
        .wait_until("an answer of this width", |screen| {
            let widths = screen.lines().filter(|line| line.contains("more"));
            widths
                .map(str::len)
                .max()
                .is_some_and(|width| width > 50 && width <= 60)
        })
        .unwrap();
}
