//! Decisions that a run takes or refuses, and their consequences.

use serde_json::json;
use switchboard_core::approval::{Decision, Interruption, InterruptionKind};
use switchboard_core::run::RunStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{EventKind, Item, Runner, Step};

use super::{Ran, decide_all, desk, resume_after};
use crate::described;

fn refund(id: &str, amount: u32) -> Item {
    Item::function_call(id, "refund", &json!({"amount": amount}).to_string())
}

#[tokio::test]
async fn what_needs_no_approval_runs_at_once_and_the_rest_waits() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let lookup = Item::function_call("c2", "lookup", "{}");
    let model = ScriptedModel::new()
        .reply([refund("c1", 50), lookup])
        .say("Done.");
    let runner = Runner::new(&agent).model(model.clone());

    let result = runner.run("Money!").await.unwrap();

    assert_eq!(result.status(), RunStatus::Interrupted);
    assert_eq!(result.final_output(), None);
    assert_eq!(result.run().step(), Step::AwaitDecision);
    assert_eq!(ran.take(), ["lookup"]);
    let waiting = result.interruptions();
    let expected = json!([{
        "kind": "tool", "agent": "Desk", "tool": "refund", "call_id": "c1",
        "arguments": "{\"amount\":50}",
    }]);
    assert_eq!(serde_json::to_value(&waiting).unwrap(), expected);

    let result = resume_after(&runner, result, Decision::approve()).await;
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), ["refund {\"amount\":50}"]);
    assert_eq!(
        described(&model.requests()[1].input),
        [
            "user: Money!",
            "call refund",
            "call lookup",
            "output of c2: account 42",
            "output of c1: refunded",
        ]
    );
}

#[tokio::test]
async fn a_rejected_call_is_answered_and_does_not_run() {
    for (decision, answer) in [
        (Decision::reject(), "Tool execution was not approved."),
        (
            Decision::reject().message("Ask a manager."),
            "Ask a manager.",
        ),
    ] {
        let ran = Ran::default();
        let agent = desk(&ran);
        let model = ScriptedModel::new().reply([refund("c1", 50)]).say("Sorry.");
        let runner = Runner::new(&agent).model(model.clone());
        let result = runner.run("Money!").await.unwrap();
        let result = resume_after(&runner, result, decision).await;
        assert_eq!(result.final_text(), "Sorry.");
        assert_eq!(ran.take(), [""; 0]);
        let shown = described(&model.requests()[1].input);
        assert_eq!(shown[2], format!("output of c1: {answer}"));
    }
}

#[tokio::test]
async fn a_decision_binds_the_call_its_tool_its_arguments_and_its_agent() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new().reply([refund("c1", 50)]);
    let result = Runner::new(&agent)
        .model(model)
        .run("Money!")
        .await
        .unwrap();
    let mut run = result.into_run();
    let waiting = serde_json::to_value(&run.interruptions()[0]).unwrap();
    for (field, other) in [
        ("call_id", json!("c2")),
        ("tool", json!("lookup")),
        ("arguments", json!("{\"amount\":5000}")),
        ("agent", json!("Boss")),
        ("kind", json!("agent_tool")),
        ("inside", json!(["a1"])),
    ] {
        let mut changed = waiting.clone();
        changed[field] = other;
        let changed: Interruption = serde_json::from_value(changed).unwrap();
        let before = serde_json::to_string(&run).unwrap();
        let error = run.decide(&changed, Decision::approve()).unwrap_err();
        assert!(error.to_string().contains("refund (call c1)"), "{error}");
        assert_eq!(serde_json::to_string(&run).unwrap(), before);
    }
    let waiting: Interruption = serde_json::from_value(waiting).unwrap();
    assert_eq!(waiting.kind, InterruptionKind::Tool);
    run.decide(&waiting, Decision::approve()).unwrap();
    assert_eq!(run.interruptions(), []);
    assert!(matches!(run.step(), Step::RunTools(_)));
}

#[tokio::test]
async fn a_call_that_ran_cannot_be_decided_again() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new().reply([refund("c1", 1), refund("c2", 2)]);
    let runner = Runner::new(&agent).model(model);
    let mut run = runner.run("Money!").await.unwrap().into_run();
    let waiting = run.interruptions();
    run.decide(&waiting[0], Decision::approve()).unwrap();
    let mut run = runner.resume(run).await.unwrap().into_run();

    assert_eq!(run.interruptions(), [waiting[1].clone()]);
    let error = run.decide(&waiting[0], Decision::reject()).unwrap_err();
    assert!(error.to_string().contains("refund (call c2)"), "{error}");
    assert_eq!(ran.take(), ["refund {\"amount\":1}"]);
}

