//! Opening a connection: address, headers, key, settings, refusals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fake_provider::RealtimeServer;
use serde_json::json;
use switchboard_core::model::{Prompt, ToolChoice};
use switchboard_realtime::items::{RealtimeContent, RealtimeMessageItem, RealtimeRole};
use switchboard_realtime::model::{
    AudioFormat, MaxOutputTokens, Modality, RealtimeModel as _, RealtimeModelConfig,
    RealtimeModelErrorKind, RealtimeModelSettings, ServerVad, Switch, TurnDetection,
};
use switchboard_realtime::openai::OpenAiRealtimeModel;

use crate::support::{Line, model, settings, within};

#[tokio::test]
async fn the_handshake_names_the_model_and_carries_the_key() {
    let line = Line::open().await;
    let handshakes = line.server.handshakes();
    assert_eq!(handshakes.len(), 1);
    assert_eq!(handshakes[0].path, "/v1/realtime");
    assert_eq!(handshakes[0].query, "model=gpt-realtime-2.1");
    assert_eq!(
        handshakes[0].header("authorization"),
        Some("Bearer sk-test-1234567890")
    );
    assert!(
        handshakes[0]
            .header("user-agent")
            .unwrap()
            .starts_with("switchboard/")
    );
    assert_eq!(handshakes[0].header("openai-beta"), None);
    line.server.assert_valid();
}

#[tokio::test]
async fn own_headers_replace_the_authorization() {
    let server = RealtimeServer::start().await.unwrap();
    let url = format!("{}/openai/v1/realtime?deployment=voice", server.url());
    let model = OpenAiRealtimeModel::new()
        .without_api_key()
        .url(url)
        .headers([("api-key", "K2")])
        .header("x-call", "7");
    let _connection = model.connect(RealtimeModelConfig::default()).await.unwrap();
    let handshake = &server.handshakes()[0];
    assert_eq!(
        (&*handshake.path, &*handshake.query),
        ("/openai/v1/realtime", "deployment=voice")
    );
    assert_eq!(handshake.header("authorization"), None);
    assert_eq!(handshake.header("api-key"), Some("K2"));
    assert_eq!(handshake.header("x-call"), Some("7"));
}

#[tokio::test]
async fn the_function_of_a_key_is_asked_for_each_connection() {
    let server = RealtimeServer::start().await.unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let model = model(&server).api_key_from(move || {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(format!("ek_{number}")) }
    });
    let _first = model.connect(RealtimeModelConfig::default()).await.unwrap();
    let _second = model.connect(RealtimeModelConfig::default()).await.unwrap();
    let keys: Vec<_> = server
        .handshakes()
        .iter()
        .map(|h| h.header("authorization").unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["Bearer ek_1", "Bearer ek_2"]);
}

