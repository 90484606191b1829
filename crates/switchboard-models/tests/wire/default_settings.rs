//! Default settings of models that are made by name.

use fake_provider::Reply;
use serde_json::{Value, json};
use switchboard_core::{Agent, ModelSettings, Runner};
use switchboard_models::Providers;

use crate::Script;

#[tokio::test]
async fn a_model_by_name_has_its_default_settings_unless_the_agent_has_settings() {
    let plain: Agent = Agent::new("A");
    let own = plain.clone().model_settings(ModelSettings::default());
    for (agent, name, reasoning, text) in [
        (&plain, "gpt-5.2", json!({"effort": "none"}), "low"),
        (&plain, "openai/gpt-5", json!({"effort": "low"}), "low"),
        (&plain, "gpt-5-mini", Value::Null, "low"),
        (&plain, "gpt-4.1", Value::Null, ""),
        (&own, "gpt-5.2", Value::Null, ""),
    ] {
        let script = Script::new([Reply::text("Hi.")]);
        let providers = Providers::new().endpoint(script.endpoint());
        let runner = Runner::new(agent).model(providers.model(name).unwrap());
        runner.run("Hello").await.unwrap();
        let body = &script.bodies()[0];
        assert_eq!(body["reasoning"], reasoning, "{name}");
        let verbosity = body["text"]["verbosity"].as_str().unwrap_or_default();
        assert_eq!(verbosity, text, "{name}");
    }
}

#[tokio::test]
async fn they_hold_over_chat_completions_too() {
    let agent: Agent = Agent::new("A");
    let script = Script::new([Reply::text("Hi.")]);
    let providers = Providers::new().endpoint(script.endpoint());
    let runner = Runner::new(&agent).model(providers.model("chat/gpt-5").unwrap());
    runner.run("Hello").await.unwrap();
    let body = &script.bodies()[0];
    assert_eq!(body["reasoning_effort"], "low");
    assert_eq!(body["verbosity"], "low");
}
