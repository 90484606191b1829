//! What guardrails on tools and handoffs found is kept and told.

use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, GuardrailOutcome, GuardrailResult, HandoffGuardrail, HandoffRequest,
    HandoffVerdict, InputGuardrail, InputVerdict, MemoryTracer, Runner, SpanData, ToolContext,
    ToolGuardrail, ToolVerdict, handoff, tool,
};

use crate::{stored, told};

/// Which guardrails, what came of them, and what they put in place of what they looked at.
fn listed(found: &[GuardrailResult]) -> Vec<(&str, GuardrailOutcome, Option<&str>)> {
    found
        .iter()
        .map(|found| {
            let said = found.replaced_by.as_deref();
            (&*found.guardrail, found.outcome, said)
        })
        .collect()
}

#[tokio::test]
async fn what_guardrails_on_tools_found_is_kept() {
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
        .tool_concurrency(std::num::NonZeroUsize::MIN);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolGuardrail);
    let run = stored(error.run().unwrap());
    let (allowed, replaced) = (GuardrailOutcome::Allowed, GuardrailOutcome::Replaced);
    assert_eq!(
        listed(run.tool_guardrail_results()),
        [
            ("no_b", allowed, None),
            ("once", GuardrailOutcome::Tripped, None)
        ]
    );
    let result = runner.resume(run).await.unwrap();
    assert_eq!(
        listed(result.tool_guardrail_results()),
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
async fn what_guardrails_on_handoffs_found_is_kept() {
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
        listed(run.handoff_guardrail_results()),
        [refused, ("limit", GuardrailOutcome::Tripped, None)]
    );
    assert_eq!(run.handoff_guardrail_results()[0].verdict.info, "Not now.");
    let result = runner.resume(run).await.unwrap();
    assert_eq!(
        listed(result.handoff_guardrail_results()),
        [refused, ("limit", GuardrailOutcome::Allowed, None)]
    );
}

#[tokio::test]
async fn spans_say_what_came_of_guardrails_and_not_what_was_said() {
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
    let spans = tracer.spans();
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
async fn a_guarded_edge_carries_over_what_an_unguarded_one_does() {
    let run = |is_guarded: bool| async move {
        let last: Agent = Agent::new("Last");
        let mut edge = handoff(&last);
        if is_guarded {
            edge = edge.guardrail(HandoffGuardrail::new("all", |_check: HandoffRequest| ()));
        }
        let middle = Agent::new("Middle").handoff(edge);
        let first = Agent::new("First").handoff(handoff(&middle).nest_history(true));
        let model = ScriptedModel::new()
            .call("transfer_to_middle", "{}")
            .call("transfer_to_last", "{}")
            .say("ok");
        let runner = Runner::new(&first).model(model.clone());
        let result = runner.run("x").await.unwrap();
        (
            told(&model.requests()[2].input),
            told(&result.to_input_list()),
        )
    };
    assert_eq!(run(true).await, run(false).await);
}
