//! Runs with people that are stored and killed at any step.

use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::people::PersonAnswer;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Item, ModelRequest, ModelResponse, Run, Runner, Step, filters, handoff,
};

use super::asked;
use crate::approvals::Ran;
use crate::{described, stored};

/// The answers of the models, by what they are shown.
fn respond(request: &ModelRequest) -> ModelResponse {
    let calls = |name: &str| {
        let mut items = request.input.iter();
        items.any(|item| item.name().is_some_and(|known| known == name))
    };
    ModelResponse::new([match request.agent.as_deref() {
        Some("Triage") if !calls("transfer_to_ann") => {
            Item::function_call("c1", "transfer_to_ann", "{}")
        }
        Some("Billing") => Item::function_call("c2", "hand_back", r#"{"paid":true}"#),
        _ => Item::output_message("m1", "All done."),
    }])
}

fn runner(effects: &Ran, session: Option<&Conversation>) -> Runner {
    let (returned, called) = (effects.clone(), effects.clone());
    let result = serde_json::json!({
        "type": "object", "properties": {"paid": {"type": "boolean"}}, "required": ["paid"]
    });
    let billing: Agent = Agent::new("Billing");
    let to_billing = handoff(&billing)
        .on_handoff(move |ctx| called.add(format!("to billing {}", ctx.call_id().len())))
        .filter(filters::remove_all_tools())
        .returns_schema(result)
        .on_return(move |_ctx, result: serde_json::Value| returned.add(result.to_string()));
    let ann = Agent::person("Ann").handoff(to_billing);
    let triage = Agent::new("Triage").handoff(&ann);
    let model = (0..20).fold(ScriptedModel::new(), |model, _| {
        model.respond_by(|request| Ok(respond(request)))
    });
    let runner = Runner::new(&triage).model(model);
    match session {
        Some(session) => runner.session(session),
        None => runner,
    }
}

/// Answers for Ann: to Billing, and once that has handed back, to Triage.
fn answer(run: &mut Run) {
    let answer = match run.handoffs().len() {
        1 => PersonAnswer::hand_to("Billing").note("Please."),
        3 => PersonAnswer::reply("Paid.").then_hand_back(),
        other => panic!("{other} handoffs"),
    };
    run.answer(&asked(run), answer).unwrap();
}

async fn run_with(kills: &[usize], session: Option<&Conversation>) -> (Vec<String>, usize, Ran) {
    let effects = Ran::default();
    let mut process = runner(&effects, session);
    let mut run = process.begin("Hello?");
    let mut steps = 0;
    while !matches!(run.step(), Step::Done(_)) {
        if let Step::AwaitDecision = run.step() {
            answer(&mut run);
        }
        process.step(&mut run).await.unwrap();
        steps += 1;
        assert!(steps < 40, "the run does not end");
        if kills.contains(&steps) {
            process = runner(&effects, session);
            run = stored(&run);
        }
    }
    let history = described(&run.to_input_list()).into_iter();
    // The identifiers of Ann's calls have the run's random number.
    let history = history.map(|item| match item.split_once("output of call_") {
        Some((_, output)) => output.split_once(": ").unwrap().1.to_owned(),
        None => item,
    });
    let mut history: Vec<String> = history.collect();
    history.push(format!("{} with {}", run.agent(), run.turns()));
    (history, steps, effects)
}

#[tokio::test]
async fn a_run_killed_after_any_step_ends_like_one_that_was_not() {
    let (history, steps, effects) = run_with(&[], None).await;
    let effects = effects.take();
    assert_eq!(effects.len(), 2, "{effects:?}");
    assert_eq!(effects[1], r#"{"paid":true}"#);
    assert_eq!(history.last().unwrap(), "Triage with 4");
    assert!(steps >= 7, "{steps}");
    for kill in 1..steps {
        let killed = run_with(&[kill], None).await;
        assert_eq!(
            (&killed.0, killed.1),
            (&history, steps),
            "after step {kill}"
        );
        assert_eq!(killed.2.take(), effects, "after step {kill}");
    }
    let all: Vec<usize> = (1..steps).collect();
    assert_eq!(run_with(&all, None).await.0, history);
}

#[tokio::test]
async fn the_conversation_is_the_same_whenever_the_process_is_killed() {
    let recorded = |kills: Vec<usize>| async move {
        let session = Conversations::in_memory().get("c");
        let (history, steps, effects) = run_with(&kills, Some(&session)).await;
        let agent = session.agent().await.unwrap();
        (
            history,
            steps,
            effects.take(),
            agent,
            session.view().await.unwrap().len(),
        )
    };
    let whole = recorded(Vec::new()).await;
    assert_eq!(whole.3.as_deref(), Some("Triage"));
    for kill in 1..whole.1 {
        assert_eq!(recorded(vec![kill]).await, whole, "after step {kill}");
    }
    assert_eq!(recorded((1..whole.1).collect()).await, whole);
}
