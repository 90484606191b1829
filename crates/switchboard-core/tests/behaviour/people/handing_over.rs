//! People who hand the conversation to an agent.

use serde_json::json;
use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::{HandoffOutcome, HandoffPolicy, LoopLimits, RunStatus};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Handoff, RunResult, Runner, Team, filters, handoff};

use super::{answered, asked, runner, triage};
use crate::approvals::{Ran, decide_all};
use crate::described;

/// The result of a run in which Triage hands over to Ann, with the scripted answers after that.
async fn with_ann(triage: &Agent, model: ScriptedModel) -> (Runner, ScriptedModel, RunResult) {
    let runner = runner(triage, &model);
    let result = runner.run("Hello?").await.unwrap();
    (runner, model, result)
}

/// The reason for which the person's last handoff was not made.
fn problem(result: &RunResult) -> Option<String> {
    match asked(result.run()).kind {
        InterruptionKind::Person { problem, .. } => problem.map(|text| text.to_string()),
        kind => panic!("{kind:?}"),
    }
}

#[tokio::test]
async fn the_next_agent_answers_in_the_same_run() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("Which bill?");
    let (runner, model, result) = with_ann(&triage(), model).await;
    let answer = PersonAnswer::hand_to("Billing")
        .message("My colleague will help.")
        .note("A refund was promised.");

    let result = answered(&runner, result, answer).await;

    assert_eq!(result.final_text(), "Which bill?");
    assert_eq!(result.last_agent().name(), "Billing");
    let seen = described(&model.requests()[1].input);
    let [.., message, note, call, output] = &*seen else {
        panic!("{seen:?}");
    };
    assert_eq!(message, "assistant: My colleague will help.");
    assert_eq!(note, "developer: Note from Ann: A refund was promised.");
    assert_eq!(call, "call transfer_to_billing");
    assert!(output.ends_with(r#"{"assistant": "Billing"}"#), "{output}");
    let record = &result.handoffs()[1];
    assert_eq!((&*record.from, &*record.to), ("Ann", "Billing"));
    assert_eq!(record.outcome, HandoffOutcome::Taken);
}

#[tokio::test]
async fn a_person_can_hand_back_without_a_handoff_of_its_own() {
    let ann: Agent = Agent::person("Ann");
    let triage = Agent::new("Triage").handoff(&ann);
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("I am back.");
    let (runner, model, result) = with_ann(&triage, model).await;
    let result = answered(&runner, result, PersonAnswer::hand_back()).await;
    assert_eq!(result.last_agent().name(), "Triage");
    assert_eq!(result.final_text(), "I am back.");
    let seen = described(&model.requests()[1].input);
    assert_eq!(seen[seen.len() - 2], "call hand_back");
}

#[tokio::test]
async fn handing_back_uses_the_person_s_own_handoff_where_there_is_one() {
    let ran = Ran::default();
    let called = ran.clone();
    let back = handoff::<()>("Triage").on_handoff(move |ctx| called.add(ctx.to().name()));
    let team = Team::new()
        .agent(Agent::new("Triage").handoff("Ann"))
        .agent(Agent::person("Ann").handoff(back))
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("I am back.");
    let (runner, _, result) = with_ann(&team["Triage"], model).await;
    answered(&runner, result, PersonAnswer::hand_back()).await;
    assert_eq!(ran.take(), ["Triage"]);
}

#[tokio::test]
async fn a_person_returns_a_typed_result() {
    let verdict = json!({
        "type": "object",
        "properties": {"is_allowed": {"type": "boolean"}},
        "required": ["is_allowed"]
    });
    let ran = Ran::default();
    let got = ran.clone();
    let to_ann = handoff(Agent::person("Ann"))
        .returns_schema(verdict)
        .on_return(move |_ctx, result: serde_json::Value| got.add(result.to_string()));
    let triage: Agent = Agent::new("Triage").handoff(to_ann);
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("It is allowed.");
    let (runner, model, result) = with_ann(&triage, model).await;

    // Without a result, the person is told and asked again.
    let result = answered(&runner, result, PersonAnswer::hand_back()).await;
    assert_eq!(result.status(), RunStatus::Interrupted);
    let told = problem(&result).unwrap();
    assert!(told.contains("is_allowed"), "{told}");
    for _ in 0..5 {
        let run = result.run().fork();
        let mut run = run;
        run.answer(&asked(&run), PersonAnswer::hand_back()).unwrap();
        let again = runner.resume(run).await.unwrap();
        assert_eq!(again.status(), RunStatus::Interrupted);
    }

    let answer = PersonAnswer::hand_back().payload(json!({"is_allowed": true}));
    let result = answered(&runner, result, answer).await;
    assert_eq!(result.final_text(), "It is allowed.");
    assert_eq!(ran.take(), [r#"{"is_allowed":true}"#]);
    let seen = described(&model.requests()[1].input);
    assert!(
        seen.last()
            .unwrap()
            .ends_with(r#"{"assistant": "Triage", "result": {"is_allowed":true}}"#),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_reply_can_end_the_stay_with_the_person() {
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let (runner, model, result) = with_ann(&triage(), model).await;
    let answer = PersonAnswer::reply("It is solved.").then_hand_back();
    let result = answered(&runner, result, answer).await;
    assert_eq!(result.status(), RunStatus::Completed);
    assert_eq!(result.final_text(), "It is solved.");
    assert_eq!(result.last_agent().name(), "Triage");
    assert_eq!(model.requests().len(), 1);
    let made = described(&result.to_input_list());
    assert_eq!(
        made[3..5],
        ["assistant: It is solved.", "call hand_back"],
        "{made:?}"
    );
    assert_eq!(made.len(), 6);
}

#[tokio::test]
async fn a_reply_is_said_even_if_the_handoff_after_it_is_refused() {
    let closed = HandoffGuardrail::new("closed", |request| {
        if request.from.is_person() {
            HandoffVerdict::refuse("Billing is closed.")
        } else {
            HandoffVerdict::Allow
        }
    });
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model).handoff_guardrail(closed);
    let result = runner.run("Hello?").await.unwrap();
    let answer = PersonAnswer::reply("Bye.").then_hand_to("Billing");
    let result = answered(&runner, result, answer).await;
    assert_eq!(result.final_text(), "Bye.");
    assert_eq!(result.last_agent().name(), "Ann");
    assert_eq!(
        result.handoffs()[1].outcome,
        HandoffOutcome::Refused("Billing is closed.".into())
    );
}

#[tokio::test]
async fn all_stages_of_a_handoff_are_those_of_a_model_s() {
    let ran = Ran::default();
    let (asked_condition, guarded, called) = (ran.clone(), ran.clone(), ran.clone());
    let guardrail = HandoffGuardrail::new("guard", move |request| {
        guarded.add(format!("guardrail {}", request.to.name()));
        HandoffVerdict::Allow
    });
    let billing: Agent = Agent::new("Billing");
    let to_billing = handoff(&billing)
        .enabled_if(move |_ctx, agent| {
            asked_condition.add(format!("condition of {}", agent.name()));
            true
        })
        .guardrail(guardrail)
        .on_handoff(move |_ctx| called.add("callback"))
        .filter(filters::remove_all_tools());
    let ann = Agent::person("Ann").handoff(to_billing);
    let triage = Agent::new("Triage").handoff(&ann);
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("Which bill?");
    let (runner, model, result) = with_ann(&triage, model).await;
    assert_eq!(ran.take(), ["condition of Ann"]);

    answered(&runner, result, PersonAnswer::hand_to("Billing")).await;

    let ran = ran.take();
    assert_eq!(
        ran[ran.len() - 2..],
        ["guardrail Billing", "callback"],
        "{ran:?}"
    );
    assert_eq!(described(&model.requests()[1].input), ["user: Hello?"]);
}

#[tokio::test]
async fn a_handoff_whose_condition_does_not_hold_is_no_option() {
    let billing: Agent = Agent::new("Billing");
    let ann = Agent::person("Ann").handoff(handoff(&billing).enabled(false));
    let triage = Agent::new("Triage").handoff(&ann);
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let (_, _, result) = with_ann(&triage, model).await;
    let mut run = result.into_run();
    let error = run.answer(&asked(&run), PersonAnswer::hand_to("Billing"));
    assert!(error.unwrap_err().to_string().contains("only to Triage"));
}

#[tokio::test]
async fn a_refused_handoff_asks_the_person_again_with_the_reason() {
    let refuse = HandoffGuardrail::new("closed", |request| {
        if request.to.name() == "Billing" {
            HandoffVerdict::refuse("Billing is closed.")
        } else {
            HandoffVerdict::Allow
        }
    });
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let runner = runner(&triage(), &model).handoff_guardrail(refuse);
    let result = runner.run("Hello?").await.unwrap();
    let result = answered(&runner, result, PersonAnswer::hand_to("Billing")).await;
    assert_eq!(problem(&result).as_deref(), Some("Billing is closed."));
    let result = answered(&runner, result, PersonAnswer::reply("Tomorrow.")).await;
    assert_eq!(result.final_text(), "Tomorrow.");
}

#[tokio::test]
async fn a_handoff_of_a_person_may_need_approval() {
    let billing: Agent = Agent::new("Billing");
    let ann = Agent::person("Ann").handoff(handoff(&billing).needs_approval());
    let triage = Agent::new("Triage").handoff(&ann);
    let model = ScriptedModel::new()
        .call("transfer_to_ann", "{}")
        .say("Which bill?");
    let (runner, _, result) = with_ann(&triage, model).await;
    let result = answered(&runner, result, PersonAnswer::hand_to("Billing")).await;
    let mut run = result.into_run();
    let waiting = decide_all(&mut run, &Decision::approve());
    assert!(matches!(waiting[0].kind, InterruptionKind::Handoff { .. }));
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
}

#[tokio::test]
async fn limits_on_circles_hold_and_the_person_can_do_something_else() {
    let limits = LoopLimits::none().handoffs(1);
    let model = ScriptedModel::new().call("transfer_to_ann", "{}");
    let policy = HandoffPolicy::production().loops(limits);
    let runner = runner(&triage(), &model).handoff_policy(policy);
    let run = runner.run("Hello?").await.unwrap().into_run();
    let mut back = run.clone();
    back.answer(&asked(&back), PersonAnswer::hand_back())
        .unwrap();
    let error = runner.resume(back).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandoffLoop);
    assert!(
        error.to_string().contains("Triage → Ann → Triage"),
        "{error}"
    );

    let mut reply = run;
    reply
        .answer(&asked(&reply), PersonAnswer::reply("Hello."))
        .unwrap();
    assert_eq!(runner.resume(reply).await.unwrap().final_text(), "Hello.");
}

#[tokio::test]
async fn a_person_hands_over_without_progress_as_often_as_it_likes() {
    // The default policy stops agents that hand a conversation around and do nothing else.
    let ann: Agent = Agent::person("Ann").handoff(Handoff::to_start());
    let triage = Agent::new("Triage").handoff(&ann);
    let model = (0..6).fold(ScriptedModel::new(), |model, _| {
        model.call("transfer_to_ann", "{}")
    });
    let runner = runner(&triage, &model.say("Enough."));
    let mut result = runner.run("Hello?").await.unwrap();
    for _ in 0..6 {
        result = answered(&runner, result, PersonAnswer::hand_to("Triage")).await;
    }
    assert_eq!(result.final_text(), "Enough.");
}
