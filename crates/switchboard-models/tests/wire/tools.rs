//! Outputs of tools, and tools that providers run, in the requests of each protocol.

use fake_provider::Reply;
use serde_json::{Value, json};
use switchboard_core::model::ToolChoice;
use switchboard_core::tool::{OutputFile, OutputImage, OutputPart};
use switchboard_core::{Agent, ErrorKind, EventKind, ModelSettings, Runner, Tool, handoff, tool};
use switchboard_models::{
    CodeInterpreter, FileSearch, HostedMcp, ImageGeneration, ModelError, ModelErrorKind,
    OfflineModel, WebSearch,
};

use crate::{BOTH, Protocol, Script, ask, hello};

/// The output of a tool in the second request of a run, which the provider has validated.
fn sent_output(script: &Script, protocol: Protocol) -> Value {
    let body = &script.bodies()[1];
    match protocol {
        Protocol::Responses => body["input"][2]["output"].clone(),
        Protocol::Chat => body["messages"][2]["content"].clone(),
    }
}

#[tokio::test]
async fn images_and_files_of_tools_are_sent_as_far_as_the_protocol_carries_them() {
    let look: Tool = tool("look").run(|_ctx, (): ()| {
        vec![
            OutputPart::text("A map and a bill:"),
            OutputImage::url("https://x/map.png").into(),
            OutputImage::file_id("file_1").detail("high").into(),
            OutputFile::data("bill.txt", "data:text/plain;base64,MQ==").into(),
            OutputFile::url("https://x/bill.pdf").into(),
        ]
    });
    let agent = Agent::new("A").tool(look);
    for protocol in BOTH {
        let script = Script::new([Reply::call("c1", "look", "{}"), Reply::text("Nice.")]);
        let runner = Runner::new(&agent).model(script.model(protocol));
        runner.run("Show me").await.unwrap();
        let expected = match protocol {
            Protocol::Responses => json!([
                {"type": "input_text", "text": "A map and a bill:"},
                {"type": "input_image", "image_url": "https://x/map.png"},
                {"type": "input_image", "file_id": "file_1", "detail": "high"},
                {"type": "input_file", "file_data": "data:text/plain;base64,MQ==", "filename": "bill.txt"},
                {"type": "input_file", "file_url": "https://x/bill.pdf"},
            ]),
            Protocol::Chat => json!(
                "A map and a bill:\n[a picture was left out]\n[a picture was left out]\n\
                 [a file was left out]\n[a file was left out]"
            ),
        };
        assert_eq!(sent_output(&script, protocol), expected);
    }
}

/// An agent with one of each tool that the provider runs, beside a function and a handoff.
fn researcher() -> Agent {
    let billing: Agent = Agent::new("Billing");
    Agent::new("A")
        .tool(tool("lookup").run(|_ctx, (): ()| "42"))
        .tool(
            WebSearch::new()
                .context_size("low")
                .allowed_domains(["rust-lang.org"]),
        )
        .tool(tool("local").hosted(WebSearch::new().user_location("DE", Some("Berlin"))))
        .tool(FileSearch::new(["vs_1"]).max_results(5).include_results())
        .tool(CodeInterpreter::new().files(["file_1"]).include_outputs())
        .tool(
            ImageGeneration::new()
                .size("1024x1024")
                .quality("low")
                .format("webp"),
        )
        .tool(
            HostedMcp::new("docs", "https://x/mcp")
                .description("The documentation.")
                .allowed_tools(["search"])
                .headers([("X-Team", "blue")])
                .authorization("s3cret")
                .without_approval(),
        )
        .tool(HostedMcp::connector("mail", "connector_gmail").without_approval_of(["read"]))
        .handoff(handoff(&billing))
}

#[tokio::test]
async fn tools_that_the_provider_runs_are_sent_over_responses() {
    let script = Script::new([Reply::items([
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
               "action": {"type": "search", "query": "rust"}}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Found.", "annotations": []}]}),
    ])]);
    let agent = researcher();
    let runner = Runner::new(&agent).model(script.model(Protocol::Responses));
    let result = runner.run("Search").await.unwrap();
    assert_eq!(result.final_text(), "Found.");
    let body = &script.bodies()[0];
    let tools = body["tools"].as_array().unwrap();
    assert_eq!(tools[0]["name"], "lookup");
    assert_eq!(
        tools[1..8],
        [
            json!({"type": "web_search", "search_context_size": "low",
                   "filters": {"allowed_domains": ["rust-lang.org"]}}),
            json!({"type": "web_search",
                   "user_location": {"type": "approximate", "country": "DE", "city": "Berlin"}}),
            json!({"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 5}),
            json!({"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file_1"]}}),
            json!({"type": "image_generation", "size": "1024x1024", "quality": "low",
                   "output_format": "webp"}),
            json!({"type": "mcp", "server_label": "docs", "server_url": "https://x/mcp",
                   "server_description": "The documentation.", "allowed_tools": ["search"],
                   "headers": {"X-Team": "blue"}, "authorization": "s3cret",
                   "require_approval": "never"}),
            json!({"type": "mcp", "server_label": "mail", "connector_id": "connector_gmail",
                   "require_approval": {"never": {"tool_names": ["read"]}}}),
        ]
    );
    assert_eq!(tools[8]["name"], "transfer_to_billing");
    assert_eq!(
        body["include"],
        json!(["file_search_call.results", "code_interpreter_call.outputs"])
    );
}

