//! Runs that wait for a person: shown, kept in a session, answered by options or by lines.

use std::io::Write as _;
use std::process::Stdio;

use fake_provider::{FakeProvider, Reply};
use serde_json::json;

use crate::support::{Folder, Ran};

pub(crate) const TEAM: &str = r#"
[agents.Triage]
description = "Finds the right colleague."
handoffs = [{ to = "Ann", payload = { properties = { reason = { type = "string" } }, required = ["reason"] } }]

[agents.Ann]
description = "Complaints."
person = true
handoffs = ["Billing"]

[agents.Billing]
description = "Bills."
"#;

struct Team {
    folder: Folder,
    provider: FakeProvider,
}

impl Team {
    /// A team whose model hands the conversation to Ann, and then gives these replies.
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let folder = Folder::new();
        folder.write("team.toml", TEAM);
        let provider = FakeProvider::on_thread().unwrap();
        let first = Reply::call("c1", "transfer_to_ann", r#"{"reason":"angry"}"#);
        provider.script("key", [first].into_iter().chain(replies));
        Self { folder, provider }
    }

    fn program(&self, args: &[&str], input: &str) -> Ran {
        let url = self.provider.url();
        let model = ["--model", "chat/m", "--base-url", &url];
        let mut command = self.folder.command(&[args, &model].concat());
        let command = command.env("OPENAI_API_KEY", "key").stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let ran = Ran::of(child);
        self.provider.assert_valid();
        ran
    }

    fn send(&self, message: &str, more: &[&str], input: &str) -> Ran {
        let args = ["run", "team.toml", message, "--session", "tuesday"];
        self.program(&[&args[..], more].concat(), input)
    }

    fn resume(&self, more: &[&str], input: &str) -> Ran {
        let args = ["resume", "team.toml", "--session", "tuesday"];
        self.program(&[&args[..], more].concat(), input)
    }
}

#[test]
fn a_run_that_waits_for_a_person_says_who_and_why_and_is_answered_later() {
    let team = Team::new([]);
    for more in [&[][..], &["--approve", "all"]] {
        // Approving everything answers for nobody.
        let ran = match more {
            [] => team.send("A person!", &[], ""),
            more => team.resume(more, ""),
        };
        assert_eq!(ran.code, Some(5), "{ran:?}");
        let shown = r#"Ann      is asked for an answer by Triage: {"reason":"angry"}"#;
        assert!(ran.stdout.contains(shown), "{ran:?}");
        assert!(ran.stdout.contains("may hand over to"), "{ran:?}");
    }
    let ran = team.resume(&["--reply", "I am here."], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Ann      I am here."), "{ran:?}");
    // The answer was given, and the person keeps the conversation.
    assert_eq!(team.resume(&["--reply", "Hello?"], "").code, Some(2));
    let ran = team.send("Thanks", &["--json"], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let last = ran.events().pop().unwrap();
    assert_eq!(last["interruptions"][0]["agent"], "Ann");
    assert_eq!(team.provider.requests().len(), 1);
}

#[test]
fn the_help_says_how_to_answer() {
    let team = Team::new([]);
    let ran = team.send("A person!", &[], "");
    let help = "answer as Ann with `switchboard resume team.toml --session tuesday`";
    assert!(ran.stderr.contains(help), "{ran:?}");
    let ran = team.resume(&[], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stderr.contains("--reply, --hand-to and --hand-back"),
        "{ran:?}"
    );
}

#[test]
fn a_person_hands_the_conversation_on_or_back() {
    for (answer, agent) in [
        (&["--hand-to", "Billing"][..], "Billing"),
        (
            &["--hand-back", "--note", "She was promised a refund."],
            "Triage",
        ),
    ] {
        let team = Team::new([Reply::text("How may I help?")]);
        team.send("A person!", &[], "");
        let ran = team.resume(answer, "");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let shown = format!("{agent:8} How may I help?");
        assert!(ran.stdout.contains(&shown), "{ran:?}");
        let requests = team.provider.requests();
        let body = requests[1].body.to_string();
        assert_eq!(body.contains("promised a refund"), agent == "Triage");
    }
    let team = Team::new([Reply::text("Your bill is right.")]);
    team.send("A person!", &[], "");
    let ran = team.resume(
        &["--reply", "Billing looks at it.", "--hand-to", "Billing"],
        "",
    );
    assert!(
        ran.stdout.contains("Ann      Billing looks at it."),
        "{ran:?}"
    );
    let ran = team.send("And now?", &[], "");
    assert!(
        ran.stdout.contains("Billing  Your bill is right."),
        "{ran:?}"
    );
}

#[test]
fn an_answer_that_cannot_be_given_changes_nothing() {
    let team = Team::new([]);
    team.send("A person!", &[], "");
    for (answer, message) in [
        (
            &["--hand-to", "Sales"][..],
            "cannot hand the conversation to \"Sales\"",
        ),
        (&["--reply", " "], "the reply is empty"),
        (&["--hand-back", "--payload", "{"], "--payload is not JSON"),
        (&["--payload", "{}"], "are parts of an answer"),
        (&["--note", "Hurry."], "are parts of an answer"),
    ] {
        let ran = team.resume(answer, "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message), "{ran:?}");
    }
    assert_eq!(team.resume(&["--reply", "Here."], "").code, Some(0));
}

#[test]
fn answers_are_read_from_lines_if_they_are_asked_for() {
    let team = Team::new([]);
    let lines = "?\n/to Sales\n/bakc\n/show\nI am here.\n";
    let ran = team.send("A person!", &["--approve", "ask"], lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for shown in [
        "answer as Ann>",
        "hand the conversation to this agent",
        "cannot hand the conversation to \"Sales\"",
        "there are /to NAME, /back and /show",
        "Ann      I am here.",
    ] {
        assert!(ran.stdout.contains(shown), "{shown}: {ran:?}");
    }
    let ran = team.send("Thanks", &["--approve", "ask"], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = team.resume(&["--json"], "");
    let waiting = &ran.events_of("run_interrupted")[0]["interruptions"][0];
    assert!(waiting["kind"]["person"].is_object(), "{waiting}");
}

#[test]
fn in_a_chat_a_message_waits_with_the_others_for_the_person() {
    let team = Team::new([]);
    let chat = ["chat", "team.toml", "--session", "tuesday"];
    let ran = team.program(&chat, "A person!\nHello?\n");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("Ann is waited for."), "{ran:?}");
    let ran = team.resume(&["--reply", "I am here."], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(team.provider.requests().len(), 1);
}

#[test]
fn a_case_of_a_test_may_end_with_a_person() {
    let team = Team::new([]);
    let case =
        "[[cases]]\nmessage = \"A person!\"\nexpect = \"Ann\"\npayload = { reason = \"angry\" }\n";
    team.folder.write("cases.toml", case);
    let ran = team.program(&["test", "team.toml", "cases.toml", "--json"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.events_of("case")[0]["path"], json!(["Triage", "Ann"]));
}
