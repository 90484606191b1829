//! Answers in Markdown.

use fake_provider::{FakeProvider, Reply};

use super::with_model;
use crate::support::{Folder, Ran};

const ANSWER: &str =
    "## Plan\n\n1. Call **us** now\n- use `reset`\n> quoted\n\nSee [docs](https://a.b/c).";

#[test]
fn an_answer_in_markdown_is_drawn_in_a_terminal_and_left_alone_in_a_pipe() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let reply = Reply::text(ANSWER).pieces(3);
    let args = ["run", "team.toml", "Hi", "--agent", "Billing"];
    let mut terminal = with_model(&folder, &provider, &args, [reply]);
    terminal.wait_for("tokens in").unwrap();
    let screen = terminal.screen();
    let lines: Vec<&str> = screen.lines().skip(1).take(7).collect();
    assert_eq!(
        lines,
        [
            "Billing    Plan",
            "",
            "           1. Call us now",
            "           • use reset",
            "           │ quoted",
            "",
            "           See docs (https://a.b/c).",
        ],
        "{screen}"
    );
    provider.script("key", [Reply::text(ANSWER)]);
    let url = provider.url();
    let piped = [&args[..], &["-q", "-m", "chat/llama", "--base-url", &url]].concat();
    let mut command = folder.command(&piped);
    command.env("OPENAI_API_KEY", "key");
    let ran = Ran::of(command.spawn().unwrap());
    assert_eq!(ran.stdout, format!("{ANSWER}\n"));
}
