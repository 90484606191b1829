//! Calls that wait for approval, without a terminal: decided by options, by rules, by lines, or later.

use std::io::Write as _;
use std::process::{Child, Stdio};

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};

use crate::support::{Folder, Ran};

pub(crate) const TEAM: &str = r#"
[agents.Desk]
tools = ["refund", "ask_expert"]
handoffs = [{ to = "Manager", approve = true, payload = { properties = { reason = { type = "string" } } } }]

[agents.Manager]
description = "A person."

[agents.Expert]
tools = ["refund"]

[tools.refund]
description = "Pays back."
parameters = { properties = { order = { type = "string" }, amount = { type = "number" } } }
records = { file = "orders.toml", by = "order" }
approve = "arguments.amount > 100"

[tools.ask_expert]
description = "Asks an expert."
agent = "Expert"
"#;

/// A folder with a team whose refunds need approval, and a provider with these replies.
pub(crate) struct Desk {
    pub(crate) folder: Folder,
    pub(crate) provider: FakeProvider,
}

impl Desk {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let folder = Folder::new();
        folder.write("team.toml", TEAM);
        folder.write("orders.toml", "A-1 = { state = 'paid back' }\n");
        let provider = FakeProvider::on_thread().unwrap();
        provider.script("key", replies);
        Self { folder, provider }
    }

    /// Starts the program, with its standard input open.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let url = self.provider.url();
        let model = ["--model", "chat/m", "--base-url", &url];
        let mut command = self.folder.command(&[args, &model].concat());
        let command = command.env("OPENAI_API_KEY", "key").stdin(Stdio::piped());
        command.spawn().unwrap()
    }

    pub(crate) fn program(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.start(args);
        // The program may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Ran::of(child)
    }

    /// Sends a message in a session.
    pub(crate) fn send(&self, message: &str, more: &[&str], input: &str) -> Ran {
        let args = ["run", "team.toml", message, "--session", "tuesday"];
        self.program(&[&args[..], more].concat(), input)
    }

    /// Goes on with the session's run.
    pub(crate) fn resume(&self, more: &[&str], input: &str) -> Ran {
        let args = ["resume", "team.toml", "--session", "tuesday"];
        self.program(&[&args[..], more].concat(), input)
    }

    /// The outputs of tools in the last request, by their calls.
    fn outputs(&self) -> Vec<(String, String)> {
        self.provider.assert_valid();
        let requests = self.provider.requests();
        let messages = requests.last().unwrap().body["messages"].clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let outputs = messages.as_array().unwrap().iter();
        let outputs = outputs.filter(|message| message["role"] == "tool");
        outputs
            .map(|message| (text(&message["tool_call_id"]), text(&message["content"])))
            .collect()
    }
}

pub(crate) fn refund(id: &str, amount: &str) -> Reply {
    let arguments = format!(r#"{{"order":"A-1","amount":{amount}}}"#);
    Reply::call(id, "refund", &arguments)
}

/// A reply with several refunds.
fn refunds(amounts: &[(&str, u32)]) -> Reply {
    let item = |(id, amount): &(&str, u32)| {
        json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "refund",
            "arguments": json!({ "order": "A-1", "amount": amount }).to_string(),
        })
    };
    Reply::items(amounts.iter().map(item))
}

/// Rules that leave refunds between 1000 and 4000 undecided.
const RULES: &str = r#"
        [[rules]]
        agent = "Desk"
        tool = "refund"
        when = "arguments.amount <= 1000"
        decision = "approve"

        [[rules]]
        tool = "refund"
        when = "arguments.amount > 4000"
        decision = "reject"
        message = "That is too much."
        "#;

const PAID: &str = "{\"state\":\"paid back\"}";

fn output(id: &str, text: &str) -> (String, String) {
    (id.to_owned(), text.to_owned())
}

#[test]
fn without_a_terminal_a_call_waits_and_nothing_runs() {
    for more in [&[][..], &["--json"]] {
        let desk = Desk::new([refund("c1", "500")]);
        let args = [&["run", "team.toml", "Money!"], more].concat();
        let ran = desk.program(&args, "y\n");
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert!(ran.stderr.contains("--session NAME"), "{ran:?}");
        assert_eq!(desk.provider.requests().len(), 1);
        if more.is_empty() {
            let call = r#"waits for a decision: refund {"order":"A-1","amount":500}"#;
            assert!(ran.stdout.contains(call), "{ran:?}");
            continue;
        }
        let last = ran.events().pop().unwrap();
        assert_eq!(
            (&last["type"], &last["turns"]),
            (&json!("run_interrupted"), &json!(1))
        );
        let arguments = r#"{"order":"A-1","amount":500}"#;
        let waiting = json!([{ "kind": "tool", "agent": "Desk", "tool": "refund", "call_id": "c1",
            "arguments": arguments }]);
        assert_eq!(last["interruptions"], waiting);
        assert!(ran.events_of("tool_started").is_empty());
    }
}

