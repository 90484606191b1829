//! The results of guardrails, in runs and in traces.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard_core::guardrail::{
    GuardrailKind, GuardrailOutcome, GuardrailResult, HandoffGuardrail, HandoffRequest,
    HandoffVerdict, InputGuardrail, InputVerdict, OutputGuardrail, OutputVerdict, ToolGuardrail,
    ToolVerdict,
};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{Agent, ErrorKind, FinalOutput, Runner, ToolContext, handoff, tool};

use crate::stored;

#[tokio::test]
async fn guardrails_of_the_agent_and_of_the_run_both_have_results() {
    let allow = |name: &str| InputGuardrail::new(name, |_ctx, _agent, _input| ());
    let agent: Agent = Agent::new("A").input_guardrail(allow("agent"));
    let model = ScriptedModel::new().say("Hi.");
    let result = Runner::new(&agent)
        .model(model)
        .input_guardrail(allow("run"))
        .output_guardrail(OutputGuardrail::new(
            "out",
            |_ctx, _agent, output: FinalOutput| {
                OutputVerdict::trip_if(output.text().contains("secret"), Value::Null)
            },
        ))
        .run("x")
        .await
        .unwrap();
    let names: Vec<&str> = result
        .guardrail_results(GuardrailKind::Input)
        .iter()
        .map(|r| &*r.guardrail)
        .collect();
    assert_eq!(names, ["agent", "run"]);
    assert_eq!(result.guardrail_results(GuardrailKind::Output).len(), 1);
}

/// Lists the guardrails with their outcomes and replacements.
fn outcomes(results: &[GuardrailResult]) -> Vec<(&str, GuardrailOutcome, Option<&str>)> {
    results
        .iter()
        .map(|result| {
            let replaced_by = result.replaced_by.as_deref();
            (&*result.guardrail, result.outcome, replaced_by)
        })
        .collect()
}

#[tokio::test]
async fn results_of_tool_guardrails_are_kept() {
    let asked = AtomicUsize::new(0);
    let no_b = ToolGuardrail::on_call("no_b", |ctx: ToolContext| match ctx.tool() {
        "b" => ToolVerdict::replace("Not b."),
        _ => ToolVerdict::Allow,
    });
    let once = ToolGuardrail::on_output("once", move |_ctx: ToolContext, _output| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => ToolVerdict::trip("no"),
            _ => ToolVerdict::replace("hidden"),
        }
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("a").guardrail(once).run(|_ctx, (): ()| "1"))
        .tool(tool("b").run(|_ctx, (): ()| "2"))
        .tool_guardrail(no_b);
    let model = ScriptedModel::new()
        .calls([("a", "{}"), ("b", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model)
        .tool_concurrency(NonZeroUsize::MIN);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolGuardrail);
    let run = stored(error.run().unwrap());
    let (allowed, replaced) = (GuardrailOutcome::Allowed, GuardrailOutcome::Replaced);
    assert_eq!(
        outcomes(run.guardrail_results(GuardrailKind::Tool)),
        [
            ("no_b", allowed, None),
            ("once", GuardrailOutcome::Tripped, None)
        ]
    );
    let result = runner.resume(run).await.unwrap();
    assert_eq!(
        outcomes(result.guardrail_results(GuardrailKind::Tool)),
        [
            ("no_b", allowed, None),
            ("once", replaced, Some("hidden")),
            ("no_b", replaced, Some("Not b."))
        ]
    );
}

fn limit() -> HandoffGuardrail {
    let asked = AtomicUsize::new(0);
    HandoffGuardrail::new("limit", move |_check: HandoffRequest| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => HandoffVerdict::refuse("Not now."),
            1 => HandoffVerdict::trip("no"),
            _ => HandoffVerdict::Allow,
        }
    })
}

#[tokio::test]
async fn results_of_handoff_guardrails_are_kept() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).guardrail(limit()));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .call("transfer_to_boss", "{}")
        .say("ok");
    let runner = Runner::new(&clerk).model(model);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandoffGuardrail);
    let run = stored(error.run().unwrap());
    let refused = ("limit", GuardrailOutcome::Refused, None);
    assert_eq!(
        outcomes(run.guardrail_results(GuardrailKind::Handoff)),
        [refused, ("limit", GuardrailOutcome::Tripped, None)]
    );
    assert_eq!(
        run.guardrail_results(GuardrailKind::Handoff)[0].info,
        "Not now."
    );
    let result = runner.resume(run).await.unwrap();
    assert_eq!(
        outcomes(result.guardrail_results(GuardrailKind::Handoff)),
        [refused, ("limit", GuardrailOutcome::Allowed, None)]
    );
}

