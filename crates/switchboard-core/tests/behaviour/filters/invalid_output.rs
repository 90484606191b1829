//! Filters of the user that return data that no model should see.

use std::sync::{Arc, Mutex};

use switchboard_core::filters::{Filter, IntoFilter};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::items::{RunItem, RunItemKind};
use switchboard_core::run::HistoryPolicy;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, ErrorKind, Item, MemorySession, RunResult, Runner, filters, handoff, tool,
};

use crate::described;

struct RunOutcome {
    outcome: Result<RunResult, Error>,
    model: ScriptedModel,
    session: MemorySession,
}

/// Runs a turn with a tool and a handoff that has this filter.
async fn run_with<M>(filter: impl IntoFilter<(), M>) -> RunOutcome {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(tool("t").run(|_ctx, (): ()| "1"))
        .handoff(handoff(&boss).filter(filter));
    run(&clerk, |runner| runner).await
}

async fn run(clerk: &Agent, set: impl FnOnce(Runner) -> Runner) -> RunOutcome {
    let model = ScriptedModel::new()
        .reply([
            Item::function_call("c1", "t", "{}"),
            Item::function_call("c2", "transfer_to_boss", "{}"),
        ])
        .say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(clerk)
        .model(model.clone())
        .session(&session)
        .history(HistoryPolicy::Reference);
    RunOutcome {
        outcome: set(runner).run("x").await,
        model,
        session,
    }
}

#[track_caller]
fn assert_rejected(ran: &RunOutcome, reason: &str) {
    let error = ran.outcome.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    let message = error.to_string();
    assert!(message.contains(reason), "{message}");
    let place = "agent \"Clerk\", handoff \"transfer_to_boss\"";
    assert!(message.contains(place), "{message}");
    assert_eq!(
        ran.model.requests().len(),
        1,
        "the model was not called again"
    );
    assert_eq!(error.run().unwrap().agent(), "Clerk");
}

#[tokio::test]
async fn a_filter_that_leaves_nothing_is_rejected() {
    let forget = |data: HandoffInputData| {
        data.with_input_history(Vec::new())
            .with_pre_handoff_items([])
            .with_new_items([])
    };
    let ran = run_with(forget).await;
    assert_rejected(&ran, "the filter left nothing for \"Boss\" to see");
    // A filter of the library after it makes no difference.
    let ran = run_with(Filter::new(forget).then(filters::redact_pii())).await;
    assert_rejected(&ran, "left nothing");

    // A call without an output is not shown, so it does not count.
    let one_call = |data: HandoffInputData| {
        let call = data.new_items()[0].clone();
        data.with_input_history(Vec::new()).with_new_items([call])
    };
    assert_rejected(&run_with(one_call).await, "left nothing");

    // Items that a later filter adds count.
    let add = |data: HandoffInputData| data.with_input_history("Call Ann back.");
    let ran = run_with(filters::keep_last(0).then(forget).then(add)).await;
    ran.outcome.unwrap();
}

#[tokio::test]
async fn a_mapper_that_leaves_nothing_is_rejected() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(tool("t").run(|_ctx, (): ()| "1"))
        .handoff(&boss);
    let ran = run(&clerk, |runner| {
        let runner = runner.nest_handoff_history(true);
        runner.handoff_history_mapper(|_| Vec::new())
    });
    assert_rejected(&ran.await, "the history mapper left nothing");
}

#[tokio::test]
async fn an_item_that_a_filter_made_must_have_a_type_or_a_role() {
    for json in ["{}", r#"{"type":7,"role":[]}"#, r#"{"content":"hi"}"#] {
        let add = move |data: HandoffInputData| {
            let mut history: Vec<Item> = data.history_items().iter().cloned().collect();
            history.push(Item::from_json(json).unwrap());
            data.with_input_history(history)
        };
        let ran = run_with(add).await;
        assert_rejected(&ran, "neither a type nor a role (item 2 of what \"Boss\"");
    }
}

#[tokio::test]
async fn items_of_the_user_are_passed_on_whatever_their_form() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(|data: HandoffInputData| data));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    let odd = Item::from_json(r#"{"note": 1}"#).unwrap();
    let runner = Runner::new(&clerk).model(model.clone());
    let input = vec![odd.clone(), Item::user("x")];
    runner.run(input).await.unwrap();
    assert_eq!(model.requests()[1].input[0], odd);
}

