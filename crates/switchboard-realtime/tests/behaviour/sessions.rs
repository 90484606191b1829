//! Sessions: sending, reading, closing, and slow readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use switchboard_core::tool;
use switchboard_realtime::model::{
    AudioPart, ImageDetail, RealtimeInputPart, RealtimeModelAudio, RealtimeModelCommand,
    RealtimeModelEvent, RealtimeUserInput,
};
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner};

use crate::support::{connect, eventually, open, outputs, read_answer_of, read_until_event};

fn solo() -> RealtimeAgent {
    RealtimeAgent::new("Solo").instructions("Be brief.")
}

/// A tool that waits for ever, and notes that it was dropped.
fn stuck(dropped: &Arc<AtomicBool>) -> RealtimeAgent {
    struct Noted(Arc<AtomicBool>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = dropped.clone();
    let stuck = tool("stuck").run(move |_ctx, (): ()| {
        let noted = Noted(dropped.clone());
        async move {
            let _noted = noted;
            std::future::pending::<()>().await;
        }
    });
    solo().tool(stuck)
}

#[tokio::test]
async fn text_audio_images_and_structured_messages_are_sent() {
    let model = ScriptedRealtimeModel::new();
    let session = connect(&solo(), &model).await;
    let handle = session.handle();
    let sent = tokio::spawn(async move {
        handle.send_message("Hello").await?;
        handle.send_audio(vec![1, 2]).await?;
        handle.send_last_audio(vec![3]).await?;
        let image = RealtimeInputPart::Image {
            image_url: "data:image/png;base64,AA==".to_owned(),
            detail: Some(ImageDetail::Low),
        };
        handle
            .send_message(RealtimeUserInput::Message(vec![image]))
            .await
    });
    sent.await.unwrap().unwrap();
    let kinds: Vec<String> = model
        .sent()
        .iter()
        .map(|command| match command {
            RealtimeModelCommand::UserInput(RealtimeUserInput::Text(text)) => text.clone(),
            RealtimeModelCommand::UserInput(RealtimeUserInput::Message(parts)) => {
                format!("{} part", parts.len())
            }
            RealtimeModelCommand::Audio { audio, commit } => format!("{} {commit}", audio.len()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["Hello", "2 false", "1 true", "1 part"]);
}

#[tokio::test]
async fn a_message_that_cannot_be_sent_is_the_senders_error() {
    let model = ScriptedRealtimeModel::new();
    let session = connect(&solo(), &model).await;
    model.refuse_next_command();
    assert!(session.send_message("Hello").await.is_err());
    assert!(session.send_message("Hello").await.is_ok());
}

#[tokio::test]
async fn the_error_of_a_connection_that_fails_is_the_callers() {
    let model = ScriptedRealtimeModel::new();
    model.refuse_connection("no route");
    let error = RealtimeRunner::new(&solo())
        .model(model)
        .connect()
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "no route");
    let without = RealtimeRunner::new(&solo()).connect().await.unwrap_err();
    assert!(without.is_configuration());
}

#[tokio::test]
async fn closing_stops_running_tools_and_ends_the_events() {
    let dropped: Arc<AtomicBool> = Arc::default();
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.call("stuck", "{}"));
    let mut session = connect(&stuck(&dropped), &model).await;
    session.send_message("Go").await.unwrap();
    read_until_event(&mut session, "tool_start").await;
    session.close().await.unwrap();
    session.close().await.unwrap();
    assert!(dropped.load(Ordering::SeqCst) && model.is_closed());
    assert!(
        session
            .send_message("Hello?")
            .await
            .unwrap_err()
            .is_not_connected()
    );
    while let Some(event) = session.next().await {
        event.unwrap();
    }
    assert_eq!(outputs(&model), []);
}

#[tokio::test]
async fn dropping_the_session_stops_everything() {
    let dropped: Arc<AtomicBool> = Arc::default();
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.call("stuck", "{}"));
    let mut session = connect(&stuck(&dropped), &model).await;
    session.send_message("Go").await.unwrap();
    read_until_event(&mut session, "tool_start").await;
    let handle = session.handle();
    drop(session);
    eventually(|| dropped.load(Ordering::SeqCst) && model.is_closed()).await;
    assert!(
        handle
            .send_message("Hello?")
            .await
            .unwrap_err()
            .is_not_connected()
    );
    assert!(handle.is_closed());
}

fn audio(bytes: usize) -> RealtimeModelEvent {
    RealtimeModelEvent::Audio(RealtimeModelAudio {
        data: Bytes::from(vec![0; bytes]),
        response_id: "r".into(),
        part: AudioPart::new("i", 0),
    })
}