#[tokio::test]
async fn a_standing_decision_is_for_one_tool_of_one_agent_until_the_run_ends() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new()
        .reply([refund("c1", 1), refund("c2", 2), refund("c3", 3)])
        .reply([refund("c4", 4)])
        .say("Done.")
        .reply([refund("c5", 5)]);
    let runner = Runner::new(&agent).model(model);
    let mut run = runner.run("Money!").await.unwrap().into_run();
    let waiting = run.interruptions();
    run.decide(&waiting[1], Decision::reject()).unwrap();
    run.decide(&waiting[0], Decision::approve().always())
        .unwrap();
    assert_eq!(run.interruptions(), []);

    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(
        ran.take(),
        [
            "refund {\"amount\":1}",
            "refund {\"amount\":3}",
            "refund {\"amount\":4}"
        ]
    );

    let again = runner.run("More!").await.unwrap();
    assert_eq!(again.status(), RunStatus::Interrupted);
}

#[tokio::test]
async fn the_last_event_of_a_stream_has_what_waits() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new().reply([refund("c1", 50)]).say("Done.");
    let runner = Runner::new(&agent).model(model);
    let mut stream = runner.stream("Money!");
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event.kind);
    }
    let result = stream.finish().await.unwrap();
    let Some(EventKind::RunInterrupted {
        interruptions,
        turns,
        ..
    }) = last
    else {
        panic!("{last:?}");
    };
    assert_eq!((interruptions, turns), (result.interruptions(), 1));

    let mut run = result.into_run();
    decide_all(&mut run, &Decision::approve());
    let mut stream = runner.resume_stream(run).unwrap();
    let mut names = Vec::new();
    while let Some(event) = stream.next().await {
        names.push(event.kind.name().to_owned());
    }
    assert_eq!(names.iter().filter(|name| *name == "tool_ended").count(), 1);
    assert_eq!(names.last().map(String::as_str), Some("run_finished"));
}

#[tokio::test]
async fn input_that_is_added_comes_after_the_outputs() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new().reply([refund("c1", 50)]).say("Hello.");
    let runner = Runner::new(&agent).model(model.clone());
    let mut run = runner.run("Money!").await.unwrap().into_run();
    run.add_input("Are you there?").unwrap();

    let still = runner.resume(run).await.unwrap();
    assert_eq!(still.status(), RunStatus::Interrupted);
    let result = resume_after(&runner, still, Decision::approve()).await;

    assert_eq!(result.final_text(), "Hello.");
    assert_eq!(
        described(&model.requests()[1].input),
        [
            "user: Money!",
            "call refund",
            "output of c1: refunded",
            "user: Are you there?",
        ]
    );
    let mut run = result.into_run();
    let error = run.add_input("Too late").unwrap_err();
    assert!(error.to_string().contains("begin a new run"), "{error}");
}

#[tokio::test]
async fn a_tool_that_is_rejected_for_always_runs_in_no_case() {
    let ran = Ran::default();
    let noted = ran.clone();
    let arguments = json!({"type": "object"});
    let refund_tool = switchboard_core::tool::<()>("refund")
        .needs_approval_if(|_ctx, arguments| arguments["amount"].as_u64() > Some(100))
        .run_raw(&arguments, move |_ctx| {
            noted.add("refund");
            "refunded"
        });
    let agent = switchboard_core::Agent::new("Desk").tool(refund_tool);
    let model = ScriptedModel::new()
        .reply([refund("c1", 500)])
        .reply([refund("c2", 5)])
        .say("Sorry.");
    let runner = Runner::new(&agent).model(model);
    let result = runner.run("Money!").await.unwrap();
    let result = resume_after(&runner, result, Decision::reject().always()).await;
    assert_eq!(result.final_text(), "Sorry.");
    assert_eq!(ran.take(), [""; 0]);
}

#[tokio::test]
async fn no_input_is_added_where_the_result_of_a_tool_may_end_the_run() {
    let ran = Ran::default();
    let behavior = switchboard_core::agent::ToolUseBehavior::stop_on_first_tool();
    let agent = desk(&ran).tool_use_behavior(behavior);
    let model = ScriptedModel::new().reply([refund("c1", 50)]);
    let result = Runner::new(&agent)
        .model(model)
        .run("Money!")
        .await
        .unwrap();
    let mut run = result.into_run();
    let error = run.add_input("Hello?").unwrap_err();
    assert!(error.to_string().contains("may end the run"), "{error}");
}
