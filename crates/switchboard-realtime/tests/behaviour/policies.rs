//! The default policy: what can fail is told to the model, and nothing happens in silence.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
use switchboard_core::hooks::{AgentHooks, HookResult, Transfer};
use switchboard_core::tool::ToolBuilder;
use switchboard_core::{Agent, FinalOutput, RunContext, Tool, ToolContext, tool};
use switchboard_realtime::items::{
    RealtimeContent, RealtimeItemStatus, RealtimeMessageItem, RealtimeRole,
};
use switchboard_realtime::model::{
    AudioPart, RealtimeClose, RealtimeConnectionStatus, RealtimeModelAudio, RealtimeModelCommand,
    RealtimeModelDelta, RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent,
    RealtimeModelSettings, RealtimeResponseStatus, RealtimeServerError, RealtimeToolCall,
    ReportedError,
};
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{
    Failures, RealtimeAgent, RealtimeEvent, RealtimePolicy, RealtimeRunner, realtime_handoff,
};
use tokio::sync::Notify;

use crate::support::{
    connect, eventually, names, open, outputs, read_answer_of, read_until, read_until_event,
};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Escalation {
    reason: String,
}

fn billing() -> RealtimeAgent {
    RealtimeAgent::new("Billing")
}

fn failing(name: &str) -> ToolBuilder<()> {
    tool(name).fail_run()
}

#[tokio::test]
async fn a_bad_payload_is_told_to_the_model() {
    let handoff = realtime_handoff(billing())
        .payload::<Escalation>()
        .on_handoff(|_ctx, _payload| {});
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").handoff(handoff);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.call("transfer_to_billing", r#"{"reason": "a bill"}"#))
        .turn(|turn| turn.say("Billing speaking."));
    let mut session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    let (_, output, starts) = &outputs(&model)[0];
    assert!(output.contains("reason") && *starts, "{output}");
}

#[tokio::test]
async fn a_failing_callback_is_told_to_the_model() {
    let handoff = realtime_handoff(billing()).on_handoff(|_ctx| Err::<(), _>("no line"));
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").handoff(handoff);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.say("I cannot put you through."));
    let mut session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Desk").await;
    read_answer_of(&mut session, "Desk").await;
    let (_, output, starts) = &outputs(&model)[0];
    assert!(output.contains("could not be made") && *starts, "{output}");
    assert!(!output.contains("no line"), "the error may be private");
}

#[tokio::test]
async fn a_failing_tool_is_told_to_the_model_until_the_budget_is_used_up() {
    let broken = failing("db").run(|_ctx, (): ()| Err::<String, _>("no disk"));
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(broken);
    let mut model = ScriptedRealtimeModel::new();
    for _ in 0..3 {
        model = model.turn(|turn| turn.call("db", "{}"));
    }
    let policy = RealtimePolicy {
        failures: Failures::tell(2),
        ..RealtimePolicy::production()
    };
    let mut session = open(RealtimeRunner::new(&desk).policy(policy), &model).await;
    session.send_message("Hello").await.unwrap();
    let mut events = Vec::new();
    let error = loop {
        match session.next().await.unwrap() {
            Ok(event) => events.push(event),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("no disk"), "{error}");
    assert_eq!(outputs(&model).len(), 2);
    assert!(model.is_closed());
    let ends = names(&events)
        .into_iter()
        .filter(|name| *name == "tool_end");
    assert_eq!(ends.count(), 2);
}

#[tokio::test]
async fn an_unknown_tool_is_answered_and_a_response_asked_for() {
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("mars", "{}"))
        .turn(|turn| turn.say("There is no such thing."));
    let mut session = connect(&RealtimeAgent::new("Desk"), &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Desk").await;
    read_answer_of(&mut session, "Desk").await;
    assert_eq!(outputs(&model)[0].1, "Tool mars not found");
    assert_eq!(model.responses(), 2);
}

#[tokio::test]
async fn interrupting_cancels_and_later_audio_of_the_response_is_dropped() {
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Once upon a time").leave_open());
    let mut session = connect(&RealtimeAgent::new("Teller"), &model).await;
    session.send_message("A story").await.unwrap();
    read_until_event(&mut session, "audio").await;
    session.interrupt().await.unwrap();
    let Some(RealtimeModelCommand::Interrupt(interrupt)) = model.sent().pop() else {
        panic!("an interruption is expected");
    };
    assert!(interrupt.force_response_cancel);
    read_until_event(&mut session, "agent_end").await;
}

#[tokio::test]
async fn failed_and_incomplete_responses_are_events() {
    for status in [
        RealtimeResponseStatus::Failed,
        RealtimeResponseStatus::Incomplete,
    ] {
        let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Once").status(status));
        let mut session = connect(&RealtimeAgent::new("Teller"), &model).await;
        session.send_message("A story").await.unwrap();
        let events = read_until_event(&mut session, "response_failed").await;
        let Some(RealtimeEvent::ResponseFailed { status: told, .. }) = events.last() else {
            panic!("a failed response is expected");
        };
        assert_eq!(*told, status);
    }
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }
}

