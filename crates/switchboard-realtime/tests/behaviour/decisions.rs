//! Decisions on handoffs, by callbacks and by people, that meet each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use switchboard_core::approval::Decision;
use switchboard_core::handoff::{HandoffContext, HandoffDecision};
use switchboard_core::{RunContext, tool};
use switchboard_realtime::model::RealtimeModelEvent;
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{
    RealtimeAgent, RealtimeEvent, RealtimeRunner, ToolCallEvent, realtime_handoff,
};

use crate::support::{
    connect, eventually, names, open, outputs, read_answer_of, read_until_event, updates,
};

/// A desk whose handoff to Billing is redirected to the night desk.
fn redirecting(to_night: switchboard_realtime::RealtimeHandoff) -> RealtimeAgent {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing").instructions("You handle bills.");
    RealtimeAgent::new("Desk")
        .handoff(
            realtime_handoff(&billing)
                .needs_approval()
                .on_handoff(|_ctx| HandoffDecision::redirect("Night desk")),
        )
        .handoff(to_night)
}

fn night_desk() -> RealtimeAgent {
    RealtimeAgent::new("Night desk").instructions("It is late.")
}

fn transferring() -> ScriptedRealtimeModel {
    ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("call_1", "transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Hello."))
}

/// The last event, which asks for approval.
fn asked(events: &[RealtimeEvent]) -> ToolCallEvent {
    match events.last() {
        Some(RealtimeEvent::ApprovalRequired(call)) => call.clone(),
        other => panic!("an approval is expected, not {other:?}"),
    }
}

#[tokio::test]
async fn the_approval_of_a_handoff_is_none_of_the_agent_it_is_redirected_to() {
    let called = Arc::new(AtomicU32::new(0));
    let noted = called.clone();
    let to_night = realtime_handoff(night_desk())
        .needs_approval()
        .on_handoff(move |ctx| {
            assert!(ctx.is_approved());
            noted.fetch_add(1, Ordering::Relaxed);
        })
        .build();
    for is_approved in [true, false] {
        let model = transferring();
        let mut session = connect(&redirecting(to_night.clone()), &model).await;
        session.send_message("Hello").await.unwrap();
        let events = read_until_event(&mut session, "tool_approval_required").await;
        assert_eq!(&*asked(&events).tool, "transfer_to_billing");
        let always = Decision::approve().always();
        session.decide("call_1", always).await.unwrap();

        // A person is asked about the agent that would get the conversation.
        let events = read_until_event(&mut session, "tool_approval_required").await;
        assert_eq!(&*asked(&events).tool, "transfer_to_night_desk");
        assert_eq!(session.waiting_calls(), ["call_1".into()]);
        assert_eq!(called.swap(0, Ordering::Relaxed), 0);
        assert_eq!(updates(&model), [""; 0]);
        if is_approved {
            session.decide("call_1", Decision::approve()).await.unwrap();
            read_answer_of(&mut session, "Night desk").await;
            assert_eq!(called.swap(0, Ordering::Relaxed), 1);
        } else {
            let no = Decision::reject().message("Not at night.");
            session.decide("call_1", no).await.unwrap();
            read_answer_of(&mut session, "Desk").await;
            assert_eq!(outputs(&model)[0].1, "Not at night.");
            assert_eq!(
                (&*session.agent(), called.load(Ordering::Relaxed)),
                ("Desk", 0)
            );
        }
    }
}

#[tokio::test]
async fn a_standing_decision_holds_for_the_agent_that_a_handoff_is_redirected_to() {
    let to_night = realtime_handoff(night_desk()).needs_approval().build();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("call_1", "transfer_to_night_desk", "{}"))
        .turn(|turn| turn.call_as("call_2", "transfer_to_billing", "{}"))
        .turn(|turn| turn.say("I stay."));
    let mut session = connect(&redirecting(to_night), &model).await;
    session.send_message("Hello").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    let never = Decision::reject().message("Never.").always();
    session.decide("call_1", never).await.unwrap();
    let events = read_until_event(&mut session, "tool_approval_required").await;
    assert_eq!(&*asked(&events).call_id, "call_2");
    session.decide("call_2", Decision::approve()).await.unwrap();
    eventually(|| outputs(&model).len() == 2).await;
    assert_eq!(outputs(&model)[1].1, "Never.");
    assert_eq!(&*session.agent(), "Desk");
}

#[tokio::test]
async fn a_redirect_to_a_handoff_whose_condition_does_not_hold_is_told_to_the_model() {
    let to_night = realtime_handoff(night_desk())
        .enabled_if(|_ctx, _agent| false)
        .build();
    let model = transferring();
    let mut session = connect(&redirecting(to_night), &model).await;
    session.send_message("Hello").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    session.decide("call_1", Decision::approve()).await.unwrap();
    read_until_event(&mut session, "handoff_failed").await;
    eventually(|| !outputs(&model).is_empty()).await;
    assert_eq!(
        outputs(&model)[0].1,
        "The handoff to Night desk is not possible any more. Go on without it."
    );
    assert_eq!(&*session.agent(), "Desk");
    assert_eq!(updates(&model), [""; 0]);
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let team = switchboard_realtime::RealtimeTeam::new()
        .agent(
            RealtimeAgent::<()>::new("Desk")
                .handoff(
                    realtime_handoff("Day").on_handoff(|_ctx| HandoffDecision::redirect("Night")),
                )
                .handoff(
                    realtime_handoff("Night").on_handoff(|_ctx| HandoffDecision::redirect("Day")),
                ),
        )
        .agent(RealtimeAgent::new("Day"))
        .agent(RealtimeAgent::new("Night"))
        .build()
        .unwrap();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("call_1", "transfer_to_day", "{}"))
        .turn(|turn| turn.say("Sorry."));
    let mut session = connect(&team["Desk"], &model).await;
    session.send_message("Hello").await.unwrap();
    let events = read_until_event(&mut session, "handoff_failed").await;
    assert!(names(&events).contains(&"error"));
    assert_eq!(&*session.agent(), "Desk");
}

