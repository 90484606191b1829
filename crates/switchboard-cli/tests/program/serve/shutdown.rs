//! The end of `switchboard serve` while an answer is streamed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Served;
use crate::support::Folder;

/// The longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time that runs have to end unless it is set.
const DRAIN_TIME: Duration = Duration::from_secs(25);

/// A model over Chat Completions that pauses in the middle of its only answer, until it is told to go on.
struct PausedModel {
    url: String,
    go_on: Sender<()>,
}

impl PausedModel {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (go_on, told) = channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&stream);
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            stream
                .write_all(chunk("The first half,", None).as_bytes())
                .unwrap();
            if told.recv().is_ok() {
                let rest = chunk(" and the second.", Some("stop")) + "data: [DONE]\n\n";
                stream.write_all(rest.as_bytes()).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            }
        });
        Self { url, go_on }
    }
}

/// Reads a request with its body.
fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line == "\r\n" {
            break;
        }
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

fn chunk(text: &str, finish: Option<&str>) -> String {
    let delta = json!({"role": "assistant", "content": text});
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "paused", "choices": choices});
    format!("data: {chunk}\n\n")
}

/// A server whose model has begun an answer, and the client that reads it.
struct Answering {
    folder: Folder,
    served: Served,
    model: PausedModel,
    client: BufReader<TcpStream>,
}

impl Answering {
    fn start(settings: &[&str]) -> Self {
        let folder = Folder::new();
        let model = PausedModel::start();
        let args = [
            "serve",
            "team.toml",
            "--port",
            "0",
            "-m",
            "chat/paused",
            "--base-url",
            &model.url,
        ];
        let mut command = folder.command(&[&args[..], settings].concat());
        command.env("OPENAI_API_KEY", "key");
        let served = Served::start(command);
        let mut client = TcpStream::connect(&served.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = r#"{"input": "Tell me both halves", "stream": true}"#;
        write!(
            client,
            "POST /api/conversations/tuesday/messages HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            served.address,
            body.len()
        )
        .unwrap();
        let mut client = BufReader::new(client);
        let mut line = String::new();
        while !line.contains("The first half,") {
            line.clear();
            assert_ne!(client.read_line(&mut line).unwrap(), 0, "no answer");
        }
        Self {
            folder,
            served,
            model,
            client,
        }
    }

    /// The rest of the answer, which has to be a whole one of HTTP.
    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.client.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("\r\n0\r\n\r\n"), "it is cut off: {rest}");
        rest
    }

    /// Waits until the server tells that it takes no more work.
    fn until_not_ready(&self) {
        let began = Instant::now();
        while self.served.request("GET", "/health/ready", "", "").0 != 503 {
            assert!(began.elapsed() < PATIENCE, "it stays ready");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn until_exit(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.served.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The stored conversation, an entry a line.
    fn stored(&self) -> String {
        let shown = self.folder.run(&["sessions", "show", "tuesday", "--json"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        shown.stdout
    }
}

#[test]
fn an_answer_that_is_streamed_when_the_server_is_asked_to_end_comes_whole_and_is_stored() {
    let mut answering = Answering::start(&[]);
    answering.served.signal("-TERM");
    answering.until_not_ready();
    let body = r#"{"input": "One more"}"#;
    let path = "/api/conversations/wednesday/messages";
    let (status, refused) = answering.served.request("POST", path, "", body);
    assert_eq!(status, 503, "{refused}");
    let (status, _) = answering.served.request("GET", "/health/live", "", "");
    assert_eq!(status, 200);
    assert!(
        answering.served.child.try_wait().unwrap().is_none(),
        "it has not waited"
    );

    answering.model.go_on.send(()).unwrap();
    let rest = answering.rest();
    assert!(rest.contains("event: run_finished"), "{rest}");
    assert_eq!(answering.until_exit().code(), Some(0));
    TcpStream::connect(&answering.served.address).unwrap_err();
    let stored = answering.stored();
    let lines: Vec<&str> = stored.lines().collect();
    assert_eq!(lines.len(), 2, "{stored}");
    assert!(lines[0].contains("Tell me both halves"), "{stored}");
    assert!(
        lines[1].contains("The first half, and the second."),
        "{stored}"
    );
}

#[test]
fn an_answer_that_does_not_end_is_stopped_once_the_time_is_over() {
    let mut answering = Answering::start(&["--set", "drain_seconds=1"]);
    let began = Instant::now();
    answering.served.signal("-TERM");
    answering.until_not_ready();
    // Another signal does not cut the others off.
    answering.served.signal("-TERM");
    let rest = answering.rest();
    assert!(rest.contains("event: run_stopped"), "{rest}");
    assert_eq!(answering.until_exit().code(), Some(0));
    assert!(began.elapsed() < DRAIN_TIME, "{:?}", began.elapsed());
    let stored = answering.stored();
    assert!(stored.contains("Tell me both halves"), "{stored}");
}
