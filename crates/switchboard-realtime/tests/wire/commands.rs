//! Commands and their frames.

use bytes::Bytes;
use serde_json::json;
use switchboard_realtime::model::{
    ImageDetail, RealtimeInputPart, RealtimeModelCommand, RealtimeModelErrorKind,
    RealtimeModelPolicy, RealtimeRawCommand, RealtimeResponseRequest, RealtimeUserInput,
};

use crate::support::{Line, response_created, response_done};

fn raw(kind: &str, fields: serde_json::Value) -> RealtimeModelCommand {
    RealtimeModelCommand::Raw(RealtimeRawCommand {
        kind: kind.into(),
        fields: fields.as_object().unwrap().clone(),
    })
}

#[tokio::test]
async fn text_and_images_are_one_message() {
    let line = Line::open().await;
    let input = RealtimeUserInput::Message(vec![
        RealtimeInputPart::Text {
            text: "look".into(),
        },
        RealtimeInputPart::Image {
            image_url: "data:image/png;base64,AA==".into(),
            detail: Some(ImageDetail::High),
        },
        RealtimeInputPart::Image {
            image_url: String::new(),
            detail: None,
        },
    ]);
    line.sender
        .send(RealtimeModelCommand::UserInput(input))
        .await
        .unwrap();
    let frame = line.peer.next_frame().await.unwrap();
    assert_eq!(
        frame["item"]["content"],
        json!([
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"},
        ])
    );
    assert_eq!(
        line.peer.next_frame().await.unwrap()["type"],
        "response.create"
    );
    line.server.assert_valid();
}

#[tokio::test]
async fn audio_is_appended_and_committed() {
    let line = Line::open().await;
    let audio = Bytes::from_static(&[0, 1, 2, 3]);
    line.sender
        .send(RealtimeModelCommand::Audio {
            audio,
            commit: true,
        })
        .await
        .unwrap();
    line.sender
        .send(RealtimeModelCommand::ClearAudio)
        .await
        .unwrap();
    line.settle().await;
    assert_eq!(
        line.peer.frames()[1],
        json!({"type": "input_audio_buffer.append", "audio": "AAECAw=="})
    );
    assert_eq!(
        line.frame_types(),
        [
            "input_audio_buffer.append",
            "input_audio_buffer.commit",
            "input_audio_buffer.clear"
        ]
    );
    line.server.assert_valid();
}

#[tokio::test]
async fn long_audio_is_sent_in_frames_that_the_server_takes() {
    let line = Line::open().await;
    let audio = Bytes::from(vec![7; 3 << 20]);
    line.sender
        .send(RealtimeModelCommand::Audio {
            audio,
            commit: false,
        })
        .await
        .unwrap();
    line.settle().await;
    assert_eq!(line.frame_types(), ["input_audio_buffer.append"; 3]);
}

#[tokio::test]
async fn raw_commands_are_checked() {
    let line = Line::open().await;
    line.sender
        .send(raw("input_audio_buffer.clear", json!({})))
        .await
        .unwrap();
    line.sender
        .send(raw("conversation.item.delete", json!({"item_id": "u1"})))
        .await
        .unwrap();
    for (kind, fields) in [
        ("make.coffee", json!({"sugar": 2})),
        ("conversation.item.delete", json!({})),
        (
            "session.update",
            json!({"session": {"instructions": "no type"}}),
        ),
        (
            "conversation.item.create",
            json!({"item": {"type": "message", "role": "user", "content": [{"type": "output_text"}]}}),
        ),
        ("response.create", json!({"response": {"instructions": 7}})),
    ] {
        let error = line.sender.send(raw(kind, fields)).await.unwrap_err();
        assert_eq!(error.kind(), RealtimeModelErrorKind::Validation);
        assert!(error.to_string().contains(kind), "{error}");
    }
    line.settle().await;
    assert_eq!(
        line.frame_types(),
        ["input_audio_buffer.clear", "conversation.item.delete"]
    );
    line.server.assert_valid();
}

#[tokio::test]
async fn the_reference_drops_raw_commands_that_are_none_of_the_protocol() {
    let line = Line::with_policy(RealtimeModelPolicy::reference()).await;
    line.sender
        .send(raw("make.coffee", json!({})))
        .await
        .unwrap();
    line.settle().await;
    assert_eq!(line.frame_types(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_after_a_response_is_sent_only_while_it_is_the_latest() {
    let line = Line::open().await;
    line.peer.send(&response_created("r1"));
    line.peer.send(&response_done("r1"));
    line.settle().await;
    let after = |text: &str| RealtimeModelCommand::UserInputAfter {
        input: text.into(),
        response_id: "r1".into(),
    };
    line.sender.send(after("one")).await.unwrap();
    // A response has been asked for.
    line.sender.send(after("two")).await.unwrap();
    line.peer.send(&response_created("r2"));
    line.peer.send(&response_done("r2"));
    line.settle().await;
    line.sender.send(after("three")).await.unwrap();
    line.settle().await;
    assert_eq!(
        line.frame_types(),
        ["conversation.item.create", "response.create"]
    );
}

#[tokio::test]
async fn a_response_can_have_instructions_of_its_own() {
    let line = Line::open().await;
    let mut request = RealtimeResponseRequest::default();
    request.instructions = Some("Do not greet again.".into());
    line.sender
        .send(RealtimeModelCommand::CreateResponse(request))
        .await
        .unwrap();
    line.settle().await;
    let frame = &line.peer.frames()[1];
    assert_eq!(
        frame["response"],
        json!({"instructions": "Do not greet again."})
    );
    line.server.assert_valid();
}
