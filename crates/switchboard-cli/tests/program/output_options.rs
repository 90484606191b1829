//! `--quiet`, `--timeout`, and short options.

use std::process::Stdio;

use fake_provider::{FakeProvider, Reply};

use crate::support::{Folder, Ran};

#[test]
fn quiet_prints_the_answer_alone() {
    let folder = Folder::new();
    let ran = folder.run(&["run", "team.toml", "-q", "My bill is wrong"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(
        ran.stdout.starts_with("A second charge is reversed.\n"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains("Triage"), "{ran:?}");
    let ran = folder.run(&["run", "team.toml", "-q", "My bill", "--max-turns", "1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
}

#[test]
fn a_run_that_takes_too_long_ends_with_an_exit_code_of_its_own() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    provider.script(
        "key",
        [Reply::text(&"word ".repeat(400)).pieces(5).hang_after(6000)],
    );
    let url = provider.url();
    let args = [
        "run",
        "team.toml",
        "Hi",
        "-m",
        "chat/llama",
        "--base-url",
        &url,
        "-t",
        "0.5s",
        "-s",
        "s",
    ];
    let mut command = folder.command(&args);
    command.env("OPENAI_API_KEY", "key").stdin(Stdio::null());
    let ran = Ran::of(command.spawn().unwrap());
    assert_eq!(ran.code, Some(124), "{ran:?}");
    assert!(
        ran.stderr.contains("longer than --timeout allows"),
        "{ran:?}"
    );
    // What came until then is kept, as after Ctrl-C.
    let shown = folder.run(&["sessions", "show", "s"]).stdout;
    assert!(
        shown.starts_with("You     Hi\nTriage  word word"),
        "{shown}"
    );
}

#[test]
fn short_options_are_those_that_are_typed_often() {
    let folder = Folder::new();
    folder.write("lines.txt", "theatre tickets\n");
    let args = [
        "run",
        "team.toml",
        "-i",
        "lines.txt",
        "-m",
        "offline",
        "-c",
        "tier=premium",
        "-a",
        "Triage",
        "-s",
        "x",
        "-j",
    ];
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.events().last().unwrap()["agent"], "Concierge");
}

#[test]
fn a_time_limit_is_told_as_an_error_in_each_form_of_output() {
    let folder = Folder::new();
    for form in [&[][..], &["--quiet"], &["--json"]] {
        let provider = FakeProvider::on_thread().unwrap();
        provider.script("key", [Reply::hang()]);
        let url = provider.url();
        let args = [
            "run",
            "team.toml",
            "Hi",
            "-m",
            "chat/x",
            "--base-url",
            &url,
            "--timeout",
            "0.3",
        ];
        let mut command = folder.command(&[&args[..], form].concat());
        let ran = Ran::of(command.env("OPENAI_API_KEY", "key").spawn().unwrap());
        assert_eq!(ran.code, Some(124), "{ran:?}");
        assert!(
            ran.stderr
                .contains("error: the answer took longer than --timeout allows\n"),
            "{ran:?}"
        );
        assert!(!ran.stderr.contains("help:"), "{ran:?}");
    }
}

#[test]
fn an_option_that_names_no_server_or_model_is_told_as_such() {
    let folder = Folder::new();
    let args = [
        "run",
        "team.toml",
        "Hi",
        "-m",
        "chat/x",
        "--base-url",
        "foo",
    ];
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .starts_with("error: --base-url cannot be used: the address of the server must begin"),
        "{ran:?}"
    );
    let ran = folder.run(&["run", "team.toml", "Hi", "-m", "anthropic/claude"]);
    assert!(
        ran.stderr
            .contains("did you mean \"openai/claude\" or \"chat/claude\"?"),
        "{ran:?}"
    );
    let args = [
        "run",
        "team.toml",
        "Hi",
        "-m",
        "chat/x",
        "--base-url",
        "http://nowhere.invalid/v1",
    ];
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    for words in ["client error", "dns error", "tcp connect error"] {
        assert!(!ran.stderr.contains(words), "{ran:?}");
    }
}
