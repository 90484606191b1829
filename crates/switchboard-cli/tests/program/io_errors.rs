//! Full disks, files in the way, and input that is not text: errors have advice, and nothing is lost.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Folder, Ran};

/// Runs the program with a limit on the size of files, as on a full disk.
#[cfg(unix)]
fn run_with_limit(folder: &Folder, blocks: usize, args: &[&str], input: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_switchboard");
    // Without the signal, which would end the program, writing fails.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", &script, "sh", program])
        .args(args)
        .current_dir(folder.path(""))
        .env("SWITCHBOARD_DATA", folder.path("data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Ran::of(child)
}

#[cfg(unix)]
#[test]
fn init_writes_a_whole_team_or_nothing() {
    let folder = Folder::new();
    let ran = run_with_limit(&folder, 1, &["init", "team"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("error: cannot write team/"));
    assert_eq!(fs::read_dir(folder.path("team")).unwrap().count(), 0);
    assert_eq!(folder.run(&["init", "team"]).code, Some(0));

    let before = folder.read("team/team.toml");
    folder.write("team/team.toml", &format!("{before}\n# mine\n"));
    let ran = run_with_limit(&folder, 1, &["init", "team", "--force"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(folder.read("team/team.toml").ends_with("# mine\n"));
}

#[cfg(unix)]
#[test]
fn a_chat_that_cannot_be_saved_leaves_what_was_saved_before() {
    let folder = Folder::new();
    let more = "My bill is wrong\n".repeat(60);
    let save = "/save chat.jsonl\n";
    let lines = format!("Hi\n{save}{more}{save}/save other.jsonl\n");
    let ran = run_with_limit(&folder, 8, &["chat", "team.toml"], &lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let failed = ran.stdout.matches("error: cannot write ").count();
    assert_eq!(failed, 2, "{}", ran.stdout);
    let replayed = folder.run(&["replay", "chat.jsonl"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(replayed.stdout.starts_with("You        Hi\n"));
    // No temporary file is left.
    let left = fs::read_dir(folder.path("")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name());
    assert!(
        !left
            .into_iter()
            .any(|name| name.to_string_lossy().contains("other"))
    );
}

#[cfg(unix)]
#[test]
fn a_chat_continues_if_its_session_cannot_be_stored() {
    let folder = Folder::new();
    let args = ["chat", "team.toml", "--session", "tuesday"];
    assert_eq!(folder.run_with_input(&args, "Hi\n").code, Some(0));
    // Each message takes some space, until none is left.
    let lines = format!("{}/history\n/agents\n", "Hi\n".repeat(100));
    let ran = run_with_limit(&folder, 128, &args, &lines);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: "), "{}", ran.stderr);
    assert!(ran.stdout.contains("* Triage"), "{}", ran.stdout);
    let history = folder.run_with_input(&args, "/history\n");
    assert!(history.stdout.starts_with("You     Hi\n"), "{history:?}");
}

#[cfg(unix)]
#[test]
fn a_session_that_cannot_be_stored_fails_the_run_in_json() {
    let folder = Folder::new();
    let args = ["run", "team.toml", "--session", "tuesday", "--json"];
    assert_eq!(folder.run_with_input(&args, "Hi\n").code, Some(0));
    let ran = run_with_limit(&folder, 128, &args, &"x".repeat(400_000));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let events = ran.events();
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]),
        (&"run_failed".into(), &"session".into())
    );
}

#[test]
fn a_trace_is_appended_to_an_older_trace_and_to_nothing_else() {
    let folder = Folder::new();
    let team = folder.read("team.toml");
    let ran = folder.run(&["run", "team.toml", "Hi", "--trace", "team.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr
            .contains("team.toml is there already and is no trace")
    );
    assert_eq!(folder.read("team.toml"), team);
    for _ in 0..2 {
        let ran = folder.run(&["run", "team.toml", "Hi", "--trace", "trace.jsonl"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let spans: Vec<Value> = folder
        .read("trace.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = |span: &Value, field: &str| span[field].as_str().unwrap().to_owned();
    let ids: HashSet<String> = spans.iter().map(|span| text(span, "id")).collect();
    let traces: HashSet<String> = spans.iter().map(|span| text(span, "trace")).collect();
    assert_eq!((ids.len(), traces.len()), (spans.len(), 2));
    for time in spans
        .iter()
        .flat_map(|span| [text(span, "started"), text(span, "ended")])
    {
        let form: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(form, "0000-00-00T00:00:00.000000Z");
    }
    // The program that wrote it was killed within a line.
    folder.write("trace.jsonl", folder.read("trace.jsonl").trim_end());
    folder.run(&["run", "team.toml", "Hi", "--trace", "trace.jsonl"]);
    for line in folder.read("trace.jsonl").lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_is_shown_also_if_its_trace_cannot_be_written() {
    let folder = Folder::new();
    let args = [
        "run",
        "team.toml",
        "My bill is wrong",
        "--trace",
        "/dev/full",
    ];
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("A second charge is reversed."));
    assert!(
        ran.stderr.contains("help: make room on the disk"),
        "{ran:?}"
    );
    // The exit code of a run that failed stays.
    let nowhere = ["-m", "chat/x", "--base-url", "http://127.0.0.1:9/v1"];
    let ran = folder.run(&[&args[..], &nowhere].concat());
    assert_eq!(ran.code, Some(4), "{ran:?}");
    folder.write(
        "cases.toml",
        "[[cases]]\nmessage = \"My bill is wrong\"\nexpect = \"Billing\"\n",
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--junit", "/dev/full"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("1 passed"), "{ran:?}");
}

#[test]
fn a_file_in_place_of_a_folder_is_named() {
    let folder = Folder::new();
    folder.write("data", "not a folder");
    for args in [
        &["init", "data"][..],
        &["init", "data/team"],
        &["run", "team.toml", "Hi", "--session", "tuesday"],
    ] {
        let ran = folder.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let help = "help: a file is where a folder should be: name another folder";
        assert!(ran.stderr.contains(help), "{}", ran.stderr);
    }
    assert_eq!(folder.read("data"), "not a folder");
}

#[test]
fn input_that_is_not_text_is_named() {
    let folder = Folder::new();
    let garbage = [0xff, 0xfe, 0x00, 0x9f, b'\n'];
    fs::write(folder.path("garbage"), garbage).unwrap();
    for (args, what) in [
        (&["chat", "team.toml"][..], "standard input"),
        (&["run", "team.toml"], "standard input"),
        (&["run", "team.toml", "--input", "garbage"], "garbage"),
        (&["test", "team.toml", "garbage"], "garbage"),
    ] {
        let input = fs::File::open(folder.path("garbage")).unwrap();
        let ran = Ran::of(folder.command(args).stdin(input).spawn().unwrap());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        for text in [
            format!(": {what} is not text in UTF-8\n"),
            "help: save it as UTF-8\n".to_owned(),
        ] {
            assert!(ran.stderr.contains(&text), "{}", ran.stderr);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn input_without_an_end_does_not_fill_the_memory() {
    let folder = Folder::new();
    for (args, reason) in [
        (
            &["replay", "/dev/zero"][..],
            "/dev/zero: a line is longer than 64 MiB",
        ),
        (
            &["chat", "team.toml"],
            "standard input: a line is longer than 64 MiB",
        ),
        (
            &["run", "team.toml"],
            "standard input: it is larger than 1 GiB",
        ),
    ] {
        let endless = fs::File::open("/dev/zero").unwrap();
        let ran = Ran::of(folder.command(args).stdin(endless).spawn().unwrap());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.stderr
                .contains(&format!("error: cannot read {reason}\n")),
            "{ran:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_recording_is_replayed_from_a_named_pipe() {
    let folder = Folder::new();
    let recorded = folder.run(&["run", "team.toml", "My bill is wrong", "--json"]);
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let replay = folder
        .command(&["replay", "pipe", "--json"])
        .spawn()
        .unwrap();
    fs::write(folder.path("pipe"), &recorded.stdout).unwrap();
    let ran = Ran::of(replay);
    assert_eq!((ran.code, ran.stdout), (Some(0), recorded.stdout));
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let folder = Folder::new();
    for args in [
        &["--help"] as &[&str],
        &["run", "-h", "--lang", "zh"],
        &["--version"],
        &["schema"],
        &["completions", "bash"],
    ] {
        let mut command = folder.command(args);
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        command.stdout(full.unwrap());
        let ran = Ran::of(command.spawn().unwrap());
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_key_is_added_whole_or_not_at_all() {
    let folder = Folder::new();
    let args = ["key", "keys.toml", "--tenant", "acme"];
    // The limit is in blocks of 512 or 1,024 bytes: after some keys a part of one fits.
    let failed = (0..20).find_map(|_| {
        let before = fs::read(folder.path("keys.toml")).unwrap_or_default();
        let ran = run_with_limit(&folder, 1, &args, "");
        (ran.code != Some(0)).then_some((before, ran))
    });
    let (before, ran) = failed.expect("the disk is full");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("the key cannot be added"), "{ran:?}");
    assert!(!before.is_empty());
    assert_eq!(fs::read(folder.path("keys.toml")).unwrap(), before);
    assert_eq!(folder.run(&args).code, Some(0));

    let ran = run_with_limit(&folder, 0, &["key", "new.toml", "--tenant", "acme"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!folder.path("new.toml").exists());
}

#[cfg(unix)]
#[test]
fn a_file_of_keys_is_a_plain_file() {
    let folder = Folder::new();
    let ran = folder.run(&["key", "/dev/zero", "--tenant", "acme"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("is no plain file"), "{ran:?}");
    let args = ["serve", "team.toml", "--port", "0", "--keys", "/dev/zero"];
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("too large"), "{ran:?}");
}

/// Reading it waits for messages of the system.
#[cfg(target_os = "linux")]
#[test]
fn files_of_the_system_are_not_waited_for() {
    let folder = Folder::new();
    for args in [
        &["key", "/proc/kmsg", "--tenant", "acme"][..],
        &["serve", "team.toml", "--port", "0", "--keys", "/proc/kmsg"],
        &[
            "serve",
            "team.toml",
            "--port",
            "0",
            "--config",
            "/proc/kmsg",
        ],
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(
            ran.stderr.contains("/proc/kmsg is no plain file"),
            "{ran:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nothing_reads_is_not_waited_for() {
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("report"))
        .status();
    assert!(made.unwrap().success());
    folder.write(
        "cases.toml",
        "[[cases]]\nmessage = \"My bill is wrong\"\nexpect = \"Billing\"\n",
    );
    let ran = folder.run(&["test", "team.toml", "cases.toml", "--junit", "report"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("1 passed"), "{ran:?}");
    assert!(
        ran.stderr
            .contains("cannot write report: nothing reads from this pipe"),
        "{ran:?}"
    );
}
