//! `switchboard serve` and `switchboard key`.

#[cfg(unix)]
mod shutdown;

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
fn what_a_server_keeps_beside_conversations_is_no_session() {
    let folder = Folder::new();
    let served = Served::start(folder.command(&["serve", "team.toml", "--port", "0"]));
    let body = r#"{"model": "team", "input": "I was charged twice", "conversation": "tuesday"}"#;
    let (status, answer) = served.request("POST", "/v1/responses", "none", body);
    assert_eq!(status, 200, "{answer}");
    drop(served);
    let listed = folder.run(&["sessions", "list"]).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.starts_with("tuesday "), "{listed}");
    // The response has the words as well.
    for limit in ["1", "50"] {
        let found = folder.run(&["sessions", "search", "reversed", "--json", "-n", limit]);
        assert_eq!(found.stdout.lines().count(), 1, "{found:?}");
        assert!(!found.stdout.contains("~response"), "{found:?}");
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
#[cfg(unix)]
fn the_log_has_request_ids_and_no_content_unless_it_is_asked_for() {
    const SECRET: &str = "I was charged twice for the green umbrella";
    let folder = Folder::new();
    for (log_content, has_content) in [("false", false), ("true", true)] {
        let setting = format!("log_content={log_content}");
        let mut command = folder.command(&[
            "serve",
            "team.toml",
            "--port",
            "0",
            "--store",
            "memory:",
            "--set",
            "log=json",
            "--set",
            &setting,
        ]);
        let path = folder.path("serve.log");
        let log = std::fs::File::create(&path).unwrap();
        let mut child = command.stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap();
        let mut served = Served {
            child,
            address: address.to_owned(),
        };
        let body = format!(r#"{{"input": "{SECRET}"}}"#);
        let key = "none\r\nX-Request-Id: request-of-the-client";
        let path_of_messages = "/api/conversations/umbrella-talk/messages";
        let (status, run) = served.request("POST", path_of_messages, key, &body);
        assert_eq!(status, 200, "{run}");
        let run: Value = serde_json::from_str(&run).unwrap();
        served.signal("-TERM");
        served.child.wait().unwrap();
        let log = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let find = |message: &str| {
            let line = lines
                .iter()
                .find(|line| line["fields"]["message"] == message);
            &line.unwrap_or_else(|| panic!("{message}: {log}"))["fields"]
        };
        let (begun, answered) = (find("a run begins"), find("a request was answered"));
        assert_eq!(begun["request"], "request-of-the-client");
        assert_eq!(begun["run"], run["id"]);
        assert_eq!(answered["request"], "request-of-the-client");
        assert_eq!(
            (&answered["method"], &answered["status"]),
            (&"POST".into(), &200.into())
        );
        assert_eq!(find("a run has ended")["run"], run["id"]);
        assert_eq!(log.contains("umbrella"), has_content, "{log}");
        // Neither the words of the team.
        assert_eq!(log.contains("A second charge"), has_content, "{log}");
    }
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
        (&["--set", "speech=loud"], "loud"),
        (
            &["--set", "speech=realtime"],
            "no key for the realtime model",
        ),
        (&["--set", "speech=provider"], "no key for speech"),
        (&["--set", "voices=="], "voices"),
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
fn what_cannot_be_served_has_advice() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (args, message, help) in [
        (
            &["--port", &*port] as &[&str],
            format!("127.0.0.1:{port}: another program listens there"),
            "choose another --port",
        ),
        (
            &["--host", "0.0.0.0", "--port", "0"],
            "0.0.0.0:0: an address that others can reach needs keys".to_owned(),
            "`switchboard key keys.toml --tenant NAME` makes one",
        ),
        (
            &["--keys", "none.toml"],
            "none.toml: No such file".to_owned(),
            "`switchboard key keys.toml --tenant NAME` makes one",
        ),
        (
            &["--set", "runs=many"],
            "the setting runs cannot be \"many\": it is a whole number".to_owned(),
            "",
        ),
        (
            &["--store", "sqlit:x.db"],
            "the store cannot be used".to_owned(),
            "--store names another store",
        ),
        (
            &["team.toml"],
            "two teams are named \"team\"; a team file names its team with `name`".to_owned(),
            "",
        ),
    ] {
        let ran = folder.run(&[&["serve", "team.toml"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(&message) && told.contains(help), "{told}");
        assert!(!told.contains("--session"), "{told}");
    }
}

#[test]
fn the_name_of_a_tenant_is_checked() {
    let folder = Folder::new();
    let ran = folder.run(&["key", "keys.toml", "--tenant", "a b"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("\"a b\" is no name of a tenant"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("help: name the tenant"), "{ran:?}");
    assert!(!folder.path("keys.toml").exists());
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

/// A browser's side of a session: a ticket, and the WebSocket that it admits to.
async fn open_session(
    served: &Served,
) -> tokio_tungstenite::WebSocketStream<tokio::net::TcpStream> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

    let path = "/api/teams/team/realtime";
    let (status, body) = served.request("POST", &format!("{path}/tickets"), "", "{}");
    assert_eq!(status, 201, "{body}");
    let ticket: Value = serde_json::from_str(&body).unwrap();
    let ticket = ticket["ticket"].as_str().unwrap();
    let url = format!("ws://{}{path}", served.address);
    let mut request = url.into_client_request().unwrap();
    let protocols = format!("switchboard.realtime.v1, ticket.{ticket}");
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", protocols.parse().unwrap());
    let stream = tokio::net::TcpStream::connect(&served.address)
        .await
        .unwrap();
    let opened = tokio_tungstenite::client_async(request, stream).await;
    opened.unwrap().0
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs flite, and SWITCHBOARD_PYTHON: a Python with pocketsphinx; ./test installs both"]
async fn a_browser_is_spoken_with_offline_over_a_websocket() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use switchboard_realtime::voice::{Audio, Flite, SpeechRequest, TextToSpeech as _};
    use tokio_tungstenite::tungstenite::Message;

    let folder = Folder::new();
    let args = [
        "serve",
        "team.toml",
        "--port",
        "0",
        "--store",
        "memory:",
        "--model",
        "offline",
        "--set",
        "speech=offline",
        "--set",
        "log=off",
    ];
    let mut command = folder.command(&args);
    command.env(
        "SWITCHBOARD_PYTHON",
        std::env::var_os("SWITCHBOARD_PYTHON").unwrap(),
    );
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdout(Stdio::piped());
    let served = Served::start(command);
    let mut socket = open_session(&served).await;

    let request = SpeechRequest::new("i was charged twice this month", "caller");
    let flite = Flite::from_env();
    let spoken = std::pin::pin!(flite.speak(request))
        .next()
        .await
        .unwrap()
        .unwrap();
    let pause = vec![0; spoken.rate() as usize];
    let speech = [&*pause, spoken.samples(), &*pause].concat();
    let speech = Audio::new(spoken.rate(), speech).resampled(24_000).unwrap();
    for piece in speech.to_pcm().chunks(9_600) {
        let piece = Message::Binary(piece.to_vec().into());
        socket.send(piece).await.unwrap();
    }
    let (mut frames, mut audio) = (Vec::new(), 0);
    loop {
        let message = tokio::time::timeout(std::time::Duration::from_secs(120), socket.next());
        match message.await.unwrap().unwrap().unwrap() {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                let is_last = frame["type"] == "answer_ended";
                frames.push(frame);
                if is_last {
                    break;
                }
            }
            Message::Binary(bytes) => audio += bytes.len(),
            _ => {}
        }
    }
    let said = |role: &str| {
        let found = frames
            .iter()
            .find(|frame| frame["type"] == "message" && frame["role"] == role);
        found.unwrap_or_else(|| panic!("{frames:#?}"))["text"].to_string()
    };
    assert!(said("user").contains("charged"), "{}", said("user"));
    let handoff = frames.iter().find(|frame| frame["type"] == "handoff");
    assert_eq!(handoff.unwrap()["to"], "Billing", "{frames:#?}");
    assert!(!said("assistant").is_empty());
    // More than a second of 24,000 samples of two bytes.
    assert!(audio > 48_000, "{audio} bytes");
}

#[test]
fn the_studio_prints_an_address_whose_token_opens_the_api_and_nothing_else_does() {
    let folder = Folder::new();
    let mut command = folder.command(&["studio", "team.toml", "--no-open", "--store", "memory:"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (address, token) = line.trim().split_once("/#token=").unwrap();
    let address = address.strip_prefix("http://").unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let served = Served { child, address };
    let (status, page) = served.request("GET", "/", "none", "");
    assert_eq!(status, 200);
    assert!(page.contains("/assets/studio.js"), "{page}");
    assert!(!page.contains(token));
    assert_eq!(served.request("GET", "/api/teams", "none", "").0, 401);
    let body = r#"{"input": "I was charged twice"}"#;
    let path = "/api/conversations/c/messages";
    let (status, run) = served.request("POST", path, token, body);
    assert_eq!(status, 200, "{run}");
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["agent"], "Billing");
    let path = format!("/api/runs/{}/recording", run["id"].as_str().unwrap());
    let (status, recording) = served.request("GET", &path, token, "");
    assert_eq!(status, 200);
    assert!(recording.contains("Triage → Billing"), "{recording}");
    let (_, file) = served.request("GET", "/api/teams/team/file", token, "");
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["editable"], true);
}

#[test]
fn the_studio_without_a_team_file_has_the_team_of_the_demo() {
    let folder = Folder::new();
    let mut command = folder.command(&["studio", "--no-open"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (address, token) = line.trim().split_once("/#token=").unwrap();
    let address = address.strip_prefix("http://").unwrap().to_owned();
    let served = Served { child, address };
    let (_, teams) = served.request("GET", "/api/teams", token, "");
    let teams: Value = serde_json::from_str(&teams).unwrap();
    assert_eq!(teams["teams"][0]["agents"][0]["name"], "Triage");
    let name = teams["teams"][0]["name"].as_str().unwrap();
    let (_, file) = served.request("GET", &format!("/api/teams/{name}/file"), token, "");
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["editable"], false);
}

#[cfg(unix)]
#[test]
fn a_signal_makes_a_server_read_its_teams_again() {
    let folder = Folder::new();
    let served = Served::start(folder.command(&["serve", "team.toml", "--port", "0"]));
    let text = folder.read("team.toml");
    let changed = text.replace("A second charge is reversed.", "It was an error of ours.");
    assert_ne!(changed, text);
    folder.write("team.toml", &changed);
    served.signal("-HUP");
    let is_read = || {
        let (_, body) = served.request("POST", "/v1/chat/completions", "none", QUESTION);
        body.contains("It was an error of ours.")
    };
    for _ in 0..200 {
        if is_read() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the team was not read again");
}

#[cfg(unix)]
#[test]
fn the_browser_is_given_a_file_for_this_user_alone_and_not_the_token() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new();
    std::fs::create_dir(folder.path("bin")).unwrap();
    folder.write(
        "bin/xdg-open",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$OPENED.part\"; mv \"$OPENED.part\" \"$OPENED\"\n",
    );
    let script = folder.path("bin/xdg-open");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&script, folder.path("bin/open")).unwrap();
    let opened = folder.path("opened.txt");
    let mut command = folder.command(&["studio", "team.toml", "--store", "memory:"]);
    command.env(
        "PATH",
        format!("{}:/usr/bin:/bin", folder.path("bin").display()),
    );
    command
        .env("OPENED", &opened)
        .env("TMPDIR", folder.path(""));
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.trim().to_owned();
    let (host, token) = address.split_once("/#token=").unwrap();
    let address_of_server = host.strip_prefix("http://").unwrap().to_owned();
    let mut served = Served {
        child,
        address: address_of_server,
    };
    for _ in 0..200 {
        if opened.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let arguments = std::fs::read_to_string(&opened).unwrap();
    assert!(!arguments.contains(token), "{arguments}");
    let file = std::path::Path::new(arguments.trim());
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains(&format!("url={address}\"")), "{page}");
    // Nothing is left when the studio ends.
    served.signal("-TERM");
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    assert!(!file.parent().unwrap().exists());
}

#[cfg(unix)]
#[test]
fn a_signal_makes_a_server_read_the_prices_of_its_teams_again() {
    let folder = Folder::new();
    let text = folder.read("team.toml");
    let with_price =
        |input: u32| format!("{text}\n[prices]\noffline = {{ input = {input}.0, output = 0.0 }}\n");
    folder.write("team.toml", &with_price(1));
    let served = Served::start(folder.command(&[
        "serve",
        "team.toml",
        "--port",
        "0",
        "--store",
        "memory:",
        "--set",
        "record=true",
    ]));
    let cost = || {
        let body = r#"{"input": "I was charged twice"}"#;
        let (status, run) = served.request("POST", "/api/conversations/c/messages", "", body);
        assert_eq!(status, 200, "{run}");
        let run: Value = serde_json::from_str(&run).unwrap();
        let path = format!("/api/runs/{}/recording", run["id"].as_str().unwrap());
        let (_, recording) = served.request("GET", &path, "", "");
        let recording: Value = serde_json::from_str(&recording).unwrap();
        let cost = recording["recording"]["cost"].as_f64().unwrap();
        let (_, deleted) = served.request("DELETE", "/api/conversations/c", "", "");
        assert!(!deleted.contains("error"), "{deleted}");
        cost
    };
    let first = cost();
    assert!(first > 0.0);
    folder.write("team.toml", &with_price(1000));
    served.signal("-HUP");
    for _ in 0..200 {
        if (cost() / first - 1000.0).abs() < 1.0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the prices were not read again: {first}, {}", cost());
}
