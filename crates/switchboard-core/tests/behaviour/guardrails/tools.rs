//! Tool guardrails: on calls and on outputs.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::ToolOutput;
use switchboard_core::{Agent, ErrorKind, Runner, ToolContext, tool};

use crate::{described, stored};

#[tokio::test]
async fn tool_guardrails_may_replace_the_output_or_stop_the_run() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let no_secrets = ToolGuardrail::<()>::on_call("no_secrets", |ctx| match ctx.arguments() {
        args if args.contains("secret") => ToolVerdict::replace("Not that one."),
        args if args.contains("bomb") => ToolVerdict::trip("bomb"),
        _ => ToolVerdict::Allow,
    });
    let short = ToolGuardrail::on_output("short", |_ctx, output: ToolOutput| async move {
        if output.text().len() > 5 {
            ToolVerdict::replace("Too long.")
        } else {
            ToolVerdict::Allow
        }
    });
    #[derive(Deserialize, JsonSchema)]
    struct Read {
        file: String,
    }
    let agent: Agent =
        Agent::new("A").tool(tool("read").guardrail(no_secrets).guardrail(short).run(
            move |_ctx, read: Read| {
                counted.fetch_add(1, Ordering::SeqCst);
                read.file
            },
        ));
    let model = ScriptedModel::new()
        .calls([
            ("read", r#"{"file": "secret"}"#),
            ("read", r#"{"file": "a long one"}"#),
            ("read", r#"{"file": "ok"}"#),
        ])
        .call("read", r#"{"file": "bomb"}"#);
    let error = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), ran.load(Ordering::SeqCst)),
        (ErrorKind::ToolGuardrail, 2)
    );
    let outputs = described(&model.requests()[1].input);
    assert_eq!(
        outputs[4..],
        [
            "output of call_1: Not that one.",
            "output of call_2: Too long.",
            "output of call_3: ok",
        ]
    );
}

#[tokio::test]
async fn the_first_guardrail_that_replaces_an_output_ends_the_chain() {
    let audit = |name: &'static str| {
        ToolGuardrail::on_output(name, move |ctx: ToolContext, output: ToolOutput| {
            ToolVerdict::replace(format!("{} {name}({})", output.text(), ctx.tool()))
        })
    };
    let no_b = ToolGuardrail::on_call("no_b", |ctx: ToolContext| {
        (ctx.tool() == "b").then(|| ToolOutput::from("Not b."))
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("a").guardrail(audit("own")).run(|_ctx, (): ()| "1"))
        .tool(tool("b").run(|_ctx, (): ()| "2"))
        .tool_guardrail(audit("agent"));
    let model = ScriptedModel::new()
        .calls([("a", "{}"), ("b", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .tool_guardrail(no_b)
        .tool_guardrail(audit("run"));
    runner.run("x").await.unwrap();
    assert_eq!(
        described(&model.requests()[1].input)[3..],
        ["output of call_1: 1 own(a)", "output of call_2: Not b."]
    );
}

#[tokio::test]
async fn a_tool_whose_output_guardrail_failed_does_not_run_again() {
    let (ran, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, checked) = (ran.clone(), asked.clone());
    let flaky = ToolGuardrail::on_output("flaky", move |_ctx: ToolContext, _output| match checked
        .fetch_add(1, Ordering::SeqCst)
    {
        0 => Err("the service is down"),
        _ => Ok(ToolVerdict::Allow),
    });
    let slow_ran = ran.clone();
    let agent: Agent = Agent::new("A")
        .tool(tool("charge").guardrail(flaky).run(move |_ctx, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            "charged"
        }))
        .tool(tool("slow").run(move |_ctx, (): ()| {
            let ran = slow_ran.clone();
            async move {
                tokio::task::yield_now().await;
                ran.fetch_add(10, Ordering::SeqCst);
                "done"
            }
        }));
    for script in [
        vec![("charge", "{}")],
        vec![("charge", "{}"), ("slow", "{}")],
    ] {
        let calls = script.len();
        ran.store(0, Ordering::SeqCst);
        asked.store(0, Ordering::SeqCst);
        let model = ScriptedModel::new().calls(script).say("ok");
        let runner = Runner::new(&agent).model(model);
        let error = runner.run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UserCode);
        let run = stored(&error.into_run().unwrap());
        let result = runner.resume(run).await;
        let made = described(&result.unwrap().to_input_list());
        assert!(
            made.contains(&"output of call_1: charged".to_owned()),
            "{made:?}"
        );
        let expected = if calls == 1 { 1 } else { 11 };
        assert_eq!(ran.load(Ordering::SeqCst), expected, "each ran once");
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn tools_not_started_when_one_fails_wait_for_the_resumed_run() {
    let began = Arc::new(AtomicUsize::new(0));
    let counted = began.clone();
    let trips = ToolGuardrail::on_output("trips", |_ctx: ToolContext, _output| {
        ToolVerdict::trip("no")
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("first").guardrail(trips).run(|_ctx, (): ()| "1"))
        .tool(tool("second").run(move |_ctx, (): ()| {
            counted.fetch_add(1, Ordering::SeqCst);
            "2"
        }));
    let model = ScriptedModel::new().calls([("first", "{}"), ("second", "{}")]);
    let runner = Runner::new(&agent)
        .model(model)
        .tool_concurrency(NonZeroUsize::MIN);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolGuardrail);
    assert_eq!(began.load(Ordering::SeqCst), 0);
}
