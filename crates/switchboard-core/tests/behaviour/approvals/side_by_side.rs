//! Calls that wait in agent tools of agents that answer side by side.

use switchboard_core::approval::{Decision, Interruption};
use switchboard_core::run::{BranchAnswer, FanOut, HandoffPolicy, RunStatus, SeveralHandoffs};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, ModelRequest, ModelResponse, Run, RunResult, Runner};

use super::Ran;
use crate::stored;

/// The answers of all models: Triage hands over to both desks, each desk asks an expert, who pays twice at once.
fn answer(request: &ModelRequest) -> ModelResponse {
    let agent = request.agent.as_deref().unwrap_or_default();
    let mut outputs = request.input.iter().filter_map(Item::output);
    let refund = |id: &str| Item::function_call(id, "refund", &format!(r#"{{"id":"{id}"}}"#));
    ModelResponse::new(match (agent, outputs.next()) {
        ("Triage", _) => vec![
            Item::function_call("north", "transfer_to_north", "{}"),
            Item::function_call("south", "transfer_to_south", "{}"),
        ],
        ("North" | "South", _) if !asked(request) => {
            vec![Item::function_call("ask", "ask_expert", r#"{"input":"?"}"#)]
        }
        ("Expert", None) => vec![refund("e1"), refund("e2")],
        (name, _) => vec![Item::output_message("m", &format!("{name} is done."))],
    })
}

/// Returns `true` if the expert has answered.
fn asked(request: &ModelRequest) -> bool {
    let mut calls = request.input.iter();
    calls.any(|item| item.name().is_some_and(|name| name == "ask_expert"))
}

fn runner(ran: &Ran) -> Runner {
    let expert: Agent = Agent::new("Expert").tool(ran.refund());
    let desk = |name: &str| Agent::new(name).tool(expert.as_tool("ask_expert"));
    let triage: Agent = Agent::new("Triage")
        .handoff(desk("North"))
        .handoff(desk("South"));
    let model = (0..20).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(|request| Ok(answer(request)))
    });
    let join = FanOut::joined(|answers: Vec<BranchAnswer>| {
        let texts = answers.iter().map(|made| made.text().into_owned());
        texts.collect::<Vec<_>>().join(" ")
    });
    Runner::new(&triage)
        .model(model)
        .handoff_policy(HandoffPolicy::production().several(SeveralHandoffs::FanOut(join)))
}

/// The places of the calls that wait.
fn places(waiting: &[Interruption]) -> Vec<String> {
    let place =
        |waiting: &Interruption| format!("{}/{}", waiting.inside.join("/"), waiting.call_id);
    waiting.iter().map(place).collect()
}

/// Decides one call, and resumes the run as another process would.
async fn decide(ran: &Ran, mut run: Run, at: usize, decision: Decision) -> RunResult {
    let waiting = run.interruptions();
    run.decide(&waiting[at], decision).unwrap();
    runner(ran).resume(stored(&run)).await.unwrap()
}

#[tokio::test]
async fn they_surface_with_all_calls_around_them_and_go_ahead_one_by_one() {
    let ran = Ran::default();
    let run = runner(&ran).run("Hi").await.unwrap().into_run();
    let waiting = run.interruptions();
    assert_eq!(
        places(&waiting),
        [
            "north/ask/e1",
            "north/ask/e2",
            "south/ask/e1",
            "south/ask/e2"
        ]
    );
    // The same call elsewhere is another call.
    let mut forged = waiting[0].clone();
    forged.inside = vec!["ask".into()];
    assert!(run.clone().decide(&forged, Decision::approve()).is_err());

    // The last first, and one of each desk in turn.
    let run = decide(&ran, run, 3, Decision::approve()).await.into_run();
    assert_eq!(ran.take(), [r#"refund {"id":"e2"}"#]);
    assert_eq!(
        places(&run.interruptions()),
        ["north/ask/e1", "north/ask/e2", "south/ask/e1"]
    );
    let run = decide(&ran, run, 0, Decision::reject().message("No.")).await;
    let run = decide(&ran, run.into_run(), 1, Decision::approve()).await;
    assert_eq!(ran.take(), [r#"refund {"id":"e1"}"#]);
    let result = decide(&ran, run.into_run(), 0, Decision::approve()).await;
    assert_eq!(ran.take(), [r#"refund {"id":"e2"}"#]);
    assert_eq!(result.status(), RunStatus::Completed);
    assert_eq!(result.final_text(), "North is done. South is done.");
}

#[tokio::test]
async fn a_decision_for_always_is_for_the_desk_that_it_was_made_at() {
    for (decision, ran_at_north) in [
        (Decision::approve().always(), 2),
        (Decision::reject().always(), 0),
    ] {
        let ran = Ran::default();
        let run = runner(&ran).run("Hi").await.unwrap().into_run();
        let result = decide(&ran, run, 0, decision).await;
        assert_eq!(ran.take().len(), ran_at_north);
        assert_eq!(
            places(&result.interruptions()),
            ["south/ask/e1", "south/ask/e2"]
        );
    }
}