#[tokio::test]
async fn a_tool_that_the_provider_runs_can_be_chosen_by_name() {
    for (name, choice) in [
        ("file_search", json!({"type": "file_search"})),
        ("docs", json!({"type": "mcp", "server_label": "docs"})),
        ("code_interpreter", json!({"type": "code_interpreter"})),
        ("lookup", json!({"type": "function", "name": "lookup"})),
    ] {
        let script = Script::new([Reply::text("Hi.")]);
        let agent = researcher().model_settings(ModelSettings {
            tool_choice: Some(ToolChoice::Named(name.into())),
            ..Default::default()
        });
        let runner = Runner::new(&agent).model(script.model(Protocol::Responses));
        runner.run("Search").await.unwrap();
        assert_eq!(script.bodies()[0]["tool_choice"], choice);
    }
}

#[tokio::test]
async fn only_responses_runs_tools_of_the_provider() {
    let script = Script::new([]);
    let agent = researcher();
    let chat = script.model(Protocol::Chat);
    let runner = Runner::new(&agent);
    for runner in [
        runner.clone().model(chat.clone()),
        runner.model(OfflineModel::new()),
    ] {
        let error = runner.run("Search").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(
            error
                .to_string()
                .contains("use a model over the Responses API"),
            "{error}"
        );
    }
    // A request of the application's own.
    let mut request = hello();
    request.hosted_tools = [WebSearch::new().into()].into();
    let error = ask(&chat, request, false).await.unwrap_err();
    let error: Box<ModelError> = error.downcast().unwrap();
    assert_eq!(error.kind(), ModelErrorKind::Unsupported);
    assert!(script.requests().is_empty());
}

#[test]
fn the_secrets_of_a_hosted_mcp_server_are_not_printed() {
    let docs = HostedMcp::new("docs", "https://x/mcp").authorization("s3cret");
    let agent: Agent = Agent::new("A").tool(docs.clone());
    for text in [
        format!("{docs:?}"),
        format!("{agent:?}"),
        format!("{:?}", agent.tools()[0].as_hosted()),
    ] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn free_form_tools_are_sent_and_answered_over_responses() {
    let format = json!({"type": "grammar", "syntax": "regex", "definition": "SELECT .*"});
    let query: Tool = tool("query")
        .description("Runs a query.")
        .text_format(format.clone())
        .run_text(|_ctx, text: String| format!("no rows for {text}"));
    let plain: Tool = tool("plain").run_text(|_ctx, text: String| text);
    let agent = Agent::new("A")
        .tool(query)
        .tool(plain)
        .model_settings(ModelSettings {
            tool_choice: Some(ToolChoice::Named("query".into())),
            ..Default::default()
        });
    let call = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "query",
                      "input": "SELECT \"a\""});
    let replies = || [Reply::items([call.clone()]), Reply::text("None.")];
    let plain = Script::new(replies());
    let runner = Runner::new(&agent).model(plain.model(Protocol::Responses));
    runner.run("How many?").await.unwrap();
    let streamed = Script::new(replies());
    let mut stream = Runner::new(&agent)
        .model(streamed.model(Protocol::Responses))
        .stream("How many?");
    let mut deltas = String::new();
    while let Some(event) = stream.next().await {
        if let EventKind::ArgumentsDelta {
            text,
            tool,
            call_id,
            ..
        } = event.kind
        {
            assert_eq!((&*tool, &*call_id), ("query", "c1"));
            deltas += &text;
        }
    }
    stream.finish().await.unwrap();
    assert_eq!(deltas, "SELECT \"a\"");
    for script in [plain, streamed] {
        let bodies = script.bodies();
        let tools = [
            json!({"type": "custom", "name": "query", "description": "Runs a query.",
                   "format": format}),
            json!({"type": "custom", "name": "plain"}),
        ];
        assert_eq!(bodies[0]["tools"], json!(tools));
        assert_eq!(
            bodies[0]["tool_choice"],
            json!({"type": "custom", "name": "query"})
        );
        let output = &bodies[1]["input"][2];
        assert_eq!(output["type"], "custom_tool_call_output");
        assert_eq!(output["output"], "no rows for SELECT \"a\"");
    }
    let chat = Script::new([]);
    let runner = Runner::new(&agent).model(chat.model(Protocol::Chat));
    let error = runner.run("How many?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(chat.requests().is_empty());
}