impl AgentHooks for Recorder {
    async fn on_start(&self, _ctx: &RunContext, agent: &Agent) -> HookResult {
        self.note(format!("start {}", agent.name()));
        Ok(())
    }

    async fn on_end(&self, _ctx: &RunContext, agent: &Agent, output: &FinalOutput) -> HookResult {
        self.note(format!("end {}: {}", agent.name(), output.text()));
        Ok(())
    }

    async fn on_tool_start(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        tool: &Tool,
        _call: &ToolContext,
    ) -> HookResult {
        self.note(format!("tool {}", tool.name()));
        Ok(())
    }

    async fn on_handoff(&self, _ctx: &RunContext, transfer: &Transfer<'_>) -> HookResult {
        self.note(format!("handoff to {}", transfer.to.name()));
        Ok(())
    }
}

#[tokio::test]
async fn hooks_are_called() {
    let recorder = Recorder::default();
    let clock = tool("clock").run(|_ctx, (): ()| "noon");
    let desk: RealtimeAgent = RealtimeAgent::new("Desk")
        .tool(clock)
        .handoff(billing())
        .hooks(&recorder);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.say("Let me look.").call("clock", "{}"))
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Billing speaking."));
    let mut session = connect(&desk, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    let mut noted = recorder.0.lock().unwrap().clone();
    noted.sort();
    noted.dedup();
    assert_eq!(
        noted,
        [
            "end Desk: ",
            "end Desk: Let me look.",
            "handoff to Billing",
            "start Desk",
            "tool clock"
        ]
    );
}

#[tokio::test]
async fn a_slow_tool_stops_neither_reading_nor_the_user() {
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let slow = tool("slow").run(move |_ctx, (): ()| {
        let opened = opened.clone();
        async move {
            opened.notified().await;
            "done"
        }
    });
    for is_ordered in [false, true] {
        let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(slow.clone());
        let model = ScriptedRealtimeModel::new()
            .turn(|turn| turn.call_as("a", "slow", "{}"))
            .turn(|turn| turn.say("Still working on it."))
            .turn(|turn| turn.say("It is done."));
        let mut runner = RealtimeRunner::new(&desk);
        if is_ordered {
            runner = runner.one_tool_at_a_time();
        }
        let mut session = open(runner, &model).await;
        session.send_message("Go").await.unwrap();
        read_until_event(&mut session, "tool_start").await;
        session.send_message("And?").await.unwrap();
        read_until_event(&mut session, "audio").await;
        session.interrupt().await.unwrap();
        gate.notify_one();
        read_until_event(&mut session, "tool_end").await;
        assert_eq!(outputs(&model).len(), 1);
    }
}

