//! `switchboard sessions`.

use serde_json::{Value, json};

use crate::support::{Folder, Ran};

/// A folder with a session `tuesday`, which two agents had.
fn with_session() -> Folder {
    let folder = Folder::new();
    let message = ["run", "team.toml", "My bill is wrong", "-s", "tuesday"];
    let ran = folder.run(&message);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    folder
}

/// The lines of JSON without times and positions.
fn lines(ran: &Ran) -> Vec<Value> {
    let mut lines = ran.events();
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        for name in ["time", "created", "changed"] {
            if let Some(time) = fields.remove(name) {
                let time = time.as_str().unwrap();
                assert!(time.len() == 27 && time.ends_with('Z'), "{time}");
            }
        }
    }
    lines
}

#[test]
fn sessions_are_listed_with_their_agents() {
    let folder = Folder::new();
    let ran = folder.run(&["sessions", "list"]);
    assert!(ran.stdout.starts_with("There are no sessions"), "{ran:?}");
    for (session, message) in [("tuesday", "My bill is wrong"), ("monday", "Hello")] {
        folder.run(&["run", "team.toml", message, "--session", session]);
    }
    let ran = folder.run(&["sessions", "list", "--json"]);
    let listed: Vec<(Value, Value)> = lines(&ran)
        .into_iter()
        .map(|line| (line["name"].clone(), line["agent"].clone()))
        .collect();
    assert_eq!(
        listed,
        [
            (json!("monday"), json!("Triage")),
            (json!("tuesday"), json!("Billing"))
        ]
    );
    let ran = folder.run(&["sessions", "list", "-n", "1"]);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    assert!(ran.stdout.starts_with("monday  Triage  "), "{ran:?}");
}

#[test]
fn a_transcript_has_who_spoke_and_the_handoffs() {
    let folder = with_session();
    folder.run(&["run", "team.toml", "I want a manager", "-s", "angry"]);
    let ran = folder.run(&["sessions", "show", "tuesday"]);
    let shown: Vec<&str> = ran.stdout.lines().take(3).collect();
    assert_eq!(
        shown,
        [
            "You      My bill is wrong",
            "Triage   → Billing",
            "Billing  A second charge is reversed.",
        ]
    );
    let ran = folder.run(&["sessions", "show", "angry", "--json"]);
    let shown = lines(&ran);
    assert_eq!(
        shown[..2],
        [
            json!({"position": 0, "type": "message", "role": "user", "text": "I want a manager"}),
            json!({"position": 1, "type": "handoff", "from": "Triage", "to": "Manager",
                "payload": {"reason": "I want a manager"}}),
        ]
    );
    let last = shown.last().unwrap();
    assert_eq!(
        (&last["role"], &last["agent"]),
        (&json!("agent"), &json!("Manager"))
    );
}

#[test]
fn a_session_moves_to_another_store_and_goes_on_there() {
    let folder = with_session();
    let other = ["--store", "sqlite:other.db"];
    let ran = folder.run(&["sessions", "export", "tuesday", "tuesday.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let again = folder.run(&["sessions", "export", "tuesday", "tuesday.json"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    let import = [
        &["sessions", "import", "tuesday.json", "--as", "moved"],
        &other[..],
    ]
    .concat();
    let ran = folder.run(&import);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "imported moved\n")
    );
    let ran = folder.run(&import);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("there is a session \"moved\" already"),
        "{ran:?}"
    );
    let run = [
        "run",
        "team.toml",
        "And now?",
        "--session",
        "moved",
        "--json",
    ];
    let ran = folder.run(&[&run[..], &other].concat());
    assert_eq!(ran.events()[0]["agent"], "Billing");
    let piped = folder.run(&["sessions", "export", "tuesday"]);
    let ran = folder.run_with_input(&["sessions", "import", "-", "--as", "piped"], &piped.stdout);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    folder.write("other.json", "{}");
    let ran = folder.run(&["sessions", "import", "other.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("other.json is no exported session"),
        "{ran:?}"
    );
}

