//! A redaction of a handoff holds for everything that the next agent gets by it, whatever the order of its filters.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::filters::{self, Filter, IntoFilter as _, Redaction};
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::handoff::{HandoffDecision, HandoffInputData, PayloadDelivery};
use switchboard_core::run::{FanOut, HandoffPolicy, SeveralHandoffs};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Handoff, Item, RunContext, Runner, handoff};

use crate::approvals::{Ran, decide_all};
use crate::stored;
use crate::stored_runs::assert_fits_schema;

#[derive(Debug, Deserialize, JsonSchema)]
struct Paid {
    card: String,
    n: u32,
}

const CARD: &str = "4111 1111 1111 1111";
const PAYLOAD: &str = r#"{"card": "4111 1111 1111 1111", "n": 7}"#;
const SHOWN: &str = r#"A has handed the conversation over with this: {"card":"[CARD]","n":7}"#;

fn redact() -> Filter {
    filters::redact_pii()
}

/// B, whose instructions are what it has got in its context.
fn reader() -> Agent {
    Agent::new("B").instructions_fn(|ctx: RunContext, _agent| {
        let got = ctx.handoff_payload::<Paid>();
        got.map_or_else(
            || "None".to_owned(),
            |got| format!("{} {}", got.card, got.n),
        )
    })
}

/// A handoff to B, whose callback notes the card that it gets.
fn edge(filter: Filter, ways: &[PayloadDelivery], ran: &Ran) -> Handoff {
    let ran = ran.clone();
    let edge = handoff(reader())
        .payload::<Paid>()
        .on_handoff(move |_ctx, paid| ran.add(paid.card))
        .filter(filter);
    let edge = ways.iter().fold(edge, |edge, way| edge.deliver(*way));
    edge.build()
}

/// The system prompt and the items of a request, as one text.
fn sent(model: &ScriptedModel, request: usize) -> String {
    let request = &model.requests()[request];
    let items: Vec<&str> = request.input.iter().map(Item::as_json).collect();
    let instructions = request.instructions.as_deref().unwrap_or_default();
    format!("{instructions}\n{}", items.join("\n"))
}

async fn ask(edge: impl Into<Handoff>, said: &str) -> ScriptedModel {
    let model = ScriptedModel::new()
        .reply([
            Item::assistant(format!("I pass {said} on.")),
            Item::function_call("c1", "transfer_to_b", PAYLOAD),
        ])
        .say("Ok.");
    let a = Agent::new("A").handoff(edge.into());
    let runner = Runner::new(&a).model(model.clone());
    let result = runner.run(format!("My card is {said}")).await.unwrap();
    // The record of the run has the originals.
    assert_eq!(result.handoffs()[0].payload["card"], CARD);
    model
}

fn assert_is_hidden(sent: &str) {
    assert!(!sent.contains("4111"), "{sent}");
    assert!(sent.contains("[CARD]"), "{sent}");
}

#[tokio::test]
async fn a_payload_is_redacted_in_every_delivery() {
    use PayloadDelivery::{Context, Instructions, Message};
    let orders: [fn() -> Filter; 4] = [
        redact,
        || redact().then(filters::payload()),
        || filters::payload().then(redact()),
        || filters::keep_last(0).then(redact()),
    ];
    for filter in orders {
        for ways in [
            &[Message][..],
            &[Instructions],
            &[Context],
            &[Message, Context],
        ] {
            let ran = Ran::default();
            let sent = sent(&ask(edge(filter(), ways, &ran), CARD).await, 1);
            assert_is_hidden(&sent);
            assert_eq!(
                sent.starts_with("[CARD] 7"),
                ways.contains(&Context) || ways == [Instructions]
            );
            let is_shown = sent.replace('\\', "").contains(SHOWN);
            assert!(is_shown || ways == [Context], "{sent}");
            assert_eq!(ran.take(), [CARD]);
        }
    }
    // Without a redaction it is as it was.
    let sent = sent(
        &ask(
            edge(filters::keep_last(0), &[Message], &Ran::default()),
            CARD,
        )
        .await,
        1,
    );
    assert!(sent.contains(CARD));
}

#[tokio::test]
async fn the_filter_of_the_run_hides_it_too() {
    let edge = handoff(reader())
        .payload::<Paid>()
        .on_handoff(|_ctx, _paid| ())
        .deliver(PayloadDelivery::Instructions)
        .build();
    let model = ScriptedModel::new()
        .call("transfer_to_b", PAYLOAD)
        .say("Ok.");
    let a = Agent::new("A").handoff(edge);
    let runner = Runner::new(&a)
        .model(model.clone())
        .handoff_input_filter(redact());
    runner.run("Pay").await.unwrap();
    assert_is_hidden(&sent(&model, 1));
}