#[tokio::test]
async fn spans_have_the_outcomes_of_guardrails_but_no_content() {
    let swap = InputGuardrail::replacing("swap", |_ctx, _agent, _input| {
        InputVerdict::replace("better words")
    });
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .input_guardrail(swap)
        .handoff(handoff(&boss).guardrail(limit()));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .call("transfer_to_boss", "{}");
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&clerk).model(model).tracer(tracer.clone());
    runner.run("x").await.unwrap_err();
    let mut spans = tracer.spans();
    spans.retain(|span| span.data.kind() == "guardrail");
    let outcomes: Vec<&str> = spans
        .iter()
        .filter_map(|span| match &span.data {
            SpanData::Guardrail { outcome, .. } => Some(outcome.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, ["replaced", "refused", "tripped"]);
    assert!(!format!("{spans:?}").contains("better words"));
}

#[tokio::test]
async fn results_that_came_before_a_failure_are_kept() {
    let passed = InputGuardrail::new("passed", |_ctx, _agent, _input| ());
    let fails = InputGuardrail::new("fails", |_ctx, _agent, _input| async {
        tokio::task::yield_now().await;
        Err::<(), _>("no network")
    });
    for is_streamed in [false, true] {
        let agent: Agent = Agent::new("A")
            .input_guardrail(passed.clone())
            .input_guardrail(fails.clone());
        let runner = Runner::new(&agent).model(ScriptedModel::new().say("ok"));
        let error = if is_streamed {
            runner.stream("x").finish().await.unwrap_err()
        } else {
            runner.run("x").await.unwrap_err()
        };
        assert!(error.is_user_code(), "{error}");
        let results = error.run().unwrap().guardrail_results(GuardrailKind::Input);
        assert_eq!(
            outcomes(results),
            [("passed", GuardrailOutcome::Allowed, None)]
        );
    }

    let passed = OutputGuardrail::new("passed", |_ctx, _agent, _output| ());
    let fails = OutputGuardrail::new("fails", |_ctx, _agent, _output| async {
        tokio::task::yield_now().await;
        Err::<(), _>("no network")
    });
    let agent: Agent = Agent::new("A")
        .output_guardrail(passed)
        .output_guardrail(fails);
    let runner = Runner::new(&agent).model(ScriptedModel::new().say("ok"));
    let error = runner.run("x").await.unwrap_err();
    let results = error
        .run()
        .unwrap()
        .guardrail_results(GuardrailKind::Output);
    assert_eq!(
        outcomes(results),
        [("passed", GuardrailOutcome::Allowed, None)]
    );
}

#[tokio::test]
async fn a_verdict_of_any_kind_carries_details() {
    let scored = ToolGuardrail::on_call("scored", |ctx: ToolContext| {
        let score = json!({"score": ctx.call_id()});
        match ctx.call_id() {
            "call_1" => ToolVerdict::Allow.with_info(score),
            _ => ToolVerdict::replace("no").with_info(score),
        }
    });
    let agent: Agent = Agent::new("A").tool(tool("t").guardrail(scored).run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .calls([("t", "{}"), ("t", "{}")])
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let results = result.guardrail_results(GuardrailKind::Tool).iter();
    let infos: Vec<_> = results.map(|result| result.info["score"].clone()).collect();
    assert_eq!(infos, ["call_1", "call_2"]);
}

#[tokio::test]
async fn the_error_of_a_model_comes_at_once_and_cancels_the_guardrails_beside_it() {
    let endless = InputGuardrail::beside_model("endless", |_ctx, _agent, _input| {
        std::future::pending::<()>()
    });
    let agent: Agent = Agent::new("A").input_guardrail(endless);
    let runner = Runner::new(&agent).model(ScriptedModel::new().fail("overloaded"));
    let error = runner.run("x").await.unwrap_err();
    assert!(error.is_model(), "{error}");
}
