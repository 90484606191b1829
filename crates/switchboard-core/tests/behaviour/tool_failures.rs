//! Tools that fail: the texts for the model, and the errors for the application.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::guardrail::ToolGuardrail;
use switchboard_core::hooks::{HookResult, RunHooks, ToolEnd};
use switchboard_core::run::UnknownTool;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::{ToolErrorKind, ToolFailure};
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, FinalOutput, RunContext, Runner, Tool, ToolContext, tool,
};

use crate::tool_arguments::Order;
use crate::{described, stored};

/// Hooks that write down the starts and ends of tools, and fail where they are told to.
#[derive(Default, Clone)]
pub(crate) struct Hooks {
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    pub(crate) fails_at_end_of: Option<&'static str>,
    pub(crate) fails_at_agent_end: bool,
}

impl Hooks {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }
}

impl RunHooks for Hooks {
    async fn on_tool_start(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        tool: &Tool,
        _call: &ToolContext,
    ) -> HookResult {
        self.note(format!("{} starts", tool.name()));
        Ok(())
    }

    async fn on_tool_end(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        tool: &Tool,
        _call: &ToolContext,
        end: &ToolEnd<'_>,
    ) -> HookResult {
        let error = end.error.map(ToString::to_string).unwrap_or_default();
        self.note(format!(
            "{} ends: {} {error}",
            tool.name(),
            end.output.text()
        ));
        match self.fails_at_end_of {
            Some(name) if name == tool.name() => Err("the audit log is down".into()),
            _ => Ok(()),
        }
    }

    async fn on_agent_end(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        _output: &FinalOutput,
    ) -> HookResult {
        if self.fails_at_agent_end {
            return Err("the audit log is down".into());
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_call_that_a_guardrail_rejects_has_neither_a_start_nor_an_end() {
    let no = ToolGuardrail::on_call("no", |_ctx| Some("Not that one."));
    let agent: Agent = Agent::new("A")
        .tool(tool("rejected").guardrail(no).run(|_ctx, (): ()| "never"))
        .tool(tool("allowed").run(|_ctx, (): ()| "done"));
    let hooks = Hooks::default();
    let model = ScriptedModel::new()
        .calls([("rejected", "{}"), ("allowed", "{}")])
        .say("ok");
    let runner = Runner::new(&agent).model(model).hooks(hooks.clone());
    runner.run("x").await.unwrap();
    assert_eq!(hooks.log(), ["allowed starts", "allowed ends: done "]);
}

#[tokio::test]
async fn hooks_streams_and_traces_get_the_error_and_the_model_its_text() {
    let agent: Agent = Agent::new("A")
        .tool(tool("broken").run(|_ctx, (): ()| Err::<String, _>("row 7 is locked")))
        .tool(tool("explained").run(|_ctx, (): ()| {
            Err::<String, _>(ToolFailure::new("The account is locked.").caused_by("row 7"))
        }));
    let hooks = Hooks::default();
    let model = ScriptedModel::new()
        .calls([("broken", "{}"), ("explained", "{}")])
        .say("ok");
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&agent)
        .model(model.clone())
        .hooks(hooks.clone())
        .tracer(tracer.clone());
    let mut stream = runner.stream("x");
    let mut errors = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::ToolEnded { error, .. } = event.kind {
            errors.push(error.unwrap());
        }
    }
    let private = "An error occurred while running the tool. Please try again.";
    assert_eq!(
        errors,
        ["row 7 is locked", "The account is locked. (row 7)"]
    );
    assert_eq!(
        hooks.log()[2..],
        [
            format!("broken ends: {private} row 7 is locked"),
            "explained ends: The account is locked. The account is locked. (row 7)".to_owned(),
        ]
    );
    assert_eq!(
        described(&model.requests()[1].input)[3..],
        [
            format!("output of call_1: {private}"),
            "output of call_2: The account is locked.".to_owned()
        ]
    );
    let spans = tracer.take();
    let functions = spans
        .iter()
        .filter(|span| matches!(span.data, SpanData::Function { .. }));
    let data: Vec<_> = functions
        .map(|span| span.error.clone().unwrap().data)
        .collect();
    assert_eq!(
        data[0],
        json!({"tool_name": "broken", "error": "row 7 is locked"})
    );
}

#[tokio::test]
async fn the_error_of_a_tool_is_not_traced_without_sensitive_data() {
    let agent: Agent = Agent::new("A")
        .tool(tool("broken").run(|_ctx, (): ()| Err::<String, _>("row 7 is locked")));
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().call("broken", "{}").say("ok"))
        .tracer(tracer.clone())
        .trace_sensitive_data(false);
    runner.run("x").await.unwrap();
    let spans = serde_json::to_string(&tracer.take()).unwrap();
    assert!(!spans.contains("row 7"), "{spans}");
    assert!(spans.contains("Error running tool (non-fatal)"), "{spans}");
}

