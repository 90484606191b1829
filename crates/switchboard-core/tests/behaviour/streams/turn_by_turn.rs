//! Streaming a run one turn at a time.

use serde_json::{Value, json};
use switchboard_core::run::RunStatus;
use switchboard_core::{MemorySession, RunResult, RunStream, Runner};

use super::events::tool_handoff_and_answer;
use super::{collect, to_json};
use crate::{described, stored};

/// Takes one turn. Returns its first and its last event in short, and the result.
async fn one_turn(mut stream: RunStream) -> (Vec<Value>, RunResult) {
    stream.stop_after_turn();
    let events = to_json(&collect(&mut stream).await);
    let ends = [&events[0], &events[events.len() - 1]];
    let ends = ends.map(|event| json!([event["type"], event["agent"], event["turn"]]));
    (ends.to_vec(), stream.finish().await.unwrap())
}

/// Runs turn by turn, and stores the run after each. Returns the first and the last event of each
/// turn, and the result.
async fn turn_by_turn(runner: &Runner, input: &str) -> (Vec<Vec<Value>>, RunResult) {
    let mut stream = runner.stream(input);
    let mut ends = Vec::new();
    loop {
        let (turn, result) = one_turn(stream).await;
        ends.push(turn);
        assert_eq!(result.run().turns() as usize, ends.len());
        if result.status() == RunStatus::Completed {
            return (ends, result);
        }
        stream = runner.resume_stream(stored(result.run())).unwrap();
    }
}

#[tokio::test]
async fn a_run_that_is_stored_after_every_turn_has_the_same_result_as_one_run() {
    let (turns, result) = turn_by_turn(&tool_handoff_and_answer(), "Where is it?").await;
    let at_once = tool_handoff_and_answer();
    let at_once = at_once.stream("Where is it?").finish().await.unwrap();
    // Each run has a random identifier.
    let without_id = |result: &RunResult| {
        let mut run = serde_json::to_value(result.run()).unwrap();
        run["run"]["id"].take();
        run
    };
    assert_eq!(without_id(&result), without_id(&at_once));
    assert_eq!(
        turns,
        [
            [
                json!(["run_started", "Triage", 0]),
                json!(["run_stopped", "Triage", 1])
            ],
            [
                json!(["run_started", "Triage", 1]),
                json!(["run_stopped", "Billing", 2])
            ],
            [
                json!(["run_started", "Billing", 2]),
                json!(["run_finished", "Billing", 3])
            ],
        ]
    );
}

#[tokio::test]
async fn a_session_gets_the_same_items_turn_by_turn_as_at_once() {
    let (session, at_once) = (MemorySession::new(), MemorySession::new());
    let runner = tool_handoff_and_answer().session(&session);
    turn_by_turn(&runner, "Where is it?").await;
    let runner = tool_handoff_and_answer().session(&at_once);
    runner.run("Where is it?").await.unwrap();
    assert_eq!(described(&session.items()), described(&at_once.items()));
}