#[tokio::test]
async fn a_standing_approval_answers_a_callback_that_asks_for_one() {
    let billing: RealtimeAgent = RealtimeAgent::new("Billing");
    let to_billing = realtime_handoff("Billing").on_handoff(|ctx: HandoffContext| {
        if ctx.is_approved() {
            HandoffDecision::Proceed
        } else {
            HandoffDecision::AskApproval
        }
    });
    let team = switchboard_realtime::RealtimeTeam::new()
        .agent(RealtimeAgent::new("Desk").handoff(to_billing))
        .agent(billing.handoff("Desk"))
        .build()
        .unwrap();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("call_1", "transfer_to_billing", "{}"))
        .turn(|turn| turn.call_as("call_2", "transfer_to_desk", "{}"))
        .turn(|turn| turn.call_as("call_3", "transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Here again."));
    let mut session = connect(&team["Desk"], &model).await;
    session.send_message("Hello").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    let always = Decision::approve().always();
    session.decide("call_1", always).await.unwrap();
    eventually(|| outputs(&model).len() == 3).await;
    assert_eq!(&*session.agent(), "Billing");
}

#[tokio::test]
async fn conditions_are_evaluated_again_after_a_person_has_decided() {
    for what in ["refund", "transfer_to_billing"] {
        let ran = Arc::new(AtomicU32::new(0));
        let (of_tool, of_handoff) = (ran.clone(), ran.clone());
        let refund = tool::<AtomicBool>("refund")
            .needs_approval()
            .enabled_if(|ctx: RunContext<AtomicBool>, _agent| ctx.load(Ordering::Relaxed))
            .run(move |_ctx, (): ()| {
                of_tool.fetch_add(1, Ordering::Relaxed);
                "refunded"
            });
        let billing: RealtimeAgent<AtomicBool> = RealtimeAgent::new("Billing");
        let to_billing = realtime_handoff(&billing)
            .needs_approval()
            .enabled_if(|ctx: RunContext<AtomicBool>, _agent| ctx.load(Ordering::Relaxed))
            .on_handoff(move |_ctx| {
                of_handoff.fetch_add(1, Ordering::Relaxed);
            });
        let desk = RealtimeAgent::new("Desk").tool(refund).handoff(to_billing);
        let model = ScriptedRealtimeModel::new()
            .turn(|turn| turn.call_as("call_1", what, "{}"))
            .turn(|turn| turn.say("Sorry."));
        let is_open = Arc::new(AtomicBool::new(true));
        let runner = RealtimeRunner::new(&desk).context(is_open.clone());
        let mut session = open(runner, &model).await;
        session.send_message("Hello").await.unwrap();
        read_until_event(&mut session, "tool_approval_required").await;
        is_open.store(false, Ordering::Relaxed);
        session.decide("call_1", Decision::approve()).await.unwrap();
        eventually(|| !outputs(&model).is_empty()).await;
        assert_eq!(ran.load(Ordering::Relaxed), 0, "{what}");
        assert_eq!(&*session.agent(), "Desk", "{what}");
    }
}

#[tokio::test]
async fn a_caller_who_speaks_while_a_call_waits_changes_nothing_about_the_call() {
    let ran = Arc::new(AtomicU32::new(0));
    let noted = ran.clone();
    let refund = tool("refund").needs_approval().run(move |_ctx, (): ()| {
        noted.fetch_add(1, Ordering::Relaxed);
        "refunded"
    });
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(refund);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| {
            turn.say("I ask my manager.")
                .call_as("call_1", "refund", "{}")
        })
        .turn(|turn| turn.say("One moment."))
        .turn(|turn| turn.say("You get it back."));
    let mut session = connect(&desk, &model).await;
    session.send_message("My money").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    // The caller speaks over the answer, and gets another one.
    model.emit(RealtimeModelEvent::SpeechStarted {
        item_id: "item_user".into(),
        audio_start_ms: 0,
    });
    session.interrupt().await.unwrap();
    session.send_message("Are you there?").await.unwrap();
    read_answer_of(&mut session, "Desk").await;
    assert_eq!(session.waiting_calls(), ["call_1".into()]);
    assert_eq!(ran.load(Ordering::Relaxed), 0);

    session.decide("call_1", Decision::approve()).await.unwrap();
    read_until_event(&mut session, "tool_end").await;
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert_eq!(
        outputs(&model),
        [("call_1".to_owned(), "refunded".to_owned(), true)]
    );
    // A second decision is for no call any more.
    assert!(session.decide("call_1", Decision::approve()).await.is_err());
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}
