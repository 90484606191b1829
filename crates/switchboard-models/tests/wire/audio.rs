//! Speech to text and text to speech.

use std::time::Duration;

use fake_provider::Reply;
use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_models::{Endpoint, ModelError, ModelErrorKind, SpeechModel, TranscriptionModel};

use crate::{PROVIDER, Script};

/// A WAV file of four samples at 16 kHz.
const WAV: &[u8] = b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\x08\0\0\0\0\0\0\0\0\0\0\0";

fn transcription(endpoint: &Endpoint) -> TranscriptionModel {
    TranscriptionModel::new(&endpoint.connect().unwrap(), "gpt-transcribe")
}

fn speech(endpoint: &Endpoint) -> SpeechModel {
    SpeechModel::new(&endpoint.connect().unwrap(), "gpt-4o-mini-tts")
}

/// The audio of a text, and the error that ended it.
async fn spoken(model: &SpeechModel, text: &str) -> (Vec<u8>, Option<ModelError>) {
    let mut audio = std::pin::pin!(model.speak(text, None));
    let mut bytes = Vec::new();
    while let Some(piece) = audio.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => {
                assert!(audio.next().await.is_none());
                return (bytes, Some(error));
            }
        }
    }
    (bytes, None)
}

#[tokio::test]
async fn speech_is_written_down() {
    let script = Script::new([Reply::transcript("My bill is wrong.")]);
    let model = transcription(&script.endpoint())
        .language("en")
        .prompt("Invoices");
    assert_eq!(model.transcribe(WAV).await.unwrap(), "My bill is wrong.");
    assert_eq!(
        script.bodies()[0],
        json!({"model": "gpt-transcribe", "response_format": "json", "language": "en",
               "prompt": "Invoices",
               "file": {"filename": "speech.wav", "content_type": "audio/wav", "bytes": WAV.len()}})
    );
}

#[tokio::test]
async fn a_text_is_spoken_in_pieces() {
    let pcm: Vec<u8> = (0..20_000u32).map(|byte| byte as u8).collect();
    let script = Script::new([Reply::audio(pcm.clone()).frames(999)]);
    let model = speech(&script.endpoint())
        .voice("coral")
        .instructions("Calm.")
        .speed(1.5);
    let (bytes, error) = spoken(&model, "Hello there.").await;
    assert!(error.is_none() && bytes == pcm);
    assert_eq!(
        script.bodies()[0],
        json!({"model": "gpt-4o-mini-tts", "input": "Hello there.", "voice": "coral",
               "instructions": "Calm.", "response_format": "pcm", "speed": 1.5})
    );
}

#[tokio::test]
async fn a_voice_can_be_given_with_the_text() {
    let script = Script::new([Reply::audio(vec![0; 4])]);
    let model = speech(&script.endpoint());
    let mut audio = std::pin::pin!(model.speak("Hi", Some("nova")));
    while let Some(piece) = audio.next().await {
        piece.unwrap();
    }
    assert_eq!(script.bodies()[0]["voice"], "nova");
}

#[tokio::test]
async fn failed_requests_are_retried() {
    let busy = || Reply::status(503, json!({})).header("retry-after-ms", "1");
    let script = Script::new([busy(), Reply::transcript("Hi")]);
    let endpoint = script.endpoint().retries(2);
    assert_eq!(
        transcription(&endpoint).transcribe(WAV).await.unwrap(),
        "Hi"
    );

    let script = Script::new([busy(), Reply::audio(vec![1; 10])]);
    let (bytes, error) = spoken(&speech(&script.endpoint().retries(2)), "Hi").await;
    assert!(error.is_none());
    assert_eq!(bytes, vec![1; 10]);
    assert_eq!(PROVIDER.requests_of(&script.key).len(), 2);
}

#[tokio::test]
async fn audio_that_breaks_off_is_an_error_and_is_not_requested_again() {
    let script = Script::new([Reply::audio(vec![1; 10_000]).cut_after(4800)]);
    let (bytes, error) = spoken(&speech(&script.endpoint().retries(2)), "Hi").await;
    assert!(bytes.len() <= 4800);
    assert_eq!(error.unwrap().kind(), ModelErrorKind::Interrupted);
    assert_eq!(PROVIDER.requests_of(&script.key).len(), 1);
}

#[tokio::test]
async fn errors_say_what_happened_and_have_no_key() {
    let refusal = |key: &str| {
        let message = format!("Incorrect API key provided: {key}.");
        Reply::status(
            401,
            json!({"error": {"message": message, "code": "invalid_api_key"}}),
        )
    };
    let key = "sk-very-secret-audio-key";
    PROVIDER.script(key, [refusal(key), refusal(key)]);
    let endpoint = Endpoint::at(PROVIDER.url()).key(key);
    let model = transcription(&endpoint);
    let error = model.transcribe(WAV).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Authentication);
    let speech = speech(&endpoint);
    let (_, spoken) = spoken(&speech, "Hi").await;
    let spoken = spoken.unwrap();
    assert_eq!(spoken.kind(), ModelErrorKind::Authentication);
    let shown = format!("{error} {error:?} {spoken} {spoken:?} {model:?} {speech:?}");
    assert!(!shown.contains("very-secret"), "{shown}");
    assert!(shown.contains("127.0.0.1"), "{shown}");
}

#[tokio::test]
async fn answers_of_another_kind_are_errors() {
    let script = Script::new([
        Reply::raw("<html>", "text/html"),
        Reply::status(
            200,
            json!({"error": {"message": "no such model", "code": "model_not_found"}}),
        ),
    ]);
    let model = transcription(&script.endpoint());
    let error = model.transcribe(WAV).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::BadAnswer);
    let error = model.transcribe(WAV).await.unwrap_err();
    assert_eq!(error.code(), Some("model_not_found"));

    let script = Script::new([Reply::status(200, json!({"text": "Hi"}))]);
    let (bytes, error) = spoken(&speech(&script.endpoint()), "Hi").await;
    assert!(bytes.is_empty());
    assert_eq!(error.unwrap().kind(), ModelErrorKind::BadAnswer);
}

#[tokio::test]
async fn endless_audio_and_endless_transcripts_are_cut_off() {
    let script = Script::new([Reply::endless(), Reply::endless()]);
    let endpoint = script.endpoint().max_response_bytes(100_000);
    let (bytes, error) = spoken(&speech(&endpoint), "Hi").await;
    assert!(bytes.len() <= 100_000);
    assert_eq!(error.unwrap().kind(), ModelErrorKind::TooLarge);
    let error = transcription(&endpoint).transcribe(WAV).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::TooLarge);
}

#[tokio::test]
async fn a_server_that_is_silent_is_a_timeout() {
    let script = Script::new([Reply::audio(vec![0; 9600]).hang_after(4800)]);
    let endpoint = script.endpoint().read_timeout(Duration::from_millis(200));
    let (bytes, error) = spoken(&speech(&endpoint), "Hi").await;
    assert_eq!(bytes.len(), 4800);
    assert_eq!(error.unwrap().kind(), ModelErrorKind::Timeout);
}

#[tokio::test]
async fn a_text_that_is_too_long_is_not_sent() {
    let script = Script::new([]);
    let (_, error) = spoken(&speech(&script.endpoint()), &"x".repeat(4097)).await;
    assert_eq!(error.unwrap().kind(), ModelErrorKind::Unsupported);
    assert!(PROVIDER.requests_of(&script.key).is_empty());
}
