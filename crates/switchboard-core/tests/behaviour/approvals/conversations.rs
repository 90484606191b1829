//! Runs that wait in a stored conversation.

use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::approval::Decision;
use switchboard_core::conversation::{Conversation, Conversations, EntryContent};
use switchboard_core::guardrail::{InputGuardrail, OutputGuardrail, Verdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Run, Runner};

use super::{Ran, decide_all, desk};
use crate::described;

fn refund(id: &str) -> Item {
    Item::function_call(id, "refund", "{}")
}

/// A conversation in which a run waits, and the runner of its messages.
async fn waiting(agent: &Agent, model: &ScriptedModel) -> (Runner, Conversation) {
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(agent).model(model.clone()).session(&session);
    let result = runner.run("Money!").await.unwrap();
    assert_eq!(result.interruptions().len(), 1);
    (runner, session)
}

/// The run that waits in the conversation, approved.
async fn approved(session: &Conversation) -> Run {
    let mut run = session.waiting_run().await.unwrap().unwrap();
    decide_all(&mut run, &Decision::approve());
    run
}

#[tokio::test]
async fn a_run_that_waits_is_kept_and_goes_on() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .reply([refund("c1")])
        .say("Done.")
        .say("Bye.");
    let (runner, session) = waiting(&desk(&ran), &model).await;
    assert_eq!(
        described(&session.view().await.unwrap()),
        ["user: Money!", "call refund"]
    );

    let result = runner.resume(approved(&session).await).await.unwrap();

    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), ["refund {}"]);
    assert!(session.waiting_run().await.unwrap().is_none());
    runner.run("Thanks").await.unwrap();
    assert_eq!(
        described(&model.requests()[2].input),
        [
            "user: Money!",
            "call refund",
            "output of c1: refunded",
            "assistant: Done.",
            "user: Thanks",
        ]
    );
}

#[tokio::test]
async fn a_message_instead_of_a_decision_answers_the_calls_first() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .reply([refund("c1")])
        .say("Hello.")
        .say("Bye.");
    let (runner, session) = waiting(&desk(&ran), &model).await;
    let old = approved(&session).await;
    let undecided = session.waiting_run().await.unwrap().unwrap();

    runner.run("Hello?").await.unwrap();

    let answer = "output of c1: This was not carried out: nobody has approved it before the next \
                  message came.";
    let expected = ["user: Money!", "call refund", answer, "user: Hello?"];
    assert_eq!(described(&model.requests()[1].input), expected);
    assert!(session.waiting_run().await.unwrap().is_none());
    let error = runner.resume(undecided).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    let error = runner.resume(old).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Session);
    assert!(error.to_string().contains("has gone on since"), "{error}");
    assert_eq!(ran.take(), [""; 0]);
    runner.run("Bye").await.unwrap();
    let shown = described(&model.requests()[2].input);
    assert_eq!(shown[..4], expected);
}

#[tokio::test]
async fn a_run_is_resumed_once_also_by_somebody_who_knows_only_the_conversation() {
    let ran = Ran::default();
    let model = ScriptedModel::new().reply([refund("c1")]).say("Done.");
    let (runner, session) = waiting(&desk(&ran), &model).await;
    let first = approved(&session).await;
    // A fork of the state is a state of its own, but not in the same conversation.
    let second = approved(&session).await.fork();
    runner.resume(first).await.unwrap();
    let error = runner.resume(second).await.unwrap_err();
    assert!(error.to_string().contains("has gone on since"), "{error}");
    assert_eq!(ran.take(), ["refund {}"]);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_fork_of_the_conversation_waits_by_itself() {
    let ran = Ran::default();
    let model = ScriptedModel::new()
        .reply([refund("c1")])
        .say("One.")
        .say("Two.");
    let agent = desk(&ran);
    let (runner, session) = waiting(&agent, &model).await;
    let fork = session.fork("fork", None).await.unwrap();
    let of_fork = Runner::new(&agent).model(model.clone()).session(&fork);
    runner.resume(approved(&session).await).await.unwrap();
    of_fork.resume(approved(&fork).await).await.unwrap();
    assert_eq!(ran.take(), ["refund {}", "refund {}"]);
}

#[tokio::test]
async fn a_refused_message_does_not_end_the_wait() {
    let ran = Ran::default();
    let agent = desk(&ran).input_guardrail(InputGuardrail::new("g", |_ctx, _agent, input| {
        Verdict::trip_if(
            input
                .last_words()
                .is_some_and(|words| words.contains("hunter2")),
            "no",
        )
    }));
    let model = ScriptedModel::new().reply([refund("c1")]).say("Done.");
    let (runner, session) = waiting(&agent, &model).await;
    let before = approved(&session).await;
    runner.run("my password is hunter2").await.unwrap_err();

    let result = runner.resume(before).await.unwrap();

    assert_eq!(result.final_text(), "Done.");
    let record = session.record(None).await.unwrap();
    let refused = record
        .iter()
        .filter(|entry| matches!(entry.content, EntryContent::Refused(_)));
    assert_eq!(refused.count(), 1);
}

#[tokio::test]
async fn the_wait_is_stored_also_where_an_output_is_held_back() {
    let ran = Ran::default();
    let agent = desk(&ran)
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(OutputGuardrail::new("g", |_ctx, _agent, _output| {
            Verdict::Allow
        }));
    let lookup = Item::function_call("c2", "lookup", "{}");
    let model = ScriptedModel::new().reply([lookup, refund("c1")]);
    let (runner, session) = waiting(&agent, &model).await;
    assert_eq!(session.view().await.unwrap().len(), 0);
    let result = runner.resume(approved(&session).await).await.unwrap();
    assert_eq!(result.final_text(), "account 42");
    assert_eq!(
        described(&session.view().await.unwrap()),
        [
            "user: Money!",
            "call lookup",
            "call refund",
            "output of c2: account 42",
            "output of c1: refunded",
        ]
    );
}

#[tokio::test]
async fn a_run_that_was_decided_in_part_waits_on_with_its_usage() {
    let ran = Ran::default();
    let session = Conversations::in_memory().get("c");
    let model = ScriptedModel::new()
        .say("Hello.")
        .reply([refund("c1"), refund("c2")])
        .say("Done.");
    let runner = Runner::new(&desk(&ran)).model(model).session(&session);
    runner.run("Hi").await.unwrap();
    runner.run("Money!").await.unwrap();

    for left in [1, 0] {
        let mut run = session.waiting_run().await.unwrap().unwrap();
        assert_eq!(run.usage().requests, 1);
        let waiting = run.interruptions();
        assert_eq!(waiting.len(), left + 1);
        run.decide(&waiting[0], Decision::approve()).unwrap();
        runner.resume(run).await.unwrap();
    }
    assert_eq!(ran.take(), ["refund {}", "refund {}"]);
    assert!(session.waiting_run().await.unwrap().is_none());
}
