//! Decisions and states of somebody who tries what is not meant to work.

use std::time::Instant;

use serde_json::{Value, json};
use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::conversation::Conversations;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::run::{RunStatus, StateErrorKind, StateLimits};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, EventKind, Item, Run, RunConfig, Runner, Step, filters, handoff, tool,
};

use super::{Ran, decide_all, desk};
use crate::{described, stored};

fn refund(id: &str) -> Item {
    Item::function_call(id, "refund", "{}")
}

fn call(id: &str, name: &str) -> Item {
    Item::function_call(id, name, "{}")
}

/// A model of an agent used as a tool.
fn with_model(model: ScriptedModel) -> RunConfig<()> {
    RunConfig {
        model: Some(model.into()),
        ..RunConfig::default()
    }
}

#[tokio::test]
async fn a_standing_approval_of_one_handoff_is_none_of_the_agent_it_is_redirected_to() {
    let events = Ran::default();
    let (asked, taken) = (events.clone(), events.clone());
    let deputy: Agent = Agent::new("Deputy");
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .handoff(handoff(&boss).needs_approval().on_handoff(move |_ctx| {
            asked.add("boss");
            HandoffDecision::redirect("Deputy")
        }))
        .handoff(
            handoff(&deputy)
                .needs_approval()
                .on_handoff(move |_ctx| taken.add("deputy")),
        );
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_boss")])
        .say("Hello.");
    let runner = Runner::new(&clerk).model(model);
    let mut run = runner.run("Hi").await.unwrap().into_run();
    let waiting = decide_all(&mut run, &Decision::approve().always());
    assert_eq!(
        waiting[0].kind,
        InterruptionKind::Handoff { to: "Boss".into() }
    );

    let mut run = runner.resume(run).await.unwrap().into_run();

    // The person is asked about the agent that would get the conversation.
    let redirected = run.interruptions();
    let deputy = InterruptionKind::Handoff {
        to: "Deputy".into(),
    };
    assert_eq!(redirected[0].kind, deputy);
    assert_eq!(events.take(), ["boss"]);
    assert!(run.decide(&waiting[0], Decision::approve()).is_err());
    run.decide(&redirected[0], Decision::approve()).unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.last_agent().name(), "Deputy");
    assert_eq!(events.take(), ["deputy"]);
}

#[tokio::test]
async fn a_handoff_whose_callback_has_run_cannot_be_rejected_any_more() {
    let fails = Ran::default();
    let failing = fails.clone();
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(
        handoff(&boss)
            .needs_approval()
            .on_handoff(|_ctx| ())
            .filter(filters::Filter::new(move |data| {
                if failing.take().is_empty() {
                    failing.add("failed");
                    return Err("not yet");
                }
                Ok(data)
            })),
    );
    let model = ScriptedModel::new()
        .reply([call("c1", "transfer_to_boss")])
        .say("Hello.");
    let runner = Runner::new(&clerk).model(model);
    let mut run = runner.run("Hi").await.unwrap().into_run();
    let waiting = decide_all(&mut run, &Decision::approve());
    let error = runner.resume(run).await.unwrap_err();
    let mut run = error.into_run().unwrap();

    let refused = run.decide(&waiting[0], Decision::reject()).unwrap_err();

    assert!(refused.to_string().contains("nothing waits"), "{refused}");
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");
}