#[tokio::test]
async fn it_stays_hidden_in_later_messages_and_the_record_has_it() {
    for way in [PayloadDelivery::Message, PayloadDelivery::Instructions] {
        let model = ScriptedModel::new()
            .call("transfer_to_b", PAYLOAD)
            .say("Which?")
            .say("Yes.");
        let a = Agent::new("A").handoff(edge(redact(), &[way], &Ran::default()));
        let session = Conversations::in_memory().get("c");
        let runner = Runner::new(&a).model(model.clone()).session(&session);
        runner.run("Pay").await.unwrap();
        runner.run("The first").await.unwrap();
        for request in [1, 2] {
            assert_is_hidden(&sent(&model, request));
        }
        let record = session.record(None).await.unwrap();
        assert!(format!("{record:?}").contains("4111"));
        let view = session.view().await.unwrap();
        assert!(view.iter().all(|item| !item.as_json().contains("4111")));
    }
}

#[tokio::test]
async fn a_nested_history_behind_a_redaction_hides_the_handoff_itself() {
    for filter in [
        redact().then(filters::nest_history()),
        filters::nest_history().then(redact()),
    ] {
        let sent = sent(&ask(edge(filter, &[], &Ran::default()), CARD).await, 1);
        assert_is_hidden(&sent);
        assert!(sent.contains("I pass [CARD] on."), "{sent}");
        assert!(sent.contains("transfer_to_b"), "{sent}");
    }
}

