//! The team of docs/production, which does without Rust what the example `production_support` does.

use std::fs;
use std::path::Path;

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};

use crate::support::{Folder, Ran};

/// The team in a folder of its own, where its tools write, and a provider.
struct Support {
    folder: Folder,
    provider: FakeProvider,
}

impl Support {
    fn new() -> Self {
        let folder = Folder::new();
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/production");
        for name in ["team.toml", "manager.toml", "ledger.sh"] {
            fs::copy(docs.join(name), folder.path(name)).unwrap();
        }
        let provider = FakeProvider::on_thread().unwrap();
        Self { folder, provider }
    }

    /// Runs the program with a model that gives these replies.
    fn program(&self, args: &[&str], replies: impl IntoIterator<Item = Reply>) -> Ran {
        let url = self.provider.url();
        let model = ["--model", "chat/m", "--base-url", &url];
        self.provider.script("key", replies);
        let mut command = self.folder.command(&[args, &model].concat());
        command
            .env("OPENAI_API_KEY", "key")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let ran = Ran::of(command.spawn().unwrap());
        self.provider.assert_valid();
        ran
    }

    fn message(
        &self,
        customer: &str,
        text: &str,
        more: &[&str],
        replies: impl IntoIterator<Item = Reply>,
    ) -> Ran {
        let args = ["run", "team.toml", text, "--session", customer, "--json"];
        self.program(&[&args[..], more].concat(), replies)
    }

    /// Lets the manager decide what waits in the conversation of a customer.
    fn decide(&self, customer: &str, replies: impl IntoIterator<Item = Reply>) -> Ran {
        let args = ["resume", "team.toml", "--session", customer, "--json"];
        let decide = ["--approve", "manager.toml"];
        self.program(&[&args[..], &decide].concat(), replies)
    }

    /// The lines of a ledger, without their keys.
    fn ledger(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path(name)).unwrap_or_default();
        let text = text.lines().map(|line| line.split_once('\t').unwrap().1);
        text.map(str::to_owned).collect()
    }
}

fn refund(order: u32, euros: u32) -> (String, Value) {
    (
        format!("c{order}"),
        json!({ "order": order, "euros": euros }),
    )
}

/// A reply with refunds.
fn refunds(calls: &[(String, Value)]) -> Reply {
    let item = |(id, arguments): &(String, Value)| {
        json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "refund",
            "arguments": arguments.to_string(),
        })
    };
    Reply::items(calls.iter().map(item))
}

fn transfer(to: &str, id: &str) -> Reply {
    Reply::call(id, &format!("transfer_to_{to}"), "{}")
}

/// The agent and the text of the final output.
fn answer(ran: &Ran) -> (String, String) {
    let finished = ran.events_of("run_finished").pop();
    let finished = finished.unwrap_or_else(|| panic!("{ran:?}"));
    let text = |field: &str| finished[field].as_str().unwrap_or_default().to_owned();
    (text("agent"), text("output"))
}

fn said(agent: &str, text: &str) -> (String, String) {
    (agent.to_owned(), text.to_owned())
}

#[test]
fn the_team_passes_the_strictest_check() {
    let support = Support::new();
    let ran = support.folder.run(&["check", "team.toml", "--strict"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "ok: team.toml has no problems\n");
}

#[test]
fn refunds_wait_for_the_manager_and_are_paid_once() {
    let support = Support::new();
    let calls = [refund(7, 20), refund(8, 80), refund(9, 900)];
    let replies = [transfer("billing", "t1"), refunds(&calls)];
    let ran = support.message("ann", "Orders 7, 8 and 9 never came", &[], replies);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    // What needs no approval has run.
    assert_eq!(support.ledger("refunds.txt"), ["20 euros of order 7"]);

    let text = "Orders 7 and 8 are paid back; the director looks at order 9.";
    let ran = support.decide("ann", [Reply::text(text)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(answer(&ran), said("Billing", text));
    let paid = ["20 euros of order 7", "80 euros of order 8"];
    assert_eq!(support.ledger("refunds.txt"), paid);
    let requests = support.provider.requests();
    let body = requests.last().unwrap().body.to_string();
    assert!(body.contains("need the director's signature"), "{body}");
    // The wait is over: nobody can have the refunds paid a second time.
    assert_eq!(support.decide("ann", []).code, Some(2));
    assert_eq!(support.ledger("refunds.txt"), paid);
}

#[test]
fn an_account_is_closed_once_a_person_has_approved_the_handoff() {
    let support = Support::new();
    let reason = r#"{"reason": "too expensive"}"#;
    let replies = [Reply::call("t1", "transfer_to_account_closure", reason)];
    let ran = support.message("bob", "Please close my account", &[], replies);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(support.ledger("closures.txt").is_empty());
    let replies = [
        Reply::call("c1", "close_account", reason),
        Reply::text("Your account is closed."),
    ];
    let ran = support.decide("bob", replies);
    assert_eq!(
        answer(&ran),
        said("Account closure", "Your account is closed.")
    );
    assert_eq!(support.ledger("closures.txt"), ["too expensive"]);
}

#[test]
fn at_night_the_night_desk_answers_for_billing() {
    let support = Support::new();
    let night = ["--context", "billing_is_open=false"];
    let replies = [
        transfer("billing", "t1"),
        Reply::text("Billing is back at nine."),
    ];
    let ran = support.message("cleo", "What is this charge?", &night, replies);
    assert_eq!(answer(&ran), said("Night desk", "Billing is back at nine."));
}

#[test]
fn agents_that_pass_a_customer_around_are_stopped() {
    let support = Support::new();
    let replies = [
        transfer("billing", "t1"),
        transfer("triage", "t2"),
        transfer("billing", "t3"),
        Reply::text("Somebody will call you."),
    ];
    let ran = support.message("dan", "My bill does not work on my phone", &[], replies);
    assert_eq!(answer(&ran), said("Night desk", "Somebody will call you."));
}

#[test]
fn an_agent_that_does_not_come_to_an_end_has_a_budget() {
    let support = Support::new();
    let replies = (1..=4).map(|order| refunds(&[refund(order, 1)]));
    let replies = [transfer("billing", "t1")].into_iter().chain(replies);
    let ran = support.message("eve", "Pay everything back", &[], replies);
    assert_eq!(
        answer(&ran),
        said("Billing", "A colleague will call you back.")
    );
    assert_eq!(support.provider.requests().len(), 4);
    assert_eq!(support.ledger("refunds.txt").len(), 3);
}

#[test]
fn the_team_runs_on_the_offline_model() {
    let support = Support::new();
    let mut command = support.folder.command(&[
        "run",
        "team.toml",
        "Refund order 8, 80 euros",
        "--session",
        "fay",
    ]);
    let ran = Ran::of(command.spawn().unwrap());
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stdout.contains("waits for a decision: refund"),
        "{ran:?}"
    );
}
