//! Tools that fail: what the model is told, what the application gets, and what is kept of the tools
//! that ran beside them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::hooks::{HookResult, RunHooks, ToolEnd};
use switchboard_core::run::UnknownTool;
use switchboard_core::stream::ItemEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::{ToolErrorKind, ToolFailure};
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, FinalOutput, Item, MemorySession, RunContext, Runner, Session,
    Tool, ToolContext, tool,
};

use crate::{described, stored};

/// Hooks that write down the starts and ends of tools, and fail where they are told to.
#[derive(Default, Clone)]
struct Hooks {
    log: Arc<Mutex<Vec<String>>>,
    fails_at_end_of: Option<&'static str>,
    fails_at_agent_end: bool,
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

/// A tool that counts its calls.
fn refund(calls: &Arc<AtomicUsize>) -> Tool {
    let calls = calls.clone();
    tool("refund").run(move |_ctx, (): ()| {
        calls.fetch_add(1, Ordering::SeqCst);
        "refunded"
    })
}

fn reasoning(id: &str) -> Item {
    let json = json!({"type": "reasoning", "id": id, "summary": []});
    Item::from_json(json.to_string()).unwrap()
}

const KEPT: [&str; 4] = [
    "user: x",
    "reasoning",
    "call refund",
    "output of c1: refunded",
];

/// Where the hook on the end of the other tool fails, that tool has completed as well.
const BOTH_KEPT: [&str; 7] = [
    "user: x",
    "reasoning",
    "call refund",
    "reasoning",
    "call other",
    "output of c1: refunded",
    "output of c2: done",
];

/// The items of a session in short.
async fn in_session(session: &MemorySession) -> Vec<String> {
    let items = session.load(None).await.unwrap();
    let mut described = described(&items);
    for text in &mut described {
        if text.contains("\"reasoning\"") {
            *text = "reasoning".to_owned();
        }
    }
    described
}

#[tokio::test]
async fn a_tool_that_completed_is_kept_whatever_happens_to_its_sibling() {
    let on_call = ToolGuardrail::on_call("no", |_ctx| ToolVerdict::trip("no"));
    let on_output = ToolGuardrail::on_output("no", |_ctx, _output| ToolVerdict::trip("no"));
    let plain = tool::<()>("other");
    for (what, other, hooks) in [
        (
            "guardrail on the call",
            plain.guardrail(on_call),
            Hooks::default(),
        ),
        (
            "guardrail on the output",
            tool("other").guardrail(on_output),
            Hooks::default(),
        ),
        (
            "hook",
            tool("other"),
            Hooks {
                fails_at_end_of: Some("other"),
                ..Hooks::default()
            },
        ),
        (
            "tool that ends the run",
            tool("other").fail_run(),
            Hooks::default(),
        ),
    ] {
        let calls = Arc::new(AtomicUsize::new(0));
        let ends_run = what == "tool that ends the run";
        let other = other.run(move |_ctx, (): ()| async move {
            // The sibling completes first.
            tokio::time::sleep(Duration::from_millis(5)).await;
            if ends_run {
                Err("no network")
            } else {
                Ok("done")
            }
        });
        let agent = Agent::new("A").tool(refund(&calls)).tool(other);
        for is_streamed in [false, true] {
            let what = format!("{what}, streamed: {is_streamed}");
            calls.store(0, Ordering::SeqCst);
            let model = ScriptedModel::new().reply([
                reasoning("r1"),
                Item::function_call("c1", "refund", "{}"),
                reasoning("r2"),
                Item::function_call("c2", "other", "{}"),
            ]);
            let session = MemorySession::new();
            let runner = Runner::new(&agent)
                .model(model)
                .hooks(hooks.clone())
                .session(&session);
            let error = if is_streamed {
                let mut stream = runner.stream("x");
                let mut outputs = Vec::new();
                while let Some(event) = stream.next().await {
                    if let EventKind::Item {
                        name: ItemEvent::ToolOutput,
                        item,
                        ..
                    } = event.kind
                    {
                        outputs.push(item.item().output().unwrap().into_owned());
                    }
                }
                assert_eq!(outputs[0], "refunded", "{what}");
                stream.finish().await.unwrap_err()
            } else {
                runner.run("x").await.unwrap_err()
            };
            let expected: &[&str] = if what.starts_with("hook") {
                &BOTH_KEPT
            } else {
                &KEPT
            };
            assert_eq!(in_session(&session).await, expected, "{what}");
            let kept = error.run().unwrap().completed_items();
            assert_eq!(kept.len(), expected.len() - 1, "{what}: {kept:?}");

            // The next run on the session sees it.
            let model = ScriptedModel::new().say("ok");
            let next = Runner::new(&agent).model(model.clone()).session(&session);
            next.run("go on").await.unwrap();
            let seen = described(&model.requests()[0].input);
            assert!(
                seen.contains(&"output of c1: refunded".to_owned()),
                "{what}: {seen:?}"
            );
            assert_eq!(calls.load(Ordering::SeqCst), 1, "{what}");
        }
    }
}

#[tokio::test]
async fn a_run_that_is_resumed_after_a_failure_stores_a_completed_tool_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let once = ToolGuardrail::on_output("once", move |_ctx, _output| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => ToolVerdict::trip("no"),
            _ => ToolVerdict::Allow,
        }
    });
    let other = tool("other").guardrail(once).run(|_ctx, (): ()| "done");
    let agent = Agent::new("A").tool(refund(&calls)).tool(other);
    let model = ScriptedModel::new()
        .reply([
            Item::function_call("c1", "refund", "{}"),
            Item::function_call("c2", "other", "{}"),
        ])
        .say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    let run = stored(error.run().unwrap());
    let result = runner.resume(run).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(
        in_session(&session).await,
        [
            "user: x",
            "call refund",
            "output of c1: refunded",
            "call other",
            "output of c2: done",
            "assistant: ok"
        ]
    );
    assert_eq!(
        described(&result.to_input_list())[1..5],
        [
            "call refund",
            "call other",
            "output of c1: refunded",
            "output of c2: done"
        ]
    );
}

