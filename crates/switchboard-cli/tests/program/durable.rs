//! Durable runs: programs that are killed, and others that go on with their runs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};
use std::time::Duration;

use fake_provider::Reply;
use serde_json::Value;

use crate::approvals::Desk;
use crate::support::Ran;

const DURABLE: [&str; 6] = [
    "--session",
    "tuesday",
    "--durable",
    "--lease",
    "1s",
    "--json",
];

/// A large refund, which needs approval.
fn refund() -> Reply {
    Reply::call("c1", "refund", r#"{"order":"A-1","amount":500}"#)
}

fn small_refund() -> Reply {
    Reply::call("c1", "refund", r#"{"order":"A-1","amount":5}"#)
}

/// An answer that takes half a minute.
pub(crate) fn slow() -> Reply {
    let pace = Duration::from_secs(5);
    Reply::text("One two three four five").pieces(4).pace(pace)
}

pub(crate) fn send_signal(name: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status();
    assert!(sent.unwrap().success());
}

/// Sends a message, and kills the program once it has written a part of the answer.
fn killed_in_answer(desk: &Desk) {
    let mut child =
        desk.start(&[&["run", "team.toml", "Hi", "--key", "m1"][..], &DURABLE].concat());
    let mut stdout = child.stdout.take().unwrap();
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&seen).contains("text_delta") {
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{seen:?}");
        seen.push(byte[0]);
    }
    send_signal("-9", &child);
    child.wait().unwrap();
}

fn run_of(desk: &Desk) -> Value {
    let listed = desk.folder.run(&["runs", "list", "--json"]);
    assert_eq!(listed.stdout.lines().count(), 1, "{listed:?}");
    serde_json::from_str(&listed.stdout).unwrap()
}

fn outputs(ran: &Ran) -> Vec<Value> {
    let finished = ran.events_of("run_finished");
    finished
        .iter()
        .map(|event| event["output"].clone())
        .collect()
}

#[test]
fn a_run_whose_program_was_killed_goes_on_in_another_and_its_message_is_answered_once() {
    let desk = Desk::new([small_refund(), slow(), Reply::text("It is paid back.")]);
    killed_in_answer(&desk);
    let run = run_of(&desk);
    assert_eq!(
        (&run["run"], &run["status"]),
        (&"tuesday/m1".into(), &"running".into())
    );

    let resume = [
        "runs",
        "resume",
        "tuesday/m1",
        "team.toml",
        "--lease",
        "1s",
        "--json",
    ];
    let resumed = desk.program(&resume, "");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(outputs(&resumed), ["It is paid back."]);
    assert_eq!(resumed.events_of("retracted").len(), 1);
    // The tool was asked for once, and the answer that was cut off a second time.
    assert_eq!(desk.provider.requests().len(), 3);

    let again = desk.program(
        &[&["run", "team.toml", "Hi", "--key", "m1"][..], &DURABLE].concat(),
        "",
    );
    assert_eq!(outputs(&again), ["It is paid back."]);
    assert_eq!(desk.provider.requests().len(), 3);
    assert_eq!(run_of(&desk)["status"], "done");
    let late = desk.folder.run(&["runs", "cancel", "tuesday/m1"]);
    assert_eq!(late.code, Some(2), "{late:?}");
    assert!(late.stderr.contains("is done already"), "{late:?}");
}

#[test]
fn a_worker_goes_on_with_the_run_of_a_program_that_was_killed() {
    let desk = Desk::new([small_refund(), slow(), Reply::text("It is paid back.")]);
    killed_in_answer(&desk);
    let mut worker = desk.start(&["worker", "team.toml", "--lease", "1s"]);
    let mut line = String::new();
    let mut stdout = BufReader::new(worker.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "working\n");

    let attached = desk.folder.run(&["runs", "attach", "tuesday/m1", "--json"]);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    assert_eq!(outputs(&attached), ["It is paid back."]);
    let positions: Vec<u64> = attached
        .events()
        .iter()
        .map(|event| event["position"].as_u64().unwrap())
        .collect();
    assert!(positions.is_sorted_by(|one, next| one < next));
    // A reader that comes again gets what follows, and nothing twice.
    let half = positions[positions.len() / 2].to_string();
    let rest = desk
        .folder
        .run(&["runs", "attach", "tuesday/m1", "--json", "--after", &half]);
    let (all, rest) = (attached.events(), rest.events());
    assert_eq!(all[positions.len() / 2 + 1..], rest[..]);

    send_signal("-TERM", &worker);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
}

#[test]
fn a_run_that_waits_is_decided_or_cancelled_by_other_programs() {
    let desk = Desk::new([refund(), Reply::text("It is paid back."), refund()]);
    let args = [&["run", "team.toml", "Pay", "--key", "m1"][..], &DURABLE].concat();
    let waiting = desk.program(&args, "");
    assert_eq!(waiting.code, Some(5), "{waiting:?}");
    assert!(
        waiting
            .stderr
            .contains("switchboard runs resume tuesday/m1 team.toml"),
        "{waiting:?}"
    );
    let shown = desk.folder.run(&["runs", "show", "tuesday/m1"]);
    assert!(
        shown.stdout.contains("waits for     Desk: refund"),
        "{shown:?}"
    );
    let resume = [
        "runs",
        "resume",
        "tuesday/m1",
        "team.toml",
        "--approve",
        "all",
        "--quiet",
    ];
    let resumed = desk.program(&resume, "");
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "It is paid back.\n"),
        "{resumed:?}"
    );

    let args = [&["run", "team.toml", "Pay", "--key", "m2"][..], &DURABLE].concat();
    assert_eq!(desk.program(&args, "").code, Some(5));
    let cancelled = desk.folder.run(&["runs", "cancel", "tuesday/m2"]);
    assert_eq!(cancelled.stdout, "cancelled tuesday/m2\n");
    let shown = desk.folder.run(&["runs", "show", "tuesday/m2", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["status"], "cancelled");
    let missing = desk.folder.run(&["runs", "show", "tuesday/m3"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
}

#[test]
fn a_chat_with_durable_answers_goes_on_with_the_agent_that_has_the_conversation() {
    let desk = Desk::new([Reply::text("One."), Reply::text("Two.")]);
    let args = [
        "chat",
        "team.toml",
        "--session",
        "tuesday",
        "--durable",
        "--json",
    ];
    let chat = desk.program(&args, "First\nSecond\n");
    assert_eq!(outputs(&chat), ["One.", "Two."], "{chat:?}");
    let listed = desk.folder.run(&["runs", "list"]);
    assert_eq!(listed.stdout.matches("done").count(), 2, "{listed:?}");
}

#[test]
fn the_events_of_a_chat_with_a_durable_answer_that_takes_too_long_are_whole() {
    let desk = Desk::new([Reply::hang(), Reply::text("Two.")]);
    let args = [&["chat", "team.toml", "-t", "3"][..], &DURABLE].concat();
    let chat = desk.program(&args, "First\nSecond\n");
    assert_eq!(outputs(&chat), ["Two."], "{chat:?}");
    let stopped = chat.events_of("run_stopped");
    assert_eq!(stopped.len(), 1, "{chat:?}");
    assert_eq!(stopped[0]["turns"], 1, "{chat:?}");
    desk.folder.write("chat.jsonl", &chat.stdout);
    let replayed = desk.folder.run(&["replay", "chat.jsonl"]);
    let told = (replayed.code, &*replayed.stderr);
    assert_eq!(told, (Some(0), ""), "{replayed:?}");
}

#[test]
fn runs_are_deleted_once_they_have_ended_and_with_their_session() {
    let desk = Desk::new([Reply::text("Hello."), Reply::text("Hello again."), refund()]);
    for (session, key) in [("tuesday", "m1"), ("monday", "m2"), ("monday", "m3")] {
        let message = ["run", "team.toml", "Hi", "--durable", "--json"];
        let place = ["--session", session, "--key", key];
        desk.program(&[&message[..], &place].concat(), "");
    }
    let left = || {
        let listed = desk.folder.run(&["runs", "list", "--json"]);
        let runs = listed.stdout.lines().map(|line| {
            let run: Value = serde_json::from_str(line).unwrap();
            run["run"].as_str().unwrap().to_owned()
        });
        let mut runs: Vec<String> = runs.collect();
        runs.sort();
        runs
    };
    assert_eq!(left(), ["monday/m2", "monday/m3", "tuesday/m1"]);

    // One that waits is not deleted, and nothing beside it.
    let waiting = ["runs", "delete", "tuesday/m1", "monday/m3"];
    let refused = desk.folder.run(&waiting);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("has not ended"), "{refused:?}");
    let young = desk.folder.run(&["runs", "prune", "--older-than", "1h"]);
    assert_eq!(young.stdout, "deleted 0 runs\n", "{young:?}");
    assert_eq!(left().len(), 3);

    let deleted = desk.folder.run(&["sessions", "delete", "monday"]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert_eq!(left(), ["monday/m3", "tuesday/m1"]);
    let attached = desk.folder.run(&["runs", "attach", "monday/m2"]);
    assert_eq!(attached.code, Some(2), "{attached:?}");
    let pruned = desk
        .folder
        .run(&["runs", "prune", "--older-than", "0.001s"]);
    assert_eq!(pruned.stdout, "deleted 1 run\n", "{pruned:?}");
    assert_eq!(left(), ["monday/m3"]);
    let forced = desk.folder.run(&["runs", "delete", "monday/m3", "--force"]);
    assert_eq!(forced.stdout, "deleted monday/m3\n", "{forced:?}");
    assert_eq!(left(), [""; 0]);
}
