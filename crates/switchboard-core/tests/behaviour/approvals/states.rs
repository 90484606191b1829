//! Stored states of runs that wait: byte for byte, from every step, and validated.

use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::guardrail::{OutputGuardrail, Verdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, MemorySession, Run, Runner, Step, agent::ToolUseBehavior};

use super::{Ran, decide_all, desk, resume_after};
use crate::{described, stored};

fn refund(id: &str) -> Item {
    Item::function_call(id, "refund", "{}")
}

#[tokio::test]
async fn a_stored_run_is_byte_for_byte_what_it_was_at_every_step() {
    let ran = Ran::default();
    let expert_model = ScriptedModel::new().reply([refund("c1")]).say("It is out.");
    let expert = desk(&ran).model(expert_model);
    let agent: Agent = desk(&ran).tool(expert.as_tool("ask"));
    let ask = Item::function_call("a1", "ask", r#"{"input":"x"}"#);
    let model = ScriptedModel::new().reply([ask, refund("c2")]).say("Done.");
    let runner = Runner::new(&agent.model(model));
    let mut run = runner.begin("Money!");
    let mut waits = 0;
    while !matches!(run.step(), Step::Done(_)) {
        if run.step() == Step::AwaitDecision {
            waits += 1;
            let waiting = run.interruptions();
            run.decide(&waiting[0], Decision::approve()).unwrap();
        }
        runner.step(&mut run).await.unwrap();
        let text = serde_json::to_string(&run).unwrap();
        run = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&run).unwrap(), text);
    }
    assert_eq!(waits, 2);
    assert_eq!(ran.take(), ["refund {}", "refund {}"]);
}

#[tokio::test]
async fn the_session_has_a_call_that_waits_at_once_and_each_item_once() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let session = MemorySession::new();
    let lookup = Item::function_call("c2", "lookup", "{}");
    let model = ScriptedModel::new()
        .reply([refund("c1"), lookup])
        .say("Done.");
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("Money!").await.unwrap();
    let before = [
        "user: Money!",
        "call refund",
        "call lookup",
        "output of c2: account 42",
    ];
    assert_eq!(described(&session.items()), before);
    let mut run = stored(result.run());
    decide_all(&mut run, &Decision::approve());
    runner.resume(run).await.unwrap();
    let after = ["output of c1: refunded", "assistant: Done."];
    let all: Vec<&str> = before.into_iter().chain(after).collect();
    assert_eq!(described(&session.items()), all);
}

#[tokio::test]
async fn an_output_that_guardrails_refuse_after_a_wait_is_nowhere() {
    let ran = Ran::default();
    let agent = desk(&ran)
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(OutputGuardrail::new("g", |_ctx, _agent, _output| {
            Verdict::trip("no")
        }));
    let session = MemorySession::new();
    let lookup = Item::function_call("c2", "lookup", "{}");
    let model = ScriptedModel::new().reply([lookup, refund("c1")]);
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("Money!").await.unwrap();
    assert_eq!(described(&session.items()), [""; 0]);
    let mut run = result.into_run();
    decide_all(&mut run, &Decision::approve());
    let error = runner.resume(run).await.unwrap_err();
    let run = error.into_run().unwrap();
    for text in [
        format!("{:?}", described(&session.items())),
        format!("{:?}", described(&run.to_input_list())),
    ] {
        assert!(!text.contains("account 42"), "{text}");
        assert!(!text.contains("refunded"), "{text}");
    }
}

#[tokio::test]
async fn a_state_that_was_tampered_with_is_refused() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new().reply([refund("c1")]);
    let result = Runner::new(&agent)
        .model(model)
        .run("Money!")
        .await
        .unwrap();
    let state = serde_json::to_value(result.run()).unwrap();
    let changes: [(&str, Value, &str); 3] = [
        (
            "/run/position/phase/tools/recorded",
            json!(9),
            "recorded more items",
        ),
        (
            "/run/position/phase/tools/tools/approvals/0/at",
            json!(4),
            "call 4 among the approvals",
        ),
        ("/version", json!(6), "versions 3 to 5"),
    ];
    for (pointer, value, problem) in changes {
        let mut changed = state.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let error = serde_json::from_str::<Run>(&changed.to_string()).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[tokio::test]
async fn runs_inside_each_other_are_read_to_a_bounded_depth() {
    let ran = Ran::default();
    let expert = desk(&ran).model(ScriptedModel::new().reply([refund("c1")]));
    let agent: Agent = Agent::new("Front").tool(expert.as_tool("ask"));
    let ask = Item::function_call("a1", "ask", r#"{"input":"x"}"#);
    let model = ScriptedModel::new().reply([ask]);
    let result = Runner::new(&agent.model(model))
        .run("Money!")
        .await
        .unwrap();
    let outer = serde_json::to_value(result.run()).unwrap();
    // The items of a run inside another are indexes into the items of that one.
    let mut middle = outer.clone();
    let items = outer["items"].as_array().unwrap().len();
    middle["items"] = (0..items).collect();
    let inner = outer.pointer("/run/position/phase/tools/tools/inner_runs/0/run");
    let inner = inner.unwrap().to_string();
    let (outer, middle) = (outer.to_string(), middle.to_string());
    let (before, after) = outer.split_once(&inner).unwrap();
    let (begin, end) = middle.split_once(&inner).unwrap();
    let nested = |depth: usize| {
        let (begin, end) = (begin.repeat(depth), end.repeat(depth));
        [before, &begin, &inner, &end, after].concat()
    };
    serde_json::from_str::<Run>(&nested(0)).unwrap();
    serde_json::from_str::<Run>(&nested(30)).unwrap();
    for depth in [31, 500] {
        let error = serde_json::from_str::<Run>(&nested(depth)).unwrap_err();
        assert!(error.to_string().contains("more than 32 runs"), "{error}");
    }
}

#[tokio::test]
async fn a_rejection_is_the_final_output_where_the_first_tool_ends_the_run() {
    let ran = Ran::default();
    let agent = desk(&ran).tool_use_behavior(ToolUseBehavior::stop_on_first_tool());
    let model = ScriptedModel::new().reply([refund("c1")]);
    let runner = Runner::new(&agent).model(model);
    let result = runner.run("Money!").await.unwrap();
    let result = resume_after(&runner, result, Decision::reject().message("No.")).await;
    assert_eq!(result.final_text(), "No.");
}
