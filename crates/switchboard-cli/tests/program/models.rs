//! Models over HTTP: servers that answer, refuse, are missing, or are slow.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};
use std::time::Duration;

use fake_provider::{FakeProvider, Reply};
use serde_json::json;

use crate::support::{Folder, Ran};

fn ask(folder: &Folder, provider: &FakeProvider, key: &str, more: &[&str]) -> Command {
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
    let mut command = folder.command(&[&args, more].concat());
    command.env("OPENAI_API_KEY", key);
    command
}

#[test]
fn the_server_of_the_base_url_answers() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    provider.script(
        "key",
        [
            Reply::call("c1", "transfer_to_billing", "{}"),
            Reply::text("Your bill is fixed."),
        ],
    );
    let ran = Ran::of(ask(&folder, &provider, "key", &["--json"]).spawn().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = ran.events();
    assert_eq!(events[1]["model"], "llama");
    assert_eq!(events.last().unwrap()["output"], "Your bill is fixed.");
    provider.assert_valid();
}

#[test]
fn a_server_that_refuses_the_key_or_is_missing_has_an_exit_code_of_its_own() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    let refused = json!({"error": {"message": "Incorrect API key provided"}});
    provider.script("wrong", [Reply::status(401, refused)]);
    let ran = Ran::of(ask(&folder, &provider, "wrong", &[]).spawn().unwrap());
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("help: check the key"), "{ran:?}");

    let args = ["run", "team.toml", "Hi", "--model", "chat/x", "--base-url"];
    let unused = "http://127.0.0.1:9/v1";
    let ran = folder.run(&[&args[..], &[unused, "--json"]].concat());
    assert_eq!(ran.code, Some(4));
    let events = ran.events();
    let error = events.last().unwrap();
    assert_eq!(
        (&error["type"], &error["error"]),
        (&json!("run_failed"), &json!("model"))
    );
    assert!(ran.stderr.starts_with("help: "), "{ran:?}");
    assert!(ran.stderr.contains("--base-url"), "{ran:?}");
}

/// Waits until the program has written this text, and returns the output so far.
fn wait_for(child: &mut Child, text: &str) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains(text) {
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{seen:?}");
        seen.push(byte[0]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(sent.success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_ends_with_run_stopped() {
    let (folder, provider) = (Folder::new(), FakeProvider::on_thread().unwrap());
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let slow = Reply::text("One two three four five")
            .pieces(4)
            .pace(Duration::from_secs(2));
        provider.script(name, [slow]);
        let mut child = ask(&folder, &provider, name, &["--json"]).spawn().unwrap();
        wait_for(&mut child, "text_delta");
        signal(&child, name);
        let mut rest = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut rest).unwrap();
        rest.clear();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
        assert_eq!(last["type"], "run_stopped");
        assert!(!rest.contains("five"), "{rest}");
    }
}

#[test]
fn a_wrong_address_in_the_environment_is_named_by_its_variable() {
    let folder = Folder::new();
    let with_address = |args: &[&str], address: &str| {
        let mut command = folder.command(args);
        Ran::of(command.env("OPENAI_BASE_URL", address).spawn().unwrap())
    };
    let ran = with_address(&["run", "team.toml", "Hi", "-m", "chat/x"], "foo");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    for text in [
        "OPENAI_BASE_URL cannot be used: the address of the server must begin with http://",
        "help: write it in full",
    ] {
        assert!(ran.stderr.contains(text), "{ran:?}");
    }
    assert!(!ran.stderr.contains("there is no model"), "{ran:?}");
    let ran = with_address(
        &["talk", "team.toml", "--in", "x.wav", "-m", "offline"],
        "foo",
    );
    assert!(
        ran.stderr.contains("OPENAI_BASE_URL cannot be used"),
        "{ran:?}"
    );
    // Nothing asks this server.
    let ran = with_address(&["run", "team.toml", "Hi"], "foo");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn an_empty_address_is_not_that_of_openai() {
    let folder = Folder::new();
    let args = ["run", "team.toml", "Hi", "-m", "chat/x", "--base-url", ""];
    let ran = folder.run(&args);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("'--base-url <URL>'"), "{ran:?}");
}
