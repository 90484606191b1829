//! Promises that hold for a whole conversation, shown by the requests that the provider received, by
//! the bytes of the database, and by the output of the program.

use std::process::Command;

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};

use crate::support::{Folder, Ran};

const TEAM: &str = r#"
start = "Triage"

[agents.Triage]
handoffs = [{ to = "Billing", filters = ["redact_pii"] }]
input_guardrails = ["no_secrets"]

[agents.Billing]
description = "Bills."

[guardrails.no_secrets]
patterns = ['(?i)\bmy password is\b']
message = "Please never send us a password."
"#;

/// A team, a provider, and one session.
pub(crate) struct Desk {
    pub(crate) folder: Folder,
    provider: FakeProvider,
}

impl Desk {
    pub(crate) fn new(team: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        let desk = Self {
            folder: Folder::new(),
            provider: FakeProvider::on_thread().unwrap(),
        };
        desk.folder.write("team.toml", team);
        desk.provider.script("key", replies);
        desk
    }

    /// Sends a message in a process of its own.
    pub(crate) fn send(&self, message: &str, more: &[&str]) -> Ran {
        Ran::of(self.command(message, more).spawn().unwrap())
    }

    /// The command that sends a message.
    pub(crate) fn command(&self, message: &str, more: &[&str]) -> Command {
        let url = self.provider.url();
        let mut args = vec!["run", "team.toml", message, "--session", "tuesday"];
        args.extend(["--model", "openai/m", "--base-url", &url]);
        args.extend(more);
        let mut command = self.folder.command(&args);
        command.env("OPENAI_API_KEY", "key");
        command
    }

    /// The bodies of the requests that the provider received.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.provider.assert_valid();
        let requests = self.provider.requests();
        requests
            .iter()
            .map(|request| request.body.clone())
            .collect()
    }

    /// The bytes of the database, with the files beside it.
    pub(crate) fn stored(&self) -> String {
        let files = ["data/sessions.db", "data/sessions.db-wal"];
        let bytes = files.map(|name| std::fs::read(self.folder.path(name)).unwrap_or_default());
        String::from_utf8_lossy(&bytes.concat()).into_owned()
    }
}

/// The texts of the messages of a user in a request.
pub(crate) fn words(request: &Value) -> Vec<String> {
    let items = request["input"].as_array().unwrap().iter();
    let of_user = items.filter(|item| item["role"] == "user");
    of_user.map(|item| item["content"].to_string()).collect()
}

fn transfer() -> Reply {
    Reply::call("c1", "transfer_to_billing", "{}")
}