#[tokio::test]
async fn a_function_of_a_key_that_panics_is_an_error() {
    let server = RealtimeServer::start().await.unwrap();
    let model = model(&server).api_key_from(|| async { panic!("no key today") });
    let error = model
        .connect(RealtimeModelConfig::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::Configuration);
    assert!(
        error.to_string().contains("function that gives the key"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let server = RealtimeServer::start().await.unwrap();
    let error = model(&server)
        .without_api_key()
        .connect(RealtimeModelConfig::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::Configuration);
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
    assert_eq!(server.handshakes(), []);
}

#[tokio::test]
async fn a_call_is_joined_by_its_identifier() {
    let server = RealtimeServer::start().await.unwrap();
    let model = model(&server).call_id("rtc 7/7");
    let _connection = model.connect(RealtimeModelConfig::default()).await.unwrap();
    let peer = server.connection().await;
    let update = within(peer.next_frame()).await.unwrap();
    assert_eq!(server.handshakes()[0].query, "call_id=rtc%207%2F7");
    assert_eq!(update["session"]["audio"]["input"].get("format"), None);
    assert_eq!(update["session"]["audio"]["output"].get("format"), None);
    server.assert_valid();

    let mut config = RealtimeModelConfig::default();
    config.settings.model_name = Some("gpt-realtime".into());
    let error = model.connect(config).await.unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::Configuration);
    assert_eq!(server.handshakes().len(), 1);
}

#[tokio::test]
async fn a_refusal_tells_the_status_and_never_the_key() {
    let server = RealtimeServer::start().await.unwrap();
    for (status, advice) in [
        (401, "check the key"),
        (404, "check the address"),
        (429, "later"),
        (503, "later"),
    ] {
        server.refuse_with(Some(status));
        let error = model(&server)
            .connect(RealtimeModelConfig::default())
            .await
            .unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert_eq!(error.kind(), RealtimeModelErrorKind::Transport);
        let told = format!("{error} {error:?}");
        assert!(told.contains(advice), "{told}");
        assert!(!told.contains("1234567890"), "{told}");
    }
}

#[test]
fn the_key_is_in_nothing_that_is_printed() {
    let model = OpenAiRealtimeModel::new()
        .api_key("sk-secret-key")
        .header("x-key", "another-secret");
    let printed = format!("{model:?}");
    assert!(!printed.contains("secret"), "{printed}");
}

#[tokio::test]
async fn a_server_that_does_not_exist_is_an_error_with_its_address() {
    let server = RealtimeServer::start().await.unwrap();
    let url = server.url();
    drop(server);
    tokio::task::yield_now().await;
    let model = OpenAiRealtimeModel::new()
        .api_key("k")
        .base_url(url.clone());
    let error = within(model.connect(RealtimeModelConfig::default()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::Transport);
    assert!(error.to_string().contains(&url["ws://".len()..]), "{error}");
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    for url in ["", "http://example.com", "wss://", "nonsense"] {
        let model = OpenAiRealtimeModel::new().api_key("k").url(url);
        let error = within(model.connect(RealtimeModelConfig::default()))
            .await
            .unwrap_err();
        assert_eq!(
            error.kind(),
            RealtimeModelErrorKind::Configuration,
            "{url}: {error}"
        );
    }
    let model = OpenAiRealtimeModel::new()
        .api_key("k")
        .url("ws://127.0.0.1:1")
        .header("no good", "x");
    let error = within(model.connect(RealtimeModelConfig::default()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`no good`"), "{error}");
}

#[tokio::test]
async fn every_setting_has_its_place_in_the_session() {
    let mut config = RealtimeModelConfig::default();
    config.settings = RealtimeModelSettings {
        model_name: Some("gpt-realtime-mini".into()),
        instructions: Some("Be brief.".into()),
        prompt: Some(Arc::new(Prompt::new("pmpt_1").version("3"))),
        output_modalities: Some(vec![Modality::Text]),
        input_audio_format: Some(AudioFormat::G711Ulaw),
        output_audio_format: Some(AudioFormat::G711Alaw),
        input_audio_transcription: Some(Switch::Off),
        input_audio_noise_reduction: Some(Switch::Off),
        turn_detection: Some(Switch::On(TurnDetection::Server(ServerVad {
            threshold: Some(0.5),
            interrupt_response: Some(false),
            ..ServerVad::default()
        }))),
        voice: Some("verse".into()),
        speed: Some(1.25),
        max_output_tokens: Some(MaxOutputTokens::Unlimited),
        tool_choice: Some(ToolChoice::Named("clock".into())),
        parallel_tool_calls: Some(false),
        reasoning_effort: Some("low".into()),
        truncation: Some(json!({"type": "retention_ratio", "retention_ratio": 0.8})),
        ..RealtimeModelSettings::default()
    };
    let line = Line::with(config, settings()).await;
    line.server.assert_valid();
    let frames = line.peer.frames();
    assert_eq!(
        frames[0]["session"],
        json!({
            "type": "realtime",
            "model": "gpt-realtime-mini",
            "output_modalities": ["text"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcmu"},
                    "noise_reduction": null,
                    "transcription": null,
                    "turn_detection": {"threshold": 0.5, "interrupt_response": false, "type": "server_vad"},
                },
                "output": {"voice": "verse", "format": {"type": "audio/pcma"}, "speed": 1.25},
            },
            "tools": [],
            "parallel_tool_calls": false,
            "reasoning": {"effort": "low"},
            "instructions": "Be brief.",
            "prompt": {"id": "pmpt_1", "version": "3", "variables": null},
            "max_output_tokens": "inf",
            "tool_choice": {"type": "function", "name": "clock"},
            "truncation": {"type": "retention_ratio", "retention_ratio": 0.8},
        })
    );
}

#[tokio::test]
async fn settings_that_the_official_types_refuse_are_not_sent() {
    let invalid = |fields: serde_json::Value| {
        let fields = fields.as_object().unwrap().clone();
        Some(Switch::On(TurnDetection::Other(fields)))
    };
    for detection in [
        json!({"type": "telepathy"}),
        json!({"type": "semantic_vad", "eagerness": "wild"}),
        json!({"type": "server_vad", "silence_duration_ms": "long"}),
        json!({}),
    ] {
        let server = RealtimeServer::start().await.unwrap();
        let mut config = RealtimeModelConfig::default();
        config.settings.turn_detection = invalid(detection);
        let error = model(&server).connect(config).await.unwrap_err();
        assert_eq!(error.kind(), RealtimeModelErrorKind::Validation);
        let peer = server.connection().await;
        assert_eq!(within(peer.ended()).await, 1000);
        assert_eq!(peer.frames(), Vec::<serde_json::Value>::new());
    }
}

#[tokio::test]
async fn a_conversation_so_far_is_put_before_what_the_user_says() {
    let mut config = RealtimeModelConfig::default();
    let user = RealtimeContent::InputText {
        text: Some("My bill is wrong.".into()),
    };
    let assistant = RealtimeContent::Audio {
        audio: None,
        transcript: Some("Which one?".into()),
    };
    config.history = vec![
        RealtimeMessageItem::new("u1", RealtimeRole::User, [user]).into(),
        RealtimeMessageItem::new("a1", RealtimeRole::Assistant, [assistant]).into(),
    ];
    let line = Line::with(config, settings()).await;
    line.settle().await;
    let frames = line.peer.frames();
    assert_eq!(
        frames[1..],
        [
            json!({"type": "conversation.item.create", "item": {
                "type": "message", "role": "user", "id": "u1",
                "content": [{"type": "input_text", "text": "My bill is wrong."}],
            }}),
            json!({"type": "conversation.item.create", "item": {
                "type": "message", "role": "assistant", "id": "a1",
                "content": [{"type": "output_text", "text": "Which one?"}],
            }}),
        ]
    );
    line.server.assert_valid();
}
