//! Tools that a model calls with text instead of JSON.

use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::items::ItemKind;
use switchboard_core::model::ToolInput;
use switchboard_core::run::{HandoffPolicy, UnknownTool};
use switchboard_core::testing::{Report, ScriptedModel};
use switchboard_core::tool::OutputImage;
use switchboard_core::{
    Agent, ErrorKind, EventKind, Item, Model, ModelRequest, ModelResponse, Runner, Tool, handoff,
    tool,
};

fn shout() -> Tool {
    tool("shout")
        .description("Shouts.")
        .text_format(json!({"type": "text"}))
        .run_text(|_ctx, text: String| text.to_uppercase())
}

#[tokio::test]
async fn a_free_form_tool_gets_the_text_and_answers_its_call() {
    let agent = Agent::new("A").tool(shout());
    // The text of the second call is JSON, and stays text.
    let model = ScriptedModel::new()
        .reply([
            Item::custom_tool_call("c1", "shout", "he said \"hi\""),
            Item::custom_tool_call("c2", "shout", "{\"a\":1}"),
        ])
        .say("ok");
    let mut stream = Runner::new(&agent).model(model.clone()).stream("x");
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::ToolStarted { arguments, .. } = event.kind {
            told.push(arguments);
        }
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(told, [json!("he said \"hi\""), json!("{\"a\":1}")]);
    let spec = &model.requests()[0].tools[0];
    let format = Some(json!({"type": "text"}).into());
    assert_eq!(spec.input, ToolInput::Text { format });
    let sent: Vec<Value> = model.requests()[1]
        .input
        .iter()
        .filter_map(Item::to_value)
        .collect();
    assert_eq!(
        sent[3..],
        [
            json!({"call_id": "c1", "output": "HE SAID \"HI\"", "type": "custom_tool_call_output"}),
            json!({"call_id": "c2", "output": "{\"A\":1}", "type": "custom_tool_call_output"}),
        ]
    );
    let report = Report::of(&result);
    assert_eq!(report.tools()[1].arguments, json!("{\"a\":1}"));
    let called = result.new_items()[0].tool().unwrap();
    assert_eq!(called.description.as_deref(), Some("Shouts."));
}

#[tokio::test]
async fn a_call_that_does_not_fit_the_tool_is_a_mistake_of_the_model() {
    let billing: Agent = Agent::new("B");
    let agent = Agent::new("A")
        .tool(shout())
        .tool(tool("lookup").run(|_ctx, (): ()| "42"))
        .handoff(handoff(&billing));
    let without_input = r#"{"type":"custom_tool_call","call_id":"c","name":"shout"}"#;
    for (call, problem) in [
        (
            Item::custom_tool_call("c", "lookup", ""),
            "custom_tool_call",
        ),
        (
            Item::custom_tool_call("c", "transfer_to_b", ""),
            "custom_tool_call",
        ),
        (
            Item::function_call("c", "shout", "{}"),
            "neither a tool nor a handoff",
        ),
        (Item::from_json(without_input).unwrap(), "without an input"),
    ] {
        let model = ScriptedModel::new().reply([call.clone()]);
        let error = Runner::new(&agent)
            .handoff_policy(HandoffPolicy::reference())
            .model(model)
            .run("x")
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ModelBehavior);
        assert!(error.to_string().contains(problem), "{error}");
    }
    let unknown = Item::custom_tool_call("c", "unknown", "");
    let model = ScriptedModel::new().reply([unknown]).say("ok");
    let runner = Runner::new(&agent)
        .handoff_policy(HandoffPolicy::reference())
        .model(model)
        .unknown_tool(UnknownTool::TellModel);
    let result = runner.run("x").await.unwrap();
    let output = result.new_items()[1].item();
    assert_eq!(output.kind(), ItemKind::CustomToolCallOutput);
}

#[tokio::test]
async fn a_call_id_stands_for_one_text() {
    let agent = Agent::new("A").tool(shout());
    let call = |text| Item::custom_tool_call("c", "shout", text);
    let model = ScriptedModel::new()
        .reply([call("a")])
        .reply([call("a")])
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(result.new_items().len(), 3);
    let model = ScriptedModel::new().reply([call("a")]).reply([call("b")]);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.to_string().contains("two different calls"), "{error}");
}

#[tokio::test]
async fn a_free_form_tool_may_return_parts_and_fail() {
    let look: Tool = tool("look").run_text(|_ctx, text: String| match &*text {
        "map" => Ok(OutputImage::url("https://x")),
        _ => Err("no".to_owned()),
    });
    let agent = Agent::new("A").tool(look);
    let calls = ["map", "other"].map(|text| Item::custom_tool_call(text, "look", text));
    let model = ScriptedModel::new().reply(calls).say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let output = |at: usize| result.new_items()[at].item().to_value().unwrap();
    assert_eq!(output(2)["output"][0]["type"], "input_image");
    assert!(
        output(3)["output"]
            .as_str()
            .unwrap()
            .contains("error occurred")
    );
}

#[tokio::test]
async fn a_free_form_tool_can_be_called_in_a_unit_test() {
    let output = shout().call((), "quiet").await.unwrap();
    assert_eq!(output.text(), "QUIET");
}

struct Plain;

impl Model for Plain {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(ModelResponse::new([]))
    }
}

#[tokio::test]
async fn a_model_that_knows_functions_only_is_not_asked() {
    let agent = Agent::new("A").tool(shout());
    let error = Runner::new(&agent).model(Plain).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(
        error
            .to_string()
            .contains("\"shout\" of agent \"A\" is a free-form tool"),
        "{error}"
    );
}

#[test]
fn the_format_is_part_of_the_fingerprint() {
    let fingerprint = |tool: Tool| {
        let mut request = ModelRequest::new(vec![Item::user("x")]);
        request.tools = [tool.spec().clone()].into();
        request.fingerprint()
    };
    let plain: Tool = tool("shout")
        .description("Shouts.")
        .run_text(|_ctx, text: String| text);
    assert_ne!(fingerprint(shout()), fingerprint(plain));
}
