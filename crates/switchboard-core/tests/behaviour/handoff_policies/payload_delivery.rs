//! The payload of a handoff arrives where the handoff says.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::handoff::{EdgeDecision, PayloadDelivery};
use switchboard_core::run::{ActiveAgent, ServerHistory};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Item, RunContext, Runner, Step, filters, handoff, tool};

use crate::approvals::Ran;
use crate::stored_runs::assert_fits_schema;
use crate::{described, stored};

#[derive(Debug, Deserialize, JsonSchema)]
struct Escalation {
    level: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Other {
    #[serde(rename = "colour")]
    _colour: String,
}

const TEXT: &str = "Triage has handed the conversation over with this: {\"level\":3}";

/// Triage, whose handoff delivers its payload, and Billing, which notes what its tool gets of it.
fn triage(ways: &[PayloadDelivery], ran: &Ran) -> Agent {
    let ran = ran.clone();
    let look = tool::<()>("look").run(move |ctx, (): ()| {
        let level = ctx.handoff_payload::<Escalation>().map(|got| got.level);
        ran.add(format!("{level:?}"));
        assert!(ctx.handoff_payload::<Other>().is_none());
        "found"
    });
    let archive: Agent = Agent::new("Archive").instructions("File it.");
    let billing: Agent = Agent::new("Billing")
        .instructions("You bill.")
        .tool(look)
        .handoff(&archive);
    let edge = handoff(&billing)
        .payload::<Escalation>()
        .on_handoff(|_ctx, escalation| assert_eq!(escalation.level, 3));
    let edge = ways.iter().fold(edge, |edge, way| edge.deliver(*way));
    Agent::new("Triage").instructions("Route.").handoff(edge)
}

fn model() -> ScriptedModel {
    ScriptedModel::new()
        .call("transfer_to_billing", r#"{"level": 3}"#)
        .call("look", "{}")
        .call("transfer_to_archive", "{}")
        .say("Filed.")
}

fn instructions(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    let given = requests.iter().map(|request| request.instructions.clone());
    given
        .map(|text| text.unwrap_or_default().to_string())
        .collect()
}

#[tokio::test]
async fn it_is_in_the_instructions_of_each_turn_of_the_agent_and_of_no_other() {
    let ran = Ran::default();
    let model = model();
    let runner = Runner::new(&triage(&[PayloadDelivery::Instructions], &ran)).model(model.clone());
    runner.run("Help").await.unwrap();
    let with = format!("You bill.\n\n{TEXT}");
    assert_eq!(instructions(&model), ["Route.", &with, &with, "File it."]);
    assert!(
        !described(&model.requests()[1].input)
            .join(" ")
            .contains(TEXT)
    );
    assert_eq!(ran.take(), ["Some(3)"]);
}

#[tokio::test]
async fn it_is_in_the_context_alone() {
    let ran = Ran::default();
    let model = model();
    let runner = Runner::new(&triage(&[PayloadDelivery::Context], &ran)).model(model.clone());
    runner.run("Help").await.unwrap();
    assert_eq!(
        instructions(&model),
        ["Route.", "You bill.", "You bill.", "File it."]
    );
    assert_eq!(ran.take(), ["Some(3)"]);

    // Without a delivery nobody keeps it.
    let runner = Runner::new(&triage(&[], &ran)).model(self::model());
    runner.run("Help").await.unwrap();
    assert_eq!(ran.take(), ["None"]);
}

#[tokio::test]
async fn it_is_a_message_behind_any_filter() {
    let both = [PayloadDelivery::Message, PayloadDelivery::Context];
    let ran = Ran::default();
    let run = |change: fn(Runner) -> Runner| {
        let (model, agent) = (model(), triage(&both, &ran));
        let runner = change(Runner::new(&agent).model(model.clone()));
        async move {
            runner.run("Help").await.unwrap();
            described(&model.requests()[1].input)
        }
    };
    let message = format!("developer: {TEXT}");
    assert_eq!(
        run(|runner| runner).await,
        [
            &message,
            "user: Help",
            "call transfer_to_billing",
            "output of call_1: {\"assistant\": \"Billing\"}"
        ]
    );
    assert_eq!(
        run(|runner| runner.handoff_input_filter(filters::remove_all_tools())).await,
        [&message, "user: Help"]
    );
    let nested = run(|runner| runner.nest_handoff_history(true)).await;
    assert_eq!((nested.len(), &nested[0]), (2, &message));
    assert_eq!(ran.take(), ["Some(3)", "Some(3)", "Some(3)"]);
}

#[tokio::test]
async fn a_restored_run_has_it() {
    let ran = Ran::default();
    let ways = [PayloadDelivery::Instructions];
    let model = model();
    let mut run = Runner::new(&triage(&ways, &ran)).begin("Help");
    while !matches!(run.step(), Step::Done(_)) {
        let runner = Runner::new(&triage(&ways, &ran)).model(model.clone());
        runner.step(&mut run).await.unwrap();
        assert_fits_schema(&run);
        run = stored(&run);
    }
    let with = format!("You bill.\n\n{TEXT}");
    assert_eq!(instructions(&model), ["Route.", &with, &with, "File it."]);
}

/// Sends a message, and returns the instructions of the first request.
async fn send(session: &Conversation, policy: ActiveAgent, model: ScriptedModel) -> String {
    let ways = [PayloadDelivery::Instructions];
    let runner = Runner::new(&triage(&ways, &Ran::default()))
        .model(model.clone())
        .active_agent(policy)
        .session(session);
    runner.run("Next").await.unwrap();
    instructions(&model).swap_remove(0)
}

#[tokio::test]
async fn a_stored_conversation_keeps_it_while_the_agent_has_it() {
    let with = format!("You bill.\n\n{TEXT}");
    let hand_off = || {
        ScriptedModel::new()
            .call("transfer_to_billing", r#"{"level": 3}"#)
            .say("Which?")
    };
    let say = || ScriptedModel::new().say("Yes.");
    let stays = ActiveAgent::default();

    let store = Conversations::in_memory();
    let session = store.get("c");
    assert_eq!(send(&session, stays, hand_off()).await, "Route.");
    for _ in 0..2 {
        assert_eq!(send(&session, stays, say()).await, with);
    }
    let fork = session.fork("f", None).await.unwrap();
    let exported = session.export().await.unwrap();
    let text = serde_json::to_string(&exported).unwrap();
    let copy = store.get("i");
    copy.import(&serde_json::from_str(&text).unwrap())
        .await
        .unwrap();
    for kept in [&fork, &copy] {
        assert_eq!(send(kept, stays, say()).await, with);
    }
    // Undone, it is as it was.
    let whole = fork.record(None).await.unwrap();
    fork.rewind(whole[0].position).await.unwrap();
    assert_eq!(send(&fork, stays, say()).await, "Route.");

    // Given to it by hand, the agent has no payload.
    session.set_agent(Some("Billing")).await.unwrap();
    assert_eq!(send(&session, stays, say()).await, "You bill.");

    let returning = store.get("r");
    let back = ActiveAgent::ReturnToStart;
    assert_eq!(send(&returning, back, hand_off()).await, "Route.");
    assert_eq!(send(&returning, back, say()).await, "Route.");

    // The next agent has none, and a second handoff has its own.
    let archive = say_of_archive();
    assert_eq!(send(&copy, stays, archive).await, with);
    assert_eq!(send(&copy, stays, say()).await, "File it.");
}

fn say_of_archive() -> ScriptedModel {
    ScriptedModel::new()
        .reply([Item::function_call("c9", "transfer_to_archive", "{}")])
        .say("Filed.")
}

#[tokio::test]
async fn a_condition_and_a_redirect_give_one_too() {
    let read = |ctx: RunContext, _agent| {
        let got = ctx.handoff_payload::<Escalation>();
        format!("{:?}", got.map(|got| got.level))
    };
    let billing: Agent = Agent::new("Billing").instructions_fn(read);
    let night: Agent = Agent::new("Night");
    let to_billing = handoff(&billing)
        .payload::<Escalation>()
        .deliver(PayloadDelivery::Context)
        .before_turn_if(|_ctx, _agent| EdgeDecision::hand_off_with(json!({"level": 5})))
        .build();
    let model = ScriptedModel::new().say("Hi.");
    let triage = Agent::new("Triage").handoff(to_billing.clone());
    let runner = Runner::new(&triage).model(model.clone());
    runner.run("x").await.unwrap();
    assert_eq!(instructions(&model), ["Some(5)"]);

    let to_night = handoff(&night).on_handoff(|_ctx| {
        switchboard_core::handoff::HandoffDecision::redirect_with("Billing", json!({"level": 7}))
    });
    let offered = to_billing.to_builder().before_turn_if(|_ctx, _agent| false);
    let triage = Agent::new("Triage").handoff(to_night).handoff(offered);
    let model = ScriptedModel::new()
        .call("transfer_to_night", "{}")
        .say("Hi.");
    let runner = Runner::new(&triage).model(model.clone());
    runner.run("x").await.unwrap();
    assert_eq!(instructions(&model)[1], "Some(7)");
}

#[tokio::test]
async fn a_delivery_that_cannot_be_made_is_an_error_before_anything_is_done() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(handoff(&b).deliver(PayloadDelivery::Context));
    let model = ScriptedModel::new().say("Never.");
    let error = Runner::new(&a).model(model.clone()).run("x").await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Configuration);
    assert_eq!(model.requests().len(), 0);

    let a = triage(&[PayloadDelivery::Message], &Ran::default());
    let runner = Runner::new(&a)
        .model(self::model())
        .server_history(ServerHistory::Conversation("conv".into()));
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    assert!(error.to_string().contains("deliver it in the instructions"));
}
