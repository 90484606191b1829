//! Ctrl-C, Ctrl-D and signals, and the mode of the terminal afterwards.

use std::process::Command;

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Signal, Terminal};

use super::{DEFAULT_SIZE, chat, enter, hanging_reply, open, with_model};
use crate::support::Folder;

#[test]
fn ctrl_c_stops_the_run_and_not_the_program() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let replies = [hanging_reply(), Reply::text("Here I am.")];
    let mut terminal = with_model(&folder, &provider, &["chat", "team.toml"], replies);
    terminal.wait_for("You → Triage> ").unwrap();
    enter(&mut terminal, "Hi");
    terminal.wait_for("word word").unwrap();
    terminal.press(Key::CtrlC);
    terminal.wait_for("stopped").unwrap();
    enter(&mut terminal, "Are you there?");
    terminal.wait_for("Here I am.").unwrap();
    let requests = provider.requests_of("key");
    let last = requests.last().unwrap();
    let body = last.body.to_string();
    assert!(body.contains("word word"), "the stopped text stays: {body}");
}

#[test]
fn ctrl_c_stops_a_response_that_never_pauses() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let args = ["run", "team.toml", "Hi"];
    let mut terminal = with_model(&folder, &provider, &args, [Reply::endless()]);
    terminal.wait_for("You        Hi").unwrap();
    terminal.press(Key::CtrlC);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(130));
}

#[test]
fn a_slow_demo_can_be_interrupted() {
    let mut terminal = open(&Folder::new(), &["demo", "--slowly"], DEFAULT_SIZE, &[]);
    terminal.wait_for("Billing     Invoice").unwrap();
    terminal.press(Key::CtrlC);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(130));
    assert!(!terminal.everything().contains("Escalation"));
}

#[test]
fn ctrl_c_keeps_the_results_of_completed_cases() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let case = |name: &str| format!("[[cases]]\nmessage = \"{name}\"\nexpect = \"Triage\"\n");
    folder.write("cases.toml", &[case("one"), case("two")].concat());
    let replies = [Reply::text("Yes?"), Reply::hang()];
    let args = ["test", "team.toml", "cases.toml", "--jobs", "1"];
    let mut terminal = with_model(&folder, &provider, &args, replies);
    terminal.wait_for("ok    one  Triage").unwrap();
    terminal.press(Key::CtrlC);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(130));
    let shown = terminal.everything();
    let summary = "\nstopped: 1 passed, 0 failed, 1 not tried in ";
    assert!(shown.contains(summary), "{shown}");
}

#[test]
fn at_the_prompt_ctrl_c_clears_the_line_and_a_second_one_leaves() {
    let mut terminal = chat(&Folder::new());
    terminal.type_text("never said");
    terminal.wait_for("> never said").unwrap();
    terminal.press(Key::CtrlC);
    terminal.wait_for("Ctrl-C again leaves").unwrap();
    enter(&mut terminal, "/history");
    terminal.wait_for("Nothing has been said yet.").unwrap();
    terminal.press(Key::CtrlC);
    terminal
        .wait_until("the second hint", |screen| {
            screen.matches("Ctrl-C again leaves").count() == 2
        })
        .unwrap();
    terminal.press(Key::CtrlC);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
}

#[test]
fn ctrl_d_leaves() {
    let mut terminal = chat(&Folder::new());
    terminal.press(Key::CtrlD);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
}

/// Starts the program in a shell, which prints the mode of the terminal afterwards.
fn in_a_shell(folder: &Folder, provider: &FakeProvider, args: &str) -> Terminal {
    provider.script("key", [hanging_reply()]);
    let program = env!("CARGO_BIN_EXE_switchboard");
    let url = provider.url();
    folder.write(
        "program.sh",
        &format!("echo $$ > id\nexec '{program}' {args} --model chat/llama --base-url {url}\n"),
    );
    let shell = "sh program.sh; echo \"code $?.\"; stty -a";
    let (home, data) = (folder.path(""), folder.path("data"));
    let env = [
        ("HOME", home.to_str().unwrap()),
        ("SWITCHBOARD_DATA", data.to_str().unwrap()),
        ("OPENAI_API_KEY", "key"),
    ];
    Terminal::start_in(&home, "sh", ["-c", shell], DEFAULT_SIZE, env).unwrap()
}

