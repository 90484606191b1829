//! How the program looks in a terminal: colours, width, and a sign that something is under way.

use std::time::Duration;

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Size, Terminal};
use unicode_width::UnicodeWidthStr as _;

use super::{USUAL, chat, enter, open, with_model};
use crate::support::Folder;

/// Whether a picture of the screen has more than the colours of text and background.
fn is_coloured(terminal: &Terminal) -> bool {
    // Triage, the first agent, is cyan.
    terminal.svg("").contains("#39c5cf")
}

#[test]
fn a_terminal_gets_colours_unless_it_or_the_user_has_none() {
    let folder = Folder::new();
    let args = ["run", "team.toml", "My bill is wrong"];
    let is_coloured = |more: &[&str], env: &[(&str, &str)]| {
        let mut terminal = open(&folder, &[&args, more].concat(), USUAL, env);
        assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
        is_coloured(&terminal)
    };
    assert!(is_coloured(&[], &[]));
    assert!(!is_coloured(&[], &[("NO_COLOR", "1")]));
    assert!(!is_coloured(&[], &[("TERM", "dumb")]));
    assert!(!is_coloured(&["--color", "never"], &[]));
}

#[test]
fn the_prompt_is_coloured_where_the_rest_is() {
    let folder = Folder::new();
    assert!(is_coloured(&chat(&folder)));
    for env in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut terminal = open(&folder, &["chat", "team.toml"], USUAL, &[env]);
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
    let mut terminal = open(&folder, &args, USUAL, &[]);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let piped = folder.run(&args).without_times();
    let shown = terminal.everything();
    let shown = shown.lines().filter(|line| !line.contains(" tokens in, "));
    let shown: String = shown.map(|line| format!("{line}\n")).collect();
    assert_eq!(shown.trim_end(), piped.trim_end());
}

#[test]
fn something_moves_while_an_answer_is_waited_for_and_is_gone_when_it_comes() {
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
fn nothing_moves_where_the_terminal_cannot_move_it() {
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
    let mut terminal = open(&folder, &args, USUAL, &env);
    assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
    let frames = terminal.recording().svg("");
    assert!(frames.contains("Here I am.") && !frames.contains(['⠋', '⠙', '⠹']));
}

#[test]
fn wide_characters_line_up_in_a_narrow_terminal() {
    let folder = Folder::new();
    for columns in [40, 20] {
        let size = Size { columns, rows: 300 };
        let mut terminal = open(&folder, &["--lang", "zh"], size, &[]);
        assert_eq!(terminal.wait_exit().unwrap().code(), Some(0));
        // Commands at the end are left whole, to be copied.
        let before_commands = |text: String| text.split("轮到你了").next().unwrap().to_owned();
        let screen = before_commands(terminal.screen());
        // Lines that were too long would be whole in the one and cut in the other.
        assert_eq!(screen, before_commands(terminal.everything()));
        for line in screen.lines() {
            assert!(line.width() <= usize::from(columns), "{line}");
        }
        let spoken = screen.lines().filter(|line| line.starts_with("  "));
        assert!(spoken.clone().count() > 20, "{screen}");
        // Columns are filled up: a wide character that did not fit leaves one free at most.
        let widest = spoken.map(|line| line.width()).max().unwrap();
        assert!(widest + 1 >= usize::from(columns), "{screen}");
    }
}

#[test]
fn a_chat_can_be_had_in_a_narrow_terminal() {
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
