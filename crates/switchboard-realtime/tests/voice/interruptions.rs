//! The user speaks while an answer is under way.

use std::time::Duration;

use switchboard_core::model::ModelEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, MemorySession, Runner, Tool, tool};
use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech, speech};
use switchboard_realtime::voice::{
    BargeIn, Playback, VoiceEvent, VoiceEventKind, VoiceHandle, VoicePipeline, VoiceSession,
};
use tokio::time::sleep;

use crate::{all, next, short, stored, team};

/// Takes events while this time passes.
async fn listen(session: &mut VoiceSession, time: Duration) {
    let until = tokio::time::Instant::now() + time;
    while let Ok(event) = tokio::time::timeout_at(until, session.next()).await {
        assert!(event.is_some(), "the session goes on");
    }
}

async fn until_sentence(session: &mut VoiceSession, wanted: &str) {
    next(session, |event| match &event.kind {
        VoiceEventKind::Sentence { text, .. } if text == wanted => Some(()),
        _ => None,
    })
    .await;
}

fn interruption(event: &VoiceEvent) -> Option<(String, Duration)> {
    match &event.kind {
        VoiceEventKind::Interrupted { heard, played, .. } => Some((heard.clone(), *played)),
        _ => None,
    }
}

/// Three sentences of 20 characters each: 1.2 seconds each.
const ANSWER: &str = "The bill was too hi. We pay it all back. Is there more to say?";

#[tokio::test(start_paused = true)]
async fn the_conversation_keeps_what_was_heard_of_an_answer() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say(ANSWER)
        .say("Sure.");
    let (runner, conversation) = team(&model);
    let hears = ScriptedSpeechToText::new(["my bill is wrong", "wait stop"]);
    let speaks = ScriptedTextToSpeech::new();
    let (handle, mut session) = VoicePipeline::new(runner, hears, speaks).open();
    handle.send_audio(speech(16_000)).await.unwrap();
    until_sentence(&mut session, "Is there more to say?").await;
    // The run is over and stored; the first sentence and half of the second are played.
    listen(&mut session, Duration::from_millis(1_800)).await;
    handle.send_audio(speech(16_000)).await.unwrap();
    let (heard, played) = next(&mut session, interruption).await;
    assert_eq!(heard, "The bill was too hi. We pay it");
    assert!((1.7..2.0).contains(&played.as_secs_f64()), "{played:?}");
    handle.close().await;
    let rest = short(&all(session).await);
    assert_eq!(
        rest,
        [
            "speech_stopped",
            "heard \"wait stop\"",
            "Billing: Sure.",
            "audio",
            "answer_ended"
        ]
    );
    assert_eq!(
        stored(&conversation).await,
        [
            "user: my bill is wrong",
            "call transfer_to_billing {}",
            "output {\"assistant\": \"Billing\"}",
            "assistant: The bill was too hi. We pay it",
            "user: wait stop",
            "assistant: Sure.",
        ]
    );
    // The model of the next turn is shown what was heard, too.
    let shown = &model.requests()[2].input;
    let texts: Vec<String> = shown
        .iter()
        .filter_map(|item| item.text())
        .map(Into::into)
        .collect();
    assert!(
        texts.contains(&"The bill was too hi. We pay it".to_owned()),
        "{texts:?}"
    );
}

