//! The audio endpoints.

use fake_provider::{Problem, Reply};
use serde_json::{Value, json};

use crate::http::{Response, post, read, send_as};
use crate::provider;

const FORM: &str = "multipart/form-data; boundary=XX";

/// The head of a WAV file, and a sample.
const WAV: &str = "RIFF\0\0\0\0WAVEfmt \0\0\0\0data\0\0\0\0xx";

/// A form of these parts.
fn form(parts: &[(&str, &str)]) -> String {
    let parts = parts.iter().map(|(head, content)| {
        format!("--XX\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    });
    parts.collect::<String>() + "--XX--\r\n"
}

fn file(content: &str) -> (&'static str, &str) {
    let head = "name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav";
    (head, content)
}

/// The response to a form, and the problem of the request.
fn transcribe(content_type: &str, body: &str) -> (Response, Option<Problem>) {
    let provider = provider();
    provider.script("k", [Reply::transcript("my bill is wrong")]);
    let stream = send_as(&provider, "audio/transcriptions", "k", content_type, body);
    let response = read(stream);
    let problem = provider
        .violations()
        .pop()
        .map(|violation| violation.problem);
    (response, problem)
}

#[test]
fn speech_is_sent_in_frames_without_a_length() {
    let provider = provider();
    provider.script("k", [Reply::audio(vec![7; 10_000])]);
    let body = json!({"model": "m", "input": "Hi", "voice": "ash", "response_format": "pcm"});
    let response = post(&provider, "audio/speech", "k", &body);
    assert_eq!(response.status, 200);
    let sizes: Vec<usize> = response.chunks.iter().map(Vec::len).collect();
    assert_eq!(sizes, [4800, 4800, 400]);
    provider.assert_valid();
}

#[test]
fn requests_for_speech_are_checked() {
    for (field, value, problem) in [
        ("voice", json!(7), "Invalid 'voice'"),
        ("speed", json!(9), "Invalid 'speed'"),
        ("input", json!(""), "Invalid 'input'"),
        ("pitch", json!(1), "Unknown parameter: 'pitch'."),
    ] {
        let provider = provider();
        provider.script("k", [Reply::audio(vec![0; 2])]);
        let mut body = json!({"model": "m", "input": "Hi", "voice": "ash"});
        body[field] = value;
        let response = post(&provider, "audio/speech", "k", &body);
        assert_eq!(response.status, 400);
        let message = response.json()["error"]["message"].to_string();
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn a_form_with_a_file_is_transcribed_and_recorded() {
    let provider = provider();
    provider.script("k", [Reply::transcript("my bill is wrong")]);
    let body = form(&[
        ("name=\"model\"", "m"),
        ("name=\"include[]\"", "logprobs"),
        file(WAV),
    ]);
    let response = read(send_as(&provider, "audio/transcriptions", "k", FORM, &body));
    assert_eq!(response.json(), json!({"text": "my bill is wrong"}));
    provider.assert_valid();
    assert_eq!(
        provider.requests()[0].body,
        json!({"model": "m", "include": ["logprobs"],
               "file": {"filename": "a.wav", "content_type": "audio/wav", "bytes": WAV.len()}})
    );
}

#[test]
fn invalid_forms_are_refused() {
    let model = ("name=\"model\"", "m");
    let bodies: [(&str, String, &str); 7] = [
        (
            "application/json",
            form(&[model]),
            "not multipart/form-data",
        ),
        (FORM, "model=m".to_owned(), "begin with the boundary"),
        (FORM, form(&[model]).replace("--XX--", ""), "has no end"),
        (FORM, form(&[model]), "Missing required parameter: 'file'."),
        (
            FORM,
            form(&[model, file("MP3")]),
            "corrupted or unsupported",
        ),
        (FORM, form(&[model, model, file(WAV)]), "there twice"),
        (
            FORM,
            form(&[model, ("name=\"tone\"", "x"), file(WAV)]),
            "Unknown parameter: 'tone'.",
        ),
    ];
    for (content_type, body, expected) in bodies {
        let (response, problem) = transcribe(content_type, &body);
        assert_eq!(response.status, 400, "{expected}");
        let body: Value = response.json();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        assert_eq!(problem.unwrap().message, message);
    }
}
