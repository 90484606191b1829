//! The program in a terminal: what a person types, sees and presses.

mod chat;
mod looks;
mod stopping;

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Size, Terminal};

use crate::support::Folder;

/// A terminal as most people have it.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// The program in a terminal of this size, with these variables besides those of the folder.
fn open(folder: &Folder, args: &[&str], size: Size, env: &[(&str, &str)]) -> Terminal {
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (home, data) = (path(""), path("data"));
    let own = [
        ("HOME", home.as_str()),
        ("SWITCHBOARD_DATA", data.as_str()),
        ("LANG", "C.UTF-8"),
    ];
    let env = own.into_iter().chain(env.iter().copied());
    let program = env!("CARGO_BIN_EXE_switchboard");
    Terminal::start_in(folder.path(""), program, args.iter().copied(), size, env).unwrap()
}

/// A chat with the team of the folder, at its first prompt.
fn chat(folder: &Folder) -> Terminal {
    let mut terminal = open(folder, &["chat", "team.toml"], USUAL, &[]);
    terminal.wait_for("You → Triage> ").unwrap();
    terminal
}

/// Types a line.
fn enter(terminal: &mut Terminal, line: &str) {
    terminal.type_text(line);
    terminal.press(Key::Enter);
}

/// The program in a terminal, with a model behind the wire that answers so.
fn with_model(
    folder: &Folder,
    provider: &FakeProvider,
    args: &[&str],
    replies: impl IntoIterator<Item = Reply>,
) -> Terminal {
    provider.script("key", replies);
    let url = provider.url();
    let model = ["--model", "chat/llama", "--base-url", &url];
    let env = [("OPENAI_API_KEY", "key")];
    open(folder, &[args, &model].concat(), USUAL, &env)
}

/// An answer that begins, and then neither goes on nor ends.
fn half_an_answer() -> Reply {
    let text = "word ".repeat(400);
    Reply::text(&text).pieces(5).hang_after(6000)
}