/// Starts an answer whose model never ends, interrupts it, and returns the rest of the events.
async fn interrupt_unfinished(
    handle: &VoiceHandle,
    mut session: VoiceSession,
) -> (String, Vec<String>) {
    handle.send_text("a story").await.unwrap();
    until_sentence(&mut session, "Once upon a time.").await;
    listen(&mut session, Duration::from_millis(600)).await;
    handle.interrupt().await.unwrap();
    let (heard, _) = next(&mut session, interruption).await;
    handle.send_text("shorter").await.unwrap();
    handle.close().await;
    (heard, short(&all(session).await))
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_interrupted_while_the_model_still_writes() {
    let part = |text: &str| ModelEvent::TextDelta {
        item: "m".into(),
        text: text.to_owned(),
    };
    // Without its end, the stream fails; it is stopped before.
    let model = ScriptedModel::new()
        .stream_events([part("Once upon a time. There "), part("was a king.")])
        .say("Once.");
    struct Endless(ScriptedModel);
    impl switchboard_core::Model for Endless {
        async fn respond(
            &self,
            request: switchboard_core::ModelRequest,
        ) -> Result<switchboard_core::ModelResponse, switchboard_core::callback::BoxError> {
            self.0.respond(request).await
        }

        fn stream(
            &self,
            request: switchboard_core::ModelRequest,
        ) -> impl futures_core::Stream<
            Item = Result<ModelEvent, switchboard_core::callback::BoxError>,
        > + Send {
            use futures_util::StreamExt as _;
            let is_first = request.input.len() == 1;
            let events = self.0.stream(request);
            let end = futures_util::stream::pending().take(if is_first { 1 } else { 0 });
            events
                .filter(move |event| std::future::ready(!is_first || event.is_ok()))
                .chain(end)
        }
    }
    let agent: Agent = Agent::new("A").model(Endless(model));
    let memory = MemorySession::new();
    let runner = Runner::new(&agent).session(&memory);
    let pipeline = VoicePipeline::new(
        runner,
        ScriptedSpeechToText::default(),
        ScriptedTextToSpeech::new(),
    );
    let (handle, session) = pipeline.open();
    let (heard, rest) = interrupt_unfinished(&handle, session).await;
    assert_eq!(heard, "Once upon");
    assert_eq!(rest, ["A: Once.", "audio", "answer_ended"]);
    let texts: Vec<String> = memory
        .items()
        .iter()
        .filter_map(|item| item.text().map(Into::into))
        .collect();
    assert_eq!(texts, ["a story", "Once upon", "shorter", "Once."]);
}

#[tokio::test(start_paused = true)]
async fn words_that_were_not_answered_are_answered_with_those_that_follow() {
    let model = ScriptedModel::new()
        .delay(Duration::from_secs(20))
        .say("Never heard.")
        .say("Both are noted.");
    let (runner, conversation) = team(&model);
    let hears = ScriptedSpeechToText::new(["my bill is wrong", "and i moved"]);
    let pipeline = VoicePipeline::new(runner, hears, ScriptedTextToSpeech::new());
    let (handle, mut session) = pipeline.open();
    handle.send_audio(speech(16_000)).await.unwrap();
    listen(&mut session, Duration::from_secs(1)).await;
    assert_eq!(model.requests().len(), 1);
    handle.send_audio(speech(16_000)).await.unwrap();
    handle.close().await;
    let events = short(&all(session).await);
    assert_eq!(
        events,
        [
            "speech_started",
            "interrupted after \"\"",
            "speech_stopped",
            "heard \"and i moved\"",
            "Triage: Both are noted.",
            "audio",
            "answer_ended",
        ]
    );
    assert_eq!(
        stored(&conversation).await,
        [
            "user: my bill is wrong and i moved",
            "assistant: Both are noted."
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_has_begun_is_not_cut_off() {
    let pay: Tool = tool("pay").description("Pays.").run(|_ctx, (): ()| async {
        sleep(Duration::from_secs(5)).await;
        "paid once"
    });
    let model = ScriptedModel::new().call("pay", "{}").say("It is paid.");
    let agent: Agent = Agent::new("A").model(&model).tool(pay);
    let memory = MemorySession::new();
    let pipeline = VoicePipeline::new(
        Runner::new(&agent).session(&memory),
        ScriptedSpeechToText::new(["hello"]),
        ScriptedTextToSpeech::new(),
    );
    let (handle, mut session) = pipeline.open();
    handle.send_text("pay it").await.unwrap();
    next(&mut session, |event| match &event.kind {
        VoiceEventKind::Run(event) if event.kind.name() == "tool_started" => Some(()),
        _ => None,
    })
    .await;
    handle.send_audio(speech(16_000)).await.unwrap();
    handle.close().await;
    all(session).await;
    let items: Vec<String> = memory
        .items()
        .iter()
        .map(switchboard_core::testing::describe_item)
        .collect();
    assert_eq!(
        items,
        [
            "user: pay it",
            "call pay {}",
            "output paid once",
            "user: hello",
            "assistant: It is paid.",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_application_reports_what_was_played() {
    let model = ScriptedModel::new().say(ANSWER);
    let (runner, conversation) = team(&model);
    let pipeline = VoicePipeline::new(
        runner,
        ScriptedSpeechToText::default(),
        ScriptedTextToSpeech::new(),
    )
    .playback(Playback::Reported);
    let (handle, mut session) = pipeline.open();
    handle.send_text("why").await.unwrap();
    until_sentence(&mut session, "Is there more to say?").await;
    listen(&mut session, Duration::from_secs(60)).await;
    handle.played(Duration::from_millis(1_000));
    handle.played(Duration::from_millis(200));
    listen(&mut session, Duration::from_secs(1)).await;
    handle.interrupt().await.unwrap();
    let (heard, played) = next(&mut session, interruption).await;
    assert_eq!(
        (&*heard, played),
        ("The bill was too hi.", Duration::from_millis(1_200))
    );
    handle.close().await;
    all(session).await;
    assert_eq!(
        stored(&conversation).await,
        ["user: why", "assistant: The bill was too hi."]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_which_nothing_was_heard_is_not_kept() {
    let model = ScriptedModel::new().say(ANSWER).say("Good.");
    let (runner, conversation) = team(&model);
    let speaks = ScriptedTextToSpeech::new().delay(Duration::from_secs(3));
    let pipeline = VoicePipeline::new(runner, ScriptedSpeechToText::default(), speaks);
    let (handle, mut session) = pipeline.open();
    handle.send_text("why").await.unwrap();
    until_sentence(&mut session, "The bill was too hi.").await;
    listen(&mut session, Duration::from_secs(1)).await;
    handle.interrupt().await.unwrap();
    assert_eq!(next(&mut session, interruption).await.0, "");
    handle.send_text("never mind").await.unwrap();
    handle.close().await;
    all(session).await;
    assert_eq!(
        stored(&conversation).await,
        ["user: why", "user: never mind", "assistant: Good."]
    );
}

#[tokio::test(start_paused = true)]
async fn speech_during_an_answer_can_be_ignored() {
    let model = ScriptedModel::new().say(ANSWER);
    let (runner, _) = team(&model);
    let pipeline = VoicePipeline::new(
        runner,
        ScriptedSpeechToText::default(),
        ScriptedTextToSpeech::new(),
    )
    .barge_in(BargeIn::Ignore);
    let (handle, mut session) = pipeline.open();
    handle.send_text("why").await.unwrap();
    until_sentence(&mut session, "The bill was too hi.").await;
    handle.send_audio(speech(16_000)).await.unwrap();
    handle.close().await;
    let events = short(&all(session).await);
    assert_eq!(events.last().unwrap(), "answer_ended");
    assert!(
        !events.iter().any(|event| event.contains("speech")),
        "{events:?}"
    );
}