#[tokio::test]
async fn tools_run_one_at_a_time_if_asked() {
    let running = Arc::new(AtomicBool::new(false));
    let one = running.clone();
    let work = tool("work").run(move |_ctx, (): ()| {
        let running = one.clone();
        async move {
            assert!(!running.swap(true, Ordering::SeqCst), "two run at a time");
            tokio::time::sleep(Duration::from_millis(5)).await;
            running.store(false, Ordering::SeqCst);
            "done"
        }
    });
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(work);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| {
            turn.call_as("a", "work", "{}")
                .call_as("b", "work", "{}")
                .call_as("c", "work", "{}")
        })
        .turn(|turn| turn.say("All done."));
    let runner = RealtimeRunner::new(&desk).one_tool_at_a_time();
    let mut session = open(runner, &model).await;
    session.send_message("Go").await.unwrap();
    read_answer_of(&mut session, "Desk").await;
    read_answer_of(&mut session, "Desk").await;
    let answers: Vec<(String, bool)> = outputs(&model)
        .into_iter()
        .map(|(call, output, starts)| {
            assert_eq!(output, "done");
            (call, starts)
        })
        .collect();
    let expected = [("a", false), ("b", false), ("c", true)];
    assert_eq!(
        answers,
        expected.map(|(call, starts)| (call.to_owned(), starts))
    );
    assert_eq!(model.responses(), 2);
}

struct App {
    is_open: AtomicBool,
}

#[tokio::test]
async fn conditions_are_evaluated_again_when_the_context_changes() {
    let billing = RealtimeAgent::<App>::new("Billing");
    let handoff =
        realtime_handoff(&billing).enabled_if(|ctx, _agent| ctx.is_open.load(Ordering::Relaxed));
    let open_up = tool::<App>("open_up").run(|ctx, (): ()| {
        ctx.is_open.store(true, Ordering::Relaxed);
        "open"
    });
    let desk = RealtimeAgent::new("Desk").handoff(handoff).tool(open_up);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("open_up", "{}"))
        .turn(|turn| turn.say("We are open."));
    let app = Arc::new(App {
        is_open: AtomicBool::new(false),
    });
    let runner = RealtimeRunner::new(&desk).context(app.clone());
    let session = open(runner, &model).await;
    assert_eq!(offered(&model.configs()[0].settings), [""; 0]);
    session.send_message("Hello").await.unwrap();
    eventually(|| last_offer(&model) == Some(vec!["transfer_to_billing".to_owned()])).await;
    app.is_open.store(false, Ordering::Relaxed);
    session.context_changed().await.unwrap();
    eventually(|| last_offer(&model) == Some(Vec::new())).await;
    assert_eq!(&*session.agent(), "Desk");
}

#[tokio::test]
async fn conditions_that_change_during_a_handoff_hold_for_the_agent_that_has_the_conversation() {
    let supervisor = RealtimeAgent::<App>::new("Supervisor");
    let handoff = realtime_handoff(&supervisor)
        .enabled_if(|ctx, _agent| ctx.is_open.load(Ordering::Relaxed))
        .build();
    let billing = RealtimeAgent::new("Billing").handoff(handoff.clone());
    let desk = RealtimeAgent::new("Desk")
        .handoff(&billing)
        .handoff(handoff);
    for is_taken in [true, false] {
        let model =
            ScriptedRealtimeModel::new().turn(|turn| turn.call("transfer_to_billing", "{}"));
        model.ignore_updates();
        let app = Arc::new(App {
            is_open: AtomicBool::new(false),
        });
        let runner = RealtimeRunner::new(&desk).context(app.clone());
        let mut session = open(runner, &model).await;
        session.send_message("Hello").await.unwrap();
        eventually(|| last_update(&model).is_some()).await;
        // The update of the handoff is on its way, with the conditions as they were.
        app.is_open.store(true, Ordering::Relaxed);
        session.context_changed().await.unwrap();
        let update_id = last_update(&model).and_then(|(update_id, _)| update_id);
        let (agent, event) = if is_taken {
            ("Billing", RealtimeModelEvent::SessionUpdated { update_id })
        } else {
            let error = RealtimeServerError::Reported(ReportedError::default());
            (
                "Desk",
                RealtimeModelEvent::SessionUpdateRefused { update_id, error },
            )
        };
        model.emit(event);
        let told = if is_taken {
            "handoff"
        } else {
            "handoff_failed"
        };
        read_until_event(&mut session, told).await;
        let expected = match agent {
            "Desk" => vec![
                "transfer_to_billing".to_owned(),
                "transfer_to_supervisor".to_owned(),
            ],
            _ => vec!["transfer_to_supervisor".to_owned()],
        };
        eventually(|| last_offer(&model).as_ref() == Some(&expected)).await;
        assert_eq!(&*session.agent(), agent);
    }
}

