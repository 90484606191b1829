//! `--session`: conversations that are stored.

use crate::support::Folder;

#[test]
fn a_session_continues_with_the_agent_that_had_it() {
    let folder = Folder::new();
    let agent = |session: &str, message: &str| {
        let args = ["run", "team.toml", message, "--session", session, "--json"];
        let ran = folder.run(&args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        ran.events()[0]["agent"].clone()
    };
    assert_eq!(agent("tuesday", "My bill is wrong"), "Triage");
    assert_eq!(agent("tuesday", "And the refund?"), "Billing");
    assert_eq!(agent("wednesday", "Hello"), "Triage");
    let chat = folder.run_with_input(&["chat", "team.toml", "--session", "tuesday"], "/history\n");
    let messages: Vec<&str> = chat
        .stdout
        .lines()
        .filter(|line| line.starts_with("You"))
        .collect();
    assert_eq!(
        messages,
        ["You      My bill is wrong", "You      And the refund?"]
    );
}

#[test]
fn a_session_that_was_reset_begins_again() {
    let folder = Folder::new();
    let args = ["chat", "team.toml", "--session", "tuesday"];
    folder.run_with_input(&args, "My bill is wrong\n/reset\n");
    let ran = folder.run_with_input(&args, "/history\n/agents\n");
    assert!(
        ran.stdout
            .starts_with("Nothing has been said yet.\n* Triage"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_stored_agent_that_the_team_no_longer_has_is_an_error_with_ways_out() {
    let folder = Folder::new();
    let args = [
        "run",
        "team.toml",
        "My bill is wrong",
        "--session",
        "tuesday",
    ];
    folder.run(&args);
    folder.write("team.toml", "[agents.Triage]\n[agents.Other]\n");
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = format!("{}{}", ran.stdout, ran.stderr).replace('\n', " ");
    assert!(told.contains("is with agent \"Billing\""), "{ran:?}");
    assert!(told.contains("--agent NAME"), "{ran:?}");
    for way_out in [["--agent", "Triage"], ["--force", "--json"]] {
        let ran = folder.run(&[&args[..], &way_out].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_sessions() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.run(&["run", "team.toml", "Hi", "--session", "tuesday"]);
    let mode = |name: &str| folder.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/sessions.db")), (0o700, 0o600));
}

#[test]
fn a_session_that_cannot_be_opened_is_an_error_with_advice() {
    let folder = Folder::new();
    folder.write("data", "not a folder");
    let ran = folder.run(&["run", "team.toml", "Hi", "--session", "tuesday"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = folder.run(&["run", "team.toml", "Hi", "--session", " "]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("as in --session tuesday"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_variable_of_the_store_is_needed_for_a_session_only() {
    let folder = Folder::new();
    let store = "[agents.Desk]\n[conversations]\nstore = { env = \"NO_SUCH_STORE\" }\n";
    folder.write("team.toml", store);
    let run = ["run", "team.toml", "Hi"];
    let ran = folder.run(&run);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = folder.run_with_input(&["chat", "team.toml"], "Hi\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let session = [&run[..], &["--session", "tuesday"]].concat();
    let ran = folder.run(&session);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("no variable NO_SUCH_STORE"), "{ran:?}");
    let ran = folder.run(&[&session[..], &["--store", "sqlite:here.db"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn check_reports_stores_that_do_not_exist_and_summaries_that_are_never_written() {
    let folder = Folder::new();
    for (conversations, code, reported) in [
        (
            "store = \"mysql://x\"",
            1,
            "error[bad-store]: there is no such kind of store",
        ),
        (
            "store = \"postgres://\"",
            1,
            "error[bad-store]: this address of a store is incomplete",
        ),
        (
            "compact_at = 5000\n[run]\nsession_limit = 20",
            1,
            "warning[no-effect]: this has no effect beside session_limit of [run]",
        ),
        (
            "store = \"rediss://cache\"\ncompact_at = 5000",
            0,
            "no problems",
        ),
    ] {
        let team =
            format!("[agents.Desk]\ninstructions = \"x\"\n[conversations]\n{conversations}\n");
        folder.write("team.toml", &team);
        let ran = folder.run(&["check", "team.toml", "--strict"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stdout.contains(reported), "{ran:?}");
    }
}
