//! Storing a run and going on with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Run, RunStatus, Runner, StreamEvent, Team, tool};

#[tokio::test]
async fn a_stored_run_goes_on_with_the_agent_that_had_it_and_repeats_nothing() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let team: Team = Team::new()
        .agent(Agent::new("A").handoff("B"))
        .agent(
            Agent::new("B")
                .handoff("A")
                .tool(tool("t").run(move |_ctx, (): ()| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    "1"
                })),
        )
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("t", "{}")
        .say("ok");
    let runner = Runner::new(&team["A"]).model(model);
    let mut stream = runner.stream("x");
    while let Some(event) = stream.next().await {
        if let StreamEvent::Item(event, _) = event
            && event.as_str() == "tool_output"
        {
            stream.stop_after_turn();
        }
    }
    let stopped = stream.finish().await.unwrap();
    assert_eq!(stopped.status(), RunStatus::Stopped);
    let stored = serde_json::to_string(stopped.run()).unwrap();

    let run: Run = serde_json::from_str(&stored).unwrap();
    assert_eq!((run.agent(), run.turns()), ("B", 2));
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "ok");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn each_item_is_stored_once() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(&b);
    let marker = "a text that is easy to count";
    let model = ScriptedModel::new().call("transfer_to_b", "{}").say(marker);
    let result = Runner::new(&a).model(model).run("x").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    // Once as the item, once as the final output.
    assert_eq!(stored.matches(marker).count(), 2, "{stored}");
}

#[tokio::test]
async fn a_run_of_an_agent_that_is_not_there_is_given_back() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(&b);
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .fail("later");
    let error = Runner::new(&a)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    let run = error.into_run().unwrap();
    let stranger: Agent = Agent::new("Stranger");
    let error = Runner::new(&stranger)
        .model(model)
        .resume(run)
        .await
        .unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert_eq!(error.run().unwrap().agent(), "B");
}

#[test]
fn a_stored_run_that_was_tampered_with_is_refused() {
    for (bad, why) in [
        (r#"{"version":99}"#, "missing field"),
        ("[]", "missing field"),
        ("7", "invalid type"),
    ] {
        let error = serde_json::from_str::<Run>(bad).unwrap_err().to_string();
        assert!(
            error.contains(why) || error.contains("invalid"),
            "{bad}: {error}"
        );
    }
}