#[tokio::test]
async fn a_session_stores_calls_only_with_their_outputs() {
    let whole = [
        "user: x",
        "call t",
        "call transfer_to_boss",
        "output of c1: 1",
        r#"output of c2: {"assistant": "Boss"}"#,
        "assistant: ok",
    ];
    type Pick = fn(&[RunItem]) -> Vec<RunItem>;
    let cases: [(&str, Pick, &[usize]); 5] = [
        ("all", |items| items.to_vec(), &[0, 1, 2, 3, 4, 5]),
        (
            "an output without its call",
            |items| items[1..].to_vec(),
            &[0, 2, 4, 5],
        ),
        (
            "a call without its output",
            |items| items[..2].to_vec(),
            &[0, 5],
        ),
        (
            "outputs before their calls",
            |items| items.iter().rev().cloned().collect(),
            &[0, 5],
        ),
        (
            "an output of its own",
            |items| {
                let output = Item::function_call_output("nobody", "?");
                let output = RunItem::new(RunItemKind::Other, "Clerk", output);
                items.iter().cloned().chain([output]).collect()
            },
            &[0, 1, 2, 3, 4, 5],
        ),
    ];
    for (what, pick, expected) in cases {
        let filter = move |data: HandoffInputData| {
            let items: Vec<RunItem> = data.new_items().iter().cloned().collect();
            data.with_new_items(pick(&items))
        };
        let ran = run_with(filter).await;
        ran.outcome.unwrap();
        let expected: Vec<&str> = expected.iter().map(|index| whole[*index]).collect();
        assert_eq!(described(&ran.session.items()), expected, "{what}");
    }
}

#[tokio::test]
async fn a_call_that_the_turn_left_open_stays_in_the_session() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(|data: HandoffInputData| data));
    let open = Item::from_json(r#"{"type":"tool_search_call","call_id":"k","id":"ts"}"#).unwrap();
    let call = Item::function_call("c", "transfer_to_boss", "{}");
    let model = ScriptedModel::new().reply([open.clone(), call]).say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&clerk).model(model).session(&session);
    runner.run("x").await.unwrap();
    assert_eq!(session.items()[1], open);
}

#[tokio::test]
async fn pairing_respects_the_order_and_uses_nothing_twice() {
    let boss: Agent = Agent::new("Boss");
    let (call, output) = (Item::function_call("k", "t", "{}"), |text| {
        Item::function_call_output("k", text)
    });
    for (history, expected) in [
        (vec![output("1"), call.clone()], vec![]),
        (
            vec![output("0"), call.clone(), output("1")],
            vec!["call t", "output of k: 1"],
        ),
    ] {
        let filter = move |data: HandoffInputData| {
            let history = history.iter().cloned().chain([Item::user("Go on.")]);
            data.with_input_history(history.collect::<Vec<_>>())
                .with_input_items([])
        };
        let clerk = Agent::new("Clerk")
            .tool(tool("t").run(|_ctx, (): ()| "1"))
            .handoff(handoff(&boss).filter(filter));
        let ran = run(&clerk, |runner| runner.drop_orphaned_calls(true)).await;
        ran.outcome.unwrap();
        let expected: Vec<&str> = expected.into_iter().chain(["user: Go on."]).collect();
        assert_eq!(described(&ran.model.requests()[1].input), expected);
    }
}

/// A subscriber that records warnings.
#[derive(Clone, Default)]
pub(crate) struct Warnings(pub(crate) Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                fields.push_str(&format!("{field}={value:?} "));
            },
        );
        self.0.lock().unwrap().push(fields);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn orphans_that_a_filter_left_cause_one_warning() {
    let boss: Agent = Agent::new("Boss");
    let outputs_only = |data: HandoffInputData| {
        let outputs = data.new_items().clone().into_iter().skip(2);
        data.with_input_items(outputs)
    };
    let clerk = Agent::new("Clerk")
        .tool(tool("t").run(|_ctx, (): ()| "1"))
        .handoff(handoff(&boss).filter(outputs_only));
    // With a single dispatcher, `tracing` asks only the thread that reaches a call site first, which
    // may be another test's.
    let _second = tracing::Dispatch::new(Warnings::default());
    for (drops, expected) in [(false, 1), (true, 0)] {
        let warnings = Warnings::default();
        let _guard = tracing::subscriber::set_default(warnings.clone());
        let ran = run(&clerk, |runner| runner.drop_orphaned_calls(drops)).await;
        ran.outcome.unwrap();
        let warnings = warnings.0.lock().unwrap().clone();
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        for warning in warnings {
            assert!(warning.contains("Runner::drop_orphaned_calls"), "{warning}");
            let fields = "handoff=\"transfer_to_boss\" orphans=2";
            assert!(warning.contains(fields), "{warning}");
        }
    }
}
