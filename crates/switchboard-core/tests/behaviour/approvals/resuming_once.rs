//! A state is resumed once.

use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, Run, Runner, tool};

use super::{Ran, decide_all, desk};
use crate::stored;

fn refund() -> Item {
    Item::function_call("c1", "refund", "{}")
}

async fn interrupted(runner: &Runner) -> Run {
    let mut run = runner.run("Money!").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve());
    run
}

#[tokio::test]
async fn a_state_that_was_resumed_is_refused_also_as_text() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new()
        .reply([refund()])
        .say("Done.")
        .say("Done.");
    let runner = Runner::new(&agent).model(model);
    let run = interrupted(&runner).await;
    let (copy, text, fork) = (run.clone(), stored(&run), run.fork());
    assert_eq!(runner.resume(run).await.unwrap().final_text(), "Done.");
    assert_eq!(ran.take(), ["refund {}"]);

    for again in [copy, text] {
        let error = runner.resume(again).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("was resumed before"), "{error}");
        assert!(error.to_string().contains("Run::fork"), "{error}");
    }
    assert_eq!(ran.take(), [""; 0]);

    assert_eq!(runner.resume(fork).await.unwrap().final_text(), "Done.");
    assert_eq!(ran.take(), ["refund {}"]);
}

#[tokio::test]
async fn a_state_cannot_be_resumed_twice_at_once_but_after_a_resumption_that_was_dropped() {
    let ran = Ran::default();
    let noted = ran.clone();
    let slow = tool("refund").needs_approval().run(move |_ctx, (): ()| {
        let noted = noted.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            noted.add("refund");
            "refunded"
        }
    });
    let agent: Agent = Agent::new("Desk").tool(slow);
    let model = ScriptedModel::new().reply([refund()]).say("Done.");
    let runner = Runner::new(&agent).model(model);
    let run = interrupted(&runner).await;
    let (second, third) = (run.clone(), run.clone());
    let mut first = Box::pin(runner.resume(run));
    let waits = tokio::time::timeout(Duration::from_millis(5), &mut first).await;
    assert!(waits.is_err());

    let error = runner.resume(second).await.unwrap_err();
    assert!(error.to_string().contains("is being resumed"), "{error}");
    drop(first);
    assert_eq!(runner.resume(third).await.unwrap().final_text(), "Done.");
    assert_eq!(ran.take(), ["refund"]);
}

#[tokio::test]
async fn a_run_that_failed_after_a_decision_is_resumed_from_its_error() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new()
        .reply([refund()])
        .fail("offline")
        .say("Done.");
    let runner = Runner::new(&agent).model(model);
    let run = interrupted(&runner).await;
    let old = run.clone();
    let error = runner.resume(run).await.unwrap_err();
    assert_eq!(ran.take(), ["refund {}"]);

    let refused = runner.resume(old).await.unwrap_err();
    assert!(
        refused.to_string().contains("was resumed before"),
        "{refused}"
    );
    let result = runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), [""; 0]);
}

#[tokio::test]
async fn a_run_that_is_done_asks_no_model_when_it_is_resumed() {
    let ran = Ran::default();
    let agent = desk(&ran);
    let model = ScriptedModel::new().reply([refund()]).say("Done.");
    let runner = Runner::new(&agent).model(model.clone());
    let run = interrupted(&runner).await;
    let done = runner.resume(run).await.unwrap().into_run();
    let again = runner.resume(stored(&done)).await.unwrap();
    assert_eq!(again.final_text(), "Done.");
    assert_eq!(model.requests().len(), 2);
}
