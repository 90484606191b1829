//! Answers made beforehand, by what is in a request.

use fake_provider::{FakeProvider, Reply};
use serde_json::json;

use crate::http::post;

#[test]
fn the_first_reply_whose_text_is_in_the_request_is_given_as_often_as_asked() {
    let answers = [("second", Reply::text("two")), ("", Reply::text("one"))];
    let provider = FakeProvider::ready_on_thread(answers).unwrap();
    let said = |words: &str| {
        let body = json!({"messages": [{"role": "user", "content": words}]});
        let answer = post(&provider, "chat/completions", "any", &body).json();
        answer["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(said("first"), "one");
    assert_eq!(said("second"), "two");
    assert_eq!(said("first"), "one");
    assert_eq!(provider.requests(), []);
}

#[test]
fn a_ready_reply_is_streamed_where_a_stream_is_asked_for() {
    let provider =
        FakeProvider::ready_on_thread([("", Reply::text("word word ").pieces(5))]).unwrap();
    let events = |body| post(&provider, "responses", "any", &body).events();
    let deltas: Vec<_> = events(json!({"stream": true}))
        .into_iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .map(|event| event["delta"].clone())
        .collect();
    assert_eq!(deltas, ["word ", "word "]);
}
