//! Terminals with programs that every Unix has.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::{os::unix::process::ExitStatusExt, time::Duration};

use terminal::{Key, Signal, Size, Terminal};

const SIZE: Size = Size {
    columns: 40,
    rows: 6,
};

fn sh(script: &str) -> Terminal {
    Terminal::start("sh", ["-c", script], SIZE, [("LC_ALL", "C")]).unwrap()
}

#[test]
fn typed_text_is_echoed_and_arrives_line_by_line() {
    let mut terminal = Terminal::start("cat", [], SIZE, []).unwrap();
    terminal.type_text("helo");
    terminal.press(Key::Backspace);
    terminal.type_text("lo");
    terminal.wait_for("hello").unwrap();
    assert_eq!(terminal.screen(), "hello");
    terminal.press(Key::Enter);
    terminal.wait_for("hello\nhello").unwrap();
    terminal.press(Key::CtrlD);
    assert!(terminal.wait_exit().unwrap().success());
    assert_eq!(terminal.screen(), "hello\nhello");
}

#[test]
fn ctrl_c_reaches_the_program_as_an_interrupt() {
    let mut terminal = sh("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 1; done");
    terminal.wait_for("ready").unwrap();
    terminal.press(Key::CtrlC);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(7));
    assert!(terminal.screen().ends_with("caught"));
}

#[test]
fn signals_reach_the_program_until_it_has_ended() {
    let mut terminal = sh("echo ready; exec cat");
    terminal.wait_for("ready").unwrap();
    terminal.signal(Signal::Terminate).unwrap();
    assert_eq!(terminal.wait_exit().unwrap().signal(), Some(15));
    let refused = terminal.signal(Signal::Interrupt).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("`sh` has ended (signal: 15")
    );
}

#[test]
fn a_program_gets_the_size_and_its_changes() {
    let mut terminal = sh("trap 'stty size' WINCH; stty size; while :; do sleep 0.1; done");
    terminal.wait_for("6 40").unwrap();
    terminal
        .resize(Size {
            columns: 30,
            rows: 9,
        })
        .unwrap();
    terminal.wait_for("9 30").unwrap();
    assert_eq!(terminal.screen(), "6 40\n9 30");
}

#[test]
fn the_environment_has_the_given_variables_and_a_few_defaults() {
    let mut terminal = Terminal::start("env", [], SIZE, [("HOME", "here"), ("A", "b")]).unwrap();
    terminal.wait_exit().unwrap();
    let everything = terminal.everything();
    let mut lines: Vec<_> = everything
        .lines()
        .filter(|line| !line.starts_with("PATH="))
        .collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["A=b", "HOME=here", "SHELL=/bin/sh", "TERM=xterm-256color"]
    );
}

#[test]
fn a_program_runs_in_the_folder_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note"), "found").unwrap();
    let mut terminal = Terminal::start_in(folder.path(), "cat", ["note"], SIZE, []).unwrap();
    terminal.wait_exit().unwrap();
    assert_eq!(terminal.screen(), "found");
}

#[test]
fn wide_characters_take_two_columns() {
    // Both `!` go to column 5, onto the `|`.
    let mut terminal =
        sh("printf '漢字|\\n🦀a |\\n\\033[1;5H!'; printf '\\033[2;5H!'; printf '\\n'");
    terminal.wait_exit().unwrap();
    assert_eq!(terminal.screen(), "漢字!\n🦀a !");
}

#[test]
fn a_program_that_asks_where_the_cursor_is_gets_an_answer() {
    let mut terminal =
        sh("stty raw -echo; printf 'abc\\033[6n'; dd bs=1 count=6 2>/dev/null | od -c; stty sane");
    terminal.wait_for("033   [   1   ;   4   R").unwrap();
}

#[test]
fn arrows_are_sent_in_the_mode_that_the_program_set() {
    let mut terminal = sh(
        "stty raw -echo; printf 'ready'; dd bs=1 count=3 2>/dev/null | od -c; \
         printf '\\033[?1hagain'; dd bs=1 count=3 2>/dev/null | od -c; stty sane",
    );
    terminal.wait_for("ready").unwrap();
    terminal.press(Key::Up);
    terminal.wait_for("033   [   A").unwrap();
    terminal.wait_for("again").unwrap();
    terminal.press(Key::Up);
    terminal.wait_for("033   O   A").unwrap();
}

