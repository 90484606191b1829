//! Outputs of tools: texts, images and files, data for the application; names of calls.

use serde_json::{Value, json};
use switchboard_core::agent::{ToolResult, ToolUseBehavior};
use switchboard_core::filters::{Pii, Redaction};
use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
use switchboard_core::items::{RunItem, RunItemKind, RunItems};
use switchboard_core::run::UnknownTool;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::{OutputFile, OutputImage, OutputPart, ToolOutput};
use switchboard_core::{
    Agent, EventKind, FinalOutput, Item, MemorySession, RunResult, Runner, Tool, handoff, tool,
};

use crate::stored;

/// A run in which the model calls a tool that returns this output.
async fn run_with(output: impl Into<ToolOutput>) -> RunResult {
    let output = output.into();
    let look: Tool = tool("look").run(move |_ctx, (): ()| output.clone());
    let agent = Agent::new("A").tool(look);
    let model = ScriptedModel::new().call("look", "{}").say("ok");
    Runner::new(&agent).model(model).run("x").await.unwrap()
}

fn output_of(result: &RunResult) -> RunItem {
    let mut items = result.new_items().iter();
    items
        .find(|made| made.kind().is_tool_output())
        .unwrap()
        .clone()
}

fn value_of(made: &RunItem) -> Value {
    match made.kind() {
        RunItemKind::ToolCallOutput { output } => output.clone(),
        other => panic!("{other:?} is no output"),
    }
}

#[tokio::test]
async fn texts_images_and_files_are_parts_of_the_output_item() {
    let all = vec![
        OutputPart::text("A map and a bill:"),
        OutputImage::url("https://x/map.png").detail("low").into(),
        OutputImage::file_id("file_1").into(),
        OutputFile::data("bill.txt", "data:text/plain;base64,MQ==").into(),
        OutputFile::url("https://x/bill.pdf").into(),
        OutputFile::file_id("file_2").name("bill.pdf").into(),
    ];
    let sent = json!([
        {"type": "input_text", "text": "A map and a bill:"},
        {"type": "input_image", "image_url": "https://x/map.png", "detail": "low"},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "file_data": "data:text/plain;base64,MQ==", "filename": "bill.txt"},
        {"type": "input_file", "file_url": "https://x/bill.pdf"},
        {"type": "input_file", "file_id": "file_2", "filename": "bill.pdf"},
    ]);
    let result = run_with(all.clone()).await;
    let made = output_of(&result);
    let item = json!({"call_id": "call_1", "output": sent, "type": "function_call_output"});
    assert_eq!(made.item().to_value(), Some(item));
    assert_eq!(
        made.item().output_text().as_deref(),
        Some("A map and a bill:")
    );
    // The value is what the tool returned, as the reference stores it.
    let value = value_of(&made);
    assert_eq!(value[1]["type"], "image");
    assert_eq!(
        serde_json::from_value::<Vec<OutputPart>>(value).unwrap(),
        all
    );
    for (alone, kind) in [
        (ToolOutput::from(OutputPart::text("x")), "input_text"),
        (OutputImage::url("https://x").into(), "input_image"),
        (OutputFile::url("https://x").into(), "input_file"),
    ] {
        let item = output_of(&run_with(alone).await).item().to_value().unwrap();
        assert_eq!(item["output"].as_array().unwrap().len(), 1);
        assert_eq!(item["output"][0]["type"], kind);
    }
}

#[tokio::test]
async fn an_empty_list_of_parts_is_the_text_of_an_empty_list() {
    let result = run_with(Vec::<OutputPart>::new()).await;
    assert_eq!(output_of(&result).item().output().as_deref(), Some("[]"));
}

#[tokio::test]
async fn json_that_looks_like_a_part_stays_json() {
    let result = run_with(json!({"type": "text", "text": "x"})).await;
    let item = output_of(&result);
    let text = r#"{"type":"text","text":"x"}"#;
    assert_eq!(item.item().output().as_deref(), Some(text));
}

#[test]
fn a_part_without_content_is_not_read() {
    for part in [
        json!({"type": "image", "detail": "low"}),
        json!({"type": "file", "filename": "a.txt"}),
        json!({"type": "text"}),
        json!({"type": "sound"}),
    ] {
        assert!(
            serde_json::from_value::<OutputPart>(part.clone()).is_err(),
            "{part}"
        );
    }
}

#[tokio::test]
async fn a_run_that_ends_at_an_output_of_parts_ends_with_its_text() {
    let look: Tool = tool("look").run(|_ctx, (): ()| {
        vec![
            "The map:".into(),
            OutputImage::url("https://x").into(),
            OutputPart::from(OutputFile::url("https://y").name("map.txt")),
        ]
    });
    let agent = Agent::new("A")
        .tool(look)
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool());
    let model = ScriptedModel::new().call("look", "{}");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(result.final_text(), "The map:\n[image]\n[file map.txt]");
}

