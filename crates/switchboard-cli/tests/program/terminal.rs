//! The program in a pseudo-terminal.

mod approvals;
mod chat;
mod looks;
mod markdown;
mod people;
mod stopping;

use fake_provider::{FakeProvider, Reply};
use terminal::{Key, Size, Terminal};

use crate::support::Folder;

/// The default size of a terminal.
const DEFAULT_SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

/// Starts the program in a terminal of this size, with these variables besides those of the folder.
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

/// Starts a chat with the team of the folder, and waits for its first prompt.
fn chat(folder: &Folder) -> Terminal {
    let mut terminal = open(folder, &["chat", "team.toml"], DEFAULT_SIZE, &[]);
    terminal.wait_for("You → Triage> ").unwrap();
    terminal
}

/// Types a line and presses Enter.
fn enter(terminal: &mut Terminal, line: &str) {
    terminal.type_text(line);
    terminal.press(Key::Enter);
}

/// Starts the program in a terminal, with a model that sends these replies.
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
    open(folder, &[args, &model].concat(), DEFAULT_SIZE, &env)
}

/// A reply that hangs in the middle.
fn hanging_reply() -> Reply {
    let text = "word ".repeat(400);
    Reply::text(&text).pieces(5).hang_after(6000)
}
