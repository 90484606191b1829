//! Tool calls and their arguments.

use super::*;

#[tokio::test]
async fn are_called_with_arguments_from_the_text() {
    let agent = Agent::new("Shop").tool(track());
    let text = reply(&agent, "Where is my parcel ORD-123?").await;
    assert_eq!(text, "called with {\"order_id\":\"ORD-123\"}");
}

#[tokio::test]
async fn are_called_once_the_user_gives_a_missing_argument() {
    let agent = Agent::new("Shop").tool(track());
    let first = run(&agent, "Where is my parcel?").await;
    assert_eq!(
        first.final_text(),
        "To do that I need: order id. Could you tell me?"
    );
    let mut items = first.to_input_list();
    items.extend([Item::user("it's ORD-77")]);
    let second = Runner::new(&agent)
        .model(OfflineModel::new())
        .run(items)
        .await
        .unwrap();
    assert_eq!(second.final_text(), "called with {\"order_id\":\"ORD-77\"}");
}

#[tokio::test]
async fn are_not_called_with_a_reply_that_is_not_an_identifier() {
    let agent = Agent::new("Shop").tool(track());
    let mut items = run(&agent, "Where is my parcel?").await.to_input_list();
    items.extend([Item::user("no idea")]);
    let result = Runner::new(&agent)
        .model(OfflineModel::new())
        .run(items)
        .await
        .unwrap();
    assert!(
        result
            .final_text()
            .starts_with("To do that I need: order id.")
    );
}

#[tokio::test]
async fn with_missing_arguments_yield_to_a_knowledge_entry() {
    let agent = Agent::new("Shop").tool(track()).knowledge(Knowledge::new(
        "track my package",
        "Use the link in the e-mail.",
    ));
    let text = reply(&agent, "how do I track my package?").await;
    assert_eq!(text, "Use the link in the e-mail.");
}

#[tokio::test]
async fn take_a_place_from_english_and_chinese() {
    let weather = echo(
        "get_weather",
        "Returns the weather of a city. 查询城市的天气。",
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    );
    let agent = Agent::new("Weather").tool(weather);
    for (input, city) in [
        ("What's the weather in New York tomorrow?", "New York"),
        ("weather in tokyo", "tokyo"),
        ("北京今天的天气怎么样", "北京"),
    ] {
        let text = reply(&agent, input).await;
        assert!(
            text.starts_with(&format!("called with {{\"city\":\"{city}\"}}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn take_numbers_choices_and_yes_or_no() {
    let book = echo(
        "book_table",
        "Books a table in the restaurant: reservation for guests.",
        json!({
            "type": "object",
            "properties": {
                "guests": {"type": "integer"},
                "date": {"type": "string", "format": "date"},
                "area": {"type": "string", "enum": ["inside", "terrace"]},
                "vegetarian": {"type": "boolean"},
                "email": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "budget": {"type": ["number", "null"]},
            },
            "required": ["guests", "date", "area", "vegetarian", "email", "budget"],
        }),
    );
    let agent = Agent::new("Restaurant").tool(book);
    let text = reply(
        &agent,
        "Please book a table on 2025-03-04 for 4 guests on the terrace, vegetarian, budget $120",
    )
    .await;
    let arguments = json!({
        "guests": 4, "date": "2025-03-04", "area": "terrace", "vegetarian": true, "email": null,
        "budget": 120.0,
    });
    assert_eq!(text, format!("called with {arguments}"));
}

#[tokio::test]
async fn are_not_called_for_the_language_of_the_text() {
    let parameters =
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let agent = Agent::new("A").tool(echo("translate", "Translates text to English.", parameters));
    assert!(
        reply(&agent, "where is the castle of my king")
            .await
            .starts_with("I'm not sure")
    );
    assert!(
        reply(&agent, "translate this to English: 城堡")
            .await
            .starts_with("called with")
    );
}

#[tokio::test]
async fn are_not_called_twice_for_one_message() {
    let result = run(
        &Agent::new("Shop").tool(track()),
        "track order ORD-1 and order ORD-2",
    )
    .await;
    assert_eq!(result.raw_responses().len(), 2);
}

#[tokio::test]
async fn are_chosen_as_the_settings_say() {
    let ping = echo(
        "ping",
        "Pings.",
        json!({"type": "object", "properties": {}}),
    );
    let agent = Agent::new("Shop").tool(track()).tool(ping);
    let choosing = |choice: ToolChoice| {
        let settings = ModelSettings {
            tool_choice: Some(choice),
            ..Default::default()
        };
        Runner::new(&agent)
            .model(OfflineModel::new())
            .model_settings(settings)
    };
    let none = choosing(ToolChoice::None)
        .run("Where is order ORD-1?")
        .await
        .unwrap();
    assert_eq!(none.raw_responses().len(), 1);
    let named = choosing(ToolChoice::Named("ping".into()))
        .run("Where is order ORD-1?")
        .await;
    assert_eq!(named.unwrap().final_text(), "called with {}");
    let required = choosing(ToolChoice::Required).run("xyzzy").await.unwrap();
    assert!(required.final_text().starts_with("called with"));
}