#[test]
fn what_was_redacted_for_an_agent_stays_redacted() {
    let replies = [
        transfer(),
        Reply::text("Which bill?"),
        Reply::text("It is paid."),
    ];
    let desk = Desk::new(TEAM, replies);
    let first = desk.send("My card is 4111 1111 1111 1111", &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let second = desk.send("The one of May", &["--json"]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(second.events()[0]["agent"], "Billing");
    let requests = desk.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].to_string().contains("4111"));
    for request in &requests[1..] {
        assert!(!request.to_string().contains("4111"), "{request}");
    }
    assert_eq!(
        words(&requests[2]),
        [r#""My card is [CARD]""#, r#""The one of May""#]
    );
    // The record has what was said.
    assert!(desk.stored().contains("4111 1111 1111 1111"));
}

#[test]
fn a_note_for_an_agent_stays_while_it_has_the_conversation() {
    let team = r#"
        [agents.Triage]
        handoffs = [{ to = "Billing", filters = ["redact_pii", { note = "Never promise a date." }] }]
        [agents.Billing]
    "#;
    let replies = [
        transfer(),
        Reply::text("Which bill?"),
        Reply::text("It is paid."),
    ];
    let desk = Desk::new(team, replies);
    for message in ["My card is 4111 1111 1111 1111", "The one of May"] {
        assert_eq!(desk.send(message, &[]).code, Some(0));
    }
    let requests = desk.requests();
    for request in &requests[1..] {
        let request = request.to_string();
        assert_eq!(request.matches("Never promise a date.").count(), 1);
        assert!(!request.contains("4111"), "{request}");
    }
}

#[test]
fn the_promises_hold_in_a_chat_without_a_session_too() {
    let replies = [
        transfer(),
        Reply::text("Which bill?"),
        Reply::status(400, json!({"error": {"message": "no"}})),
        Reply::text("It is paid."),
    ];
    let desk = Desk::new(TEAM, replies);
    let url = desk.provider.url();
    let args = [
        "chat",
        "team.toml",
        "--model",
        "openai/m",
        "--base-url",
        &url,
    ];
    let mut command = desk.folder.command(&args);
    command.stdin(std::process::Stdio::piped());
    let mut child = command.env("OPENAI_API_KEY", "key").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines =
        "My card is 4111 1111 1111 1111\nmy password is hunter2\nThe one of May\nThe one of May\n";
    std::io::Write::write_all(&mut stdin, lines.as_bytes()).unwrap();
    drop(stdin);
    let ran = Ran::of(child);
    assert!(ran.stdout.contains("Billing  It is paid."), "{ran:?}");
    assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
    let requests = desk.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(
        words(&requests[3]),
        [r#""My card is [CARD]""#, r#""The one of May""#]
    );
}

#[test]
fn a_refused_message_is_neither_sent_later_nor_stored() {
    let desk = Desk::new(TEAM, [Reply::text("Hello!")]);
    let refused = desk.send("my password is hunter2", &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let ran = desk.send("Hi", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = desk.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(words(&requests[0]), [r#""Hi""#]);
    let stored = desk.stored();
    assert!(stored.contains("no_secrets"), "the mark");
    assert!(!stored.contains("hunter2"), "the words");
}

#[test]
fn a_message_is_shown_once_guardrails_have_passed_it() {
    let desk = Desk::new(TEAM, [Reply::text("Hello!")]);
    let ran = desk.send("Hi", &[]);
    assert!(ran.stdout.starts_with("You      Hi\n"), "{ran:?}");
    let ran = desk.send("my password is hunter2", &[]);
    assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
}

#[test]
fn the_guardrail_of_the_first_agent_guards_later_messages_too() {
    let desk = Desk::new(TEAM, [transfer(), Reply::text("Which bill?")]);
    assert_eq!(desk.send("My bill", &[]).code, Some(0));
    assert_eq!(desk.send("my password is hunter2", &[]).code, Some(3));
    assert_eq!(desk.requests().len(), 2);
}

#[test]
fn an_output_that_a_guardrail_stops_or_replaces_is_never_shown() {
    for (then, code) in [("stop", 3), ("redact", 0)] {
        let team = format!(
            "[agents.Desk]\noutput_guardrails = [\"names\"]\n[guardrails.names]\ndeny = \
             [\"Falcon\"]\nthen = \"{then}\"\n"
        );
        for more in [&[][..], &["--json"]] {
            let desk = Desk::new(&team, [Reply::text("The codename is Falcon.").pieces(4)]);
            let ran = desk.send("What is the codename?", more);
            assert_eq!(ran.code, Some(code), "{ran:?}");
            for output in [&ran.stdout, &ran.stderr, &desk.stored()] {
                assert!(!output.contains("Falcon"), "{then} {more:?}: {output}");
            }
            assert_eq!(ran.stdout.contains("[removed]"), code == 0, "{ran:?}");
        }
    }
}

#[test]
fn a_message_that_failed_at_the_provider_is_sent_once_when_it_is_tried_again() {
    let down = || Reply::status(400, json!({"error": {"message": "no"}}));
    let desk = Desk::new(TEAM, [down(), down(), Reply::text("Hello!")]);
    assert_eq!(desk.send("Hi", &[]).code, Some(4));
    assert_eq!(desk.send("Hi", &[]).code, Some(4));
    assert_eq!(desk.send("Hi", &[]).code, Some(0));
    let sent: Vec<usize> = desk
        .requests()
        .iter()
        .map(|request| words(request).len())
        .collect();
    assert_eq!(sent, [1, 1, 1]);
}

#[test]
fn a_run_that_fails_after_a_handoff_leaves_the_conversation_with_the_new_agent() {
    let down = Reply::status(400, json!({"error": {"message": "no"}}));
    let desk = Desk::new(TEAM, [transfer(), down, Reply::text("Which bill?")]);
    assert_eq!(desk.send("My bill", &[]).code, Some(4));
    let ran = desk.send("Hello?", &["--json"]);
    assert_eq!(ran.events()[0]["agent"], "Billing");
    assert_eq!(words(&desk.requests()[2]), [r#""My bill""#, r#""Hello?""#]);
}

#[test]
fn a_session_of_another_team_is_refused_unless_it_is_forced() {
    let desk = Desk::new(TEAM, [Reply::text("Hello!"), Reply::text("Welcome!")]);
    assert_eq!(desk.send("Hi", &[]).code, Some(0));
    desk.folder.write("team.toml", "[agents.Hotel]\n");
    let refused = desk.send("Hi", &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told = refused.stderr.replace('\n', " ") + &refused.stdout;
    assert!(told.contains("the team of Billing, Triage"), "{refused:?}");
    assert!(told.contains("--force"), "{refused:?}");
    assert_eq!(desk.requests().len(), 1);
    let ran = desk.send("Hi", &["--force", "--json"]);
    assert_eq!(ran.events()[0]["agent"], "Hotel", "{ran:?}");
}

#[test]
fn a_store_is_named_by_the_team_file_or_the_command_line() {
    let team = format!("{TEAM}\n[conversations]\nstore = \"sqlite:here.db\"\n");
    let desk = Desk::new(&team, [Reply::text("Hello!"), Reply::text("Hello!")]);
    assert_eq!(desk.send("Hi", &[]).code, Some(0));
    assert!(desk.folder.path("here.db").exists());
    let ran = desk.send("Hi", &["--store", "sqlite:there.db"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(desk.folder.path("there.db").exists());
    assert!(!desk.folder.path("data/sessions.db").exists());
    assert_eq!(words(&desk.requests()[1]).len(), 1);
    let ran = desk.send("Hi", &["--store", "mysql://root:secret@localhost/x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("sqlite:PATH"), "{ran:?}");
    assert!(!ran.stderr.contains("secret"), "{ran:?}");
}

#[test]
fn an_agent_that_is_named_gets_the_first_message_and_keeps_no_claim() {
    let team = r#"
        [agents.Triage]
        handoffs = ["Billing"]
        [agents.Billing]
        handoffs = ["Triage"]
    "#;
    let back = Reply::call("c2", "transfer_to_triage", "{}");
    let replies = [
        Reply::text("Hello!"),
        back,
        Reply::text("It is me again."),
        Reply::text("Yes?"),
        Reply::text("And yes?"),
    ];
    let desk = Desk::new(team, replies);
    assert_eq!(desk.send("Hi", &[]).code, Some(0));
    let url = desk.provider.url();
    let args = [
        "chat",
        "team.toml",
        "--session",
        "tuesday",
        "--agent",
        "Billing",
        "--model",
        "chat/m",
        "--base-url",
        &url,
    ];
    let chat = |lines: &str| {
        let mut command = desk.folder.command(&args);
        command
            .env("OPENAI_API_KEY", "key")
            .stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, lines.as_bytes()).unwrap();
        drop(input);
        Ran::of(child)
    };

    let ran = chat("one\n/agents\ntwo\n/reset\nthree\n");

    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answers = [
        "Billing  → Triage",
        "Triage   It is me again.",
        "* Triage",
        "Triage   Yes?",
        "Triage   And yes?",
    ];
    let mut rest = ran.stdout.as_str();
    for answer in answers {
        let (_, after) = rest
            .split_once(answer)
            .unwrap_or_else(|| panic!("{answer}: {ran:?}"));
        rest = after;
    }
}

/// Two messages in processes of their own, with a store at this address.
fn goes_on_in(address: &str) {
    let replies = [
        transfer(),
        Reply::text("Which bill?"),
        Reply::text("It is paid."),
    ];
    let desk = Desk::new(TEAM, replies);
    let name = format!("program-{}", std::process::id());
    let store = ["--store", address, "--session", &name];
    for words in ["My card is 4111 1111 1111 1111", "The one of May"] {
        let url = desk.provider.url();
        let mut args = vec![
            "run",
            "team.toml",
            words,
            "--model",
            "openai/m",
            "--base-url",
            &url,
        ];
        args.extend(store);
        let mut command = desk.folder.command(&args);
        let ran = Ran::of(command.env("OPENAI_API_KEY", "key").spawn().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(
        words(&desk.requests()[2]),
        [r#""My card is [CARD]""#, r#""The one of May""#]
    );
}

#[test]
#[ignore = "needs PostgreSQL; ./test starts one"]
fn a_session_in_postgres_goes_on_in_another_process() {
    goes_on_in(&std::env::var("SWITCHBOARD_TEST_POSTGRES").unwrap());
}

#[test]
#[ignore = "needs Redis; ./test starts one"]
fn a_session_in_redis_goes_on_in_another_process() {
    goes_on_in(&std::env::var("SWITCHBOARD_TEST_REDIS").unwrap());
}

/// A message whose answer is stopped once a part of it is shown. `meanwhile` runs before the signal.
#[cfg(unix)]
fn stopped(desk: &Desk, message: &str, meanwhile: impl FnOnce()) -> (Option<i32>, String) {
    use std::io::Read as _;
    let url = desk.provider.url();
    let mut args = vec![
        "run",
        "team.toml",
        message,
        "--session",
        "tuesday",
        "--json",
    ];
    args.extend(["--model", "openai/m", "--base-url", &url]);
    let mut command = desk.folder.command(&args);
    let mut child = command.env("OPENAI_API_KEY", "key").spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&seen).contains("text_delta") {
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{seen:?}");
        seen.push(byte[0]);
    }
    meanwhile();
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(sent.unwrap().success());
    stdout.read_to_end(&mut seen).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_end(&mut seen).unwrap();
    let code = child.wait().unwrap().code();
    (code, String::from_utf8(seen).unwrap())
}

#[cfg(unix)]
fn slow() -> Reply {
    let pace = std::time::Duration::from_secs(5);
    Reply::text("One two three four five").pieces(4).pace(pace)
}

#[cfg(unix)]
#[test]
fn a_stopped_answer_belongs_to_its_team_and_is_stored_once() {
    let desk = Desk::new(TEAM, [slow(), Reply::text("Hello!")]);
    let (code, output) = stopped(&desk, "Hi", || {});
    assert_eq!(code, Some(130), "{output}");
    desk.folder.write("hotel.toml", "[agents.Hotel]\n");
    let ran = desk
        .folder
        .run(&["run", "hotel.toml", "Hi", "--session", "tuesday"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = ran.stderr.replace('\n', " ") + &ran.stdout;
    assert!(told.contains("is with the team of"), "{ran:?}");
    assert_eq!(desk.send("And?", &[]).code, Some(0));
    let requests = desk.requests();
    assert_eq!(words(&requests[1]), [r#""Hi""#, r#""And?""#]);
    assert!(requests[1].to_string().contains("One "), "{}", requests[1]);
}

#[cfg(unix)]
#[test]
fn a_stopped_answer_that_lost_against_another_message_is_told_and_not_stored() {
    let replies = [
        slow(),
        transfer(),
        Reply::text("Which bill?"),
        Reply::text("It is paid."),
    ];
    let desk = Desk::new(TEAM, replies);
    let (code, output) = stopped(&desk, "My card is 4111 1111 1111 1111", || {
        assert_eq!(desk.send("My bill", &[]).code, Some(0));
    });
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("changed by another writer"), "{output}");
    assert!(output.contains("send the message again"), "{output}");
    assert_eq!(desk.send("The one of May", &[]).code, Some(0));
    let requests = desk.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests[1..] {
        assert!(!request.to_string().contains("4111"), "{request}");
        assert!(!request.to_string().contains("One two"), "{request}");
    }
    assert!(!desk.stored().contains("4111 1111"));
}

#[test]
fn teams_of_two_files_are_told_apart_though_their_agents_have_the_same_names() {
    let desk = Desk::new("[agents.Assistant]\n", [Reply::text("Hello!")]);
    assert_eq!(desk.send("My PIN is 1234", &[]).code, Some(0));
    desk.folder.write("pirate.toml", "[agents.Assistant]\n");
    let of_pirate = ["pirate.toml", "--session", "tuesday"];
    let ran = desk
        .folder
        .run(&[&["run"], &of_pirate[..], &["Hi"]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = (ran.stderr.clone() + &ran.stdout).replace('\n', " ");
    assert!(told.contains("pirate.toml"), "{ran:?}");
    // A chat could show it and delete it without a message.
    let commands = "/history\n/reset\n";
    let chat = [&["chat"], &of_pirate[..]].concat();
    let ran = desk.folder.run_with_input(&chat, commands);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("--force"), "{ran:?}");
    let args = ["chat", "team.toml", "--session", "tuesday"];
    let ran = desk.folder.run_with_input(&args, commands);
    assert!(ran.stdout.contains("My PIN is 1234"), "{ran:?}");
    // Deleted by its own team, so that any other may begin.
    let ran = desk.folder.run_with_input(&chat, commands);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn an_agent_of_the_team_that_is_asked_for_gets_the_conversation_until_it_hands_it_on() {
    let team =
        "[agents.Triage]\nhandoffs = [\"Billing\"]\n[agents.Billing]\nhandoffs = [\"Triage\"]\n";
    let say = |number: u32| {
        let content = json!([{"type": "output_text", "text": "Hello.", "annotations": []}]);
        let id = format!("msg_{number}");
        Reply::items([
            json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
            "content": content}),
        ])
    };
    let back = Reply::call("c2", "transfer_to_triage", "{}");
    let replies = [say(1), back, say(2), say(3), say(4)];
    let desk = Desk::new(team, replies);
    assert_eq!(desk.send("Hi", &[]).code, Some(0));
    let url = desk.provider.url();
    let mut args = vec![
        "chat",
        "team.toml",
        "--session",
        "tuesday",
        "--agent",
        "Billing",
    ];
    args.extend(["--model", "openai/m", "--base-url", &url]);
    let mut command = desk.folder.command(&args);
    command.stdin(std::process::Stdio::piped());
    let mut child = command.env("OPENAI_API_KEY", "key").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"one\n/agents\ntwo\n/reset\nthree\n").unwrap();
    drop(stdin);
    let ran = Ran::of(child);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("* Triage"), "{ran:?}");
    let requests = desk.requests();
    let tools = |request: &Value| request["tools"][0]["name"].clone();
    let offered: Vec<Value> = requests.iter().map(tools).collect();
    let (triage, billing) = ("transfer_to_billing", "transfer_to_triage");
    assert_eq!(offered, [triage, billing, triage, triage, triage]);
}

#[test]
fn runs_with_one_conversation_wait_for_each_other_if_the_team_file_says_so() {
    let team = format!("{TEAM}\n[conversations]\nexclusive = 60\n");
    let slow = Reply::text("One two")
        .pieces(4)
        .pace(std::time::Duration::from_secs(1));
    let desk = Desk::new(&team, [slow, Reply::text("Hello!")]);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let sent = ["Hi", "And?"].map(|message| {
            let desk = &desk;
            scope.spawn(move || desk.send(message, &[]).code)
        });
        sent.into_iter().map(|sent| sent.join().unwrap()).collect()
    });
    assert_eq!(outcomes, [Some(0), Some(0)]);
    let requests = desk.requests();
    assert_eq!((requests.len(), words(&requests[1]).len()), (2, 2));
}