#[test]
fn a_copy_goes_on_by_itself_also_from_an_earlier_message() {
    let folder = with_session();
    folder.run(&["run", "team.toml", "And the refund?", "-s", "tuesday"]);
    let shown = lines(&folder.run(&["sessions", "show", "tuesday", "-j"]));
    let second = shown.iter().filter(|line| line["role"] == "user").nth(1);
    let position = second.unwrap()["position"].to_string();
    let ran = folder.run(&[
        "sessions", "fork", "tuesday", "early", "--before", &position,
    ]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "copied to early\n"),
        "{ran:?}"
    );
    let users = |session: &str| {
        let shown = lines(&folder.run(&["sessions", "show", session, "-j"]));
        shown.iter().filter(|line| line["role"] == "user").count()
    };
    assert_eq!((users("tuesday"), users("early")), (2, 1));
    let ran = folder.run(&["sessions", "fork", "tuesday", "early"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = folder.run(&["sessions", "fork", "tuesday", "x", "--before", "999"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn what_a_copy_leaves_out_is_not_stored_in_it() {
    let folder = Folder::new();
    for message in ["Hello", "My number is 123456789", "My bill is wrong"] {
        folder.run(&["run", "team.toml", message, "-s", "q1"]);
    }
    let shown = lines(&folder.run(&["sessions", "show", "q1", "-j"]));
    let secret = shown
        .iter()
        .find(|line| line["text"] == "My number is 123456789");
    let position = secret.unwrap()["position"].to_string();
    let ran = folder.run(&["sessions", "fork", "q1", "q5", "--before", &position]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let exported = folder.run(&["sessions", "export", "q5"]).stdout;
    assert!(exported.contains("Hello"), "{exported}");
    for later in ["123456789", "My bill", "transfer_to"] {
        assert!(!exported.contains(later), "{later}: {exported}");
    }
    let found = folder.run(&["sessions", "search", "123456789", "--json"]);
    assert_eq!(lines(&found).len(), 1, "{found:?}");
    let ran = folder.run(&["run", "team.toml", "I want a manager", "-s", "q5", "--json"]);
    assert_eq!(ran.events()[0]["agent"], "Triage", "{ran:?}");
    let shown = lines(&folder.run(&["sessions", "show", "q5", "-j"]));
    let users = shown.iter().filter(|line| line["role"] == "user");
    assert_eq!(users.count(), 2, "{shown:?}");
}

#[test]
fn a_session_has_a_name() {
    let folder = with_session();
    folder.run(&["sessions", "export", "tuesday", "x.json"]);
    for args in [
        &["sessions", "import", "x.json", "--as", ""][..],
        &["sessions", "import", "x.json", "--as", " "],
        &["sessions", "fork", "tuesday", ""],
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(
            ran.stderr
                .starts_with("error: the session's name is empty\n")
        );
    }
    assert_eq!(lines(&folder.run(&["sessions", "list", "-j"])).len(), 1);
}

#[test]
fn advice_on_stored_sessions_is_not_that_of_a_run() {
    let folder = Folder::new();
    folder.write("broken.db", "this is not a database, and never was one");
    let ran = folder.run(&["sessions", "list", "--store", "sqlite:broken.db"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.starts_with("error: the store cannot be used: "),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("--session"), "{ran:?}");
    let run = [
        "run",
        "team.toml",
        "Hi",
        "-s",
        "a",
        "--store",
        "sqlite:broken.db",
    ];
    let ran = folder.run(&run);
    assert!(ran.stderr.contains("go on without --session"), "{ran:?}");
}

#[test]
fn words_are_found_in_all_sessions() {
    let folder = with_session();
    folder.run(&["run", "team.toml", "Hello bill", "-s", "monday"]);
    let ran = folder.run(&["sessions", "search", "WRONG"]);
    assert_eq!(ran.stdout, "tuesday  You: My bill is wrong\n");
    let ran = folder.run(&["sessions", "search", "bill", "--json"]);
    let found: Vec<Value> = lines(&ran)
        .iter()
        .map(|line| line["session"].clone())
        .collect();
    assert!(
        found.contains(&json!("monday")) && found.contains(&json!("tuesday")),
        "{ran:?}"
    );
    let ran = folder.run(&["sessions", "search", "zebra"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "Nothing was found.\n")
    );
}

#[test]
fn deleting_is_for_all_names_or_none() {
    let folder = with_session();
    folder.run(&["run", "team.toml", "Hi", "-s", "monday"]);
    let ran = folder.run(&["sessions", "delete", "monday", "tusday"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        ran.stderr,
        "error: there is no session \"tusday\"\n  help: did you mean \"tuesday\"?\n"
    );
    let ran = folder.run(&["sessions", "delete", "monday", "tuesday"]);
    assert_eq!(ran.stdout, "deleted monday\ndeleted tuesday\n");
    assert_eq!(folder.run(&["sessions", "list", "-j"]).stdout, "");
}

#[test]
fn the_store_of_a_team_file_is_used() {
    let folder = Folder::new();
    let team = "[agents.Desk]\ninstructions = 'x'\n[conversations]\nstore = 'sqlite:own.db'\n";
    folder.write("team.toml", team);
    folder.run(&["run", "team.toml", "Hi", "--session", "tuesday"]);
    assert_eq!(folder.run(&["sessions", "list", "-j"]).stdout, "");
    let ran = folder.run(&["sessions", "list", "-j", "--team", "team.toml"]);
    assert_eq!(lines(&ran)[0]["name"], "tuesday");
}

#[test]
fn the_latest_entries_are_those_that_are_shown() {
    let folder = with_session();
    let all = folder.run(&["sessions", "show", "tuesday", "--json"]);
    let all: Vec<&str> = all.stdout.lines().collect();
    assert_eq!(all.len(), 3, "{all:?}");
    let latest = folder.run(&["sessions", "show", "tuesday", "--json", "-n", "2"]);
    assert_eq!(latest.stdout.lines().collect::<Vec<_>>(), all[1..]);
}

#[test]
fn a_copy_that_ends_within_a_turn_is_refused_by_the_name_of_the_original() {
    let folder = with_session();
    let ran = folder.run(&["sessions", "fork", "tuesday", "friday", "--before", "1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("position 1 of the conversation \"tuesday\""),
        "{ran:?}"
    );
    let listed = folder.run(&["sessions", "list", "--json"]);
    assert_eq!(listed.stdout.lines().count(), 1);
}

#[test]
fn an_encrypted_session_is_copied_with_its_key_only() {
    let folder = Folder::new();
    let key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
    let with_key = |args: &[&str]| {
        let mut command = folder.command(args);
        Ran::of(command.env("SWITCHBOARD_STORE_KEY", key).spawn().unwrap())
    };
    with_key(&["run", "team.toml", "My bill is wrong", "-s", "sealed"]);
    let shown = with_key(&["sessions", "show", "sealed"]);
    assert!(
        shown.stdout.contains("A second charge is reversed."),
        "{shown:?}"
    );

    // The cipher text belongs to the name: a copy under another one could not be read.
    let forked = folder.run(&["sessions", "fork", "sealed", "copy"]);
    assert!(
        forked.stderr.contains("\"sealed\" is encrypted"),
        "{forked:?}"
    );
    folder.run(&["sessions", "export", "sealed", "sealed.json"]);
    let import = [
        "sessions",
        "import",
        "sealed.json",
        "--store",
        "sqlite:other.db",
    ];
    for ran in [
        folder.run(&[&import[..], &["--as", "copy"]].concat()),
        with_key(&import),
    ] {
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.stderr
                .contains("the session in sealed.json is encrypted")
        );
    }
    assert_eq!(folder.run(&import).code, Some(0));
    let show = ["sessions", "show", "sealed", "--store", "sqlite:other.db"];
    assert_eq!(with_key(&show).stdout, shown.stdout);
    assert_eq!(
        with_key(&["sessions", "fork", "sealed", "copy"]).code,
        Some(0)
    );
    let copy = with_key(&["sessions", "show", "copy"]);
    assert_eq!(copy.stdout, shown.stdout);
}

/// The commands that read a session.
const READING: [&[&str]; 4] = [
    &["list"],
    &["search", "bill"],
    &["show", "tuesday"],
    &["export", "tuesday"],
];

#[test]
fn a_store_that_is_not_there_is_an_error_and_not_created() {
    let folder = Folder::new();
    let sessions = READING.map(|command| [&["sessions"], command].concat());
    let others = [
        &["sessions", "delete", "tuesday"][..],
        &["sessions", "fork", "tuesday", "copy"],
        &["runs", "list"],
        &["runs", "show", "tuesday/1"],
        &["runs", "cancel", "tuesday/1"],
        &["resume", "team.toml", "--session", "tuesday"],
    ];
    folder.write("empty.db", "");
    for command in sessions.iter().map(Vec::as_slice).chain(others) {
        for (store, reason) in [
            ("typo.db", "there is no such file"),
            ("empty.db", "this file is empty"),
        ] {
            let address = format!("sqlite:{store}");
            let ran = folder.run(&[command, &["--store", &address]].concat());
            assert_ne!(ran.code, Some(0), "{ran:?}");
            let reason = format!("\"{store}\": {reason}");
            assert!(ran.stderr.contains(&reason), "{ran:?}");
        }
        assert!(!folder.path("typo.db").exists(), "{command:?}");
        assert_eq!(folder.read("empty.db"), "", "{command:?}");
    }
    // The data folder has no sessions before the first one.
    let ran = folder.run(&["sessions", "list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = folder.run(&["resume", "team.toml", "--session", "tuesday"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("nothing waits for a decision"),
        "{ran:?}"
    );
    assert!(!folder.path("data").exists());
}

#[test]
fn an_empty_file_in_the_data_folder_has_no_sessions() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.write("data/sessions.db", "");
    for command in ["sessions", "runs"] {
        let ran = folder.run(&[command, "list"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let ran = folder.run(&["resume", "team.toml", "--session", "tuesday"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("nothing waits for a decision"),
        "{ran:?}"
    );
    assert_eq!(folder.read("data/sessions.db"), "");
    let named = folder.run(&["sessions", "list", "--store", "sqlite:data/sessions.db"]);
    assert_eq!(named.code, Some(1), "{named:?}");
    assert!(named.stderr.contains("this file is empty"), "{named:?}");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_an_empty_data_folder() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    symlink("/nowhere/x", folder.path("data/sessions.db")).unwrap();
    let ran = folder.run(&["sessions", "list"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("there is no such file"), "{ran:?}");

    std::fs::remove_dir_all(folder.path("data")).unwrap();
    symlink("/nowhere", folder.path("data")).unwrap();
    let ran = folder.run(&["sessions", "list"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("there is no such file"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn a_data_folder_that_cannot_be_read_is_an_error() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;

    let folder = with_session();
    let data = folder.path("data");
    let is_root = metadata(&data).unwrap().uid() == 0;
    let mode = |path: &std::path::Path, mode| {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    mode(data.parent().unwrap(), 0o755);
    mode(&data, if is_root { 0o700 } else { 0o000 });
    let mut command = folder.command(&["sessions", "list"]);
    if is_root {
        // Root may read everything.
        command.uid(65534).gid(65534);
    }
    let ran = Ran::of(command.spawn().unwrap());
    mode(&data, 0o700);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("Permission denied"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn sessions_that_cannot_be_written_are_read() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;

    let folder = with_session();
    let data = folder.path("data");
    let mode = |path: &std::path::Path, mode| {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    mode(data.parent().unwrap(), 0o755);
    mode(&data, 0o555);
    mode(&data.join("sessions.db"), 0o444);
    let read = |args: &[&str]| {
        let mut command = folder.command(&[&["sessions"], args].concat());
        if metadata(&data).unwrap().uid() == 0 {
            // Root may write everything.
            command.uid(65534).gid(65534);
        }
        Ran::of(command.spawn().unwrap())
    };
    for command in READING {
        let ran = read(command);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{command:?}");
        assert!(ran.stdout.contains("tuesday") || ran.stdout.contains("bill"));
    }
    for command in [&["delete", "tuesday"][..], &["fork", "tuesday", "copy"]] {
        let ran = read(command);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("sessions.db"), "{ran:?}");
    }
    // The log of a program that was killed holds what the file does not.
    std::fs::write(data.join("sessions.db-wal"), "x").unwrap();
    let ran = read(&["list"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("sessions.db-wal"), "{told}");
    assert!(told.contains("copy both files to a folder"), "{told}");
    mode(&data, 0o755);
}
