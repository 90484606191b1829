//! Items of responses.

use super::*;

fn request(text: &str) -> ModelRequest {
    ModelRequest::new(vec![Item::user(text)])
}

#[tokio::test]
async fn look_like_those_of_the_responses_api() {
    let model = OfflineModel::new();
    let response = model.respond(request("hi")).await.unwrap();
    let message = response.output[0].to_value().unwrap();
    let id = message["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("msg_"));
    assert_eq!(
        message,
        json!({
            "type": "message", "id": id, "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Hello!", "annotations": []}],
        })
    );
    assert_eq!(response.usage.requests, 1);
    assert!(response.usage.input_tokens > 0 && response.usage.output_tokens > 0);
}

#[tokio::test]
async fn have_unique_identifiers_within_a_conversation() {
    let agent = Agent::new("Shop").tool(track());
    let runner = Runner::new(&agent).model(OfflineModel::new());
    let mut items = Items::new();
    for text in ["track ORD-1", "track ORD-1", "hello", "hello"] {
        items.extend([Item::user(text)]);
        items = runner.run(items).await.unwrap().to_input_list();
    }
    let mut ids: Vec<_> = items.iter().filter_map(Item::id).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), count), (6, 6));
    assert!(ids.iter().any(|id| id.starts_with("fc_")));
}

#[tokio::test]
async fn are_the_same_every_time() {
    let agent = shop().tool(track());
    let once = run(&agent, "Where is my parcel ORD-1?").await;
    let again = run(&agent, "Where is my parcel ORD-1?").await;
    assert_eq!(once.raw_responses(), again.raw_responses());
}

#[tokio::test]
async fn are_the_same_streamed() {
    let model = OfflineModel::new();
    for text in ["hi", "你好，退款 please", "where is ORD-1"] {
        let whole: ModelResponse = model.respond(request(text)).await.unwrap();
        let events: Vec<_> = model
            .stream(request(text))
            .map(Result::unwrap)
            .collect()
            .await;
        let mut streamed = String::new();
        for event in &events {
            match event {
                ModelEvent::TextDelta { text: piece, .. } => streamed.push_str(piece),
                ModelEvent::Completed(response) => assert_eq!(*response, whole),
                _ => unreachable!(),
            }
        }
        assert_eq!(whole.output[0].kind(), ItemKind::Message);
        assert_eq!(streamed, whole.output[0].text().unwrap());
        assert!(events.len() > 1);
    }
}
