//! Summaries of long conversations.

use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use switchboard_core::conversation::Conversations;
use switchboard_core::run::Compaction;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Item, Runner, Session, tool};

use super::shown;
use crate::filters::invalid_output::Warnings;

const LONG: &str = "A long story about a parcel that was sent to the wrong address in May.";

#[tokio::test]
async fn a_long_conversation_is_summarised_once_and_the_record_keeps_the_originals() {
    let model = ScriptedModel::new()
        .say("One.")
        .say("Two.")
        .say("Three.")
        .say("Four.");
    let writer = ScriptedModel::new().say("A parcel was sent to the wrong address.");
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let compaction = Compaction::new(600).keep_last(2).model(writer.clone());
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .compact(compaction);
    let mut usage = Vec::new();
    let story = LONG.repeat(20);
    for words in [&*story, &story, "And?", "Well?"] {
        let result = runner.run(words).await.unwrap();
        usage.push(result.run().usage().requests);
    }
    assert_eq!(writer.requests().len(), 1);
    assert!(
        writer.requests()[0].input[0]
            .as_json()
            .contains("wrong address in May")
    );
    let summary =
        "assistant: Summary of the conversation so far: A parcel was sent to the wrong address.";
    let requests = shown(&model);
    let long = format!("user: {story}");
    assert_eq!(requests[1], [&long, "assistant: One.", &long]);
    assert_eq!(
        requests[2],
        [summary, &long, "assistant: Two.", "user: And?"]
    );
    // The summary stays.
    assert_eq!(requests[3].len(), 6);
    assert_eq!(requests[3][0], summary);
    assert_eq!(usage, [1, 1, 2, 1]);
    assert_eq!(session.load(None).await.unwrap().len(), 8);
    assert_eq!(session.view().await.unwrap().len(), 7);
}

#[tokio::test]
async fn a_summary_that_cannot_be_written_does_not_stop_the_message() {
    let model = ScriptedModel::new().say("One.").say("Two.");
    let writer = ScriptedModel::new().fail("no route");
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .session(&session)
        .compact(Compaction::new(1).keep_last(0).model(writer));
    runner.run(LONG).await.unwrap();
    runner.run("And?").await.unwrap();
    assert_eq!(shown(&model)[1].len(), 3);
}

/// The runner of a conversation that has one message, and whose next one is past its budget.
async fn past_budget(model: &ScriptedModel, compaction: Compaction) -> Runner {
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run(LONG).await.unwrap();
    runner.compact(compaction)
}

fn everything(writer: &ScriptedModel) -> Compaction {
    Compaction::new(1).keep_last(0).model(writer.clone())
}

#[tokio::test]
async fn a_summary_that_is_not_written_in_time_does_not_keep_the_message_waiting() {
    let model = ScriptedModel::new().say("One.").say("Two.").say("Three.");
    let hour = Duration::from_secs(3_600);
    let writer = ScriptedModel::new()
        .delay(hour)
        .say("A parcel.")
        .delay(hour)
        .say("A parcel.");
    let compaction = everything(&writer).timeout(Duration::from_millis(20));
    let runner = past_budget(&model, compaction).await;
    // With a single dispatcher, `tracing` asks only the thread that reaches a call site first.
    let _second = tracing::Dispatch::new(Warnings::default());
    let warnings = Warnings::default();
    let guard = tracing::subscriber::set_default(warnings.clone());
    let began = Instant::now();
    runner.run("And?").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(60));
    drop(guard);
    let warnings = warnings.0.lock().unwrap().clone();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("could not be summarised"));
    let long = format!("user: {LONG}");
    assert_eq!(
        shown(&model)[1],
        [long.as_str(), "assistant: One.", "user: And?"]
    );
    // A stream says so, after it has begun.
    let mut stream = runner.stream("Well?");
    let mut names = Vec::new();
    let mut reasons = Vec::new();
    while let Some(event) = stream.next().await {
        names.push(event.kind.name().to_owned());
        if let EventKind::CompactionFailed { reason, .. } = event.kind {
            reasons.push(reason);
        }
    }
    stream.finish().await.unwrap();
    assert_eq!(
        names[..3],
        ["run_started", "agent_updated", "compaction_failed"]
    );
    assert_eq!(
        reasons,
        [
            "the summary was not written within 0.02 s; raise Compaction::timeout, or use a faster \
             model (Compaction::model)"
        ]
    );
}

#[tokio::test]
async fn a_summary_without_words_does_not_take_the_place_of_the_conversation() {
    let model = ScriptedModel::new().say("One.").say("Two.");
    let writer = ScriptedModel::new().say(" \n");
    let runner = past_budget(&model, everything(&writer)).await;
    runner.run("And?").await.unwrap();
    assert_eq!(writer.requests().len(), 1);
    assert_eq!(shown(&model)[1].len(), 3);
}

#[tokio::test]
async fn a_message_goes_on_with_what_another_writer_added_while_the_summary_was_written() {
    let model = ScriptedModel::new().say("One.").say("Two.");
    let writer = ScriptedModel::new()
        .delay(Duration::from_millis(20))
        .say("A parcel.");
    let agent: Agent = Agent::new("A");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run(LONG).await.unwrap();
    let mut run = Box::pin(runner.compact(everything(&writer)).run("And?"));
    // It waits for the summary.
    assert!((&mut run).now_or_never().is_none());
    session.append(&[Item::user("By the way")]).await.unwrap();
    run.await.unwrap();
    let long = format!("user: {LONG}");
    let expected = [
        long.as_str(),
        "assistant: One.",
        "user: By the way",
        "user: And?",
    ];
    assert_eq!(shown(&model)[1], expected);
}

#[tokio::test]
async fn a_run_that_waits_for_a_decision_is_not_lost_by_a_summary() {
    let refund = tool::<()>("refund")
        .needs_approval()
        .run(|_ctx, (): ()| "refunded");
    let agent: Agent = Agent::new("A").tool(refund);
    let model = ScriptedModel::new()
        .call("refund", "{}")
        .fail("no route")
        .say("Two.");
    let writer = ScriptedModel::new().say("A parcel.");
    let session = Conversations::in_memory().get("c");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    runner.run(LONG).await.unwrap();
    assert!(session.waiting_run().await.unwrap().is_some());
    let runner = runner.compact(everything(&writer));
    // A message that fails leaves the conversation as it was.
    runner.run("And?").await.unwrap_err();
    assert!(session.waiting_run().await.unwrap().is_some());
    // One that comes instead of a decision answers the call.
    runner.run("And?").await.unwrap();
    let requests = shown(&model);
    assert_eq!(requests[2].len(), 4, "{requests:?}");
    assert!(
        requests[2][2].contains("nobody has approved it"),
        "{requests:?}"
    );
}
