//! Handoffs under the default policy: atomic, on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::tool;
use switchboard_realtime::model::{
    Modality, RealtimeModelCommand, RealtimeModelEvent, RealtimeModelSettings,
};
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{
    FirstWords, OldAudio, RealtimeAgent, RealtimeEvent, RealtimePolicy, RealtimeRunner,
    RealtimeTeam, Switching, realtime_handoff,
};

use crate::support::{
    connect, eventually, names, open, outputs, read_answer_of, read_until_event, updates,
};

#[derive(Deserialize, JsonSchema)]
struct Escalation {
    reason: String,
}

fn billing() -> RealtimeAgent {
    RealtimeAgent::new("Billing").instructions("You handle bills.")
}

fn desk() -> RealtimeAgent {
    let desk = RealtimeAgent::new("Desk").instructions("Greet the caller.");
    desk.handoff(billing())
}

fn handing_off() -> ScriptedRealtimeModel {
    ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("call_1", "transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Your bill is fixed."))
}

fn with_policy(change: impl FnOnce(&mut RealtimePolicy)) -> RealtimeRunner {
    let mut policy = RealtimePolicy::production();
    change(&mut policy);
    RealtimeRunner::new(&desk()).policy(policy)
}

#[tokio::test]
async fn a_handoff_updates_the_session_and_then_answers_its_call_with_one_response() {
    let model = handing_off();
    let mut session = connect(&desk(), &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    let events = read_answer_of(&mut session, "Billing").await;
    assert!(names(&events).contains(&"handoff"));
    assert_eq!(&*session.agent(), "Billing");
    let kinds: Vec<&str> = model
        .sent()
        .iter()
        .map(|command| match command {
            RealtimeModelCommand::UserInput(_) => "input",
            RealtimeModelCommand::UpdateSession { .. } => "update",
            RealtimeModelCommand::ToolOutput(_) => "output",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["input", "update", "output"]);
    assert_eq!(
        outputs(&model),
        [("call_1".into(), r#"{"assistant": "Billing"}"#.into(), true)]
    );
    assert_eq!((model.responses(), model.configs().len()), (2, 1));
}

#[tokio::test]
async fn the_settings_of_the_session_outlive_a_handoff() {
    let model = handing_off();
    let settings = RealtimeModelSettings {
        voice: Some("verse".into()),
        output_modalities: Some(vec![Modality::Audio]),
        speed: Some(1.2),
        ..RealtimeModelSettings::default()
    };
    let runner = RealtimeRunner::new(&desk()).model_settings(settings);
    let mut session = open(runner, &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    let sent = model.sent();
    let update = sent.iter().find_map(|command| match command {
        RealtimeModelCommand::UpdateSession { settings, .. } => Some(settings),
        _ => None,
    });
    let update = update.unwrap();
    assert_eq!(update.voice, Some("verse".into()));
    assert_eq!(update.output_modalities, Some(vec![Modality::Audio]));
    assert_eq!(update.speed, Some(1.2));
}

#[tokio::test]
async fn a_server_that_refuses_the_update_keeps_the_agent_on_both_sides() {
    let model = handing_off();
    let mut session = connect(&desk(), &model).await;
    model.refuse_updates();
    session.send_message("My bill is wrong").await.unwrap();
    read_until_event(&mut session, "handoff_failed").await;
    eventually(|| outputs(&model).len() == 1).await;
    let [(call_id, output, starts)] = &outputs(&model)[..] else {
        panic!("one output is expected");
    };
    assert_eq!((call_id.as_str(), *starts), ("call_1", true));
    assert!(output.contains("could not be made"), "{output}");
    assert_eq!(&*session.agent(), "Desk");
}

#[tokio::test]
async fn a_server_that_never_answers_the_update_gets_the_old_agent_back() {
    let model = handing_off();
    model.ignore_updates();
    let within = Duration::from_millis(50);
    let runner = with_policy(|policy| policy.switching = Switching::when_taken_within(within));
    let mut session = open(runner, &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_until_event(&mut session, "handoff_failed").await;
    eventually(|| outputs(&model).len() == 1).await;
    assert_eq!(updates(&model), ["You handle bills.", "Greet the caller."]);
    assert_eq!(&*session.agent(), "Desk");
}

#[tokio::test]
async fn the_agent_stays_while_the_server_has_not_taken_the_update() {
    let model = handing_off();
    model.ignore_updates();
    let mut session = connect(&desk(), &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_answer_of(&mut session, "Desk").await;
    eventually(|| updates(&model).len() == 1).await;
    assert_eq!(&*session.agent(), "Desk");
    assert_eq!(outputs(&model), []);
}

#[tokio::test]
async fn everything_that_can_fail_is_resolved_before_the_update() {
    let broken = RealtimeAgent::new("Billing")
        .instructions_fn(|_ctx, _agent| Err::<String, _>("no template"));
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").handoff(&broken);
    let model = handing_off();
    let mut session = connect(&desk, &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_until_event(&mut session, "handoff_failed").await;
    eventually(|| outputs(&model).len() == 1).await;
    assert_eq!(updates(&model), [""; 0]);
    assert_eq!(&*session.agent(), "Desk");
    assert!(!session.is_closed());
}

#[tokio::test]
async fn of_two_handoffs_in_one_response_the_first_is_taken_and_the_other_answered() {
    let sales: RealtimeAgent = RealtimeAgent::new("Sales");
    let desk = desk().handoff(&sales);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| {
            turn.call_as("call_1", "transfer_to_billing", "{}").call_as(
                "call_2",
                "transfer_to_sales",
                "{}",
            )
        })
        .turn(|turn| turn.say("Billing speaking."));
    let mut session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    assert_eq!(&*session.agent(), "Billing");
    let mut answers = outputs(&model);
    answers.sort();
    let ignored = "Multiple handoffs detected, ignoring this one.".to_owned();
    assert_eq!(
        answers,
        [
            ("call_1".into(), r#"{"assistant": "Billing"}"#.into(), true),
            ("call_2".into(), ignored, false),
        ]
    );
    assert_eq!(model.responses(), 2);
}

#[tokio::test]
async fn a_tool_of_the_old_agent_that_is_called_late_is_not_found() {
    let clock = tool("clock").run(|_ctx, (): ()| "noon");
    let model = handing_off().turn(|turn| turn.call_as("late", "clock", "{}"));
    let mut session = connect(&desk().tool(clock), &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    session.send_message("The time?").await.unwrap();
    eventually(|| outputs(&model).len() == 2).await;
    assert_eq!(outputs(&model)[1].1, "Tool clock not found");
}

#[tokio::test]
async fn a_callback_gets_its_payload_and_may_refuse_or_redirect() {
    let night: RealtimeAgent = RealtimeAgent::new("Night desk").instructions("It is late.");
    let reasons: Arc<AtomicU32> = Arc::default();
    let counted = reasons.clone();
    let to_billing = realtime_handoff(billing())
        .payload::<Escalation>()
        .on_handoff(move |_ctx, escalation| {
            counted.fetch_add(1, Ordering::Relaxed);
            match escalation.reason.as_str() {
                "late" => HandoffDecision::redirect_with("Night desk", serde_json::json!({})),
                "no" => HandoffDecision::refuse("Billing is closed."),
                _ => HandoffDecision::Proceed,
            }
        });
    let desk: RealtimeAgent = RealtimeAgent::new("Desk")
        .handoff(to_billing)
        .handoff(&night);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", r#"{"reason": "no"}"#))
        .turn(|turn| turn.call("transfer_to_billing", r#"{"reason": "late"}"#))
        .turn(|turn| turn.say("Night desk."));
    let mut session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Night desk").await;
    assert_eq!(outputs(&model)[0].1, "Billing is closed.");
    assert_eq!(&*session.agent(), "Night desk");
    assert_eq!(reasons.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn of_two_handoffs_that_are_approved_at_once_the_first_is_taken() {
    let sales: RealtimeAgent = RealtimeAgent::new("Sales");
    let desk: RealtimeAgent = RealtimeAgent::new("Desk")
        .handoff(realtime_handoff(billing()).needs_approval())
        .handoff(realtime_handoff(&sales).needs_approval());
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("call_1", "transfer_to_billing", "{}"))
        .turn(|turn| turn.call_as("call_2", "transfer_to_sales", "{}"))
        .turn(|turn| turn.say("Billing speaking."));
    model.ignore_updates();
    let mut session = connect(&desk, &model).await;
    for words in ["My bill is wrong", "And I want a phone"] {
        session.send_message(words).await.unwrap();
        read_until_event(&mut session, "tool_approval_required").await;
    }
    for call in ["call_1", "call_2"] {
        let approve = switchboard_core::approval::Decision::approve();
        session.decide(call, approve).await.unwrap();
        eventually(|| !updates(&model).is_empty()).await;
    }
    let update_id = model.sent().into_iter().find_map(|command| match command {
        RealtimeModelCommand::UpdateSession { update_id, .. } => update_id,
        _ => None,
    });
    model.emit(RealtimeModelEvent::SessionUpdated { update_id });
    let events = read_until_event(&mut session, "handoff_failed").await;
    assert_eq!(&*session.agent(), "Billing");
    let handoffs = names(&events).into_iter().filter(|name| *name == "handoff");
    assert_eq!(handoffs.count(), 1);
    eventually(|| outputs(&model).len() == 2).await;
    let refusal = "The handoff is not possible any more: another agent has the conversation.";
    assert!(outputs(&model).contains(&("call_2".into(), refusal.into(), true)));
    assert_eq!(updates(&model), ["You handle bills."]);
}

#[tokio::test]
async fn an_update_that_nobody_named_is_not_that_of_the_handoff() {
    let model = handing_off();
    model.ignore_updates();
    let mut session = connect(&desk(), &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    eventually(|| updates(&model).len() == 1).await;
    model.emit(RealtimeModelEvent::SessionUpdated { update_id: None });
    model.emit(RealtimeModelEvent::SpeechStarted {
        item_id: "u".into(),
        audio_start_ms: 0,
    });
    read_until_event(&mut session, "speech_started").await;
    assert_eq!(&*session.agent(), "Desk");
    assert_eq!(outputs(&model), []);
}

#[tokio::test]
async fn agents_hand_off_in_circles() {
    let team = RealtimeTeam::new()
        .agent(RealtimeAgent::<()>::new("Desk").handoff("Billing"))
        .agent(RealtimeAgent::new("Billing").handoff("Desk"))
        .build()
        .unwrap();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.call("transfer_to_desk", "{}"))
        .turn(|turn| turn.say("Back again."));
    let mut session = connect(&team["Desk"], &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    read_answer_of(&mut session, "Desk").await;
    assert_eq!(&*session.agent(), "Desk");
}

#[tokio::test]
async fn the_new_agent_waits_for_the_user_if_that_is_the_policy() {
    let model = handing_off();
    let runner = with_policy(|policy| policy.first_words = FirstWords::WaitForUser);
    let mut session = open(runner, &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_until_event(&mut session, "handoff").await;
    eventually(|| outputs(&model).len() == 1).await;
    assert!(!outputs(&model)[0].2);
    assert_eq!(model.responses(), 1);
    session.send_message("Are you there?").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
}

#[tokio::test]
async fn the_first_words_of_the_new_agent_follow_an_instruction() {
    let model = handing_off();
    let words = "Do not mention the transfer.";
    let runner = with_policy(|policy| policy.first_words = FirstWords::Instruct(words.into()));
    let mut session = open(runner, &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    assert!(!outputs(&model)[0].2);
    let sent = model.sent();
    let requests: Vec<_> = sent
        .iter()
        .filter_map(|command| match command {
            RealtimeModelCommand::CreateResponse(request) => request.instructions.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(
        requests,
        ["You handle bills.\n\nDo not mention the transfer."]
    );
    assert_eq!(model.responses(), 2);
}

#[tokio::test]
async fn the_old_agents_audio_is_cancelled_or_let_finish() {
    for (old_audio, cancels) in [(OldAudio::Finish, 0), (OldAudio::Cancel, 1)] {
        let model = ScriptedRealtimeModel::new()
            .turn(|turn| {
                turn.say("I will put you through.")
                    .call("transfer_to_billing", "{}")
                    .leave_open()
            })
            .turn(|turn| turn.say("Billing speaking."));
        let runner = with_policy(|policy| policy.old_audio = old_audio);
        let mut session = open(runner, &model).await;
        session.send_message("My bill is wrong").await.unwrap();
        read_until_event(&mut session, "handoff").await;
        model.end_response();
        read_answer_of(&mut session, "Billing").await;
        let interrupts = model.sent().into_iter().filter(|command| {
            matches!(command, RealtimeModelCommand::Interrupt(interrupt)
                if interrupt.force_response_cancel && interrupt.response_id.is_some())
        });
        assert_eq!(interrupts.count(), cancels, "{old_audio:?}");
    }
}

#[tokio::test]
async fn the_application_gives_the_conversation_to_another_agent() {
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Billing speaking."));
    let billing = billing();
    let desk = RealtimeAgent::new("Desk").handoff(&billing);
    let mut session = connect(&desk, &model).await;
    session.update_agent(&billing).await.unwrap();
    assert_eq!(updates(&model), ["You handle bills."]);
    session.send_message("Hello").await.unwrap();
    let events = read_answer_of(&mut session, "Billing").await;
    assert!(!names(&events).contains(&"handoff"));

    model.refuse_updates();
    let error = session.update_agent(&desk).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(&*session.agent(), "Billing");
}

#[tokio::test]
async fn a_handoff_can_wait_for_a_person() {
    let to_billing = realtime_handoff(billing()).needs_approval();
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").handoff(to_billing);
    let model = handing_off();
    let mut session = connect(&desk, &model).await;
    session.send_message("My bill is wrong").await.unwrap();
    let events = read_until_event(&mut session, "tool_approval_required").await;
    let Some(RealtimeEvent::ApprovalRequired(call)) = events.last() else {
        panic!("an approval is expected");
    };
    assert_eq!(
        (&*call.tool, &*session.agent()),
        ("transfer_to_billing", "Desk")
    );
    session
        .decide("call_1", switchboard_core::approval::Decision::approve())
        .await
        .unwrap();
    read_answer_of(&mut session, "Billing").await;
}