#[tokio::test]
async fn tools_are_kept_if_the_last_hook_fails() {
    let calls = Arc::new(AtomicUsize::new(0));
    let agent = Agent::new("A")
        .tool(refund(&calls))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool());
    let hooks = Hooks {
        fails_at_agent_end: true,
        ..Hooks::default()
    };
    let session = MemorySession::new();
    let model = ScriptedModel::new().call("refund", "{}");
    let runner = Runner::new(&agent).model(model).hooks(hooks.clone());
    runner.session(&session).run("x").await.unwrap_err();
    assert_eq!(
        in_session(&session).await,
        ["user: x", "call refund", "output of call_1: refunded"]
    );

    // A tool that the provider ran, beside the final message.
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let search = Item::from_json(search.to_string()).unwrap();
    let model = ScriptedModel::new().reply([search, Item::output_message("m1", "Found it.")]);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).hooks(hooks);
    runner.session(&session).run("x").await.unwrap_err();
    let kept = in_session(&session).await;
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[1].contains("web_search_call"), "{kept:?}");
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

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed")]
struct Order {
    #[schemars(range(min = 1, max = 9))]
    amount: u32,
    gift: Option<bool>,
    #[schemars(regex(pattern = "^[A-Z]{2}$"))]
    country: String,
}

fn order() -> Tool {
    tool("order").run(|_ctx, order: Order| format!("{order:?}"))
}

#[tokio::test]
async fn arguments_are_an_object_within_the_limits_of_its_fields() {
    let cases = [
        (json!([5]), "it is not a JSON object"),
        (json!(5), "it is not a JSON object"),
        (
            json!({"amount": true, "gift": "maybe"}),
            "at /country: it is missing; at /amount: expected integer, got boolean; \
             at /gift: expected null or boolean, got string",
        ),
        (
            json!({"amount": 10, "country": "CH"}),
            "at /amount: value is greater than the maximum of 9",
        ),
        (
            json!({"amount": 1, "country": "Switzerland"}),
            "at /country: value does not match \"^[A-Z]{2}$\"",
        ),
    ];
    for (arguments, expected) in cases {
        let error = order().call((), arguments).await.unwrap_err();
        assert_eq!(error.kind(), ToolErrorKind::InvalidArguments);
        let mut problems: Vec<_> = error.to_string().split("; ").map(str::to_owned).collect();
        let mut expected: Vec<_> = expected.split("; ").map(str::to_owned).collect();
        problems.sort();
        expected.sort();
        assert_eq!(problems, expected);
    }
}

#[tokio::test]
async fn numbers_and_booleans_may_be_sent_as_text() {
    let sent = json!({"amount": "5", "gift": "true", "country": "CH"});
    let output = order().call((), sent.clone()).await.unwrap();
    assert_eq!(
        output.text(),
        "Order { amount: 5, gift: Some(true), country: \"CH\" }"
    );
    let exact: Tool = tool("order")
        .coerce_arguments(false)
        .run(|_ctx, order: Order| format!("{order:?}"));
    let error = exact.call((), sent).await.unwrap_err();
    assert!(
        error.to_string().contains("expected integer, got string"),
        "{error}"
    );
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
async fn an_error_quotes_a_bounded_piece_of_what_a_model_sent() {
    let agent: Agent = Agent::new("A").tool(order());
    let name = "x".repeat(10_000_000);
    let model = ScriptedModel::new().call(&name, "{}");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.to_string().len() < 1_000);
    let field = json!({"amount": 1, "country": "CH", name: {}});
    let strict: Tool = tool("t").run_checked(
        json!({"type": "object", "additionalProperties": false}),
        |_ctx, _arguments| "never",
    );
    let error = strict.call((), field).await.unwrap_err();
    assert!(error.to_string().len() < 1_000);
}