#[tokio::test]
async fn what_a_later_filter_adds_is_redacted_and_placeholders_are_not_redacted_again() {
    // A filter that shows the items of the turn again, as the session has them.
    let shows_again = Filter::new(|data: HandoffInputData| {
        let made = data.new_items().clone();
        data.with_input_items(made.iter().cloned())
    });
    let added = filters::note(|data: &HandoffInputData| {
        let payload = data.payload().cloned().unwrap_or_default();
        format!("{payload} and {CARD}")
    });
    let own = Redaction::new().pattern("CUST-[0-9]+", "<CUST-0>").unwrap();
    let filter = own.into_filter().then(shows_again).then(added);
    let model = ask(
        edge(filter, &[PayloadDelivery::Message], &Ran::default()),
        "CUST-55",
    )
    .await;
    let sent = sent(&model, 1).replace('\\', "");
    assert_is_hidden(&sent);
    assert!(
        sent.contains(r#"{"card":"[CARD]","n":7} and [CARD]"#),
        "{sent}"
    );
    assert!(sent.contains("My card is <CUST-0>\""), "{sent}");
    assert!(!sent.contains("CUST-55"), "{sent}");
}

#[tokio::test]
async fn a_redacted_note_is_replaced_by_the_note_of_the_next_handoff() {
    let c: Agent = Agent::new("C");
    let note = |text: &'static str| filters::note(move |_: &HandoffInputData| text);
    let to_c = handoff(&c).filter(note("Second."));
    let b = Agent::new("B").handoff(to_c);
    let first = note("Call 4111 1111 1111 1111 first.").then(redact());
    let a = Agent::new("A").handoff(handoff(&b).filter(first));
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .say("Ok.");
    Runner::new(&a)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert!(sent(&model, 1).contains("Call [CARD] first."));
    assert!(!sent(&model, 2).contains("first."), "{}", sent(&model, 2));
}

#[tokio::test]
async fn a_result_that_is_handed_back_behind_a_filter_is_redacted() {
    let b: Agent = Agent::new("B");
    let edge = handoff(&b).returns_schema(json!({
        "type": "object", "properties": {"card": {"type": "string"}}, "required": ["card"],
        "additionalProperties": false,
    }));
    let a = Agent::new("A").handoff(edge);
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("hand_back", r#"{"card": "4111 1111 1111 1111"}"#)
        .say("Ok.");
    let filter = redact().then(filters::remove_all_tools());
    let runner = Runner::new(&a)
        .model(model.clone())
        .handoff_input_filter(filter);
    runner.run("Hi").await.unwrap();
    assert_is_hidden(&sent(&model, 2));
}

#[tokio::test]
async fn numbers_keys_and_texts_of_a_payload_are_redacted_by_what_they_are() {
    let payload = json!({
        "card": 4_111_111_111_111_111_u64, "ssn": "123456789", "count": 123_456_789,
        "by": {"ann@example.com": [true, "X1234567"]}, "passport": {"number": "X1234567"},
    });
    let data = HandoffInputData::new("Hi", vec![], vec![], RunContext::new(()));
    let data = redact()
        .apply(data.with_payload(Some(payload)))
        .await
        .unwrap();
    let expected = json!({
        "card": "[CARD]", "ssn": "[SSN]", "count": 123_456_789,
        "by": {"[EMAIL]": [true, "X1234567"]}, "passport": {"number": "[PASSPORT]"},
    });
    assert_eq!(data.payload(), Some(&expected));
    let data = HandoffInputData::new("Hi", vec![], vec![], RunContext::new(()));
    let text = Value::from("ann@example.com");
    let data = redact().apply(data.with_payload(Some(text))).await.unwrap();
    assert_eq!(data.payload(), Some(&"[EMAIL]".into()));
}

#[tokio::test]
async fn a_redirect_gives_a_redacted_payload() {
    let night: Agent = Agent::new("Night");
    let to_night = handoff(&night)
        .on_handoff(|_ctx| HandoffDecision::redirect_with("B", json!({"card": CARD, "n": 1})));
    let to_b = edge(redact(), &[PayloadDelivery::Context], &Ran::default());
    let a = Agent::new("A").handoff(to_night).handoff(to_b);
    let model = ScriptedModel::new()
        .call("transfer_to_night", "{}")
        .say("Ok.");
    Runner::new(&a)
        .model(model.clone())
        .run("Hi")
        .await
        .unwrap();
    assert!(
        sent(&model, 1).starts_with("[CARD] 1"),
        "{}",
        sent(&model, 1)
    );
}

#[tokio::test]
async fn a_person_is_shown_a_redacted_payload() {
    let schema = json!({"type": "object", "properties": {"card": {"type": "string"}}});
    let to_ann = handoff(Agent::person("Ann"))
        .payload_schema(schema)
        .filter(redact());
    let a = Agent::new("A").handoff(to_ann);
    let model = ScriptedModel::new().call("transfer_to_ann", PAYLOAD);
    let runner = Runner::new(&a).model(model.clone());
    let result = runner.run("Hi").await.unwrap();
    let asked = result.run().interruptions();
    assert_eq!(&*asked[0].arguments, r#"{"card":"[CARD]","n":7}"#);
}

#[tokio::test]
async fn agents_that_answer_side_by_side_get_redacted_payloads() {
    let to_b = edge(redact(), &[PayloadDelivery::Context], &Ran::default());
    let c: Agent = Agent::new("C");
    let a = Agent::new("A").handoff(to_b).handoff(&c);
    let model = ScriptedModel::new()
        .reply([
            Item::function_call("c1", "transfer_to_b", PAYLOAD),
            Item::function_call("c2", "transfer_to_c", "{}"),
        ])
        .say("One.")
        .say("Two.")
        .say("Both.");
    let policy = HandoffPolicy::production().several(SeveralHandoffs::FanOut(FanOut::to_caller()));
    let runner = Runner::new(&a).model(model.clone()).handoff_policy(policy);
    runner.run("Hi").await.unwrap();
    let to_b = (1..3).map(|request| sent(&model, request));
    let to_b = to_b.filter(|sent| sent.contains("[CARD] 7"));
    assert_eq!(to_b.inspect(|sent| assert_is_hidden(sent)).count(), 1);
}

#[tokio::test]
async fn a_stored_run_that_waits_for_a_decision_goes_on_with_the_redacted_payload() {
    let guarded = edge(redact(), &[PayloadDelivery::Context], &Ran::default()).to_builder();
    let guarded = guarded
        .guardrail(HandoffGuardrail::new("ask", |_request| {
            HandoffVerdict::AskApproval
        }))
        .build();
    let a = Agent::new("A").handoff(guarded);
    let model = ScriptedModel::new()
        .call("transfer_to_b", PAYLOAD)
        .say("Ok.");
    let runner = Runner::new(&a).model(model.clone());
    let result = runner.run("Hi").await.unwrap();
    assert_fits_schema(result.run());
    let mut run = stored(result.run());
    decide_all(&mut run, &Decision::approve());
    runner.resume(run).await.unwrap();
    assert_is_hidden(&sent(&model, 1));
    assert!(sent(&model, 1).starts_with("[CARD] 7"));
}
