//! Both protocols against a third-party server: npm's `@copilotkit/aimock`, which `./test` installs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use support::BOTH;
use switchboard_core::handoff::HandoffContext;
use switchboard_core::model::ModelHandle;
use switchboard_core::{Agent, Error, EventKind, Item, Runner, handoff, tool};
use switchboard_models::{Client, Endpoint, ModelError, ModelErrorKind};

/// A server for one test.
struct Aimock {
    process: Child,
    url: String,
}

impl Aimock {
    fn start(flags: &[&str]) -> Self {
        let program = std::env::var("SWITCHBOARD_AIMOCK").unwrap();
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/aimock/fixtures.json");
        let mut process = Command::new(program)
            .args(["-p", "0", "-f", fixtures, "--log-level", "info"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("the server ended").unwrap();
            if let Some(at) = line.find("http://") {
                let url = line[at..].split_whitespace().next().unwrap();
                break url.trim_end_matches('/').to_owned();
            }
        };
        // Drained, so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, url }
    }

    fn client(&self, retries: u32) -> Client {
        let endpoint = Endpoint::at(format!("{}/v1", self.url)).key("sk-test-key-000");
        endpoint.retries(retries).connect().unwrap()
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
struct Escalation {
    reason: String,
    priority: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    id: String,
}

#[derive(Default)]
struct App {
    escalations: Mutex<Vec<Escalation>>,
}

fn triage() -> Agent<App> {
    let billing = Agent::new("billing").instructions("You are billing.");
    let sales = Agent::new("sales")
        .instructions("You are sales.")
        .handoff(&billing);
    let shipping = Agent::new("shipping").instructions("You are shipping.");
    let escalation = Agent::new("escalation").instructions("You are escalation.");
    let escalate = handoff(&escalation)
        .payload::<Escalation>()
        .on_handoff(|ctx: HandoffContext<App>, asked| ctx.escalations.lock().unwrap().push(asked));
    Agent::new("triage")
        .instructions("You are triage.")
        .tool(
            tool::<App>("lookup_order")
                .description("Looks an order up.")
                .run(|_ctx, order: Order| format!("order {} is packed", order.id)),
        )
        .handoff(&billing)
        .handoff(&sales)
        .handoff(&shipping)
        .handoff(escalate)
}

/// The result of a run, without what differs between protocols.
#[derive(Debug, PartialEq)]
struct Outcome {
    agent: String,
    text: String,
    items: Vec<String>,
    escalations: Vec<Escalation>,
}

fn describe_item(item: &Item) -> String {
    match (item.role(), item.name(), item.output()) {
        (Some(role), _, _) => format!("{role}: {}", item.text().unwrap_or_default()),
        (_, Some(name), _) => format!("{name} {}", item.arguments().unwrap_or_default()),
        (_, _, Some(output)) => output.into_owned(),
        _ => item.kind().as_str().to_owned(),
    }
}

async fn run(model: ModelHandle, input: &str, streamed: bool) -> Result<Outcome, Error> {
    let app = Arc::new(App::default());
    let runner = Runner::new(&triage()).model(model).context(app.clone());
    let result = if streamed {
        let mut stream = runner.stream(input);
        let mut text = String::new();
        while let Some(event) = stream.next().await {
            if let EventKind::TextDelta { text: more, .. } = event.kind {
                text.push_str(&more);
            }
        }
        let result = stream.finish().await?;
        assert!(text.ends_with(&*result.final_text()), "{text}");
        result
    } else {
        runner.run(input).await?
    };
    let escalations = app.escalations.lock().unwrap().clone();
    Ok(Outcome {
        agent: result.last_agent().name().to_owned(),
        text: result.final_text().into_owned(),
        items: result.to_input_list().iter().map(describe_item).collect(),
        escalations,
    })
}

#[tokio::test]
#[ignore = "needs npm's @copilotkit/aimock: ./test runs it"]
async fn runs_are_the_same_over_both_protocols_streamed_or_not() {
    let server = Aimock::start(&[]);
    let client = server.client(0);
    for (input, agent, text, items) in [
        (
            "My bill is wrong",
            "billing",
            "Your bill is fixed. 账单已更正。",
            4,
        ),
        (
            "Please escalate this",
            "escalation",
            "A person will call you.",
            4,
        ),
        ("I want both", "shipping", "It ships today.", 9),
        ("cascade, please", "billing", "Third agent speaking.", 6),
    ] {
        let mut outcomes = Vec::new();
        for protocol in BOTH {
            for streamed in [false, true] {
                let outcome = run(protocol.model(&client), input, streamed).await;
                let outcome = outcome.unwrap_or_else(|error| panic!("{protocol:?}: {error}"));
                assert_eq!((&*outcome.agent, &*outcome.text), (agent, text));
                assert_eq!(outcome.items.len(), items, "{:?}", outcome.items);
                outcomes.push(outcome);
            }
        }
        for outcome in &outcomes {
            assert_eq!(outcome, &outcomes[0]);
        }
        let escalations = outcomes[0].escalations.len();
        assert_eq!(escalations, usize::from(input.contains("escalate")));
    }
}

#[tokio::test]
#[ignore = "needs npm's @copilotkit/aimock: ./test runs it"]
async fn failures_of_the_server_are_errors() {
    let server = Aimock::start(&[]);
    let client = server.client(0);
    for protocol in BOTH {
        for streamed in [false, true] {
            let model = || protocol.model(&client);
            let thought = run(model(), "think", streamed).await.unwrap();
            assert_eq!(thought.text, "42");
            assert_eq!(thought.items[1], "reasoning", "{protocol:?} {streamed}");

            let error = run(model(), "no such fixture", streamed).await.unwrap_err();
            let cause = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
            assert_eq!(
                (cause.kind(), cause.status()),
                (ModelErrorKind::Request, Some(404))
            );
            assert_eq!(cause.code(), Some("no_fixture_match"));
            assert!(!error.to_string().contains("sk-test"));
        }
        let error = run(protocol.model(&client), "torn", true)
            .await
            .unwrap_err();
        let cause = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
        assert_eq!(
            cause.kind(),
            ModelErrorKind::Interrupted,
            "{protocol:?}: {error}"
        );
    }
    for protocol in BOTH {
        let error = run(protocol.model(&client), "cutoff", false).await;
        let error = error.unwrap_err();
        let cause = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
        assert_eq!(cause.kind(), ModelErrorKind::Incomplete, "{protocol:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's @copilotkit/aimock: ./test runs it"]
async fn under_chaos_runs_succeed_or_end_with_a_model_error() {
    let chaos = [
        "--chaos-drop",
        "0.2",
        "--chaos-malformed",
        "0.2",
        "--chaos-disconnect",
        "0.2",
        "--chaos-ratelimit",
        "0.2",
    ];
    let server = Aimock::start(&chaos);
    let client = server.client(6);
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..500 {
        let model = BOTH[number % 2].model(&client);
        let input = ["My bill is wrong", "Please escalate this", "I want both"][number % 3];
        let streamed = number % 4 < 2;
        runs.spawn(async move {
            // Detects a run that hangs.
            let limit = Duration::from_secs(240);
            tokio::time::timeout(limit, run(model, input, streamed)).await
        });
    }
    let (mut succeeded, mut failed) = (0, Vec::new());
    while let Some(outcome) = runs.join_next().await {
        match outcome.unwrap().expect("a run hangs") {
            Ok(outcome) => {
                let answers = [
                    "Your bill is fixed. 账单已更正。",
                    "A person will call you.",
                    "It ships today.",
                ];
                assert!(answers.contains(&&*outcome.text), "{outcome:?}");
                succeeded += 1;
            }
            Err(error) => {
                let cause = error
                    .cause()
                    .and_then(|cause| cause.downcast_ref::<ModelError>());
                let cause = cause.unwrap_or_else(|| panic!("{error}"));
                let expected = [
                    ModelErrorKind::Server,
                    ModelErrorKind::RateLimit,
                    ModelErrorKind::BadAnswer,
                    ModelErrorKind::Connection,
                    ModelErrorKind::Interrupted,
                ];
                assert!(expected.contains(&cause.kind()), "{error}");
                assert_eq!(cause.attempts(), 7, "{error}");
                failed.push(error.to_string());
            }
        }
    }
    println!("{succeeded} succeeded, {} failed", failed.len());
    for error in failed.iter().take(5) {
        println!("{error}");
    }
    assert!(succeeded >= 400, "{succeeded} of 500 succeeded");
}
