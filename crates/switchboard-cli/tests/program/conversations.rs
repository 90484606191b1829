//! Promises that hold for a whole conversation, shown by the requests that the provider received, by
//! the bytes of the database, and by the output of the program.

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
struct Desk {
    folder: Folder,
    provider: FakeProvider,
}

impl Desk {
    fn new(team: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        let desk = Self {
            folder: Folder::new(),
            provider: FakeProvider::on_thread().unwrap(),
        };
        desk.folder.write("team.toml", team);
        desk.provider.script("key", replies);
        desk
    }

    /// Sends a message in a process of its own.
    fn send(&self, message: &str, more: &[&str]) -> Ran {
        let url = self.provider.url();
        let mut args = vec!["run", "team.toml", message, "--session", "tuesday"];
        args.extend(["--model", "openai/m", "--base-url", &url]);
        args.extend(more);
        let mut command = self.folder.command(&args);
        Ran::of(command.env("OPENAI_API_KEY", "key").spawn().unwrap())
    }

    /// The bodies of the requests that the provider received.
    fn requests(&self) -> Vec<Value> {
        self.provider.assert_valid();
        let requests = self.provider.requests();
        requests
            .iter()
            .map(|request| request.body.clone())
            .collect()
    }

    /// The bytes of the database, with the files beside it.
    fn stored(&self) -> String {
        let files = ["data/sessions.db", "data/sessions.db-wal"];
        let bytes = files.map(|name| std::fs::read(self.folder.path(name)).unwrap_or_default());
        String::from_utf8_lossy(&bytes.concat()).into_owned()
    }
}

/// The texts of the messages of a user in a request.
fn words(request: &Value) -> Vec<String> {
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
