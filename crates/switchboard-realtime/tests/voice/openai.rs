//! The pipeline with OpenAI's endpoints, against a provider that checks every request.

use std::time::Duration;

use fake_provider::{FakeProvider, Reply};
use serde_json::json;
use switchboard_core::{Agent, Runner};
use switchboard_models::{Endpoint, ResponsesModel, SpeechModel, TranscriptionModel};
use switchboard_realtime::testing::speech;
use switchboard_realtime::voice::{Playback, VoicePipeline};

use crate::{all, short, spoken};

#[tokio::test]
async fn a_spoken_handoff_over_http() {
    let provider = FakeProvider::start().await.unwrap();
    // An odd number of bytes in each frame divides samples.
    let pcm = vec![1u8; 24_000 * 2];
    provider.script(
        "sk-voice",
        [
            Reply::transcript("My bill is wrong."),
            Reply::call("call_1", "transfer_to_billing", "{}"),
            Reply::text("It is fixed. Bye!"),
            Reply::audio(pcm.clone()).frames(999),
            Reply::audio(pcm).frames(7_777),
        ],
    );
    let client = Endpoint::at(provider.url())
        .key("sk-voice")
        .connect()
        .unwrap();
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let runner = Runner::new(&triage).model(ResponsesModel::new(&client, "gpt-5.2"));
    let hears = TranscriptionModel::new(&client, "gpt-transcribe");
    let speaks = SpeechModel::new(&client, "gpt-4o-mini-tts");
    let pipeline = VoicePipeline::new(runner, hears, speaks)
        .voice("Billing", "coral")
        .playback(Playback::Instant);
    let (handle, session) = pipeline.open();
    handle.send_audio(speech(8_000)).await.unwrap();
    handle.close().await;
    let events = all(session).await;
    assert_eq!(
        short(&events),
        [
            "speech_started",
            "speech_stopped",
            "heard \"My bill is wrong.\"",
            "Billing: It is fixed.",
            "audio",
            "Billing: Bye!",
            "audio",
            "answer_ended",
        ]
    );
    assert!(spoken(&events).abs_diff(Duration::from_secs(2)) < Duration::from_millis(1));
    provider.assert_valid();
    let requests = provider.requests();
    let paths: Vec<&str> = requests.iter().map(|request| &*request.path).collect();
    assert_eq!(
        paths,
        [
            "/v1/audio/transcriptions",
            "/v1/responses",
            "/v1/responses",
            "/v1/audio/speech",
            "/v1/audio/speech"
        ]
    );
    assert_eq!(requests[3].body["voice"], "coral");
    assert_eq!(requests[3].body["input"], "It is fixed.");
}

#[tokio::test]
async fn a_key_is_in_no_error() {
    let provider = FakeProvider::start().await.unwrap();
    let message = "Incorrect API key provided: sk-quite-secret-key.";
    let body = json!({"error": {"message": message, "code": "invalid_api_key"}});
    provider.script("sk-quite-secret-key", [Reply::status(401, body)]);
    let client = Endpoint::at(provider.url())
        .key("sk-quite-secret-key")
        .connect()
        .unwrap();
    let agent: Agent = Agent::new("A");
    let hears = TranscriptionModel::new(&client, "gpt-transcribe");
    let speaks = SpeechModel::new(&client, "gpt-4o-mini-tts");
    let (handle, session) = VoicePipeline::new(Runner::new(&agent), hears, speaks).open();
    handle.send_audio(speech(16_000)).await.unwrap();
    handle.close().await;
    let events = all(session).await;
    let shown = format!(
        "{:?} {}",
        short(&events),
        serde_json::to_string(&events).unwrap()
    );
    assert!(
        shown.contains("401") && !shown.contains("quite-secret"),
        "{shown}"
    );
}