#[tokio::test]
async fn an_agent_tool_whose_run_has_begun_cannot_be_rejected_any_more() {
    let ran = Ran::default();
    let expert = desk(&ran).model(ScriptedModel::new().reply([refund("e1")]).say("Paid."));
    let agent: Agent = Agent::new("Front").tool(expert.as_tool("ask").needs_approval());
    let ask = Item::function_call("a1", "ask", r#"{"input":"x"}"#);
    let model = ScriptedModel::new().reply([ask]).say("Done.");
    let runner = Runner::new(&agent.model(model));
    let mut run = runner.run("Money!").await.unwrap().into_run();
    let outer = decide_all(&mut run, &Decision::approve());
    let mut run = runner.resume(run).await.unwrap().into_run();

    let refused = run.decide(&outer[0], Decision::reject()).unwrap_err();

    assert!(
        refused.to_string().contains("these calls wait: refund"),
        "{refused}"
    );
    decide_all(&mut run, &Decision::reject());
    assert_eq!(runner.resume(run).await.unwrap().final_text(), "Done.");
    assert_eq!(ran.take(), [""; 0]);
}

#[tokio::test]
async fn a_decision_with_any_field_forged_is_refused() {
    let ran = Ran::default();
    let expert = desk(&ran).model(ScriptedModel::new().reply([refund("c1")]).say("Paid."));
    let agent: Agent = desk(&ran).tool(expert.as_tool("ask"));
    let ask = Item::function_call("a1", "ask", r#"{"input":"x"}"#);
    let model = ScriptedModel::new().reply([ask, refund("c2")]);
    let runner = Runner::new(&agent.model(model));
    let mut run = runner.run("Money!").await.unwrap().into_run();
    let before = serde_json::to_string(&run).unwrap();
    for waiting in run.interruptions() {
        let value = serde_json::to_value(&waiting).unwrap();
        for (field, forged) in [
            ("kind", json!("agent_tool")),
            ("kind", json!({"handoff": {"to": "Desk"}})),
            ("kind", json!({"hosted_tool": {"server": "Desk"}})),
            ("agent", json!("Front")),
            ("tool", json!("lookup")),
            ("call_id", json!("c3")),
            ("call_id", json!("")),
            ("arguments", json!("{ }")),
            ("inside", json!(["c2"])),
            ("inside", json!(["a1", "c1"])),
            ("inside", json!(["a1", "a1"])),
        ] {
            let mut changed = value.clone();
            changed[field] = forged;
            let forged = serde_json::from_value(changed).unwrap();
            assert!(
                run.decide(&forged, Decision::approve()).is_err(),
                "{forged:?}"
            );
        }
        // The place of the other one.
        let mut elsewhere = value.clone();
        elsewhere["inside"] = if waiting.inside.is_empty() {
            json!(["a1"])
        } else {
            json!([])
        };
        let elsewhere = serde_json::from_value(elsewhere).unwrap();
        assert!(run.decide(&elsewhere, Decision::approve()).is_err());
    }
    assert_eq!(serde_json::to_string(&run).unwrap(), before);
    assert_eq!(ran.take(), [""; 0]);
}

#[tokio::test]
async fn calls_in_an_agent_tool_inside_an_agent_tool_are_decided_one_by_one() {
    let ran = Ran::default();
    let inner_model = ScriptedModel::new()
        .reply([refund("i1"), refund("i2")])
        .say("Inner.");
    let middle_model = ScriptedModel::new()
        .reply([
            Item::function_call("m1", "ask_inner", r#"{"input":"x"}"#),
            refund("m2"),
        ])
        .say("Middle.");
    let inner = desk(&ran);
    let middle = desk(&ran).tool(inner.as_tool("ask_inner").config(with_model(inner_model)));
    let outer: Agent = desk(&ran).tool(
        middle
            .as_tool("ask_middle")
            .config(with_model(middle_model)),
    );
    let ask = Item::function_call("o1", "ask_middle", r#"{"input":"x"}"#);
    let model = ScriptedModel::new()
        .reply([ask, refund("o2")])
        .say("Outer.");
    let runner = Runner::new(&outer).model(model.clone());

    let mut run = runner.run("Money!").await.unwrap().into_run();
    let mut order = Vec::new();
    while run.step() == Step::AwaitDecision {
        let waiting = run.interruptions().pop().unwrap();
        order.push(format!(
            "{} in {}",
            waiting.call_id,
            waiting.inside.join("/")
        ));
        run.decide(&waiting, Decision::approve()).unwrap();
        run = runner.resume(stored(&run)).await.unwrap().into_run();
    }

    assert_eq!(order, ["o2 in ", "m2 in o1", "i2 in o1/m1", "i1 in o1/m1"]);
    assert_eq!(ran.take().len(), 4);
    let shown = described(&model.requests()[1].input);
    let outputs: Vec<&String> = shown
        .iter()
        .filter(|item| item.starts_with("output"))
        .collect();
    assert_eq!(outputs, ["output of o2: refunded", "output of o1: Middle."]);
}

#[tokio::test]
async fn a_handoff_beside_calls_that_wait_is_taken_once_all_are_decided() {
    for decision in [Decision::approve(), Decision::reject()] {
        let ran = Ran::default();
        let called = ran.clone();
        let boss: Agent = Agent::new("Boss");
        let agent = desk(&ran).handoff(
            handoff(&boss)
                .needs_approval()
                .guardrail(HandoffGuardrail::new("g", |_request| HandoffVerdict::Allow))
                .on_handoff(move |_ctx| called.add("callback")),
        );
        let model = ScriptedModel::new()
            .reply([
                refund("c1"),
                call("c2", "transfer_to_boss"),
                call("c3", "lookup"),
            ])
            .say("Done.");
        let runner = Runner::new(&agent).model(model.clone());
        let mut run = runner.run("Money!").await.unwrap().into_run();
        assert_eq!(ran.take(), ["lookup"]);
        assert_eq!(decide_all(&mut run, &decision).len(), 1);
        let mut run = runner.resume(stored(&run)).await.unwrap().into_run();
        let is_approved = decision.is_approved();
        assert_eq!(ran.take().len(), usize::from(is_approved));
        // The handoff waits for a decision of its own.
        let waiting = decide_all(&mut run, &decision);
        assert_eq!(&*waiting[0].call_id, "c2");
        let result = runner.resume(stored(&run)).await.unwrap();
        assert_eq!(ran.take().len(), usize::from(is_approved));
        let agent = if is_approved { "Boss" } else { "Desk" };
        assert_eq!(result.last_agent().name(), agent);
        let shown = described(&model.requests()[1].input);
        let outputs = shown.iter().filter(|item| item.starts_with("output"));
        assert_eq!(outputs.count(), 3, "{shown:?}");
    }
}

#[tokio::test]
async fn a_wait_ends_when_the_conversation_is_undone_and_a_rewind_does_not_bring_it_back() {
    let ran = Ran::default();
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new()
        .say("Hello.")
        .reply([refund("c1")])
        .say("Done.");
    let runner = Runner::new(&desk(&ran))
        .model(model.clone())
        .session(&session);
    runner.run("Hi").await.unwrap();
    runner.run("Money!").await.unwrap();
    let mut before = session.waiting_run().await.unwrap().unwrap();
    decide_all(&mut before, &Decision::approve());
    let end = session.head().await.unwrap().unwrap().revision.next;

    assert!(session.undo().await.unwrap());
    assert!(session.waiting_run().await.unwrap().is_none());
    let error = runner.resume(before).await.unwrap_err();
    assert!(error.to_string().contains("has gone on since"), "{error}");
    assert_eq!(ran.take(), [""; 0]);
    assert_eq!(
        described(&session.view().await.unwrap()),
        ["user: Hi", "assistant: Hello."]
    );

    // What was approved may have run meanwhile, so nobody can decide it again.
    session.rewind(end).await.unwrap();
    assert!(session.waiting_run().await.unwrap().is_none());
    runner.run("Again").await.unwrap();
    let shown = described(&model.requests()[2].input);
    let unanswered = shown.iter().filter(|item| item.starts_with("call"));
    assert_eq!(unanswered.count(), 0, "{shown:?}");
    assert_eq!(ran.take(), [""; 0]);
}

#[tokio::test]
async fn an_interrupted_stream_is_resumed_as_a_stream_with_each_item_once() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new()
        .reply([refund("c1"), call("c2", "lookup")])
        .say("Done.");
    let runner = Runner::new(&agent).model(model);
    let mut events = Vec::new();
    let mut stream = runner.stream("Money!");
    while let Some(event) = stream.next().await {
        events.push(event.kind);
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    let mut run = stored(result.run());
    decide_all(&mut run, &Decision::approve());
    let mut stream = runner.resume_stream(run).unwrap();
    while let Some(event) = stream.next().await {
        events.push(event.kind);
    }
    stream.finish().await.unwrap();
    let started = |id: &str| {
        let is_it = |event: &&EventKind| matches!(event, EventKind::ToolStarted { call_id, .. } if **call_id == *id);
        events.iter().filter(is_it).count()
    };
    assert_eq!((started("c1"), started("c2")), (1, 1));
    let interrupted = |event: &&EventKind| matches!(event, EventKind::RunInterrupted { .. });
    assert_eq!(events.iter().filter(interrupted).count(), 1);
    assert_eq!(ran.take(), ["lookup", "refund {}"]);
}

#[tokio::test]
async fn a_state_that_is_too_large_is_refused_before_it_is_parsed() {
    let agent: Agent = Agent::new("Desk");
    let state = serde_json::to_string(&Runner::new(&agent).begin("Hi")).unwrap();
    let run = Run::from_json(&state).unwrap();
    assert_eq!(serde_json::to_string(&run).unwrap(), state);
    let exact = StateLimits::default().bytes(state.len());
    Run::from_json_within(&state, exact).unwrap();
    // Not JSON at all: it is not looked at.
    let garbage = "x".repeat(state.len() + 1);
    let error = Run::from_json_within(&garbage, exact).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::TooLarge);
    assert!(error.to_string().contains("StateLimits::bytes"), "{error}");
    let error = Run::from_json("{}").unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Invalid);
    let newer = state.replacen(r#""version":5"#, r#""version":6"#, 1);
    let error = Run::from_json(&newer).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::OtherVersion);
}

#[tokio::test]
async fn a_hostile_state_costs_no_more_than_its_length() {
    const CALLS: usize = 20_000;
    let ran = Ran::default();
    let agent = desk(&ran);
    let runner = Runner::new(&agent).model(ScriptedModel::new().reply([refund("c0")]).say("Done."));
    let result = runner.run("Money!").await.unwrap();
    let mut state = serde_json::to_value(result.run()).unwrap();
    let tools = state
        .pointer_mut("/run/position/phase/tools/tools")
        .unwrap();
    let call = tools["calls"][0].clone();
    let approval = tools["approvals"][0].clone();
    tools["calls"] = vec![call; CALLS].into();
    let approvals = (0..CALLS).rev().map(|at| {
        let mut approval = approval.clone();
        approval["at"] = at.into();
        approval
    });
    tools["approvals"] = approvals.collect::<Vec<Value>>().into();
    let text = state.to_string();

    let start = Instant::now();
    let mut run = Run::from_json(&text).unwrap();
    let waiting = run.interruptions();
    assert_eq!(waiting.len(), CALLS);
    assert_eq!(run.step(), Step::AwaitDecision);
    decide_all(&mut run.clone(), &Decision::reject());
    run.decide(&waiting[0], Decision::reject().always())
        .unwrap();
    let _ = runner.resume(run.fork()).await;
    assert_eq!(ran.take(), [""; 0]);
    // Quadratic work would take minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[tokio::test]
async fn deep_json_in_a_state_does_not_exhaust_the_stack() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let runner = Runner::new(&agent).model(ScriptedModel::new().reply([refund("c1")]).say("Done."));
    let result = runner.run("Money!").await.unwrap();
    let state = serde_json::to_string(result.run()).unwrap();
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let depth = 200_000;
    // As an unknown field of an item, in place of the run, and in place of an item.
    for (place, with) in [
        (
            r#"{"type":"function_call""#,
            format!(r#"{{"deep":{},"type":"function_call""#, deep(depth)),
        ),
        (
            r#""version":5"#,
            format!(r#""deep":{},"version":5"#, deep(depth)),
        ),
        (
            r#""position":"#,
            format!(r#""deep":{},"position":"#, deep(depth)),
        ),
        (r#""run":{"#, format!(r#""run":{},"old":{{"#, deep(depth))),
    ] {
        assert!(state.contains(place), "{place}");
        if let Ok(run) = Run::from_json(&state.replacen(place, &with, 1)) {
            let _ = (run.interruptions(), run.to_input_list());
            let _ = runner.resume(run.fork()).await;
        }
    }
    let mut arguments = result.into_run();
    let nested = tool::<()>("refund")
        .needs_approval_if(|_ctx, _arguments| true)
        .run_raw(&json!({"type": "object"}), |_ctx| "done");
    let agent: Agent = Agent::new("Desk").tool(nested);
    let deep_call = Item::function_call("c1", "refund", &format!(r#"{{"a":{}}}"#, deep(depth)));
    let runner = Runner::new(&agent).model(ScriptedModel::new().reply([deep_call]).say("Done."));
    let mut run = stored(runner.run("Money!").await.unwrap().run());
    decide_all(&mut run, &Decision::approve());
    let _ = runner.resume(run).await;
    decide_all(&mut arguments, &Decision::reject());
}
