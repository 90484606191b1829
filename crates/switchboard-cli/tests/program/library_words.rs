//! Errors and help of the program have no names of Rust's types: a user of the program has a team file.

use std::process::Command;

use fake_provider::{FakeProvider, Reply};

use crate::support::{Folder, Ran};

const KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const OTHER_KEY: &str = "EjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrze8=";

/// The names of types and functions of the library in a text.
fn library_words(text: &str) -> Vec<String> {
    let form =
        r"\b[A-Z][A-Za-z]+::\w+|`[A-Z][a-z]+[A-Z]\w*`|\b(?:Memory|Encrypted)Store\b|in this error";
    let form = regex::Regex::new(form).unwrap();
    form.find_iter(text)
        .map(|found| found.as_str().to_owned())
        .collect()
}

/// Runs the command, which fails with this in its message and without words of the library.
fn fails_with(mut command: Command, reason: &str) {
    let ran = Ran::of(command.spawn().unwrap());
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains(reason), "{reason}: {ran:?}");
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(library_words(&printed), Vec::<String>::new(), "{printed}");
}

#[test]
fn help_names_no_types_of_the_library() {
    let folder = Folder::new();
    let general = folder.run(&["--help"]).stdout;
    let commands = general.lines().skip_while(|line| *line != "Commands:");
    let commands = commands.skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 12, "{commands:?}");
    let mut printed = general.clone();
    for command in commands {
        printed += &folder.run(&[command, "--help"]).stdout;
    }
    assert_eq!(library_words(&printed), Vec::<String>::new());
}

#[test]
fn errors_of_sessions_name_no_types_of_the_library() {
    let folder = Folder::new();
    let send = |session: &str, key: Option<&str>| {
        let mut command = folder.command(&["run", "team.toml", "Hi", "-s", session]);
        command.envs(key.map(|key| ("SWITCHBOARD_STORE_KEY", key)));
        command
    };
    Ran::of(send("sealed", Some(KEY)).spawn().unwrap());
    Ran::of(send("plain", None).spawn().unwrap());
    fails_with(send("sealed", None), "\"sealed\" is encrypted\n");
    fails_with(
        send("sealed", Some(OTHER_KEY)),
        "which is not among the keys\n",
    );
    fails_with(send("plain", Some(KEY)), "was stored without encryption\n");
    let in_memory = ["sessions", "list", "--store", "sqlite::memory:"];
    fails_with(folder.command(&in_memory), "this is not a file\n");
}

#[test]
fn errors_of_runs_name_no_types_of_the_library() {
    let folder = Folder::new();
    let circle = "[agents.A]\ndescription = \"a\"\nhandoffs = [\"B\"]\n[agents.B]\ndescription = \"b\"\n\
        handoffs = [\"A\"]\n";
    folder.write("circle.toml", circle);
    let provider = FakeProvider::on_thread().unwrap();
    let url = provider.url();
    let args = ["run", "circle.toml", "Hi", "-m", "chat/x", "--base-url"];
    for more in [&[][..], &["--json"], &["--quiet"]] {
        let calls = (0..10).map(|turn| {
            let name = ["transfer_to_b", "transfer_to_a"][turn % 2];
            Reply::call(&format!("call_{turn}"), name, "{}")
        });
        provider.script("key", calls);
        let mut command = folder.command(&[&args[..], &[&url], more].concat());
        command.env("OPENAI_API_KEY", "key");
        let reason = if more == ["--json"] {
            "[run.loops]"
        } else {
            "is reached\n"
        };
        fails_with(command, reason);
    }
    let mut proxied = folder.command(&[&args[..], &["http://example.test/v1"]].concat());
    proxied.envs([
        ("OPENAI_API_KEY", "key"),
        ("HTTP_PROXY", "socks5://127.0.0.1:1"),
    ]);
    fails_with(proxied, "leave this server out with NO_PROXY\n");
}
