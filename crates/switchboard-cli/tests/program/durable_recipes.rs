//! The recipes of `docs/durable.md`: three workers on each engine, as they stand there, with the addresses of test servers.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::Folder;
use crate::workers;

const GUIDE: &str = include_str!("../../../../docs/durable.md");

const TEAM: &str = r#"
start = "Desk"

[agents.Desk]
instructions = "You pay back what customers ask for."
model = "offline"
"#;

/// The recipe whose script contains a text.
fn recipe(contains: &str, without: &str) -> String {
    let scripts = GUIDE.split("```sh\n").skip(1);
    let scripts = scripts.filter_map(|rest| rest.split("```").next());
    let mut matching =
        scripts.filter(|script| script.contains(contains) && !script.contains(without));
    let script = matching.next().expect("the guide has the recipe");
    assert_eq!(matching.next(), None);
    script.to_owned()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: use with-servers"))
}

/// Replaces a text that the recipe must have.
fn replaced(script: &str, old: &str, new: &str) -> String {
    assert!(script.contains(old), "{old} in {script}");
    script.replace(old, new)
}

/// Runs a recipe and ends its workers. Returns what it has written.
fn run(script: &str, engine: &str) -> String {
    let session = format!("tuesday-{engine}-{}", std::process::id());
    let script = replaced(
        script,
        "postgres://localhost/switchboard",
        &variable("SWITCHBOARD_TEST_POSTGRES"),
    );
    let script = replaced(&script, "tuesday", &session);
    let folder = Folder::new();
    folder.write("team.toml", TEAM);
    let program = Path::new(env!("CARGO_BIN_EXE_switchboard"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\nset -e\n{script}");
    let child = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path("."))
        .env("PATH", path)
        .env("SWITCHBOARD_DATA", folder.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let ran = ended.recv_timeout(Duration::from_secs(90));
    let ran = ran.expect("the recipe ends").unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&ran.stdout).into_owned(),
        String::from_utf8_lossy(&ran.stderr).into_owned(),
    );
    assert!(ran.status.success(), "{out}\n{error}");
    let listed = format!("{session}/message-17");
    let line = out.lines().find(|line| line.starts_with(&listed));
    assert!(
        line.is_some_and(|line| line.contains("done")),
        "{out}\n{error}"
    );
    out
}

#[test]
#[ignore = "needs PostgreSQL; ./test starts one"]
fn the_recipe_for_three_workers_without_a_server_works() {
    let out = run(&recipe("--lease 5s", "--engine"), "embedded");
    assert!(out.contains("status        done"), "{out}");
}

/// An address that was free a moment ago; workers share it.
#[cfg(feature = "restate")]
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[cfg(feature = "restate")]
#[test]
#[ignore = "needs PostgreSQL and Restate; ./test starts them"]
fn the_recipe_for_three_workers_on_restate_works() {
    let script = recipe("--engine restate", "--engine dbos");
    let script = replaced(
        &script,
        "http://127.0.0.1:8080",
        &variable("SWITCHBOARD_TEST_RESTATE"),
    );
    let script = replaced(
        &script,
        "http://127.0.0.1:9070",
        &variable("SWITCHBOARD_TEST_RESTATE_ADMIN"),
    );
    run(
        &replaced(&script, "127.0.0.1:9080", &free_address()),
        "restate",
    );
}

#[cfg(feature = "dbos")]
#[test]
#[ignore = "needs PostgreSQL; ./test starts one"]
fn the_recipe_for_three_workers_on_dbos_works() {
    run(&recipe("--engine dbos", "--engine restate"), "dbos");
}

#[cfg(any(feature = "restate", feature = "dbos"))]
fn owned<const N: usize>(args: [&str; N]) -> Vec<String> {
    args.map(str::to_owned).to_vec()
}

#[cfg(feature = "restate")]
fn restate() -> workers::Engine {
    let (server, admin) = (
        variable("SWITCHBOARD_TEST_RESTATE"),
        variable("SWITCHBOARD_TEST_RESTATE_ADMIN"),
    );
    workers::Engine {
        name: "restate",
        store: owned(["--store", &variable("SWITCHBOARD_TEST_POSTGRES")]),
        run: owned(["--engine", "restate", "--restate", &server]),
        worker: owned(["--restate-admin", &admin, "--listen", &free_address()]),
        is_embedded: false,
    }
}

#[cfg(feature = "dbos")]
fn dbos(lease: &str) -> workers::Engine {
    workers::Engine {
        name: "dbos",
        store: owned(["--store", &variable("SWITCHBOARD_TEST_POSTGRES")]),
        run: owned(["--engine", "dbos", "--lease", lease]),
        worker: Vec::new(),
        is_embedded: false,
    }
}

#[cfg(feature = "restate")]
#[test]
#[ignore = "needs PostgreSQL and Restate; ./test starts them"]
fn a_worker_on_restate_that_is_asked_to_end_lets_its_tool_end_and_another_goes_on() {
    workers::a_tool_ends_and_another_worker_goes_on(&restate());
}

#[cfg(feature = "dbos")]
#[test]
#[ignore = "needs PostgreSQL; ./test starts one"]
fn a_worker_on_dbos_that_is_asked_to_end_lets_its_tool_end_and_another_goes_on() {
    workers::a_tool_ends_and_another_worker_goes_on(&dbos("60s"));
}

#[cfg(feature = "restate")]
#[test]
#[ignore = "needs PostgreSQL and Restate; ./test starts them"]
fn a_run_that_a_worker_on_restate_took_to_its_approval_is_decided_or_cancelled_by_the_program() {
    workers::a_run_that_a_worker_took_to_its_approval_is_decided_or_cancelled(&restate());
}

#[cfg(feature = "dbos")]
#[test]
#[ignore = "needs PostgreSQL; ./test starts one"]
fn a_run_that_a_worker_on_dbos_took_to_its_approval_is_decided_or_cancelled_by_the_program() {
    workers::a_run_that_a_worker_took_to_its_approval_is_decided_or_cancelled(&dbos("2s"));
}
