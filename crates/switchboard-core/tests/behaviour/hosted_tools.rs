//! Tools that the provider runs.

use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ToolChoice, ToolKind};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::{HostedTool, ToolOrigin};
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, Item, Model, ModelRequest, ModelResponse, ModelSettings, Runner, Team, Tool,
    tool,
};

fn item(json: Value) -> Item {
    Item::from_value(&json).unwrap()
}

fn search_call() -> Item {
    item(json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}))
}

fn names(request: &ModelRequest) -> Vec<&str> {
    request.hosted_tools.iter().map(HostedTool::name).collect()
}

struct App {
    may_search: bool,
}

#[tokio::test]
async fn a_hosted_tool_is_offered_as_configured_while_its_condition_holds() {
    let config = json!({"type": "web_search_preview", "search_context_size": "low"});
    let search = tool::<App>("search")
        .title("Web search")
        .description("Searches.")
        .enabled_if(|ctx, _agent| ctx.may_search)
        .hosted(config.clone());
    assert_eq!(search.as_hosted().unwrap().config(), &config);
    let draw = Tool::hosted(HostedTool::new(json!({"type": "image_generation"})));
    let agent = Agent::<App>::new("A")
        .tool(search)
        .tool(draw)
        .tool(tool("lookup").run(|_ctx, (): ()| "42"));
    for may_search in [true, false] {
        let model =
            ScriptedModel::new().reply([search_call(), Item::output_message("m", "Found.")]);
        let runner = Runner::new(&agent)
            .model(model.clone())
            .context(App { may_search });
        let tracer = MemoryTracer::new();
        let result = runner.tracer(tracer.clone()).run("x").await.unwrap();
        assert_eq!(result.final_text(), "Found.");
        let request = &model.requests()[0];
        let (hosted, title) = if may_search {
            (vec!["search", "image_generation"], Some("Web search"))
        } else {
            (vec!["image_generation"], None)
        };
        assert_eq!(names(request), hosted);
        assert_eq!(request.tools.len(), 1);
        let called = result.new_items()[0].tool().unwrap();
        assert_eq!(
            (called.title.as_deref(), &called.origin),
            (title, &ToolOrigin::Provider)
        );
        let spans = tracer.spans();
        let traced = spans.iter().find_map(|span| match &span.data {
            SpanData::Agent { tools, .. } => Some(tools.iter().map(|name| &**name).collect()),
            _ => None,
        });
        let traced: Vec<&str> = traced.unwrap();
        assert_eq!(traced, [&["lookup"], &*hosted].concat());
    }
}

#[tokio::test]
async fn the_name_of_a_hosted_tool_collides_with_no_other() {
    let agent: Agent = Agent::new("A")
        .tool(tool("web_search").run(|_ctx, (): ()| "mine"))
        .tool(Tool::hosted(json!({"type": "web_search"})))
        .tool(Tool::hosted(
            json!({"type": "web_search", "search_context_size": "low"}),
        ));
    assert!(
        Team::new()
            .agent(agent.clone())
            .build()
            .unwrap()
            .check()
            .is_empty()
    );
    let model = ScriptedModel::new().call("web_search", "{}").say("ok");
    let result = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    assert_eq!(names(&model.requests()[0]), ["web_search", "web_search"]);
    let output = result.new_items()[1].item().output().unwrap().into_owned();
    assert_eq!(output, "mine");
}

#[tokio::test]
async fn a_call_of_a_hosted_tool_as_if_it_were_a_function_is_a_mistake_of_the_model() {
    let agent: Agent = Agent::new("A").tool(Tool::hosted(json!({"type": "web_search"})));
    let model = ScriptedModel::new().call("web_search", "{}");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModelBehavior);
}

/// A model of the application that knows functions only.
struct Plain;

impl Model for Plain {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(ModelResponse::new([Item::output_message("m", "asked")]))
    }

    fn name(&self) -> &str {
        "plain"
    }
}

#[tokio::test]
async fn a_model_that_cannot_run_hosted_tools_is_not_asked() {
    assert!(!Plain.accepts_tools(ToolKind::Hosted));
    let agent: Agent = Agent::new("A").tool(Tool::hosted(json!({"type": "web_search"})));
    let runner = Runner::new(&agent).model(Plain);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let message = error.to_string();
    assert!(
        message.contains(
            "the tool \"web_search\" of agent \"A\" is run by the provider, and the model \
             \"plain\" cannot do that"
        ),
        "{message}"
    );
    // A filter on model calls may take them out.
    let runner = runner.model_filter(|_ctx, _agent, mut request: ModelRequest| {
        request.hosted_tools = [].into();
        request
    });
    assert_eq!(runner.run("x").await.unwrap().final_text(), "asked");
}

#[tokio::test]
async fn a_hosted_tool_needs_a_type() {
    for config in [
        json!("web_search"),
        json!({"name": "x"}),
        json!({"type": 7}),
    ] {
        let agent: Agent = Agent::new("A").tool(tool("t").hosted(config));
        let model = ScriptedModel::new().say("ok");
        let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("with a \"type\""), "{error}");
    }
}

#[tokio::test]
async fn a_hosted_tool_is_not_called_by_the_application_and_shows_no_secrets() {
    let hosted = HostedTool::new(json!({"type": "mcp", "authorization": "s3cret"})).named("docs");
    assert_eq!(format!("{hosted:?}"), "HostedTool(docs: mcp)");
    let tool: Tool = hosted.clone().into();
    let error = tool.call((), json!({})).await.unwrap_err();
    assert_eq!(error.cause().to_string(), "the provider runs this tool");
    let mut request = ModelRequest::new(vec![Item::user("x")]);
    let before = request.fingerprint();
    request.hosted_tools = [hosted].into();
    assert!(!format!("{request:?}").contains("s3cret"));
    assert_ne!(request.fingerprint(), before);
}

#[tokio::test]
async fn a_forced_choice_is_reset_after_a_hosted_tool_ran() {
    let agent: Agent = Agent::new("A")
        .tool(Tool::hosted(json!({"type": "web_search"})))
        .model_settings(ModelSettings {
            tool_choice: Some(ToolChoice::Named("web_search".into())),
            ..Default::default()
        });
    let model = ScriptedModel::new().reply([search_call()]).say("Found.");
    let runner = Runner::new(&agent).model(model.clone());
    assert_eq!(runner.run("x").await.unwrap().final_text(), "Found.");
    let choices = model.requests();
    let choices: Vec<bool> = choices
        .iter()
        .map(|request| request.settings.tool_choice.is_some())
        .collect();
    assert_eq!(choices, [true, false]);
}
