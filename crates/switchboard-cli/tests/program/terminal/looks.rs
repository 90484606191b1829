//! Colours, width and the spinner in a terminal.

use std::time::Duration;

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Size, Terminal};
use unicode_width::UnicodeWidthStr as _;

use super::{DEFAULT_SIZE, chat, enter, open, with_model};
use crate::support::Folder;

/// Returns `true` if the name of the first agent is coloured.
fn is_coloured(terminal: &Terminal) -> bool {
    // Cyan.
    terminal.svg("").contains("#39c5cf")
}

#[test]
fn a_terminal_gets_colours_unless_they_are_turned_off() {
    let folder = Folder::new();
    let args = ["run", "team.toml", "My bill is wrong"];
    let is_coloured = |more: &[&str], env: &[(&str, &str)]| {
        let mut terminal = open(&folder, &[&args, more].concat(), DEFAULT_SIZE, env);
        assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
        is_coloured(&terminal)
    };
    assert!(is_coloured(&[], &[]));
    assert!(!is_coloured(&[], &[("NO_COLOR", "1")]));
    assert!(!is_coloured(&[], &[("TERM", "dumb")]));
    assert!(!is_coloured(&["--color", "never"], &[]));
}

#[test]
fn the_prompt_is_coloured_if_the_rest_is() {
    let folder = Folder::new();
    assert!(is_coloured(&chat(&folder)));
    for env in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut terminal = open(&folder, &["chat", "team.toml"], DEFAULT_SIZE, &[env]);
        terminal.wait_for("You → Triage> ").unwrap();
        assert!(!is_coloured(&terminal), "{env:?}");
        enter(&mut terminal, "My bill is wrong");
        terminal.wait_for("You → Billing> ").unwrap();
        assert!(!is_coloured(&terminal), "{env:?}");
    }
}

#[test]
fn run_shows_in_a_terminal_what_it_shows_in_a_pipe() {
    let folder = Folder::new();
    let args = ["run", "team.toml", "My bill is wrong"];
    let mut terminal = open(&folder, &args, DEFAULT_SIZE, &[]);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let piped = folder.run(&args).without_times();
    let shown = terminal.everything();
    let shown = shown.lines().filter(|line| !line.contains(" tokens in, "));
    let shown: String = shown.map(|line| format!("{line}\n")).collect();
    assert_eq!(shown.trim_end(), piped.trim_end());
}

#[test]
fn a_spinner_is_shown_until_the_answer_arrives() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let late = || Reply::text("Here I am.").delay(Duration::from_secs(3));
    let args = ["run", "team.toml", "Hi"];
    let mut terminal = with_model(&folder, &provider, &args, [late()]);
    terminal.wait_for("⠙ Triage").unwrap();
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let shown = terminal.everything();
    assert!(
        shown.starts_with("You        Hi\nTriage     Here I am.\n"),
        "{shown}"
    );
    assert!(!shown.contains(['⠋', '⠙', '⠹']), "{shown}");
}

#[test]
fn a_dumb_terminal_has_no_spinner() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    provider.script(
        "key",
        [Reply::text("Here I am.").delay(Duration::from_secs(1))],
    );
    let url = provider.url();
    let args = [
        "run",
        "team.toml",
        "Hi",
        "--model",
        "chat/llama",
        "--base-url",
        &url,
    ];
    let env = [("OPENAI_API_KEY", "key"), ("TERM", "dumb")];
    let mut terminal = open(&folder, &args, DEFAULT_SIZE, &env);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let frames = terminal.recording().svg("");
    assert!(frames.contains("Here I am.") && !frames.contains(['⠋', '⠙', '⠹']));
}

#[test]
fn wide_characters_are_wrapped_in_a_narrow_terminal() {
    let folder = Folder::new();
    for columns in [40, 20] {
        let size = Size { columns, rows: 300 };
        let mut terminal = open(&folder, &["--lang", "zh"], size, &[]);
        assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
        // The commands at the end are not wrapped.
        let before_commands = |text: String| text.split("轮到你了").next().unwrap().to_owned();
        let screen = before_commands(terminal.screen());
        // A line that is too long would be whole in one and cut in the other.
        assert_eq!(screen, before_commands(terminal.everything()));
        for line in screen.lines() {
            assert!(line.width() <= usize::from(columns), "{line}");
        }
        let spoken = screen.lines().filter(|line| line.starts_with("  "));
        assert!(spoken.clone().count() > 20, "{screen}");
        // A wide character that does not fit leaves at most one column free.
        let widest = spoken.map(|line| line.width()).max().unwrap();
        assert!(widest + 1 >= usize::from(columns), "{screen}");
    }
}

#[test]
fn a_chat_works_in_a_narrow_terminal() {
    let folder = Folder::new();
    let ran = folder.run(&["init", "team", "--lang", "zh"]);
    assert_eq!(ran.code, Some(0));
    let size = Size {
        columns: 20,
        rows: 60,
    };
    let args = ["chat", "team/team.toml", "--lang", "zh"];
    let mut terminal = open(&folder, &args, size, &[]);
    terminal.wait_for("> ").unwrap();
    let line = "我的账单多扣了我一次钱，请退款。";
    terminal.type_text(line);
    terminal.wait_for("请\n退款。").unwrap();
    terminal.press(Key::Home);
    terminal.type_text("喂");
    terminal.press(Key::Enter);
    terminal.wait_for("> 喂我的\n账单").unwrap();
    terminal.wait_for("用户 → 账单> ").unwrap();
    let screen = terminal.screen();
    for line in screen.lines() {
        assert!(line.width() <= usize::from(size.columns), "{screen}");
    }
    enter(&mut terminal, "/history");
    terminal
        .wait_until("what was typed", |screen| screen.matches('喂').count() == 2)
        .unwrap();
}
