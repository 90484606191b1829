//! Conversations without faults.

use std::time::Duration;

use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
use switchboard_core::model::ModelEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, FinalOutput, Item, ModelResponse, Runner, Tool, tool};
use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech, speech};
use switchboard_realtime::voice::{
    Audio, BargeIn, Playback, SendError, TurnEnd, VoiceEventKind, VoicePipeline,
};
use tokio::time::Instant;

use crate::{all, next, run_events, short, spoken, stored, team};

#[tokio::test(start_paused = true)]
async fn what_the_user_says_is_answered_after_a_handoff() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("It is **fixed**. Anything else?");
    let (runner, conversation) = team(&model);
    let hears = ScriptedSpeechToText::new(["my bill is wrong"]);
    let speaks = ScriptedTextToSpeech::new();
    let pipeline =
        VoicePipeline::new(runner, hears.clone(), speaks.clone()).voice("Billing", "slt");
    let (handle, session) = pipeline.open();
    handle.send_audio(speech(24_000)).await.unwrap();
    handle.close().await;
    let events = all(session).await;
    assert_eq!(
        short(&events),
        [
            "speech_started",
            "speech_stopped",
            "heard \"my bill is wrong\"",
            "Billing: It is fixed.",
            "audio",
            "Billing: Anything else?",
            "audio",
            "answer_ended",
        ]
    );
    let handoffs: Vec<String> = run_events(&events)
        .filter_map(|event| match &event.kind {
            EventKind::Handoff(handoff) => Some(format!("{} -> {}", handoff.from, handoff.to)),
            _ => None,
        })
        .collect();
    assert_eq!(handoffs, ["Triage -> Billing"]);
    assert_eq!(
        stored(&conversation).await,
        [
            "user: my bill is wrong",
            "call transfer_to_billing {}",
            "output {\"assistant\": \"Billing\"}",
            "assistant: It is **fixed**. Anything else?",
        ]
    );
    let heard = &hears.speech()[0];
    assert_eq!(heard.rate(), 16_000);
    assert!(
        (1.0..2.2).contains(&heard.duration().as_secs_f64()),
        "{heard:?}"
    );
    let voices: Vec<_> = speaks
        .requests()
        .into_iter()
        .map(|request| request.voice)
        .collect();
    assert_eq!(voices, [Some("slt".into()), Some("slt".into())]);
    let expected = Duration::from_millis(60) * "It is fixed.Anything else?".len() as u32;
    assert!(spoken(&events).abs_diff(expected) < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_is_spoken_while_the_model_still_writes() {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let waits = tokio::sync::Mutex::new(Some(receiver));
    struct Slow(tokio::sync::Mutex<Option<tokio::sync::oneshot::Receiver<()>>>);
    impl switchboard_core::Model for Slow {
        async fn respond(
            &self,
            _: switchboard_core::ModelRequest,
        ) -> Result<ModelResponse, switchboard_core::callback::BoxError> {
            Err("only streamed".into())
        }

        fn stream(
            &self,
            _: switchboard_core::ModelRequest,
        ) -> impl futures_core::Stream<
            Item = Result<ModelEvent, switchboard_core::callback::BoxError>,
        > + Send {
            futures_util::stream::unfold(0, move |step| async move {
                let event = match step {
                    0 => ModelEvent::text_delta("m", "One moment. I "),
                    1 => {
                        let gate = self.0.lock().await.take();
                        gate.expect("once").await.expect("opened");
                        ModelEvent::text_delta("m", "look.")
                    }
                    2 => ModelEvent::Completed(ModelResponse::new([Item::output_message(
                        "m",
                        "One moment. I look.",
                    )])),
                    _ => return None,
                };
                Some((Ok(event), step + 1))
            })
        }
    }
    let agent: Agent = Agent::new("A").model(Slow(waits));
    let hears = ScriptedSpeechToText::new(["hi"]);
    let speaks = ScriptedTextToSpeech::new();
    let (handle, mut session) =
        VoicePipeline::new(Runner::new(&agent), hears, speaks.clone()).open();
    handle.send_text("Hi").await.unwrap();
    next(&mut session, |event| match event.kind {
        VoiceEventKind::Audio { .. } => Some(()),
        _ => None,
    })
    .await;
    assert_eq!(speaks.requests()[0].text, "One moment.");
    sender.send(()).unwrap();
    handle.close().await;
    let events = all(session).await;
    assert_eq!(
        short(&events),
        ["audio", "A: I look.", "audio", "answer_ended"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_application_chooses_the_words_that_are_spoken() {
    let model = ScriptedModel::new().say("It is 3 pm. (machine)");
    let (runner, conversation) = team(&model);
    let speaks = ScriptedTextToSpeech::new();
    let pipeline = VoicePipeline::new(runner, ScriptedSpeechToText::default(), speaks.clone())
        .pronounce(|words| (words != "(machine)").then(|| words.replace("pm", "in the afternoon")));
    let (handle, session) = pipeline.open();
    handle.send_text("what time is it").await.unwrap();
    handle.close().await;
    all(session).await;
    let texts: Vec<String> = speaks
        .requests()
        .into_iter()
        .map(|request| request.text)
        .collect();
    assert_eq!(texts, ["It is 3 in the afternoon."]);
    assert_eq!(
        stored(&conversation).await[1],
        "assistant: It is 3 pm. (machine)"
    );
}

#[tokio::test(start_paused = true)]
async fn audio_of_any_rate_is_heard() {
    for rate in [8_000, 16_000, 22_050, 44_100, 48_000] {
        let model = ScriptedModel::new().say("Yes.");
        let (runner, _) = team(&model);
        let hears = ScriptedSpeechToText::new(["hello"]).rate(8_000);
        let pipeline = VoicePipeline::new(runner, hears.clone(), ScriptedTextToSpeech::new());
        let (handle, session) = pipeline.open();
        handle.send_audio(speech(rate)).await.unwrap();
        handle.close().await;
        let events = all(session).await;
        assert!(
            short(&events).contains(&"A: Yes.".replace('A', "Triage")),
            "{rate}"
        );
        assert_eq!(hears.speech()[0].rate(), 8_000);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_not_answered() {
    let (runner, _) = team(&ScriptedModel::new());
    let hears = ScriptedSpeechToText::default();
    let pipeline = VoicePipeline::new(runner, hears, ScriptedTextToSpeech::new());
    let (handle, session) = pipeline.open();
    let sending = async {
        let silence = Audio::silence(16_000, Duration::from_secs(20));
        handle.send_audio(silence).await.unwrap();
        handle.close().await;
    };
    let (events, ()) = tokio::join!(all(session), sending);
    assert!(events.is_empty(), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn words_that_nobody_understood_are_not_answered() {
    let (runner, conversation) = team(&ScriptedModel::new());
    let hears = ScriptedSpeechToText::new([" "]);
    let pipeline = VoicePipeline::new(runner, hears, ScriptedTextToSpeech::new());
    let (handle, session) = pipeline.open();
    handle.send_audio(speech(16_000)).await.unwrap();
    handle.close().await;
    let events = all(session).await;
    assert_eq!(
        short(&events),
        ["speech_started", "speech_stopped", "heard \"\""]
    );
    assert!(stored(&conversation).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_file_of_several_turns_is_answered_turn_by_turn() {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Which bill?")
        .say("Paid.");
    let (runner, _) = team(&model);
    let hears = ScriptedSpeechToText::new(["my bill", "the one of may"]);
    let pipeline = VoicePipeline::new(runner, hears, ScriptedTextToSpeech::new())
        .barge_in(BargeIn::Wait)
        .playback(Playback::Instant);
    let (handle, session) = pipeline.open();
    let sending = async {
        handle.send_audio(speech(16_000)).await.unwrap();
        handle.send_audio(speech(16_000)).await.unwrap();
        handle.close().await;
    };
    let (events, ()) = tokio::join!(all(session), sending);
    assert_eq!(
        short(&events),
        [
            "speech_started",
            "speech_stopped",
            "heard \"my bill\"",
            "Billing: Which bill?",
            "audio",
            "answer_ended",
            "speech_started",
            "speech_stopped",
            "heard \"the one of may\"",
            "Billing: Paid.",
            "audio",
            "answer_ended",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn with_push_to_talk_the_application_ends_the_turn() {
    let model = ScriptedModel::new().say("Yes.");
    let (runner, _) = team(&model);
    let hears = ScriptedSpeechToText::new(["hello"]);
    let pipeline = VoicePipeline::new(runner, hears.clone(), ScriptedTextToSpeech::new())
        .turn_end(TurnEnd::Manual);
    let (handle, session) = pipeline.open();
    let quiet = Audio::silence(16_000, Duration::from_millis(500));
    handle.send_audio(quiet).await.unwrap();
    handle.end_turn().await.unwrap();
    handle.close().await;
    let events = all(session).await;
    assert_eq!(
        short(&events),
        ["heard \"hello\"", "Triage: Yes.", "audio", "answer_ended"]
    );
    assert_eq!(hears.speech()[0].duration(), Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn an_output_that_a_guardrail_refuses_is_not_spoken() {
    let guardrail = OutputGuardrail::new("no numbers", |_ctx, _agent, output: FinalOutput| {
        OutputVerdict::trip_if(output.text().contains("42"), "a number")
    });
    let model = ScriptedModel::new().say("The code is 42. Bye.");
    let agent: Agent = Agent::new("A").model(model).output_guardrail(guardrail);
    let speaks = ScriptedTextToSpeech::new();
    let pipeline = VoicePipeline::new(
        Runner::new(&agent),
        ScriptedSpeechToText::default(),
        speaks.clone(),
    )
    .failure_words("I cannot say that.");
    let (handle, session) = pipeline.open();
    handle.send_text("the code?").await.unwrap();
    handle.close().await;
    let events = all(session).await;
    let texts: Vec<String> = speaks
        .requests()
        .into_iter()
        .map(|request| request.text)
        .collect();
    assert_eq!(texts, ["I cannot say that."]);
    assert!(
        short(&events)[0].starts_with("the run failed: "),
        "{:?}",
        short(&events)
    );
}

#[tokio::test(start_paused = true)]
async fn speech_is_made_only_so_far_ahead_of_playback() {
    let sentences = "This is a sentence of some length, is it not? ".repeat(20);
    let model = ScriptedModel::new().say(&sentences);
    let (runner, _) = team(&model);
    let speaks = ScriptedTextToSpeech::new();
    let pipeline = VoicePipeline::new(runner, ScriptedSpeechToText::default(), speaks.clone())
        .max_lead(Duration::from_secs(5));
    let (handle, mut session) = pipeline.open();
    let began = Instant::now();
    handle.send_text("a story").await.unwrap();
    handle.close().await;
    while let Some(event) = session.next().await {
        if let VoiceEventKind::Sentence { .. } = event.kind {
            let made = Duration::from_millis(60) * 45 * speaks.requests().len() as u32;
            let ahead = made.saturating_sub(began.elapsed());
            assert!(ahead <= Duration::from_secs(6), "{ahead:?} ahead");
        }
    }
    assert_eq!(speaks.requests().len(), 20);
    assert!(began.elapsed() >= Duration::from_millis(60) * 45 * 20);
}

#[tokio::test(start_paused = true)]
async fn calls_that_need_approval_wait_until_the_run_is_resumed() {
    let refund: Tool = tool("refund")
        .description("Pays back.")
        .needs_approval()
        .run(|_ctx, (): ()| "done");
    let model = ScriptedModel::new()
        .call("refund", "{}")
        .say("It is paid back.");
    let agent: Agent = Agent::new("A").model(model).tool(refund);
    let pipeline = VoicePipeline::new(
        Runner::new(&agent),
        ScriptedSpeechToText::default(),
        ScriptedTextToSpeech::new(),
    );
    let (handle, mut session) = pipeline.open();
    handle.send_text("Pay it back").await.unwrap();
    handle.close().await;
    let mut run = next(&mut session, |event| match &event.kind {
        VoiceEventKind::ApprovalRequired(run) => Some(run.clone()),
        _ => None,
    })
    .await;
    for call in run.interruptions() {
        run.decide(&call, switchboard_core::approval::Decision::approve())
            .unwrap();
    }
    handle.resume(*run).await.unwrap();
    let text = next(&mut session, |event| match &event.kind {
        VoiceEventKind::Sentence { text, .. } => Some(text.clone()),
        _ => None,
    })
    .await;
    assert_eq!(text, "It is paid back.");
}

#[tokio::test(start_paused = true)]
async fn input_after_the_end_is_refused_and_a_full_session_drops_and_tells() {
    let (runner, _) = team(&ScriptedModel::new());
    let pipeline = VoicePipeline::new(
        runner,
        ScriptedSpeechToText::default(),
        ScriptedTextToSpeech::new(),
    );
    let (handle, mut session) = pipeline.open();
    let silence = Audio::silence(16_000, Duration::from_secs(12));
    handle.try_send_audio(silence).unwrap();
    let dropped = next(&mut session, |event| match event.kind {
        VoiceEventKind::AudioDropped { length, .. } => Some(length),
        _ => None,
    })
    .await;
    assert_eq!(dropped, Duration::from_secs(2));
    drop(session);
    assert_eq!(handle.send_text("Hi").await, Err(SendError::Closed));
    let odd = Audio::new(1, vec![0]);
    assert!(matches!(
        handle.send_audio(odd).await,
        Err(SendError::Rate(_))
    ));
}