#[tokio::test]
async fn parts_are_stored_with_a_run_and_sent_again() {
    let look: Tool = tool("look").run(|_ctx, (): ()| OutputImage::url("https://x"));
    let fails: Tool = tool("fails")
        .fail_run()
        .run(|_ctx, (): ()| Err::<String, _>("no".to_owned()));
    let works: Tool = tool("fails").run(|_ctx, (): ()| "yes");
    let model = ScriptedModel::new().calls([("look", "{}"), ("fails", "{}")]);
    let agent = Agent::new("A").tool(look.clone()).tool(fails);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    let run = stored(error.run().unwrap());
    let agent = Agent::new("A").tool(look).tool(works);
    let model = ScriptedModel::new().say("ok");
    let result = Runner::new(&agent).model(model).resume(run).await.unwrap();
    let parts = json!([{"type": "input_image", "image_url": "https://x"}]);
    assert_eq!(
        output_of(&result).item().to_value().unwrap()["output"],
        parts
    );
}

#[tokio::test]
async fn a_redacted_part_leaves_no_value_behind() {
    let look: Tool = tool("look").run(|_ctx, (): ()| {
        vec![
            OutputPart::text("ann@example.com"),
            OutputImage::url("https://x").into(),
        ]
    });
    let billing: Agent = Agent::new("B");
    let agent = Agent::new("A")
        .tool(look)
        .handoff(handoff(&billing).filter(Redaction::new().only([Pii::Email])));
    let model = ScriptedModel::new()
        .calls([("look", "{}"), ("transfer_to_b", "{}")])
        .say("ok");
    let result = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    let request = model.requests().pop().unwrap();
    let outputs: Vec<&Item> = request
        .input
        .iter()
        .filter(|item| item.kind().is_output())
        .collect();
    let parts = outputs[0].to_value().unwrap();
    assert_eq!(parts["output"][1]["type"], "input_image");
    assert!(
        !format!("{:?}", request.input).contains("ann@"),
        "{outputs:?}"
    );
    // The run's own record is not redacted.
    assert!(value_of(&output_of(&result)).to_string().contains("ann@"));
    let made = output_of(&result);
    let redacted = Redaction::new()
        .only([Pii::Email])
        .item(made.item())
        .unwrap();
    assert!(
        !value_of(&made.with_item(redacted))
            .to_string()
            .contains("ann@")
    );
}

/// A tool that attaches data to its output.
fn attaching() -> Tool {
    tool::<()>("look").run(|ctx, (): ()| {
        ctx.attach("replaced");
        ctx.attach(json!({"secret": [7]}));
        assert_eq!(ctx.attached(), Some(json!({"secret": [7]})));
        "seven"
    })
}

#[tokio::test]
async fn attached_data_is_with_the_output_and_no_model_or_session_gets_it() {
    let agent = Agent::new("A").tool(attaching());
    let model = ScriptedModel::new().call("look", "{}").say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let mut stream = runner.stream("x");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    let result = stream.finish().await.unwrap();
    let data = json!({"secret": [7]});
    assert_eq!(output_of(&result).data(), Some(&data));
    assert_eq!(
        result
            .new_items()
            .iter()
            .filter(|made| made.data().is_some())
            .count(),
        1
    );
    let ended = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolEnded { data, .. } => data.clone(),
        _ => None,
    });
    assert_eq!(ended, Some(data.clone()));
    let items = session.items();
    assert_eq!(items.len(), 4);
    for hidden in [
        format!("{:?}", model.requests()),
        format!("{items:?}"),
        format!("{:?}", result.to_input_list()),
    ] {
        assert!(!hidden.contains("secret"), "{hidden}");
    }
    // In the reference's JSON, and stored with the run.
    let json = serde_json::to_value(output_of(&result)).unwrap();
    assert_eq!(json["custom_data"], data);
    let read: RunItem = serde_json::from_value(json).unwrap();
    assert_eq!(read.data(), Some(&data));
    let run = stored(result.run());
    let kept: Vec<&Value> = run.new_items().iter().filter_map(RunItem::data).collect();
    assert_eq!(kept, [&data]);
}

#[tokio::test]
async fn attached_data_survives_failures_beside_the_tool_and_of_the_tool() {
    let torn: Tool = tool::<()>("torn").run(|ctx, (): ()| {
        ctx.attach(1);
        Err::<String, _>("no".to_owned())
    });
    let fails: Tool = tool("fails")
        .fail_run()
        .run(|_ctx, (): ()| Err::<String, _>("no".to_owned()));
    let works: Tool = tool::<()>("fails").run(|ctx, (): ()| {
        ctx.attach(Value::Null);
        "yes"
    });
    let base = Agent::new("A").tool(attaching()).tool(torn);
    let model = ScriptedModel::new().calls([("look", "{}"), ("torn", "{}"), ("fails", "{}")]);
    let runner = Runner::new(&base.clone().tool(fails)).model(model);
    let run = stored(runner.run("x").await.unwrap_err().run().unwrap());
    let runner = Runner::new(&base.tool(works)).model(ScriptedModel::new().say("ok"));
    let result = runner.resume(run).await.unwrap();
    let outputs = result.new_items().iter();
    let data: Vec<Option<&Value>> = outputs
        .filter(|made| made.kind().is_tool_output())
        .map(RunItem::data)
        .collect();
    assert_eq!(data, [Some(&json!({"secret": [7]})), Some(&json!(1)), None]);
}