#[tokio::test]
async fn a_failure_can_end_the_run() {
    let invalid = json!({"amount": "many"}).to_string();
    for (failing, arguments, kind, text) in [
        (
            tool("t")
                .fail_run()
                .run(|_ctx, _order: Order| Err::<String, _>("no network")),
            r#"{"amount": 1, "country": "CH"}"#,
            ErrorKind::Tool,
            "the tool \"t\" failed: no network",
        ),
        (
            tool("t").fail_run().run(|_ctx, _order: Order| "never"),
            invalid.as_str(),
            ErrorKind::ModelBehavior,
            "invalid JSON input for tool \"t\": ",
        ),
        (
            tool("t")
                .timeout(Duration::from_millis(1))
                .fail_run_on_timeout()
                .run(|_ctx, (): ()| std::future::pending::<String>()),
            "{}",
            ErrorKind::Tool,
            "the tool \"t\" failed: Tool 't' timed out after 0.001 seconds.",
        ),
    ] {
        let agent: Agent = Agent::new("A").tool(failing);
        let model = ScriptedModel::new().call("t", arguments);
        let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test]
async fn the_run_makes_the_texts_for_failed_and_unknown_tools() {
    let agent: Agent = Agent::new("A")
        .tool(tool("broken").run(|_ctx, (): ()| Err::<String, _>("row 7")))
        .tool(
            tool("own")
                .failure_text(|_ctx, _error| async { "Its own text." })
                .run(|_ctx, (): ()| Err::<String, _>("row 8")),
        );
    let model = ScriptedModel::new()
        .calls([("broken", "{}"), ("own", "{}"), ("missing", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .unknown_tool(UnknownTool::TellModel)
        .tool_error_text(|_ctx, message| async move {
            match message.error.kind() {
                ToolErrorKind::NotFound => Err("no text for this"),
                kind => Ok(Some(format!(
                    "{} {kind:?} ({})",
                    message.tool, message.call_id
                ))),
            }
        });
    runner.run("x").await.unwrap();
    assert_eq!(
        described(&model.requests()[1].input)[4..],
        [
            "output of call_1: broken Failed (call_1)",
            "output of call_2: Its own text.",
            "output of call_3: Tool 'missing' not found.",
        ]
    );
}

#[tokio::test]
async fn tools_that_block_run_side_by_side() {
    let barrier = Arc::new(std::sync::Barrier::new(3));
    let waits: Tool = tool("waits").run_blocking(move |_ctx, (): ()| {
        // All three must be here at once.
        barrier.wait();
        "met"
    });
    let agent = Agent::new("A").tool(waits);
    let model = ScriptedModel::new().calls([("waits", "{}"); 3]).say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(result.final_text(), "ok");
    let panics: Tool = tool("panics").run_blocking(|_ctx, (): ()| -> String { panic!("oh no") });
    let error = panics.call((), Value::Null).await.unwrap_err();
    assert_eq!(error.to_string(), "it panicked: oh no");
}

#[tokio::test]
async fn the_text_of_the_run_is_asked_for_time_outs_and_agent_tools_too() {
    let slow: Tool = tool("slow")
        .timeout(Duration::from_millis(5))
        .run(|_ctx, (): ()| std::future::pending::<String>());
    let expert: Agent = Agent::new("Expert").model(ScriptedModel::new().fail("overloaded"));
    let agent = Agent::new("A")
        .tool(slow)
        .tool(expert.as_tool("ask"))
        .model(
            ScriptedModel::new()
                .calls([("slow", "{}"), ("ask", r#"{"input": "x"}"#)])
                .say("ok"),
        );
    let runner = Runner::new(&agent).tool_error_text(|_ctx, message| {
        Some(format!(
            "{:?} {}",
            message.error.kind(),
            message.default_text
        ))
    });
    let result = runner.run("x").await.unwrap();
    let told = described(&result.to_input_list());
    assert_eq!(
        told[3..5],
        [
            "output of call_1: TimedOut Tool 'slow' timed out after 0.005 seconds.",
            "output of call_2: Failed The agent could not answer: its model failed. Try again later.",
        ]
    );
}

#[tokio::test]
async fn data_of_an_output_that_a_guardrail_replaced_is_dropped() {
    let hide = ToolGuardrail::on_output("hide", |_ctx, _output| Some("hidden"));
    let lookup: Tool = tool::<()>("lookup").guardrail(hide).run(|ctx, (): ()| {
        ctx.attach(json!({"ssn": "078-05-1120"}));
        "078-05-1120"
    });
    let agent = Agent::new("A").tool(lookup);
    let model = ScriptedModel::new().call("lookup", "{}").say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    assert!(!stored.contains("078-05-1120"), "{stored}");
}

#[tokio::test]
async fn a_stored_run_knows_that_a_tool_failed() {
    let agent: Agent =
        Agent::new("A").tool(tool("broken").run(|_ctx, (): ()| Err::<String, _>("no paper")));
    let failing = Hooks {
        fails_at_end_of: Some("broken"),
        ..Hooks::default()
    };
    let model = ScriptedModel::new().call("broken", "{}").say("ok");
    let runner = Runner::new(&agent).model(model);
    let error = runner.clone().hooks(failing).run("x").await.unwrap_err();
    let hooks = Hooks::default();
    let run = stored(error.run().unwrap());
    runner.hooks(hooks.clone()).resume(run).await.unwrap();
    assert!(hooks.log()[0].ends_with("no paper"), "{:?}", hooks.log());
}
