//! Prepared replies.

use fake_provider::{FakeProvider, Reply};
use serde_json::json;

use crate::http::post;

#[test]
fn every_request_gets_the_first_reply_whose_text_it_contains() {
    let replies = [("second", Reply::text("two")), ("", Reply::text("one"))];
    let provider = FakeProvider::prepared_on_thread(replies).unwrap();
    let reply_to = |text: &str| {
        let body = json!({"messages": [{"role": "user", "content": text}]});
        let answer = post(&provider, "chat/completions", "any", &body).json();
        answer["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(reply_to("first"), "one");
    assert_eq!(reply_to("second"), "two");
    assert_eq!(reply_to("first"), "one");
    assert_eq!(provider.requests(), []);
}

#[test]
fn a_prepared_reply_is_streamed_if_the_request_says_so() {
    let provider =
        FakeProvider::prepared_on_thread([("", Reply::text("word word ").pieces(5))]).unwrap();
    let events = |body| post(&provider, "responses", "any", &body).events();
    let deltas: Vec<_> = events(json!({"stream": true}))
        .into_iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .map(|event| event["delta"].clone())
        .collect();
    assert_eq!(deltas, ["word ", "word "]);
}