#[test]
fn a_call_below_the_limit_of_its_condition_does_not_wait() {
    let desk = Desk::new([refund("c1", "100"), Reply::text("Done.")]);
    let ran = desk.send("Money!", &[], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.outputs(), [output("c1", PAID)]);
}

#[test]
fn a_run_that_waits_is_kept_in_its_session_and_resumed_once() {
    let desk = Desk::new([
        refund("c1", "500"),
        Reply::text("Done."),
        Reply::text("Bye."),
    ]);
    let ran = desk.send("Money!", &[], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let command = "`switchboard resume team.toml --session tuesday`";
    assert!(ran.stderr.contains(command), "{ran:?}");
    let ran = desk.resume(&[], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stdout.contains("waits for a decision: refund"),
        "{ran:?}"
    );
    assert_eq!(desk.provider.requests().len(), 1);

    let ran = desk.resume(&["--approve", "all"], "");

    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Desk     Done."), "{ran:?}");
    assert_eq!(desk.outputs(), [output("c1", PAID)]);
    let ran = desk.resume(&["--approve", "all"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("nothing waits for a decision"),
        "{ran:?}"
    );
    assert_eq!(desk.send("Thanks", &[], "").code, Some(0));
    assert_eq!(desk.provider.requests().len(), 3);
}

#[test]
fn rejecting_all_calls_tells_the_model() {
    let desk = Desk::new([refund("c1", "500"), Reply::text("Sorry.")]);
    let ran = desk.send("Money!", &["--approve", "none", "--json"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let types: Vec<_> = ran
        .events()
        .iter()
        .map(|event| event["type"].clone())
        .collect();
    let ends = types
        .iter()
        .filter(|kind| ["run_interrupted", "run_finished"].contains(&kind.as_str().unwrap()));
    assert_eq!(
        ends.collect::<Vec<_>>(),
        ["run_interrupted", "run_finished"]
    );
    let outputs = desk.outputs();
    assert_eq!(outputs.len(), 1);
    assert!(!outputs[0].1.contains("paid back"), "{outputs:?}");
}

#[test]
fn rules_decide_what_they_fit_and_the_rest_waits() {
    let calls = refunds(&[("c1", 200), ("c2", 5000), ("c3", 2000)]);
    let desk = Desk::new([calls, Reply::text("Done.")]);
    desk.folder.write("rules.toml", RULES);
    let ran = desk.send("Money!", &["--approve", "rules.toml", "--json"], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ended = ran.events_of("tool_ended");
    let ended = ended.iter().map(|event| event["call_id"].as_str().unwrap());
    let ended: std::collections::BTreeSet<&str> = ended.collect();
    assert_eq!(ended, ["c1", "c2"].into());
    let last = ran.events_of("run_interrupted").pop().unwrap();
    assert_eq!(last["interruptions"][0]["call_id"], "c3");
    assert_eq!(last["interruptions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_that_was_decided_in_part_waits_on_in_its_session() {
    let replies = [
        Reply::text("Hello."),
        refunds(&[("c1", 200), ("c2", 5000), ("c3", 2000)]),
        Reply::text("Done."),
    ];
    let desk = Desk::new(replies);
    desk.folder.write("rules.toml", RULES);
    assert_eq!(desk.send("Hi", &[], "").code, Some(0));
    let ran = desk.send("Money!", &[], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = desk.resume(&["--approve", "rules.toml"], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");

    let ran = desk.resume(&["--approve", "ask", "--trace", "spans.jsonl"], "y\n");

    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut outputs = desk.outputs();
    outputs.sort();
    let expected = [
        output("c1", PAID),
        output("c2", "That is too much."),
        output("c3", PAID),
    ];
    assert_eq!(outputs, expected);
}

#[test]
fn rules_in_json_are_read_and_their_problems_have_positions() {
    let desk = Desk::new([refund("c1", "500"), Reply::text("Done.")]);
    let rules = r#"{"rules": [{"tool": "refund", "decision": "approve"}]}"#;
    desk.folder.write("rules.json", rules);
    let ran = desk.send("Money!", &["--approve", "rules.json"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.folder.write(
        "rules.toml",
        "[[rules]]\ntool = \"refnud\"\ndecision = \"approve\"\n",
    );
    let ran = desk.send("Money!", &["--approve", "rules.toml"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("rules.toml:2:8"), "{ran:?}");
    assert!(ran.stderr.contains("did you mean \"refund\"?"), "{ran:?}");
    let ran = desk.send("Money!", &["--approve", "rulez.toml"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("ask, all or none"), "{ran:?}");
    let ran = desk.send("Money!", &["--approve", "ask", "--json"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn conditions_of_rules_are_checked_against_the_arguments_of_the_tool() {
    let desk = Desk::new([refund("c1", "500"), Reply::text("Done.")]);
    for (rule, message) in [
        (
            "when = \"arguments.amonut > 3\"",
            "the tool has no argument \"amonut\"",
        ),
        (
            "when = \"arguments.amount > 'a lot'\"",
            "a number cannot be compared with text",
        ),
        ("agent = \"Dask\"", "the team has no agent \"Dask\""),
    ] {
        let rules = format!("[[rules]]\ntool = \"refund\"\n{rule}\ndecision = \"approve\"\n");
        desk.folder.write("rules.toml", &rules);
        let ran = desk.send("Money!", &["--approve", "rules.toml"], "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message), "{ran:?}");
        // One mistake is one problem.
        assert_eq!(ran.stderr.matches("error").count(), 1, "{ran:?}");
    }
}

#[test]
fn answers_are_read_from_lines_if_they_are_asked_for() {
    let replies = [
        refunds(&[("c1", 200), ("c2", 300)]),
        refund("c3", "400"),
        Reply::text("Done."),
    ];
    let desk = Desk::new(replies);
    let lines = "what?\n?\nn because it was paid before\na\n";
    let ran = desk.send("Money!", &["--approve", "ask"], lines);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for shown in [
        "waits for a decision (1 of 2): refund {\"order\":\"A-1\",\"amount\":200}",
        "approve refund (1/2)? [y/n/a/?]",
        "answer with y, n or a",
        "Ctrl-C  leave it waiting",
        "approve refund (2/2)? [y/n/a/?]",
    ] {
        assert!(ran.stdout.contains(shown), "{shown}: {ran:?}");
    }
    let mut outputs = desk.outputs();
    outputs.sort();
    let words = "because it was paid before";
    // The third call was approved for always.
    assert_eq!(
        outputs,
        [output("c1", words), output("c2", PAID), output("c3", PAID)]
    );
}

#[test]
fn words_after_an_approval_are_said_to_the_agent() {
    let desk = Desk::new([refund("c1", "500"), Reply::text("Done.")]);
    let ran = desk.send("Money!", &["--approve", "ask"], "y but only this once\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = desk.provider.requests();
    let messages = requests[1].body["messages"].as_array().unwrap().clone();
    let last = messages.last().unwrap();
    assert_eq!(
        (&last["role"], &last["content"]),
        (&json!("user"), &json!("but only this once"))
    );
}

#[test]
fn a_question_that_nobody_answers_leaves_all_calls_waiting() {
    let desk = Desk::new([refunds(&[("c1", 200), ("c2", 300)])]);
    let ran = desk.send("Money!", &["--approve", "ask"], "y\n");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = desk.resume(&["--json"], "");
    let waiting = &ran.events_of("run_interrupted")[0]["interruptions"];
    assert_eq!(waiting.as_array().unwrap().len(), 2, "{ran:?}");
}

#[test]
fn a_handoff_waits_and_is_taken_or_refused() {
    let transfer = || Reply::call("c1", "transfer_to_manager", r#"{"reason":"angry"}"#);
    let desk = Desk::new([transfer(), Reply::text("How may I help?")]);
    let ran = desk.send("A manager!", &[], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let shown = r#"waits for a decision: → Manager {"reason":"angry"}"#;
    assert!(ran.stdout.contains(shown), "{ran:?}");
    let ran = desk.resume(&["--approve", "all"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Manager  How may I help?"), "{ran:?}");

    let desk = Desk::new([transfer(), Reply::text("I am sorry.")]);
    let ran = desk.send("A manager!", &["--approve", "ask"], "n he is at lunch\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Desk     I am sorry."), "{ran:?}");
    assert_eq!(desk.outputs(), [output("c1", "he is at lunch")]);
}

#[test]
fn a_call_inside_an_agent_tool_says_where_it_lies() {
    let replies = [
        Reply::call("a1", "ask_expert", r#"{"input":"refund A-1"}"#),
        refund("c1", "500"),
        Reply::text("It is out."),
        Reply::text("Done."),
    ];
    let desk = Desk::new(replies);
    for ran in [desk.send("Money!", &[], ""), desk.resume(&[], "")] {
        assert_eq!(ran.code, Some(5), "{ran:?}");
        let shown = "Expert   waits for a decision: refund {\"order\":\"A-1\",\"amount\":500}\n           \
                     inside ask_expert\n";
        assert!(ran.stdout.contains(shown), "{ran:?}");
    }
    let ran = desk.resume(&["--approve", "ask"], "y\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.outputs(), [output("a1", "It is out.")]);
}

#[test]
fn arguments_are_escaped_and_shortened_and_can_be_seen_as_a_whole() {
    let note = format!("\u{1b}[2J\u{202e}{}END", "x".repeat(600));
    let arguments = json!({ "order": note, "amount": 500 }).to_string();
    // An escape that the model wrote itself, not as JSON.
    let arguments = arguments.replace("\\u001b", "\u{1b}");
    let desk = Desk::new([Reply::call("c1", "refund", &arguments)]);
    let ran = desk.send("Money!", &["--approve", "ask"], "");
    assert!(
        ran.stdout.contains("more characters; answer s to see all"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains("END"), "{ran:?}");
    let ran = desk.resume(&["--approve", "ask"], "s\n");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("xxxEND"), "{ran:?}");
    assert!(ran.stdout.contains("\\u{202e}"), "{ran:?}");
    assert!(!ran.stdout.contains(['\u{1b}', '\u{202e}']), "{ran:?}");
}

#[test]
fn a_message_instead_of_a_decision_ends_the_wait() {
    let desk = Desk::new([refund("c1", "500"), Reply::text("Hello.")]);
    let chat = ["chat", "team.toml", "--session", "tuesday"];
    let ran = desk.program(&chat, "Money!\nHello?\n/decide\n");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("/decide asks again"), "{ran:?}");
    assert!(
        ran.stdout.contains("Nothing waits for a decision."),
        "{ran:?}"
    );
    let outputs = desk.outputs();
    assert!(outputs[0].1.contains("was not carried out"), "{outputs:?}");
    assert_eq!(desk.resume(&[], "").code, Some(2));
}

#[test]
fn a_test_of_a_team_decides_by_its_option() {
    let desk = Desk::new([]);
    let case = "[[cases]]\nmessage = \"A manager!\"\nexpect = \"Manager\"\n";
    desk.folder.write("cases.toml", case);
    let transfer = || Reply::call("c1", "transfer_to_manager", "{}");
    let test = ["test", "team.toml", "cases.toml", "--json"];
    desk.provider.script("key", [transfer()]);
    let ran = desk.program(&test, "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let failure = "transfer_to_manager waits for a decision; --approve decides it";
    assert_eq!(ran.events_of("case")[0]["failures"][0], failure);
    desk.provider
        .script("key", [transfer(), Reply::text("Yes?")]);
    let ran = desk.program(&[&test[..], &["--approve", "all"]].concat(), "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn the_example_runs_on_the_offline_model() {
    let folder = Folder::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/approvals");
    let (team, rules) = (
        format!("{example}/team.toml"),
        format!("{example}/rules.toml"),
    );
    let run = |message: &str, more: &[&str]| {
        let args = ["run", team.as_str(), message, "--session", "tuesday"];
        folder.run(&[&args[..], more].concat())
    };
    let resume = |more: &[&str]| {
        let args = ["resume", team.as_str(), "--session", "tuesday"];
        folder.run(&[&args[..], more].concat())
    };
    assert_eq!(folder.run(&["check", &team, "--strict"]).code, Some(0));
    let ran = run("Refund the order A-17, amount 500", &[]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = resume(&["--approve", "all"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("paid back"), "{ran:?}");

    let by_rules = ["--approve", rules.as_str()];
    let ran = run("Refund the order A-17, amount 500", &by_rules);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("needs a manager"), "{ran:?}");
    let gold = [&by_rules[..], &["--context", "tier=gold"]].concat();
    let ran = run("Refund the order A-17, amount 500", &gold);
    assert!(ran.stdout.contains("paid back"), "{ran:?}");
    // No rule is for the handoff.
    let ran = run("I have a complaint, I want a manager", &by_rules);
    assert_eq!(ran.code, Some(5), "{ran:?}");
}
