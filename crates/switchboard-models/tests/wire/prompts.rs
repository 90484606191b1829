//! Prompts that the provider stores.

use fake_provider::Reply;
use serde_json::{Value, json};
use switchboard_core::model::{Prompt, ToolChoice};
use switchboard_core::{Agent, ModelSettings, Runner};
use switchboard_models::{ModelError, ModelErrorKind, OfflineModel};

use crate::{Protocol, Script};

fn greeter() -> Agent {
    Agent::new("Greeter").prompt(
        Prompt::new("pmpt_1")
            .version("2")
            .variable("customer", "Ada")
            .variable("photo", json!({"type": "input_text", "text": "none"})),
    )
}

#[tokio::test]
async fn a_prompt_is_sent_over_responses() {
    for streamed in [false, true] {
        let script = Script::new([Reply::text("Hi.")]);
        let model = script.model(Protocol::Responses);
        let agent = greeter().model_settings(ModelSettings {
            tool_choice: Some(ToolChoice::Required),
            ..ModelSettings::default()
        });
        let runner = Runner::new(&agent).model(model);
        if streamed {
            runner.stream("Hello").finish().await.unwrap();
        } else {
            runner.run("Hello").await.unwrap();
        }
        let body = &script.bodies()[0];
        let expected = json!({
            "id": "pmpt_1",
            "version": "2",
            "variables": {"customer": "Ada", "photo": {"type": "input_text", "text": "none"}},
        });
        assert_eq!(body["prompt"], expected);
        // The prompt may have tools of its own.
        assert_eq!(body["tools"], Value::Null);
        assert_eq!(body["tool_choice"], "required");
    }
}

#[tokio::test]
async fn the_choice_of_one_tool_needs_that_tool() {
    let script = Script::new([Reply::text("Hi.")]);
    let agent = greeter().model_settings(ModelSettings {
        tool_choice: Some(ToolChoice::Named("look".into())),
        ..ModelSettings::default()
    });
    let runner = Runner::new(&agent).model(script.model(Protocol::Responses));
    runner.run("Hello").await.unwrap();
    assert_eq!(script.bodies()[0]["tool_choice"], Value::Null);
}

#[tokio::test]
async fn other_models_answer_with_an_error_that_says_what_to_do() {
    let script = Script::new([Reply::text("Hi.")]);
    let agent = greeter();
    let runner = Runner::new(&agent).model(script.model(Protocol::Chat));
    let error = runner.run("Hello").await.unwrap_err();
    let cause = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
    assert_eq!(cause.kind(), ModelErrorKind::Unsupported);
    assert!(cause.to_string().contains("ResponsesModel"), "{cause}");
    assert!(script.requests().is_empty());

    let runner = Runner::new(&agent).model(OfflineModel::new());
    for error in [
        runner.run("Hello").await.unwrap_err(),
        runner.stream("Hello").finish().await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("over Responses"), "{error}");
    }
}
