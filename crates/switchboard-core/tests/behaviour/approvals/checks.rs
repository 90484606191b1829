//! Checks before a person is asked, and before what was approved runs.

use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::guardrail::{InputGuardrail, ToolGuardrail, ToolVerdict, Verdict};
use switchboard_core::run::{ApprovalGuardrails, HandoffPolicy, RunStatus};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Runner, tool};

use super::{Ran, decide_all, desk, resume_after};

fn refund(id: &str, arguments: &str) -> Item {
    Item::function_call(id, "refund", arguments)
}

#[tokio::test]
async fn a_person_is_asked_where_the_arguments_cannot_be_read_or_the_condition_fails() {
    for (arguments, fails, waits) in [
        (r#"{"amount":500}"#, false, true),
        (r#"{"amount":5}"#, false, false),
        (r#"{"amount":5}"#, true, true),
        ("[5]", false, true),
        ("{\"amount\":", false, true),
        ("", false, false),
    ] {
        let schema = json!({"type": "object"});
        let tool = tool("refund")
            .needs_approval_if(move |_ctx, arguments| async move {
                if fails {
                    return Err("the database is down");
                }
                Ok(arguments["amount"].as_u64() > Some(100))
            })
            .run_raw(&schema, |_ctx| "refunded");
        let agent: Agent = Agent::new("Desk").tool(tool);
        let model = ScriptedModel::new()
            .reply([refund("c1", arguments)])
            .say("Done.");
        let result = Runner::new(&agent).model(model).run("Hi").await.unwrap();
        let is_waiting = result.status() == RunStatus::Interrupted;
        assert_eq!(is_waiting, waits, "{arguments} {fails}");
    }
}

#[tokio::test]
async fn guardrails_look_at_a_call_once_before_a_person_does() {
    for (policy, before, after) in [
        (ApprovalGuardrails::BeforeDecision, 2, 0),
        (ApprovalGuardrails::AfterDecision, 0, 2),
        (ApprovalGuardrails::Both, 2, 1),
    ] {
        let (ran, asked) = (Ran::default(), Ran::default());
        let noted = asked.clone();
        let guardrail = ToolGuardrail::<()>::on_call("limit", move |ctx| {
            noted.add("asked");
            if ctx.arguments().contains("9999") {
                ToolVerdict::Replace("Too much.".into())
            } else {
                ToolVerdict::Allow
            }
        });
        let agent = desk(&ran);
        let model = ScriptedModel::new()
            .reply([
                refund("c1", r#"{"amount":1}"#),
                refund("c2", r#"{"amount":9999}"#),
            ])
            .say("Done.");
        let runner = Runner::new(&agent)
            .model(model)
            .tool_guardrail(guardrail)
            .handoff_policy(HandoffPolicy::production().approval_guardrails(policy));
        let result = runner.run("Hi").await.unwrap();
        assert_eq!(asked.take().len(), before, "{policy:?}");
        let waiting = result.interruptions().len();
        assert_eq!(waiting, if before == 0 { 2 } else { 1 }, "{policy:?}");
        let result = resume_after(&runner, result, Decision::approve()).await;
        assert_eq!(asked.take().len(), after, "{policy:?}");
        assert_eq!(ran.take(), [r#"refund {"amount":1}"#]);
        assert_eq!(result.final_text(), "Done.");
    }
}

#[tokio::test]
async fn what_was_approved_does_not_run_where_the_limit_of_turns_is_reached() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new()
        .reply([refund("c1", "{}")])
        .say("Done.");
    let runner = Runner::new(&agent).model(model).max_turns(1);
    let mut run = runner.run("Hi").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve());

    let error = runner.resume(run).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::MaxTurns);
    assert_eq!(ran.take(), [""; 0]);
    // The limit of the runner that resumes counts.
    let run = error.into_run().unwrap();
    let result = runner.max_turns(2).resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), ["refund {}"]);
}

#[tokio::test]
async fn added_input_is_checked_before_what_was_approved_runs() {
    let ran = Ran::default();
    let agent =
        desk(&ran).input_guardrail(InputGuardrail::new("no_secrets", |_ctx, _agent, input| {
            if input
                .last_words()
                .is_some_and(|words| words.contains("hunter2"))
            {
                Verdict::trip("a secret")
            } else {
                Verdict::Allow
            }
        }));
    let model = ScriptedModel::new()
        .reply([refund("c1", "{}")])
        .say("Done.");
    let runner = Runner::new(&agent).model(model.clone());
    let mut run = runner.run("Hi").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve());
    run.add_input("my password is hunter2").unwrap();

    let error = runner.resume(run).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(ran.take(), [""; 0]);
    let mut run = error.into_run().unwrap();
    assert_eq!(run.take_added_input().len(), 1);
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    let sent = format!("{:?}", model.requests());
    assert!(!sent.contains("hunter2"));
}
