//! Summaries of long conversations.

use switchboard_core::conversation::Conversations;
use switchboard_core::run::Compaction;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Session};

use super::shown;

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
