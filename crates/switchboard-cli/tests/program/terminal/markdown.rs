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

#[test]
fn nothing_of_an_answer_is_lost_that_is_no_markdown() {
    let answer = "Delete *.tmp and *.bak files, then call f(**kwargs) or f(*args).\n\n\
        3*x + 2*y and _config.yml\n\nan *open mark and a `tick\n\n\\*escaped\\*\n\n* * *\n\n\
        | a | b |\n|---|--:|\n| x | 10 |\n\nPlan\n====\n\n\
        - one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    for pieces in [1, 7] {
        let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
        let reply = Reply::text(answer).pieces(pieces);
        let args = ["run", "team.toml", "Hi", "--agent", "Billing"];
        let mut terminal = with_model(&folder, &provider, &args, [reply]);
        terminal.wait_for("tokens in").unwrap();
        let screen = terminal.screen();
        let lines: Vec<&str> = screen
            .lines()
            .skip(1)
            .map(|line| line.get(11..).unwrap_or(line))
            .take(19)
            .collect();
        assert_eq!(
            lines,
            [
                "Delete *.tmp and *.bak files, then call f(**kwargs) or f(*args).",
                "",
                "3*x + 2*y and _config.yml",
                "",
                "an *open mark and a `tick",
                "",
                "*escaped*",
                "",
                "────────",
                "",
                "a │  b",
                "──┼───",
                "x │ 10",
                "",
                "Plan",
                "════",
                "",
                "• one two three four five six seven eight nine ten eleven twelve",
                "  thirteen fourteen",
            ],
            "{screen}"
        );
    }
}
