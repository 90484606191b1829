//! Workers that are asked to end while a tool runs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fake_provider::Reply;
use serde_json::Value;

use crate::approvals::Desk;
use crate::durable::{send_signal, slow};
#[cfg(any(feature = "restate", feature = "dbos"))]
use crate::support::Folder;
use crate::support::Ran;

/// The time that a test may take at most.
const LONG: Duration = Duration::from_secs(60);

/// An engine, and its options.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    pub(crate) store: Vec<String>,
    pub(crate) run: Vec<String>,
    pub(crate) worker: Vec<String>,
    /// Set if programs that send messages execute runs themselves.
    pub(crate) is_embedded: bool,
}

fn embedded() -> Engine {
    Engine {
        name: "embedded",
        store: Vec::new(),
        run: vec!["--lease".to_owned(), "1s".to_owned()],
        worker: Vec::new(),
        is_embedded: true,
    }
}

fn args<'a>(first: &[&'a str], more: &[&'a [String]]) -> Vec<&'a str> {
    let more = more.iter().flat_map(|more| more.iter().map(String::as_str));
    first.iter().copied().chain(more).collect()
}

fn until(what: &str, mut is_reached: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_reached() {
        assert!(begun.elapsed() < LONG, "{what}");
        sleep(Duration::from_millis(10));
    }
}

/// A desk whose tool takes this number of seconds, and says when it begins and ends.
fn desk(seconds: u32, replies: impl IntoIterator<Item = Reply>) -> Desk {
    let desk = Desk::new(replies);
    let script =
        format!("echo begun >> effects; sleep {seconds}; echo ended >> effects; echo it is paid");
    let team = format!(
        r#"
start = "Desk"
[commands]
allow = ["sh"]
[agents.Desk]
tools = ["pay"]
[tools.pay]
description = "Pays."
command.run = ["sh", "-c", "{script}"]
timeout_seconds = 60
"#
    );
    desk.folder.write("team.toml", &team);
    desk.folder.write("effects", "");
    desk
}

/// A worker. Dropping it kills it.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Worker {
    /// Waits until the worker has ended.
    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the worker ends", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

fn worker(desk: &Desk, engine: &Engine) -> Worker {
    let args = args(
        &["worker", "team.toml"],
        &[&engine.run, &engine.worker, &engine.store],
    );
    let mut worker = desk.start(&args);
    let mut line = String::new();
    let mut stdout = BufReader::new(worker.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "working\n");
    Worker(worker)
}

/// Sends a message, which no worker has taken yet, and whose program has ended if it would execute the run itself.
fn send(desk: &Desk, engine: &Engine, session: &str) -> Option<Child> {
    let message = [
        "run",
        "team.toml",
        "Pay",
        "--key",
        "m1",
        "--session",
        session,
    ];
    let args = args(
        &[&message[..], &["--durable", "--quiet"]].concat(),
        &[&engine.run, &engine.store],
    );
    let mut child = desk.start(&args);
    if !engine.is_embedded {
        return Some(child);
    }
    until("the program asks", || desk.provider.requests().len() == 1);
    send_signal("-9", &child);
    child.wait().unwrap();
    None
}

pub(crate) fn a_tool_ends_and_another_worker_goes_on(engine: &Engine) {
    let session = format!("ended-{}-{}", engine.name, std::process::id());
    let lost = engine.is_embedded.then(slow);
    let replies = [Reply::call("c1", "pay", "{}"), Reply::text("Done.")];
    let desk = desk(2, lost.into_iter().chain(replies));
    let sender = send(&desk, engine, &session);
    let mut first = worker(&desk, engine);
    until("the tool begins", || {
        desk.folder.read("effects") == "begun\n"
    });
    send_signal("-TERM", &first.0);
    let status = first.ended();
    assert_eq!(status.code(), Some(0));
    assert_eq!(desk.folder.read("effects"), "begun\nended\n");
    let run = format!("{session}/m1");
    let shown = shown(&desk, engine, &run);
    assert!(shown["output"].is_null(), "{shown}");

    // It does not wait for the lease of the first.
    let begun = Instant::now();
    let mut second = worker(&desk, engine);
    let attach = args(&["runs", "attach", &run, "--quiet"], &[&engine.store]);
    let attached = desk.folder.run(&attach);
    assert_eq!(
        (attached.code, attached.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{attached:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(desk.folder.read("effects"), "begun\nended\n");
    let requests = desk.provider.requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("it is paid"), "{last}");
    if let Some(sender) = sender {
        assert_eq!(Ran::of(sender).stdout, "Done.\n");
    }
    send_signal("-TERM", &second.0);
    assert_eq!(second.ended().code(), Some(0));
}

/// The state of a run; null if it is not stored yet.
fn shown(desk: &Desk, engine: &Engine, run: &str) -> Value {
    let show = args(&["runs", "show", run, "--json"], &[&engine.store]);
    serde_json::from_str(&desk.folder.run(&show).stdout).unwrap_or_default()
}

pub(crate) fn a_run_that_a_worker_took_to_its_approval_is_decided_or_cancelled(engine: &Engine) {
    let session = format!("approved-{}-{}", engine.name, std::process::id());
    let refund = || Reply::call("c1", "refund", r#"{"order":"A-1","amount":500}"#);
    let lost = engine.is_embedded.then(slow);
    let replies = [refund(), Reply::text("It is paid back."), refund()];
    let desk = Desk::new(lost.into_iter().chain(replies));
    let sender = send(&desk, engine, &session);
    let _worker = worker(&desk, engine);
    let run = format!("{session}/m1");
    until("the run waits", || {
        shown(&desk, engine, &run)["status"] == "waiting"
    });
    if let Some(sender) = sender {
        let sent = Ran::of(sender);
        assert_eq!(sent.code, Some(5), "{sent:?}");
        let help = format!("switchboard runs resume {run} team.toml");
        assert!(sent.stderr.contains(&help), "{sent:?}");
    }
    let resume = ["runs", "resume", &run, "team.toml", "--approve", "all"];
    let resume = args(
        &[&resume[..], &["--quiet"]].concat(),
        &[&engine.run, &engine.store],
    );
    let resumed = desk.program(&resume, "");
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "It is paid back.\n"),
        "{resumed:?}"
    );

    let again = ["run", "team.toml", "Pay", "--key", "m2", "--durable"];
    let again = args(
        &[&again[..], &["--session", &session]].concat(),
        &[&engine.run, &engine.store],
    );
    assert_eq!(desk.program(&again, "").code, Some(5));
    let run = format!("{session}/m2");
    let cancel = args(&["runs", "cancel", &run], &[&engine.store]);
    assert_eq!(desk.folder.run(&cancel).code, Some(0));
    until("the run is cancelled", || {
        shown(&desk, engine, &run)["status"] == "cancelled"
    });
}

#[test]
fn a_run_that_a_worker_took_to_its_approval_is_decided_or_cancelled_by_the_program() {
    a_run_that_a_worker_took_to_its_approval_is_decided_or_cancelled(&embedded());
}

#[test]
fn a_worker_that_is_asked_to_end_lets_its_tool_end_and_another_goes_on() {
    a_tool_ends_and_another_worker_goes_on(&embedded());
}

#[test]
fn a_worker_that_is_asked_to_end_twice_ends_at_once() {
    let desk = desk(50, [slow(), Reply::call("c1", "pay", "{}")]);
    let engine = embedded();
    send(&desk, &engine, "tuesday");
    let mut worker = worker(&desk, &engine);
    until("the tool begins", || {
        desk.folder.read("effects") == "begun\n"
    });
    send_signal("-TERM", &worker.0);
    sleep(Duration::from_millis(300));
    assert_eq!(worker.0.try_wait().unwrap(), None);
    send_signal("-TERM", &worker.0);
    assert_eq!(worker.ended().code(), Some(143));
    assert_eq!(desk.folder.read("effects"), "begun\n");
}

#[test]
fn a_run_that_a_worker_has_is_asked_to_end_and_is_cancelled_there() {
    let desk = desk(50, [slow(), Reply::call("c1", "pay", "{}")]);
    let engine = embedded();
    send(&desk, &engine, "tuesday");
    let mut worker = worker(&desk, &engine);
    until("the tool begins", || {
        desk.folder.read("effects") == "begun\n"
    });
    let cancelled = desk.folder.run(&["runs", "cancel", "tuesday/m1"]);
    assert_eq!(
        cancelled.stdout, "asked to end tuesday/m1\n",
        "{cancelled:?}"
    );
    until("the run ends", || {
        let shown = desk.folder.run(&["runs", "show", "tuesday/m1", "--json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        shown["status"] == "cancelled"
    });
    send_signal("-TERM", &worker.0);
    assert_eq!(worker.ended().code(), Some(0));
}

/// Runs a worker that fails, and checks that it says why and what to do.
#[cfg(any(feature = "restate", feature = "dbos"))]
fn fails_with(options: &[&str], reason: &str, help: &str) {
    let folder = Folder::new();
    let ran = folder.run(&[&["worker", "team.toml"], options].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let (log, error) = told.split_once(" error: ").expect(&told);
    assert!(log.contains(reason), "{log}");
    let stopped = "the worker executes no runs: its engine could not start, or has stopped";
    assert!(error.starts_with(stopped), "{error}");
    assert!(error.contains(help), "{error}");
}

#[cfg(feature = "restate")]
#[test]
fn a_worker_whose_address_is_taken_fails_and_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fails_with(
        &["--engine", "restate", "--listen", &address],
        &format!("this process cannot listen at {address}: "),
        "--listen names another address",
    );
}

#[cfg(feature = "dbos")]
#[test]
fn a_worker_whose_database_does_not_answer_fails_and_says_what_to_do() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Connections end at once, without the answer of a database.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    fails_with(
        &[
            "--engine",
            "dbos",
            "--dbos",
            &format!("postgres://{address}/runs"),
        ],
        "the processes that execute runs cannot be looked after: ",
        "check that the PostgreSQL server runs and that the address of the database is right",
    );
}

/// Refuses a request to the admin address of a Restate server. Returns its first line.
#[cfg(feature = "restate")]
fn refuse(admin: &std::net::TcpListener) -> String {
    use std::io::{Read as _, Write as _};

    let mut accepted = None;
    until("the worker asks", || {
        accepted = admin.accept().ok();
        accepted.is_some()
    });
    let (stream, _) = accepted.unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut request = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(request.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.unwrap().1.parse().unwrap();
    request.read_exact(&mut vec![0; length]).unwrap();
    let refusal = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    request.get_mut().write_all(refusal.as_bytes()).unwrap();
    head.lines().next().unwrap().to_owned()
}

#[cfg(feature = "restate")]
#[test]
fn a_worker_asks_a_restate_server_that_refuses_it_again_until_it_is_asked_to_end() {
    let admin = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    admin.set_nonblocking(true).unwrap();
    let url = format!("http://{}", admin.local_addr().unwrap());
    let folder = Folder::new();
    let args = ["worker", "team.toml", "--engine", "restate"];
    let addresses = ["--restate-admin", &url, "--listen", "127.0.0.1:0"];
    let command = folder.command(&[&args[..], &addresses].concat()).spawn();
    let mut worker = Worker(command.unwrap());
    for _ in 0..2 {
        assert_eq!(refuse(&admin), "POST /deployments HTTP/1.1");
    }
    send_signal("-TERM", &worker.0);
    assert_eq!(worker.ended().code(), Some(0));
}
