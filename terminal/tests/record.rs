//! The program `terminal-record`.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::{path::Path, process::Output};

fn record(folder: &Path, args: &[&str]) -> Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_terminal-record"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn a_screenshot_is_deterministic() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["1.svg", "2.svg"].map(|out| {
        let output = record(
            folder.path(),
            &[
                "--columns",
                "30",
                "--rows",
                "4",
                "--still",
                "--out",
                out,
                "--wait",
                "name: ",
                "--type",
                "Ada<Enter>",
                "--",
                "sh",
                "-c",
                "printf 'name: '; read name; echo \"hello $name\"",
            ],
        );
        assert!(output.status.success(), "{output:?}");
        std::fs::read_to_string(folder.path().join(out)).unwrap()
    });
    assert_eq!(first, second);
    assert!(first.contains(">name: Ada</text>"));
    assert!(first.contains(">hello Ada</text>"));
    assert!(!first.contains("@keyframes"));
}

#[test]
fn a_recording_is_animated_and_ends_with_the_awaited_text() {
    let folder = tempfile::tempdir().unwrap();
    let output = record(
        folder.path(),
        &[
            "--out",
            "cat.svg",
            "--title",
            "a cat",
            "--type",
            "abc<Enter>",
            "--wait",
            "abc\nabc",
            "--",
            "cat",
        ],
    );
    assert!(output.status.success(), "{output:?}");
    let svg = std::fs::read_to_string(folder.path().join("cat.svg")).unwrap();
    for part in ["<title>a cat</title>", ">abc</text>", "@keyframes"] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
}

#[test]
fn a_failed_wait_is_reported_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let output = record(
        folder.path(),
        &["--out", "no.svg", "--wait", "hello", "--", "echo", "bye"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "terminal-record: waited for \"hello\" to appear: `echo` closed its terminal; the screen shows:\n| bye\n"
    );
    assert!(!folder.path().join("no.svg").exists());
}

#[test]
fn a_mistake_prints_the_usage() {
    let folder = tempfile::tempdir().unwrap();
    let output = record(folder.path(), &["--", "cat"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("terminal-record: --out is missing"));
    assert!(stderr.contains("usage: terminal-record --out FILE"));
}