#[tokio::test]
async fn a_slow_reader_loses_audio_by_count_and_nothing_that_matters() {
    let model = ScriptedRealtimeModel::new();
    let runner = RealtimeRunner::new(&solo()).event_limits(1024, 10_000);
    let mut session = open(runner, &model).await;
    for _ in 0..30 {
        model.emit(audio(1000));
    }
    model.emit(RealtimeModelEvent::TurnStarted { response_id: None });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let (mut heard, mut dropped) = (0, None);
    loop {
        match session.next().await.unwrap().unwrap() {
            RealtimeEvent::Audio { data, .. } => heard += data.len(),
            RealtimeEvent::Dropped {
                events,
                audio_bytes,
            } => dropped = Some((events, audio_bytes)),
            RealtimeEvent::AgentStart { .. } => break,
            _ => {}
        }
    }
    assert_eq!((heard, dropped), (10_000, Some((20, 20_000))));
    model.emit(audio(500));
    read_until_event(&mut session, "audio").await;
}

#[tokio::test]
async fn many_events_do_not_grow_the_queue_and_calls_are_dropped_last() {
    let model = ScriptedRealtimeModel::new();
    let runner = RealtimeRunner::new(&solo()).event_limits(10, 1 << 20);
    let mut session = open(runner, &model).await;
    model.emit(RealtimeModelEvent::TurnStarted { response_id: None });
    for _ in 0..100 {
        model.emit(audio(10));
    }
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    model.emit(RealtimeModelEvent::EndOfStream);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let mut events = Vec::new();
    while let Some(event) = session.next().await {
        events.push(event.unwrap().name());
    }
    assert_eq!(events.len(), 11);
    assert!(events.contains(&"agent_start") && events.contains(&"dropped"));
}

#[tokio::test]
async fn a_session_begins_with_a_history() {
    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Hello again."));
    let first = connect(&solo(), &model).await;
    first.send_message("Hello").await.unwrap();
    eventually(|| first.history().items().len() == 2).await;
    let items: Vec<_> = first
        .history()
        .items()
        .iter()
        .map(|item| (**item).clone())
        .collect();
    first.close().await.unwrap();

    let model = ScriptedRealtimeModel::new().turn(|turn| turn.say("Welcome back."));
    let runner = RealtimeRunner::new(&solo()).history(items.clone());
    let mut second = open(runner, &model).await;
    assert_eq!(model.configs()[0].history, items);
    second.send_message("Me again").await.unwrap();
    read_answer_of(&mut second, "Solo").await;
    assert!(second.history().items().len() >= 3);
}

#[tokio::test]
async fn agents_tools_and_handoffs_have_spans() {
    use switchboard_core::trace::{MemoryTracer, SpanData, Tracing};

    let tracer = MemoryTracer::new();
    let clock = tool("clock").run(|_ctx, (): ()| "noon");
    let billing: RealtimeAgent = RealtimeAgent::new("Billing");
    let desk = solo().tool(clock).handoff(&billing);
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call("clock", "{}"))
        .turn(|turn| turn.call("transfer_to_billing", "{}"))
        .turn(|turn| turn.say("Billing speaking."));
    let runner =
        RealtimeRunner::new(&desk).configure(|config| config.tracing = Tracing::to(tracer.clone()));
    let mut session = open(runner, &model).await;
    session.send_message("Hello").await.unwrap();
    read_answer_of(&mut session, "Billing").await;
    session.close().await.unwrap();
    let spans = tracer.spans();
    let has = |wanted: &dyn Fn(&SpanData) -> bool| spans.iter().any(|span| wanted(&span.data));
    assert!(has(&|data| data.kind() == "agent"));
    assert!(has(
        &|data| matches!(data, SpanData::Function { name, output: Some(output), .. }
        if **name == *"clock" && output == "noon")
    ));
    assert!(has(
        &|data| matches!(data, SpanData::Handoff { from, to: Some(to), .. }
        if **from == *"Solo" && **to == *"Billing")
    ));
}

#[tokio::test]
async fn an_output_that_could_not_be_sent_is_kept_and_the_tool_not_run_again() {
    use switchboard_realtime::model::RealtimeToolCall;
    let runs = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = runs.clone();
    let pay = tool("pay").run(move |_ctx, (): ()| {
        counted.fetch_add(1, Ordering::SeqCst);
        "paid"
    });
    let model = ScriptedRealtimeModel::new();
    let mut session = connect(&solo().tool(pay), &model).await;
    model.refuse_next_command();
    let call = || RealtimeModelEvent::ToolCall(RealtimeToolCall::new("pay", "a", "{}"));
    model.emit(call());
    read_until_event(&mut session, "error").await;
    model.emit(call());
    read_until_event(&mut session, "tool_end").await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(outputs(&model).len(), 1);
}
