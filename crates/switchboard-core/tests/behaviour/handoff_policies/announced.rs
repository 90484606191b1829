//! An agent that announces a handoff and does not call it is asked once.

use switchboard_core::model::ToolChoice;
use switchboard_core::run::{AnnouncedHandoffs, HandoffPolicy};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Runner};

use crate::approvals::Ran;
use crate::described;

fn triage() -> Agent {
    let (billing, sales): (Agent, Agent) = (Agent::new("Billing"), Agent::new("Sales"));
    Agent::new("Triage").handoff(&billing).handoff(&sales)
}

fn runner(model: &ScriptedModel) -> Runner {
    let policy = HandoffPolicy::production().announced(AnnouncedHandoffs::default());
    Runner::new(&triage())
        .model(model.clone())
        .handoff_policy(policy)
}

fn choices(model: &ScriptedModel) -> Vec<Option<ToolChoice>> {
    let requests = model.requests();
    requests
        .iter()
        .map(|request| request.settings.tool_choice.clone())
        .collect()
}

#[tokio::test]
async fn the_model_is_asked_to_call_what_it_announced() {
    let model = ScriptedModel::new()
        .say("I'll transfer you to Billing now.")
        .call("transfer_to_billing", "{}")
        .say("Billing here.");
    let result = runner(&model).run("My bill").await.unwrap();
    assert_eq!(result.final_text(), "Billing here.");
    assert_eq!(
        choices(&model),
        [
            None,
            Some(ToolChoice::Named("transfer_to_billing".into())),
            None
        ]
    );
    assert_eq!(
        described(&model.requests()[1].input),
        [
            "user: My bill",
            "assistant: I'll transfer you to Billing now."
        ]
    );
}

#[tokio::test]
async fn it_is_asked_once_and_only_where_words_say_so() {
    let model = ScriptedModel::new()
        .say("Connecting you with a colleague.")
        .say("Connecting you with a colleague, one moment.");
    let result = runner(&model).run("Help").await.unwrap();
    assert_eq!(
        result.final_text(),
        "Connecting you with a colleague, one moment."
    );
    assert_eq!(choices(&model), [None, Some(ToolChoice::Required)]);

    let model = ScriptedModel::new().say("Billing is open from 9 to 5.");
    runner(&model).run("Help").await.unwrap();
    assert_eq!(model.requests().len(), 1);

    let model = ScriptedModel::new().say("I'll transfer you to Billing now.");
    let by_default = Runner::new(&triage()).model(model.clone());
    by_default.run("Help").await.unwrap();
    assert_eq!(model.requests().len(), 1);
}

fn with(announced: AnnouncedHandoffs, model: &ScriptedModel) -> Runner {
    let policy = HandoffPolicy::production().announced(announced);
    Runner::new(&triage())
        .model(model.clone())
        .handoff_policy(policy)
}

#[tokio::test]
async fn code_finds_announcements_in_other_words() {
    let asked = Ran::default();
    let seen = asked.clone();
    let announced = AnnouncedHandoffs::default().predicate(move |answer| {
        let seen = seen.clone();
        async move {
            seen.add(format!(
                "{} {:?}: {}",
                answer.agent, answer.handoffs, answer.text
            ));
            answer.text.contains("Kollegen")
        }
    });
    let model = ScriptedModel::new()
        .say("Das machen die Kollegen von Billing.")
        .call("transfer_to_billing", "{}")
        .say("Die Kollegen sind da.");
    let result = with(announced.clone(), &model)
        .run("Rechnung")
        .await
        .unwrap();
    assert_eq!(result.final_text(), "Die Kollegen sind da.");
    assert_eq!(
        choices(&model),
        [
            None,
            Some(ToolChoice::Named("transfer_to_billing".into())),
            None
        ]
    );
    // Not about calls, about words that are known, or of agents without handoffs.
    assert_eq!(
        asked.take(),
        ["Triage [\"Billing\", \"Sales\"]: Das machen die Kollegen von Billing."]
    );
    let model = ScriptedModel::new()
        .say("I'll transfer you to Billing, to the Kollegen.")
        .say("Kollegen!");
    let result = with(announced.clone(), &model).run("x").await.unwrap();
    assert_eq!(result.final_text(), "Kollegen!");
    assert_eq!(asked.take(), [""; 0]);
    let model = ScriptedModel::new().say("Hello.");
    with(announced, &model).run("x").await.unwrap();
    assert_eq!((asked.take().len(), model.requests().len()), (1, 1));
}

#[tokio::test]
async fn code_that_fails_ends_the_run_before_the_answer() {
    let announced = AnnouncedHandoffs::none().predicate(|_answer| Err::<bool, _>("broken"));
    let model = ScriptedModel::new().say("Hello.");
    let error = with(announced, &model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert_eq!(error.run().unwrap().turns(), 0);
}