fn offered(settings: &RealtimeModelSettings) -> Vec<String> {
    let handoffs = settings
        .handoffs
        .iter()
        .flat_map(|handoffs| handoffs.iter());
    handoffs.map(|spec| spec.tool_name.to_string()).collect()
}

fn last_offer(model: &ScriptedRealtimeModel) -> Option<Vec<String>> {
    last_update(model).map(|(_, settings)| offered(&settings))
}

/// The last update of the session, with its identifier.
fn last_update(
    model: &ScriptedRealtimeModel,
) -> Option<(Option<Arc<str>>, Box<RealtimeModelSettings>)> {
    let mut sent = model.sent();
    sent.reverse();
    sent.into_iter().find_map(|command| match command {
        RealtimeModelCommand::UpdateSession {
            settings,
            update_id,
        } => Some((update_id, settings)),
        _ => None,
    })
}

fn exception() -> RealtimeModelEvent {
    RealtimeModelEvent::Exception {
        error: RealtimeModelError::new(RealtimeModelErrorKind::Transport, "cut"),
        context: None,
    }
}

#[tokio::test]
async fn events_that_were_queued_before_an_error_are_delivered() {
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Hello there"));
    let mut session = connect(&RealtimeAgent::new("Desk"), &model).await;
    session.send_message("Hello").await.unwrap();
    model.emit(exception());
    eventually(|| session.is_closed()).await;
    let mut events = Vec::new();
    let error = loop {
        match session.next().await.unwrap() {
            Ok(event) => events.push(event),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "cut");
    assert!(names(&events).contains(&"agent_end"));
    assert!(session.next().await.is_none());
}

#[tokio::test]
async fn the_end_of_the_providers_time_is_told() {
    let model = ScriptedRealtimeModel::new();
    let mut session = connect(&RealtimeAgent::new("Desk"), &model).await;
    let close = RealtimeClose {
        code: 1001,
        reason: "session expired".to_owned(),
    };
    model.emit(RealtimeModelEvent::ConnectionStatus(
        RealtimeConnectionStatus::Disconnected {
            close: Some(close.clone()),
        },
    ));
    model.emit(RealtimeModelEvent::EndOfStream);
    let events = read_until_event(&mut session, "disconnected").await;
    let Some(RealtimeEvent::Disconnected { close: told }) = events.last() else {
        panic!("the end is expected");
    };
    assert_eq!(told.as_ref(), Some(&close));
    assert!(session.next().await.is_none());
    assert!(
        session
            .send_message("Hello?")
            .await
            .unwrap_err()
            .is_not_connected()
    );
}

#[tokio::test]
async fn a_call_identifier_that_is_used_for_another_call_is_reported_and_runs_nothing() {
    let clock = tool("clock").run_raw(&serde_json::json!({"type": "object"}), |_ctx| "noon");
    let desk: RealtimeAgent = RealtimeAgent::new("Desk").tool(clock);
    let model = ScriptedRealtimeModel::new();
    let mut session = connect(&desk, &model).await;
    for arguments in ["{}", "{}", r#"{"zone": "utc"}"#] {
        let call = RealtimeToolCall::new("clock", "a", arguments);
        model.emit(RealtimeModelEvent::ToolCall(call));
    }
    read_until_event(&mut session, "error").await;
    eventually(|| outputs(&model).len() == 1).await;
    assert!(!session.is_closed());
}

fn no_secrets() -> OutputGuardrail {
    OutputGuardrail::new("no_secrets", |_ctx, _agent, output: FinalOutput| {
        OutputVerdict::trip_if(output.text().contains("secret"), "a secret")
    })
}

#[tokio::test]
async fn a_guardrail_interrupts_the_answer_and_short_answers_are_checked_too() {
    let agent: RealtimeAgent = RealtimeAgent::new("Desk").output_guardrail(no_secrets());
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.say("a secret"))
        .turn(|turn| turn.say("Forget it."));
    let mut session = connect(&agent, &model).await;
    session.send_message("Tell me").await.unwrap();
    let events = read_until_event(&mut session, "guardrail_tripped").await;
    let Some(RealtimeEvent::GuardrailTripped { results, message }) = events.last() else {
        panic!("a guardrail is expected");
    };
    assert_eq!(
        (&*results[0].guardrail, &**message),
        ("no_secrets", "a secret")
    );
    read_until(&mut session, |event| {
        matches!(event, RealtimeEvent::TranscriptDelta { delta, .. } if delta == "Forget it.")
    })
    .await;
    let interrupts = model.sent().into_iter().filter(|command| {
        matches!(command, RealtimeModelCommand::Interrupt(interrupt) if interrupt.playback_only)
    });
    assert_eq!(interrupts.count(), 1);
}

