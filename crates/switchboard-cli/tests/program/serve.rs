//! `switchboard serve` and `switchboard key`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::Folder;

/// A server that is killed when the test ends.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .expect("no address")
            .to_owned();
        Self { child, address }
    }

    /// Sends a request, and returns the status and the body.
    fn request(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let address = &self.address;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Sends a signal to the process.
    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const QUESTION: &str =
    r#"{"model": "team", "messages": [{"role": "user", "content": "I was charged twice"}]}"#;

#[test]
fn a_team_file_is_served_and_the_server_ends_when_it_is_asked_to() {
    let folder = Folder::new();
    let mut served = Served::start(folder.command(&["serve", "team.toml", "--port", "0"]));
    let (status, body) = served.request("POST", "/v1/chat/completions", "none", QUESTION);
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with("A second charge is reversed."), "{text}");
    assert_eq!(answer["switchboard"]["agent"], "Billing");

    // The service and the other commands share the sessions of the data folder.
    let message = r#"{"input": "I was charged twice"}"#;
    let (status, _) = served.request(
        "POST",
        "/api/conversations/tuesday/messages",
        "none",
        message,
    );
    assert_eq!(status, 200);
    #[cfg(unix)]
    {
        served.signal("-TERM");
        assert_eq!(served.child.wait().unwrap().code(), Some(0));
        let ran = folder.run(&[
            "run",
            "team.toml",
            "Thank you",
            "--session",
            "tuesday",
            "--json",
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.events()[0]["agent"], "Billing");
    }
}

#[test]
#[cfg(unix)]
fn keys_are_made_asked_for_and_read_again() {
    let folder = Folder::new();
    let key = folder.run(&["key", "keys.toml", "--tenant", "acme"]);
    assert_eq!((key.code, key.stderr.as_str()), (Some(0), ""));
    let key = key.stdout.trim();
    let command = folder.command(&[
        "serve",
        "team.toml",
        "--port",
        "0",
        "--keys",
        "keys.toml",
        "--set",
        "log=off",
    ]);
    let served = Served::start(command);
    assert_eq!(served.request("GET", "/v1/models", "sb_x_y", "").0, 401);
    assert_eq!(served.request("GET", "/v1/models", key, "").0, 200);
    let other = folder.run(&["key", "keys.toml", "--tenant", "other"]);
    let other = other.stdout.trim();
    assert_eq!(served.request("GET", "/v1/models", other, "").0, 401);
    served.signal("-HUP");
    for _ in 0..600 {
        if served.request("GET", "/v1/models", other, "").0 == 200 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the keys were not read again");
}

#[test]
fn settings_come_from_a_file_the_environment_and_the_command_line() {
    let folder = Folder::new();
    folder.write(
        "serve.toml",
        "port = 1\nbody_bytes = 10\nlog = \"off\"\nstore = \"memory:\"\n",
    );
    let mut command = folder.command(&[
        "serve",
        "team.toml",
        "--config",
        "serve.toml",
        "--port",
        "0",
    ]);
    command.env("SWITCHBOARD_SERVE_BODY_BYTES", "20");
    let served = Served::start(command);
    let (status, body) = served.request("POST", "/v1/chat/completions", "none", QUESTION);
    assert_eq!(status, 413);
    assert!(body.contains("20 bytes"), "{body}");
}

#[test]
fn what_cannot_be_served_is_told() {
    let folder = Folder::new();
    folder.write("serve.toml", "prot = 1\n");
    folder.write("keys.toml", "[[keys]]\nid = 'x'\n");
    for (args, message) in [
        (&["--host", "0.0.0.0"] as &[&str], "needs keys"),
        (&["--config", "serve.toml"], "prot"),
        (&["--config", "none.toml"], "none.toml"),
        (&["--keys", "keys.toml"], "keys.toml"),
        (&["--set", "run=5"], "there is no setting \"run\""),
        (&["--set", "runs=many"], "runs"),
        (&["--set", "tls_key=key.pem"], "tls_certificate"),
        (&["--set", "log=loud"], "loud"),
        (&["team.toml"], "two teams"),
    ] {
        let args = [
            &["serve", "team.toml", "--port", "0", "--store", "memory:"],
            args,
        ]
        .concat();
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(message), "{args:?}: {told}");
    }
    let mut command = folder.command(&["serve", "team.toml", "--port", "0"]);
    let ran = command.env("SWITCHBOARD_SERVE_PROT", "1").output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
}

#[test]
fn a_key_that_cannot_be_stored_is_not_printed_and_has_advice() {
    let folder = Folder::new();
    let ran = folder.run(&["key", "missing/keys.toml", "--tenant", "acme"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    for text in [
        "error: the key cannot be added: missing/keys.toml: ",
        "  help: name a file",
    ] {
        assert!(ran.stderr.contains(text), "{ran:?}");
    }
}