/// Sends a signal to the program and not to its shell.
fn kill(folder: &Folder, signal: &str) {
    let id = folder.read("id");
    let sent = Command::new("kill").args([signal, id.trim()]).status();
    assert!(sent.unwrap().success());
}

/// Asserts that the terminal echoes input and reads whole lines.
fn assert_mode_is_restored(terminal: &mut Terminal) {
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let shown = terminal.everything();
    let flags: Vec<&str> = shown.split_whitespace().collect();
    for flag in ["icanon", "echo", "isig", "icrnl", "opost"] {
        assert!(flags.contains(&flag), "{flag}: {shown}");
    }
}

#[test]
fn a_signal_during_a_run_restores_the_terminal() {
    let provider = FakeProvider::on_thread().unwrap();
    for (args, signal, code) in [
        ("run team.toml Hi", "-INT", "code 130."),
        ("run team.toml Hi", "-TERM", "code 143."),
        ("chat team.toml", "-TERM", "code 143."),
        ("chat team.toml", "-HUP", "code 143."),
    ] {
        let folder = Folder::new();
        let mut terminal = in_a_shell(&folder, &provider, args);
        if args.starts_with("chat") {
            terminal.wait_for("You → Triage> ").unwrap();
            enter(&mut terminal, "Hi");
        }
        terminal.wait_for("word word").unwrap();
        kill(&folder, signal);
        terminal.wait_for(code).unwrap();
        assert_mode_is_restored(&mut terminal);
    }
}

#[test]
fn a_signal_at_the_prompt_restores_the_terminal() {
    let provider = FakeProvider::on_thread().unwrap();
    for signal in ["-TERM", "-HUP"] {
        let folder = Folder::new();
        let mut terminal = in_a_shell(&folder, &provider, "chat team.toml");
        terminal.wait_for("You → Triage> ").unwrap();
        // The editor echoes it, so it is running.
        terminal.type_text("half a line");
        terminal.wait_for("> half a line").unwrap();
        kill(&folder, signal);
        terminal.wait_for("code 143.").unwrap();
        assert_mode_is_restored(&mut terminal);
    }
}

#[test]
fn a_suspended_chat_continues_with_its_line() {
    let folder = Folder::new();
    let (home, data) = (folder.path(""), folder.path("data"));
    let env = [
        ("HOME", home.to_str().unwrap()),
        ("SWITCHBOARD_DATA", data.to_str().unwrap()),
        ("PS1", "shell: "),
    ];
    let shell = ["--norc", "--noprofile", "-i"];
    let mut terminal = Terminal::start_in(&home, "bash", shell, DEFAULT_SIZE, env).unwrap();
    terminal.wait_for("shell: ").unwrap();
    let program = env!("CARGO_BIN_EXE_switchboard");
    enter(&mut terminal, &format!("'{program}' chat team.toml"));
    terminal.wait_for("You → Triage> ").unwrap();
    terminal.type_text("/his");
    terminal.wait_for("> /his").unwrap();
    // Ctrl-Z.
    terminal.type_text("\u{1a}");
    terminal.wait_for("Stopped").unwrap();
    enter(&mut terminal, "echo $((20 + 22)).");
    terminal.wait_for("42.").unwrap();
    enter(&mut terminal, "fg");
    terminal
        .wait_until("the line", |screen| screen.ends_with("> /his"))
        .unwrap();
    enter(&mut terminal, "tory");
    terminal.wait_for("Nothing has been said yet.").unwrap();
}

#[test]
fn an_interrupt_signal_at_the_prompt_is_like_ctrl_c() {
    let mut terminal = chat(&Folder::new());
    terminal.type_text("never said");
    terminal.wait_for("> never said").unwrap();
    terminal.signal(Signal::Interrupt).unwrap();
    terminal.wait_for("Ctrl-C again leaves").unwrap();
    enter(&mut terminal, "/history");
    terminal.wait_for("Nothing has been said yet.").unwrap();
}
