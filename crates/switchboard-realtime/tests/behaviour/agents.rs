//! Agents and handoffs as they are built.

use switchboard_core::model::ModelSettings;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Team, handoff, tool};
use switchboard_realtime::model::{
    RealtimeModelCommand, RealtimeModelEvent, RealtimeServerError, ReportedError,
};
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeRunner, RealtimeTeam};

use crate::support::{connect, eventually, read_answer_of};

#[tokio::test]
async fn a_text_agent_becomes_a_realtime_agent_with_all_agents_that_it_leads_to() {
    let team = Team::<()>::new()
        .agent(Agent::new("Desk").handoff("Billing"))
        .agent(Agent::new("Billing").handoff("Desk"))
        .build()
        .unwrap();
    let desk = RealtimeAgent::try_from(&team["Desk"]).unwrap();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.call("transfer_to_desk", "{}"))
        .turn(|turn| turn.say("Back again."));
    let mut session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    read_answer_of(&mut session, "Desk").await;
}

#[test]
fn a_conversion_that_would_lose_something_names_it() {
    let agent: Agent = Agent::new("Desk")
        .model_settings(ModelSettings::default())
        .explain_handoffs();
    let error = RealtimeAgent::try_from(&agent).unwrap_err();
    assert_eq!(error.agent(), "Desk");
    assert_eq!(
        error.lost(),
        [
            "its model settings",
            "the handoff prompt in its instructions"
        ]
    );
    let picked = handoff(Agent::<()>::new("Billing")).nest_history(true);
    let error = RealtimeAgent::try_from(&Agent::new("Desk").handoff(picked)).unwrap_err();
    assert!(error.to_string().contains("nested history"), "{error}");
}

#[tokio::test]
async fn names_that_are_used_twice_are_refused_before_connecting() {
    let twice = |name: &str| tool(name).run(|_ctx, (): ()| "");
    let agent: RealtimeAgent = RealtimeAgent::new("Desk").tool(twice("a")).tool(twice("a"));
    let model = ScriptedRealtimeModel::new();
    let connected = RealtimeRunner::new(&agent)
        .model(model.clone())
        .connect()
        .await;
    let error = connected.unwrap_err();
    assert!(error.is_configuration() && error.to_string().contains("\"a\""));
    assert!(model.configs().is_empty());
}

#[test]
fn a_team_refuses_unknown_and_repeated_names() {
    let unknown = RealtimeTeam::<()>::new().agent(RealtimeAgent::new("Desk").handoff("Mars"));
    assert!(unknown.build().unwrap_err().to_string().contains("Mars"));
    let repeated = RealtimeTeam::<()>::new()
        .agent(RealtimeAgent::new("Desk"))
        .agent(RealtimeAgent::new("Desk"));
    assert!(repeated.build().unwrap_err().is_configuration());
}

#[tokio::test]
async fn an_agents_voice_is_set_until_something_was_said() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").voice("coral");
    let desk = RealtimeAgent::new("Desk").voice("verse").handoff(&billing);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.say("One moment.").call("transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Billing speaking."));
    let mut session = connect(&desk, &model).await;
    assert_eq!(model.configs()[0].settings.voice, Some("verse".into()));
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    let sent = model.sent();
    let voices: Vec<_> = sent
        .iter()
        .filter_map(|command| match command {
            RealtimeModelCommand::UpdateSession { settings, .. } => Some(settings.voice.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(voices, [Some("verse".into())]);
}

#[tokio::test]
async fn the_voice_of_an_agent_that_did_not_get_the_conversation_is_forgotten() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").voice("coral");
    let sales: RealtimeAgent = RealtimeAgent::new("Sales");
    let desk = RealtimeAgent::new("Desk")
        .voice("verse")
        .handoff(&billing)
        .handoff(&sales);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.call("transfer_to_sales", "{}"));
    model.ignore_updates();
    let session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    let updates = || -> Vec<_> {
        let sent = model.sent().into_iter();
        let updates = sent.filter_map(|command| match command {
            RealtimeModelCommand::UpdateSession {
                settings,
                update_id,
            } => Some((settings.voice, update_id)),
            _ => None,
        });
        updates.collect()
    };
    eventually(|| updates().len() == 1).await;
    model.emit(RealtimeModelEvent::SessionUpdateRefused {
        update_id: updates()[0].1.clone(),
        error: RealtimeServerError::Reported(ReportedError::default()),
    });
    eventually(|| updates().len() == 2).await;
    let voices: Vec<_> = updates().into_iter().map(|(voice, _)| voice).collect();
    assert_eq!(voices, [Some("coral".into()), Some("verse".into())]);
}

#[test]
fn the_models_of_agents_can_be_replaced_and_a_person_cannot() {
    let billing: Agent = Agent::new("Billing").model(ScriptedModel::new());
    let desk = Agent::new("Desk")
        .model(ScriptedModel::new())
        .handoff(&billing);
    let error = RealtimeAgent::try_from(&desk).unwrap_err();
    assert_eq!(error.lost(), ["its model"]);
    let replaced = RealtimeAgent::replacing_model(&desk).unwrap();
    assert_eq!(replaced.handoffs()[0].agent_name(), "Billing");

    let ann: Agent = Agent::person("Ann");
    let error = RealtimeAgent::replacing_model(&desk.handoff(&ann)).unwrap_err();
    assert_eq!(
        (error.agent(), error.lost()),
        ("Ann", &["the person who answers".to_owned()][..])
    );
}
