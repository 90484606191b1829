//! Calls that wait for approval, asked for in a terminal.

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Signal, Terminal};

use super::{enter, with_model};
use crate::approvals::TEAM;
use crate::support::Folder;

const RUN: [&str; 5] = ["run", "team.toml", "Money!", "--session", "tuesday"];
const RESUME: [&str; 4] = ["resume", "team.toml", "--session", "tuesday"];
const CHAT: [&str; 4] = ["chat", "team.toml", "--session", "tuesday"];

const QUESTION: &str = "approve refund? [y/n/a/?] ";

fn desk() -> (Folder, FakeProvider) {
    let folder = Folder::new();
    folder.write("team.toml", TEAM);
    folder.write("orders.toml", "A-1 = { state = 'paid back' }\n");
    (folder, FakeProvider::on_thread().unwrap())
}

fn refund(id: &str) -> Reply {
    Reply::call(id, "refund", r#"{"order":"A-1","amount":500}"#)
}

fn exit_code(mut terminal: Terminal) -> Option<i32> {
    terminal.wait_exit().unwrap().code()
}

/// The content of the last message that the provider received.
fn last_content(provider: &FakeProvider) -> String {
    let requests = provider.requests();
    let messages = requests.last().unwrap().body["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    last["content"].as_str().unwrap().to_owned()
}

#[test]
fn run_asks_and_goes_on() {
    let (folder, provider) = desk();
    let replies = [refund("c1"), Reply::text("Done.")];
    let mut terminal = with_model(&folder, &provider, &RUN, replies);
    terminal
        .wait_for(r#"waits for a decision: refund {"order":"A-1","amount":500}"#)
        .unwrap();
    terminal.wait_for(QUESTION).unwrap();
    enter(&mut terminal, "?");
    terminal.wait_for("Ctrl-C  leave it waiting").unwrap();
    enter(&mut terminal, "y");
    terminal.wait_for("Desk     Done.").unwrap();
    assert_eq!(exit_code(terminal), Some(0));
    assert_eq!(last_content(&provider), "{\"state\":\"paid back\"}");
}

#[test]
fn ctrl_c_leaves_the_call_waiting_for_another_day() {
    let (folder, provider) = desk();
    let mut terminal = with_model(&folder, &provider, &RUN, [refund("c1")]);
    terminal.wait_for(QUESTION).unwrap();
    terminal.press(Key::CtrlC);
    terminal.wait_for("switchboard resume team.toml").unwrap();
    assert_eq!(exit_code(terminal), Some(5));

    let replies = [Reply::text("Sorry.")];
    let mut terminal = with_model(&folder, &provider, &RESUME, replies);
    terminal.wait_for(QUESTION).unwrap();
    enter(&mut terminal, "n because it was paid before");
    terminal.wait_for("Desk     Sorry.").unwrap();
    assert_eq!(exit_code(terminal), Some(0));
    assert_eq!(last_content(&provider), "because it was paid before");
}

#[test]
fn a_signal_at_the_question_ends_the_program_and_keeps_the_wait() {
    let (folder, provider) = desk();
    let mut terminal = with_model(&folder, &provider, &RUN, [refund("c1")]);
    terminal.wait_for(QUESTION).unwrap();
    terminal.signal(Signal::Terminate).unwrap();
    assert_eq!(exit_code(terminal), Some(143));
    let mut terminal = with_model(&folder, &provider, &RESUME, []);
    terminal.wait_for(QUESTION).unwrap();
    terminal.press(Key::CtrlD);
    assert_eq!(exit_code(terminal), Some(5));
}

#[test]
fn a_chat_asks_and_asks_again() {
    let (folder, provider) = desk();
    let replies = [refund("c1"), Reply::text("Done.")];
    let mut terminal = with_model(&folder, &provider, &CHAT, replies);
    terminal.wait_for("You → Desk> ").unwrap();
    enter(&mut terminal, "Money!");
    terminal.wait_for(QUESTION).unwrap();
    terminal.press(Key::CtrlC);
    terminal
        .wait_for("It waits on. /decide asks again")
        .unwrap();
    enter(&mut terminal, "/decide");
    terminal
        .wait_until("the second question", |screen| {
            screen.matches(QUESTION.trim_end()).count() == 2
        })
        .unwrap();
    enter(&mut terminal, "y");
    terminal.wait_for("Desk     Done.").unwrap();
    terminal
        .wait_until("the next prompt", |screen| {
            screen.matches("You → Desk>").count() == 3
        })
        .unwrap();
    // An answer is not a message.
    terminal.press(Key::Up);
    terminal.wait_for("You → Desk> /decide").unwrap();
    drop(terminal);
    assert_eq!(folder.read("data/history"), "#V2\nMoney!\n/decide\n");
}

#[test]
fn a_chat_begins_with_the_calls_that_wait_in_its_session() {
    let (folder, provider) = desk();
    let mut terminal = with_model(&folder, &provider, &RUN, [refund("c1")]);
    terminal.wait_for(QUESTION).unwrap();
    terminal.press(Key::CtrlC);
    assert_eq!(exit_code(terminal), Some(5));
    let replies = [Reply::text("Done."), Reply::text("Bye.")];
    let mut terminal = with_model(&folder, &provider, &CHAT, replies);
    terminal.wait_for(QUESTION).unwrap();
    enter(&mut terminal, "y");
    terminal.wait_for("Desk     Done.").unwrap();
    terminal.wait_for("You → Desk> ").unwrap();
    enter(&mut terminal, "Thanks");
    terminal.wait_for("Bye.").unwrap();
}