/// A schema of twelve levels, each a choice of ten references to the next.
fn ladder() -> Value {
    let mut levels = serde_json::Map::new();
    for level in 0..12 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        levels.insert(format!("l{level}"), json!({"anyOf": vec![next; 10]}));
    }
    levels.insert("l12".to_owned(), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": levels})
}

#[tokio::test]
async fn a_schema_that_takes_too_much_work_is_refused() {
    let endless: Tool = tool("endless").run_checked(ladder(), |_ctx, _arguments| "never");
    let agent = Agent::new("A").tool(endless);
    let model = ScriptedModel::new().call("endless", r#"{"x": "no"}"#);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert!(error.to_string().contains("1000000 steps"), "{error}");
}

#[tokio::test]
async fn a_tool_search_that_the_provider_completed_is_kept() {
    let item = |json: Value| Item::from_json(json.to_string()).unwrap();
    let fails: Tool = tool("fails")
        .fail_run()
        .run(|_ctx, (): ()| Err::<String, _>("no"));
    let agent = Agent::new("A").tool(fails);
    let model = ScriptedModel::new().reply([
        item(
            json!({"type": "tool_search_call", "id": "tc", "call_id": "s", "status": "completed",
                    "execution": "server", "arguments": {}}),
        ),
        item(
            json!({"type": "tool_search_output", "id": "to", "call_id": "s",
                    "status": "completed", "execution": "server", "tools": []}),
        ),
        Item::function_call("c", "fails", "{}"),
    ]);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("x").await.unwrap_err();
    assert_eq!(
        session.items().len(),
        3,
        "the input, the call and its output"
    );
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
            "output of call_2: Failed An error occurred while running the tool. Please try again.",
        ]
    );
}

#[tokio::test]
async fn reasoning_before_several_calls_is_kept_with_those_that_completed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let fails: Tool = tool("fails").fail_run().run(|_ctx, (): ()| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Err::<String, _>("no")
    });
    let agent = Agent::new("A").tool(fails).tool(refund(&calls));
    let model = ScriptedModel::new().reply([
        reasoning("r1"),
        Item::function_call("c0", "fails", "{}"),
        Item::function_call("c1", "refund", "{}"),
    ]);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("x").await.unwrap_err();
    assert_eq!(in_session(&session).await, KEPT);
}

#[tokio::test]
async fn a_guardrail_sees_the_numbers_that_the_tool_reads() {
    let limit = ToolGuardrail::on_call("limit", |ctx: ToolContext| {
        let arguments: Value = serde_json::from_str(ctx.arguments()).unwrap();
        let is_high = arguments["amount"]
            .as_u64()
            .is_some_and(|amount| amount > 5);
        is_high.then_some("Too much.")
    });
    let order: Tool = tool("order")
        .guardrail(limit)
        .run(|_ctx, order: Order| format!("{order:?}"));
    let agent = Agent::new("A").tool(order);
    let model = ScriptedModel::new()
        .call("order", r#"{"amount": "9", "country": "CH"}"#)
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let told = described(&result.to_input_list());
    assert_eq!(told[2], "output of call_1: Too much.");
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed")]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Place {
    Number { v: u32 },
    Code { v: String },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed")]
struct Delivery {
    place: Place,
}

#[tokio::test]
async fn a_text_that_is_valid_as_it_is_stays_text() {
    let deliver: Tool = tool("deliver").run(|_ctx, delivery: Delivery| format!("{delivery:?}"));
    let sent = json!({"place": {"kind": "code", "v": "8001"}});
    let output = deliver.call((), sent).await.unwrap();
    assert_eq!(output.text(), r#"Delivery { place: Code { v: "8001" } }"#);
}

#[tokio::test]
async fn data_of_an_output_that_a_guardrail_replaced_is_dropped() {
    let hide = ToolGuardrail::on_output("hide", |_ctx, _output| Some("hidden"));
    let lookup: Tool = tool::<()>("lookup").guardrail(hide).run(|ctx, (): ()| {
        ctx.attach(json!({"ssn": "123"}));
        "123"
    });
    let agent = Agent::new("A").tool(lookup);
    let model = ScriptedModel::new().call("lookup", "{}").say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let stored = serde_json::to_string(result.run()).unwrap();
    assert!(!stored.contains("123"), "{stored}");
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
