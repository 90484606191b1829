//! Structured output.

use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
struct Reply {
    answer: String,
    sentiment: Sentiment,
    order_id: Option<String>,
    tags: Vec<String>,
    colour: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Sentiment {
    Positive,
    Neutral,
    Negative,
}

#[tokio::test]
async fn hold_the_answer_and_say_what_is_not_known() {
    let result = run(
        &shop().output::<Reply>(),
        "Terrible! When do I get the refund for ORD-5?",
    )
    .await;
    let expected = Reply {
        answer: "Refunds take five days.".to_owned(),
        sentiment: Sentiment::Negative,
        order_id: Some("ORD-5".to_owned()),
        tags: vec![],
        colour: "not known".to_owned(),
    };
    assert_eq!(result.final_output_as::<Reply>().unwrap(), expected);
}

#[tokio::test]
async fn may_be_a_bare_value() {
    let result = run(&shop().output::<Vec<u32>>(), "Add 3 and 4 to the refund").await;
    assert_eq!(result.final_output_as::<Vec<u32>>().unwrap(), [3, 4]);
}