#[tokio::test]
async fn a_long_answer_is_cancelled_while_it_is_being_said() {
    let agent: RealtimeAgent = RealtimeAgent::new("Desk").output_guardrail(no_secrets());
    let long = format!("{} the secret is out", "word ".repeat(30));
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say(long).leave_open());
    let mut session = connect(&agent, &model).await;
    session.send_message("Tell me").await.unwrap();
    read_until_event(&mut session, "guardrail_tripped").await;
    eventually(|| {
        model.sent().iter().any(|command| {
            matches!(command, RealtimeModelCommand::Interrupt(interrupt)
                if interrupt.force_response_cancel)
        })
    })
    .await;
    model.emit(RealtimeModelEvent::Audio(RealtimeModelAudio {
        data: Bytes::from_static(&[0; 4]),
        response_id: "resp_1".into(),
        part: AudioPart::new("item_2", 0),
    }));
    let events = read_until_event(&mut session, "agent_end").await;
    assert!(!names(&events).contains(&"audio"));
}

#[tokio::test]
async fn the_local_history_is_cut_to_what_was_heard() {
    let model = ScriptedRealtimeModel::new();
    let mut session = connect(&RealtimeAgent::new("Teller"), &model).await;
    model.emit(RealtimeModelEvent::TurnStarted {
        response_id: Some("r".into()),
    });
    model.emit(RealtimeModelEvent::TranscriptDelta(RealtimeModelDelta {
        item_id: "i".into(),
        delta: "Once upon a time there was".to_owned(),
        response_id: "r".into(),
    }));
    // A second of audio, of which half was heard.
    model.emit(RealtimeModelEvent::Audio(RealtimeModelAudio {
        data: Bytes::from(vec![0; 48_000]),
        response_id: "r".into(),
        part: AudioPart::new("i", 0),
    }));
    model.emit(RealtimeModelEvent::ItemTruncated {
        item_id: "i".into(),
        content_index: 0,
        audio_end_ms: 500,
    });
    read_until(&mut session, |event| match event {
        RealtimeEvent::HistoryUpdated(history) => !history.items().is_empty(),
        _ => false,
    })
    .await;
    let heard = |session: &switchboard_realtime::RealtimeSession| {
        let history = session.history();
        let message = history.items()[0].as_message().unwrap();
        (message.text(), message.status)
    };
    let cut = (
        "Once upon a".to_owned(),
        Some(RealtimeItemStatus::Incomplete),
    );
    assert_eq!(heard(&session), cut);

    // What the server still tells of the message was not heard.
    model.emit(RealtimeModelEvent::TranscriptDelta(RealtimeModelDelta {
        item_id: "i".into(),
        delta: " a king".to_owned(),
        response_id: "r".into(),
    }));
    let whole = RealtimeContent::Audio {
        audio: None,
        transcript: Some("Once upon a time there was a king".to_owned()),
    };
    let whole = RealtimeMessageItem::new("i", RealtimeRole::Assistant, [whole]);
    model.emit(RealtimeModelEvent::ItemUpdated(whole.into()));
    model.emit(RealtimeModelEvent::SpeechStarted {
        item_id: "u".into(),
        audio_start_ms: 0,
    });
    read_until_event(&mut session, "speech_started").await;
    assert_eq!(heard(&session), cut);
}
