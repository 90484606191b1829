//! Calls that wait inside agents used as tools.

use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::run::RunStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner};

use super::{Ran, decide_all, desk};
use crate::{described, stored};

fn ask(id: &str) -> Item {
    Item::function_call(id, "ask_expert", r#"{"input":"refund it"}"#)
}

fn refund(id: &str, arguments: &str) -> Item {
    Item::function_call(id, "refund", arguments)
}

#[tokio::test]
async fn calls_inside_surface_outside_and_go_ahead_one_by_one() {
    let ran = Ran::default();
    let expert_model = ScriptedModel::new()
        .reply([refund("c1", "1"), refund("c2", "2")])
        .say("Both are out.");
    let expert = desk(&ran).model(expert_model.clone());
    let agent: Agent = Agent::new("Front").tool(expert.as_tool("ask_expert").needs_approval());
    let model = ScriptedModel::new().reply([ask("a1")]).say("Done.");
    let runner = Runner::new(&agent.model(model.clone()));

    let mut run = runner.run("Money!").await.unwrap().into_run();
    let outer = decide_all(&mut run, &Decision::approve());
    assert_eq!(outer[0].kind, InterruptionKind::AgentTool);
    let mut run = runner.resume(run).await.unwrap().into_run();
    let waiting = run.interruptions();
    let places: Vec<_> = waiting
        .iter()
        .map(|waiting| (&*waiting.agent, &*waiting.call_id, waiting.inside.clone()))
        .collect();
    let inside = vec!["a1".into()];
    assert_eq!(
        places,
        [("Desk", "c1", inside.clone()), ("Desk", "c2", inside)]
    );

    run.decide(&waiting[1], Decision::approve()).unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(ran.take(), ["refund 2"]);
    assert_eq!(result.interruptions(), [waiting[0].clone()]);

    let mut run = stored(result.run());
    run.decide(&waiting[0], Decision::reject().message("No."))
        .unwrap();
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(ran.take(), [""; 0]);
    assert_eq!(expert_model.requests().len(), 2);
    assert_eq!(
        described(&expert_model.requests()[1].input),
        [
            "user: refund it",
            "call refund",
            "call refund",
            "output of c2: refunded",
            "output of c1: No.",
        ]
    );
    let shown = described(&model.requests()[1].input);
    assert_eq!(shown[2], "output of a1: Both are out.");
}

#[tokio::test]
async fn a_standing_decision_inside_lives_as_long_as_the_run() {
    let ran = Ran::default();
    let expert_model = ScriptedModel::new()
        .reply([refund("c1", "1")])
        .say("One.")
        .reply([refund("c2", "2")])
        .say("Two.");
    let expert = desk(&ran).model(expert_model);
    let agent: Agent = desk(&ran).tool(expert.as_tool("ask_expert"));
    let model = ScriptedModel::new()
        .reply([ask("a1")])
        .reply([ask("a2")])
        .reply([refund("c3", "3")]);
    let runner = Runner::new(&agent.model(model));
    let mut run = runner.run("Money!").await.unwrap().into_run();
    decide_all(&mut run, &Decision::approve().always());

    let result = runner.resume(stored(&run)).await.unwrap();

    assert_eq!(ran.take(), ["refund 1", "refund 2"]);
    // The outer agent has the same name and tool; the decision was on the inner one.
    assert_eq!(result.status(), RunStatus::Interrupted);
    assert_eq!(&*result.interruptions()[0].call_id, "c3");
}

#[tokio::test]
async fn the_usage_of_a_run_inside_is_counted_once() {
    let ran = Ran::default();
    let expert_model = ScriptedModel::new().reply([refund("c1", "1")]).say("One.");
    let expert = desk(&ran).model(expert_model);
    let agent: Agent = Agent::new("Front").tool(expert.as_tool("ask_expert"));
    let model = ScriptedModel::new().reply([ask("a1")]).say("Done.");
    let runner = Runner::new(&agent.model(model));
    let mut run = runner.run("Money!").await.unwrap().into_run();
    assert_eq!(run.usage().requests, 2);
    decide_all(&mut run, &Decision::approve());
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.usage().requests, 4);
}
