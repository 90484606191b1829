//! People of a team who answer in a terminal.

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Signal, Terminal};

use super::{enter, with_model};
use crate::people::TEAM;
use crate::support::Folder;

const RUN: [&str; 5] = ["run", "team.toml", "A person!", "--session", "tuesday"];
const RESUME: [&str; 4] = ["resume", "team.toml", "--session", "tuesday"];
const CHAT: [&str; 4] = ["chat", "team.toml", "--session", "tuesday"];

const QUESTION: &str = "answer as Ann> ";

fn team() -> (Folder, FakeProvider) {
    let folder = Folder::new();
    folder.write("team.toml", TEAM);
    (folder, FakeProvider::on_thread().unwrap())
}

fn to_ann(id: &str) -> Reply {
    Reply::call(id, "transfer_to_ann", r#"{"reason":"angry"}"#)
}

fn exit_code(mut terminal: Terminal) -> Option<i32> {
    terminal.wait_exit().unwrap().code()
}

/// Waits for the n-th question.
fn wait_for_question(terminal: &mut Terminal, number: usize) {
    let is_asked = |screen: &str| screen.matches(QUESTION.trim_end()).count() == number;
    terminal.wait_until("the question", is_asked).unwrap();
}

#[test]
fn run_says_who_is_asked_and_why_and_shows_the_answer() {
    let (folder, provider) = team();
    let mut terminal = with_model(&folder, &provider, &RUN, [to_ann("c1")]);
    terminal
        .wait_for(r#"Ann      is asked for an answer by Triage: {"reason":"angry"}"#)
        .unwrap();
    wait_for_question(&mut terminal, 1);
    enter(&mut terminal, "?");
    terminal.wait_for("Ctrl-C    leave it waiting").unwrap();
    wait_for_question(&mut terminal, 2);
    enter(&mut terminal, "/to Sales");
    terminal
        .wait_for("cannot hand the conversation to \"Sales\"")
        .unwrap();
    wait_for_question(&mut terminal, 3);
    enter(&mut terminal, "I am here.");
    terminal.wait_for("Ann      I am here.").unwrap();
    assert_eq!(exit_code(terminal), Some(0));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn ctrl_c_and_signals_leave_the_person_asked_and_resume_asks_again() {
    let (folder, provider) = team();
    let mut terminal = with_model(&folder, &provider, &RUN, [to_ann("c1")]);
    wait_for_question(&mut terminal, 1);
    terminal.press(Key::CtrlC);
    terminal
        .wait_for("answer as Ann with `switchboard resume")
        .unwrap();
    assert_eq!(exit_code(terminal), Some(5));

    let mut terminal = with_model(&folder, &provider, &RESUME, []);
    wait_for_question(&mut terminal, 1);
    terminal.signal(Signal::Terminate).unwrap();
    assert_eq!(exit_code(terminal), Some(143));

    let replies = [Reply::text("Your bill is right.")];
    let mut terminal = with_model(&folder, &provider, &RESUME, replies);
    wait_for_question(&mut terminal, 1);
    enter(&mut terminal, "/to Billing");
    terminal.wait_for("Billing  Your bill is right.").unwrap();
    assert_eq!(exit_code(terminal), Some(0));
}

#[test]
fn in_a_chat_the_person_keeps_the_conversation_until_it_is_handed_back() {
    let (folder, provider) = team();
    let replies = [to_ann("c1"), Reply::text("Triage again.")];
    let mut terminal = with_model(&folder, &provider, &CHAT, replies);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "A person!");
    wait_for_question(&mut terminal, 1);
    enter(&mut terminal, "I am here.");
    terminal.wait_for("Ann      I am here.").unwrap();
    terminal.wait_for("You → Ann> ").unwrap();
    enter(&mut terminal, "Thank you");
    wait_for_question(&mut terminal, 2);
    enter(&mut terminal, "/back");
    terminal.wait_for("Triage   Triage again.").unwrap();
    terminal
        .wait_until("the prompt of Triage", |screen| {
            screen.matches("You → Triage>").count() == 2
        })
        .unwrap();
    // The answers of the person are not messages of the user.
    drop(terminal);
    assert_eq!(folder.read("data/history"), "#V2\nA person!\nThank you\n");
}