#[tokio::test]
async fn the_function_that_decides_after_tools_sees_attached_data() {
    let agent = Agent::new("A")
        .tool(attaching())
        .tool_use_behavior(ToolUseBehavior::decide(|_ctx, results: Vec<ToolResult>| {
            Some(FinalOutput::Json(results[0].data.clone().unwrap()))
        }));
    let model = ScriptedModel::new().call("look", "{}");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(result.final_text(), r#"{"secret":[7]}"#);
}

#[tokio::test]
async fn data_beside_an_output_that_a_guardrail_rejected_is_not_kept() {
    let agent = Agent::new("A")
        .tool(attaching())
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(OutputGuardrail::new(
            "no",
            |_ctx, _agent, _output: FinalOutput| OutputVerdict::trip_if(true, Value::Null),
        ));
    let model = ScriptedModel::new().call("look", "{}");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    let json = serde_json::to_string(error.run().unwrap()).unwrap();
    assert!(!json.contains("secret"), "{json}");
}

/// The tools of the calls of a run: title, description, origin.
fn called(items: &RunItems) -> Vec<Value> {
    let calls = items.iter().filter(|made| made.kind().is_tool_call());
    let calls = calls.map(|made| match made.tool() {
        Some(tool) => serde_json::to_value(tool).unwrap(),
        None => Value::Null,
    });
    calls.collect()
}

#[tokio::test]
async fn calls_name_the_tool_for_user_interfaces() {
    let look: Tool = tool("look")
        .title("Looking")
        .description("Looks.")
        .run(|_ctx, (): ()| "seen");
    let plain: Tool = tool("plain").run(|_ctx, (): ()| "");
    let translator: Agent = Agent::new("Translator").model(ScriptedModel::new().say("oui"));
    let agent = Agent::new("A").tool(look).tool(plain).tool(
        translator
            .as_tool("ask")
            .title("Translation")
            .description("Translates."),
    );
    let item = |json: Value| Item::from_value(&json).unwrap();
    let listed = |server: &str, tool: Value| {
        item(
            json!({"type": "mcp_list_tools", "id": format!("l_{server}"), "server_label": server,
                    "tools": [{"name": "other"}, tool]}),
        )
    };
    let mcp_call = |id: &str, server: &str| {
        item(
            json!({"type": "mcp_call", "id": id, "server_label": server, "name": "find",
                    "arguments": "{}", "status": "completed"}),
        )
    };
    let web = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let model = ScriptedModel::new()
        .calls([
            ("look", "{}"),
            ("plain", "{}"),
            ("ask", r#"{"input":"yes"}"#),
            ("unknown", "{}"),
        ])
        .reply([
            item(web),
            listed(
                "docs",
                json!({"name": "find", "title": "Finding", "description": "Finds."}),
            ),
            mcp_call("m_1", "docs"),
        ])
        .reply([
            mcp_call("m_2", "docs"),
            listed(
                "shop",
                json!({"name": "find", "annotations": {"title": "Shop"}}),
            ),
            mcp_call("m_3", "shop"),
            mcp_call("m_4", "elsewhere"),
        ])
        .say("ok");
    let agent = agent.model(model);
    let runner = Runner::new(&agent).unknown_tool(UnknownTool::TellModel);
    let result = runner.run("x").await.unwrap();
    let expected = [
        json!({"title": "Looking", "description": "Looks.", "origin": {"type": "function"}}),
        json!({"origin": {"type": "function"}}),
        json!({"title": "Translation", "description": "Translates.",
               "origin": {"type": "agent_as_tool", "agent_name": "Translator"}}),
        Value::Null,
        json!({"origin": {"type": "provider"}}),
        json!({"title": "Finding", "description": "Finds.",
               "origin": {"type": "mcp", "mcp_server_name": "docs"}}),
        json!({"title": "Finding", "description": "Finds.",
               "origin": {"type": "mcp", "mcp_server_name": "docs"}}),
        json!({"title": "Shop", "origin": {"type": "mcp", "mcp_server_name": "shop"}}),
        json!({"origin": {"type": "mcp", "mcp_server_name": "elsewhere"}}),
    ];
    assert_eq!(called(result.new_items()), expected);
    assert_eq!(called(stored(result.run()).new_items()), expected);
    let call = &result.new_items()[0];
    let json = serde_json::to_value(call).unwrap();
    assert_eq!(json["title"], "Looking");
    assert_eq!(json["description"], "Looks.");
    assert_eq!(json["tool_origin"], json!({"type": "function"}));
    let read: RunItem = serde_json::from_value(json).unwrap();
    assert_eq!(read.tool(), call.tool());
    assert_eq!(call.with_item(call.item().clone()).tool(), call.tool());
}