#[test]
fn a_wait_that_times_out_shows_the_screen() {
    let mut terminal = sh("echo one; echo two; exec cat");
    terminal.wait_for("two").unwrap();
    let mut terminal = terminal.with_timeout(Duration::from_millis(50));
    let error = terminal.wait_for("three").unwrap_err();
    assert_eq!(
        format!("{error:?}"),
        "waited for \"three\" to appear: not within 50ms; the screen shows:\n| one\n| two"
    );
    assert_eq!(error.screen(), Some("one\ntwo"));
    let error = terminal.wait_exit().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`sh` still runs after 50ms; the screen shows:\n| one\n| two"
    );
}

#[test]
fn waiting_ends_with_the_program() {
    let error = sh("echo bye").wait_for("hello").unwrap_err();
    assert_eq!(
        error.to_string(),
        "waited for \"hello\" to appear: `sh` closed its terminal; the screen shows:\n| bye"
    );
    let error = sh("exit 3").wait_for("hello").unwrap_err();
    assert_eq!(
        error.to_string(),
        "waited for \"hello\" to appear: `sh` closed its terminal; the screen is empty"
    );
}

#[test]
fn a_missing_program_is_an_error() {
    let missing = "no-such-program-anywhere";
    let error = Terminal::start(missing, [], SIZE, []).err().unwrap();
    assert!(
        error
            .to_string()
            .starts_with("cannot start `no-such-program-anywhere`: ")
    );
}

#[test]
fn erased_text_is_gone() {
    let mut terminal =
        sh("printf 'thinking'; read -r line; printf '\\033[1;1H\\033[2Jdone'; exec cat");
    terminal.wait_for("thinking").unwrap();
    terminal.press(Key::Enter);
    terminal.wait_gone("thinking").unwrap();
    terminal.wait_for("done").unwrap();
    assert_eq!(terminal.screen(), "done");
}

#[test]
fn a_large_output_is_read_completely() {
    // 12,000 lines of 89 bytes: more than a megabyte.
    let program =
        r#"BEGIN { for (i = 1; i <= 12000; i++) printf "%08d%080d\n", i, 0; print "the end" }"#;
    let mut terminal = Terminal::start("awk", [program], SIZE, []).unwrap();
    terminal.wait_for("the end").unwrap();
    assert!(terminal.wait_exit().unwrap().success());
    let everything = terminal.everything();
    let mut lines = everything.lines();
    for number in 1..=12_000 {
        assert_eq!(lines.next(), Some(format!("{number:08}{:080}", 0).as_str()));
    }
    assert_eq!(lines.collect::<Vec<_>>(), ["the end"]);
}

#[test]
fn text_is_found_in_the_scrollback_and_in_wrapped_lines() {
    let long = "x".repeat(100) + "needle" + &"y".repeat(100);
    let mut terminal = sh(&format!(
        "echo first; echo {long}; i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo $i; done; exec cat"
    ));
    terminal.wait_for("50").unwrap();
    assert_eq!(terminal.screen(), "46\n47\n48\n49\n50");
    terminal.wait_for("first\nxxx").unwrap();
    terminal.wait_for(&long).unwrap();
}

#[test]
fn the_space_after_a_prompt_can_be_waited_for() {
    let mut terminal = sh("printf 'a  \\nb\\n> '; exec cat");
    terminal.wait_for("> ").unwrap();
    terminal.wait_for("a\nb").unwrap();
    assert_eq!(terminal.screen(), "a\nb\n>");
}

#[test]
fn typing_to_a_program_that_does_not_read_does_not_block() {
    let mut terminal = sh("stty raw -echo; echo ready; exec sleep 1000");
    terminal.wait_for("ready").unwrap();
    terminal.type_text(&"x".repeat(1_000_000));
    assert_eq!(terminal.screen(), "ready");
}

#[test]
fn random_bytes_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1_u32;
    let garbage: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24).to_le_bytes()[0]
    })
    .take(300_000)
    .collect();
    std::fs::write(folder.path().join("garbage"), garbage).unwrap();
    let script = "stty raw -echo; cat garbage; printf '\\033\\\\\\033c'; printf 'still here'";
    let mut terminal = Terminal::start_in(folder.path(), "sh", ["-c", script], SIZE, []).unwrap();
    terminal.wait_for("still here").unwrap();
    assert!(terminal.wait_exit().unwrap().success());
    assert!(terminal.svg("garbage").ends_with("</svg>\n"));
}

#[test]
fn dropping_a_terminal_kills_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' HUP INT TERM; echo $$ > pid; echo ready; while :; do sleep 1; done";
    let mut terminal = Terminal::start_in(folder.path(), "sh", ["-c", script], SIZE, []).unwrap();
    terminal.wait_for("ready").unwrap();
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    drop(terminal);
    let probe = format!("kill -0 {} 2>/dev/null || echo gone", pid.trim());
    let mut terminal = sh(&probe);
    terminal.wait_for("gone").unwrap();
}
