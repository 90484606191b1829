//! Agents as tools of others.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchboard_core::agent::{AgentTool, ToolUseBehavior};
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{
    InputGuardrail, OutputGuardrail, OutputVerdict, ToolGuardrail, ToolVerdict, Verdict,
};
use switchboard_core::hooks::{HookResult, RunHooks};
use switchboard_core::items::RunItemKind;
use switchboard_core::model::Usage;
use switchboard_core::run::Fallback;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::{OuterToolCall, ToolOutput};
use switchboard_core::trace::{MemoryTracer, Span, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, Item, MemorySession, Model, ModelRequest, ModelResponse,
    RunContext, RunResult, Runner, handoff, tool,
};

use crate::{described, stored};

/// Runs an agent to its end.
async fn run(agent: &Agent, model: &ScriptedModel) -> RunResult {
    let runner = Runner::new(agent).model(model.clone());
    runner.run("x").await.unwrap()
}

#[tokio::test]
async fn an_agent_is_asked_answers_and_the_conversation_stays() {
    let expert: Agent = Agent::new("Expert").instructions("You know.");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask_expert").description("Knows."));
    let usage = Usage {
        requests: 1,
        input_tokens: 7,
        ..Usage::default()
    };
    let call = Item::function_call("c", "ask_expert", r#"{"input": "Why?"}"#);
    let model = ScriptedModel::new()
        .respond_with(ModelResponse::new([call]).usage(usage))
        .respond_with(ModelResponse::new([Item::output_message("m", "Because.")]).usage(usage))
        .respond_with(ModelResponse::new([Item::output_message("n", "It is so.")]).usage(usage));
    let result = Runner::new(&clerk)
        .model(model.clone())
        .run("Hm?")
        .await
        .unwrap();
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("Clerk", "It is so.")
    );
    let asked = &model.requests()[1];
    assert_eq!(asked.instructions.as_deref(), Some("You know."));
    assert_eq!(described(&asked.input), ["user: Why?"]);
    assert_eq!(
        described(&result.to_input_list())[2],
        "output of c: Because."
    );
    assert_eq!(
        *result.usage(),
        usage + usage + usage,
        "what it used counts"
    );
}

#[tokio::test]
async fn an_agent_tool_has_a_listener_for_events_and_a_function_for_the_answer() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    let other: Agent = Agent::new("Other");
    let expert = Agent::new("Expert").handoff(handoff(&other));
    let tool = expert
        .as_tool("ask")
        .max_turns(2)
        .answer_with(|_ctx, result: RunResult| format!("{} says so", result.last_agent().name()))
        .on_event(move |_ctx, event| {
            if let EventKind::AgentUpdated { .. } = event.kind {
                noted.lock().unwrap().push(event.agent.to_string());
            }
        });
    let clerk = Agent::new("Clerk").tool(tool);
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .call("transfer_to_other", "{}")
        .say("y")
        .say("ok");
    let result = Runner::new(&clerk).model(model).run("Hm?").await.unwrap();
    assert_eq!(
        described(&result.to_input_list())[2],
        "output of call_1: Other says so"
    );
    assert_eq!(*heard.lock().unwrap(), ["Expert", "Other"]);
}

/// An answer that calls these tools, at a cost.
fn calling(tools: &[&str], usage: Usage) -> ModelResponse {
    let call = |tool: &&str| Item::function_call(tool, tool, r#"{"input": "x"}"#);
    ModelResponse::new(tools.iter().map(call)).usage(usage)
}

fn tokens(input_tokens: u64) -> Usage {
    Usage {
        requests: 1,
        input_tokens,
        ..Usage::default()
    }
}

#[tokio::test]
async fn the_usage_of_a_failed_run_counts() {
    for listened_to in [false, true] {
        let lookup = tool("lookup").run(|_ctx, (): ()| "1");
        let expert: Agent = Agent::new("Expert").tool(lookup);
        let ask = expert.as_tool("ask");
        let clerk = Agent::new("Clerk").tool(if listened_to {
            ask.on_event(|_ctx, _event| {})
        } else {
            ask
        });
        let model = ScriptedModel::new()
            .respond_with(calling(&["ask"], tokens(1)))
            .respond_with(calling(&["lookup"], tokens(10)))
            .fail("overloaded")
            .respond_with(
                ModelResponse::new([Item::output_message("m", "Sorry.")]).usage(tokens(100)),
            );
        let result = Runner::new(&clerk).model(model).run("Hm?").await.unwrap();
        assert_eq!(
            *result.usage(),
            tokens(1) + tokens(10) + tokens(100),
            "listened to: {listened_to}"
        );
    }
}

#[tokio::test]
async fn the_usage_of_a_tool_counts_once_if_another_fails() {
    let expert: Agent = Agent::new("Expert");
    let failures = Arc::new(Mutex::new(1));
    let trips = ToolGuardrail::on_call("once", move |_ctx| {
        let mut failures = failures.lock().unwrap();
        match std::mem::take(&mut *failures) {
            0 => ToolVerdict::Allow,
            _ => ToolVerdict::trip("not yet"),
        }
    });
    let clerk = Agent::new("Clerk")
        .tool(expert.as_tool("ask"))
        .tool(tool("guarded").guardrail(trips).run(|_ctx, (): ()| "1"));
    let said = |text| ModelResponse::new([Item::output_message("m", text)]);
    let model = ScriptedModel::new()
        .respond_with(calling(&["ask", "guarded"], tokens(1)))
        .respond_with(said("Because.").usage(tokens(10)))
        .respond_with(said("So.").usage(tokens(100)));
    let runner = Runner::new(&clerk)
        .model(model)
        .tool_concurrency(NonZeroUsize::MIN);
    let run = runner.run("Hm?").await.unwrap_err().into_run().unwrap();
    assert_eq!(*run.usage(), tokens(1) + tokens(10));
    let result = runner.resume(run).await.unwrap();
    assert_eq!(*result.usage(), tokens(1) + tokens(10) + tokens(100));
}

#[tokio::test]
async fn agents_that_use_each_other_as_tools_have_a_depth_limit() {
    // A model that asks again until it gets an error.
    struct Asking;
    impl switchboard_core::Model for Asking {
        async fn respond(
            &self,
            request: switchboard_core::ModelRequest,
        ) -> Result<ModelResponse, switchboard_core::callback::BoxError> {
            let answered = request.input.iter().filter_map(Item::output).next();
            Ok(ModelResponse::new([match answered {
                Some(output) => Item::output_message("m", &output),
                None => Item::function_call("c", "again", r#"{"input": "x"}"#),
            }]))
        }
    }
    let mut agent: Agent = Agent::new("0");
    for n in 1..20 {
        agent = Agent::new(format!("{n}")).tool(agent.as_tool("again"));
    }
    let runner = Runner::new(&agent).model(Asking).max_agent_depth(3);
    let result = runner.run("x").await.unwrap();
    let expected = ToolOutput::from("An error occurred while running the tool. Please try again.");
    assert_eq!(result.final_text(), expected.text());
}

#[tokio::test]
async fn an_agent_can_be_a_tool_without_limit_or_not_at_all() {
    let expert: Agent = Agent::new("Expert").tool(tool("t").run(|_ctx, (): ()| "1"));
    let desk = Agent::new("Desk")
        .tool(expert.as_tool("ask").max_turns(None))
        .tool(expert.as_tool("never").enabled(false));
    let mut model = ScriptedModel::new().call("ask", r#"{"input": "?"}"#);
    for _ in 0..20 {
        model = model.call("t", "{}");
    }
    let model = model.say("42").say("It is 42.");
    let runner = Runner::new(&desk).model(model.clone());
    assert_eq!(runner.run("x").await.unwrap().final_text(), "It is 42.");
    let offered = model.requests()[0].tools.clone();
    let offered: Vec<&str> = offered.iter().map(|tool| &*tool.name).collect();
    assert_eq!(offered, ["ask"]);
}

#[tokio::test]
async fn the_spans_of_an_inner_run_lie_under_the_call() {
    let expert: Agent = Agent::new("Expert");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask"));
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .say("inner")
        .say("outer");
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&clerk).model(model).tracer(tracer.clone());
    runner.run("x").await.unwrap();
    let spans = tracer.take();
    let of = |kind: &str, name: &str| {
        let json = |span: &&Span| serde_json::to_value(&span.data).unwrap();
        let mut spans = spans.iter();
        let found = spans.find(|span| span.data.kind() == kind && json(span)["name"] == name);
        found.unwrap()
    };
    let (call, inner) = (of("function", "ask"), of("agent", "Expert"));
    let task = spans.iter().find(|span| Some(span.id) == inner.parent);
    let task = task.unwrap();
    assert_eq!((task.data.kind(), task.parent), ("task", Some(call.id)));
    assert!(spans.iter().all(|span| span.trace == call.trace));
}

#[tokio::test]
async fn the_recovery_of_a_run_does_not_answer_for_its_agent_tools() {
    let expert: Agent = Agent::new("Expert").tool(tool("look").run(|_ctx, (): ()| "seen"));
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask").max_turns(1));
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .call("look", "{}")
        .say("Never mind.");
    let runner = Runner::new(&clerk)
        .model(model.clone())
        .recover(|_ctx, _failure| Some(Fallback::from("the fallback")));
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "Never mind.");
    let told = described(&model.requests()[2].input);
    assert!(told[2].contains("limit of turns"), "{told:?}");
}

#[tokio::test]
async fn an_empty_answer_falls_back_to_the_last_text_unless_a_guardrail_saw_it() {
    for (is_guarded, expected) in [(false, "account 42"), (true, "")] {
        let mut expert: Agent =
            Agent::new("Expert").tool(tool("look").run(|_ctx, (): ()| "account 42"));
        if is_guarded {
            expert =
                expert.output_guardrail(OutputGuardrail::new("ok", |_ctx, _agent, _output| ()));
        }
        let clerk = Agent::new("Clerk").tool(expert.as_tool("ask"));
        let model = ScriptedModel::new()
            .call("ask", r#"{"input": "x"}"#)
            .call("look", "{}")
            .say("")
            .say("ok");
        run(&clerk, &model).await;
        let told = described(&model.requests()[3].input);
        assert_eq!(told[2], format!("output of call_1: {expected}"));
    }
}

#[tokio::test]
async fn a_structured_answer_is_data_in_the_calling_run() {
    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Balance {
        amount: u32,
    }
    let expert: Agent = Agent::new("Expert").output::<Balance>();
    let clerk = Agent::new("Clerk")
        .tool(expert.as_tool("ask"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool());
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .say(r#"{"amount": 12}"#);
    let result = run(&clerk, &model).await;
    let output = serde_json::json!({"amount": 12});
    let kind = result.new_items().last().unwrap().kind().clone();
    assert_eq!(kind, RunItemKind::ToolCallOutput { output });
    assert_eq!(
        described(&result.to_input_list())[2],
        r#"output of call_1: {"amount":12}"#
    );
    let answer: Balance = result.final_output_as().unwrap();
    assert_eq!(answer, Balance { amount: 12 });
}

#[tokio::test]
async fn an_agent_gets_only_the_fields_that_the_type_of_its_arguments_has() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by serde and schemars only")]
    struct Query {
        query: String,
        limit: Option<u32>,
    }
    let expert: Agent = Agent::new("Expert");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask").parameters::<Query>());
    let model = ScriptedModel::new()
        .call("ask", r#"{"query": "q", "limit": "3", "more": 1}"#)
        .say("found")
        .say("ok");
    let runner = Runner::new(&clerk).model(model.clone());
    runner.run("x").await.unwrap();
    let asked = described(&model.requests_of("Expert")[0].input);
    assert_eq!(asked, [r#"user: {"query": "q", "limit": 3}"#]);
}

#[derive(Deserialize, JsonSchema)]
struct Translation {
    /// The text to translate.
    text: String,
    language: String,
}

#[tokio::test]
async fn typed_arguments_reach_the_agent_as_data_or_as_its_input_function_says() {
    let expert: Agent = Agent::new("Expert");
    for (ask, expected) in [
        (
            expert.as_tool("ask").parameters::<Translation>(),
            "## Input Schema Summary:\n- text (string, required) - The text to translate.\n\
             - language (string, required)\n",
        ),
        (
            expert
                .as_tool("ask")
                .parameters_with_schema::<Translation>(),
            "## Input JSON Schema:\n\n```\n{\n",
        ),
        (
            expert
                .as_tool("ask")
                .input(|_ctx, wanted: Translation| async move {
                    format!("In {}: {}", wanted.language, wanted.text)
                }),
            "In French: Hello",
        ),
    ] {
        let clerk = Agent::new("Clerk").tool(ask);
        let model = ScriptedModel::new()
            .call("ask", r#"{"text": "Hello", "language": "French"}"#)
            .say("Bonjour")
            .say("ok");
        run(&clerk, &model).await;
        let asked = &model.requests_of("Expert")[0].input;
        let text = asked.last().unwrap().text().unwrap().into_owned();
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn an_agent_tool_has_a_session_and_hooks_of_its_own() {
    let expert: Agent = Agent::new("Expert");
    let session = MemorySession::new();
    let started = Arc::new(AtomicUsize::new(0));
    struct Counting(Arc<AtomicUsize>);
    impl RunHooks for Counting {
        async fn on_agent_start(&self, _ctx: &RunContext, _agent: &Agent) -> HookResult {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    let ask = expert
        .as_tool("ask")
        .session(&session)
        .hooks(Counting(started.clone()));
    let clerk = Agent::new("Clerk").tool(ask);
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "first"}"#)
        .say("one")
        .call("ask", r#"{"input": "second"}"#)
        .say("two")
        .say("ok");
    run(&clerk, &model).await;
    assert_eq!(started.load(Ordering::SeqCst), 2);
    assert_eq!(
        described(&model.requests_of("Expert")[1].input),
        ["user: first", "assistant: one", "user: second"]
    );
}

#[tokio::test]
async fn concurrent_calls_of_an_agent_tool_can_be_told_apart_and_a_failing_listener_is_ignored() {
    let expert: Agent = Agent::new("Expert").model(Parrot);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    let ask = expert.as_tool("ask").on_event(move |ctx, event| {
        if let EventKind::Item {
            text: Some(text), ..
        } = event.kind
        {
            let heard = format!("{} {} {text}", ctx.call_id(), event.agent);
            noted.lock().unwrap().push(heard);
        }
        Err::<(), _>("the log is full")
    });
    let clerk = Agent::new("Clerk").tool(ask).model(
        ScriptedModel::new()
            .calls([("ask", r#"{"input": "a"}"#), ("ask", r#"{"input": "b"}"#)])
            .say("ok"),
    );
    Runner::new(&clerk).run("x").await.unwrap();
    let mut heard = heard.lock().unwrap().clone();
    heard.sort();
    assert_eq!(heard, ["call_1 Expert a", "call_2 Expert b"]);
}

/// A model that repeats the last message.
struct Parrot;

impl Model for Parrot {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let text = request
            .input
            .last()
            .and_then(Item::text)
            .unwrap_or_default();
        Ok(ModelResponse::new([Item::output_message("m", &text)]))
    }
}

#[tokio::test]
async fn a_failure_of_an_agent_can_end_the_calling_run() {
    let expert: Agent = Agent::new("Expert").tool(tool("look").run(|_ctx, (): ()| "seen"));
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask").max_turns(1).fail_run());
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .call("look", "{}");
    let error = Runner::new(&clerk).model(model).run("x").await.unwrap_err();
    assert!(error.is_max_turns(), "{error}");
    assert_eq!(error.run().unwrap().agent(), "Clerk");
}

#[tokio::test]
async fn code_inside_an_agent_tool_can_read_the_call_it_runs_for() {
    type Seen = Mutex<Vec<(String, Option<OuterToolCall>)>>;
    fn record(what: &str) -> impl Fn(RunContext<Seen>) + use<> {
        let what = what.to_owned();
        move |ctx| {
            let seen = (what.clone(), ctx.outer_call().cloned());
            ctx.lock().unwrap().push(seen);
        }
    }
    let (look, instruct) = (record("tool"), record("instructions"));
    let lookup = tool::<Seen>("lookup").run(move |ctx, (): ()| look(ctx.run_context().clone()));
    let inner = Agent::new("Inner").tool(lookup);
    let middle = Agent::new("Middle")
        .instructions_fn(move |ctx, _agent| {
            instruct(ctx);
            "Ask further."
        })
        .tool(inner.as_tool("ask_inner"));
    let ask = record("condition");
    let outer =
        Agent::new("Outer").tool(middle.as_tool("ask_middle").enabled_if(move |ctx, _agent| {
            ask(ctx);
            true
        }));
    let model = ScriptedModel::new()
        .call("ask_middle", r#"{"input": "first"}"#)
        .call("ask_inner", r#"{"input": "second"}"#)
        .call("lookup", "{}")
        .say("inner")
        .say("middle")
        .say("outer");
    let seen = Arc::new(Seen::default());
    let runner = Runner::new(&outer).model(model).context(seen.clone());
    runner.run("Hm?").await.unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let told = seen.iter().map(|(what, call)| match call {
        None => format!("{what}: no call"),
        Some(call) => format!("{what}: {} {} {}", call.tool, call.call_id, call.arguments),
    });
    let mut told: Vec<String> = told.collect();
    told.dedup();
    assert_eq!(
        told,
        [
            "condition: no call",
            r#"instructions: ask_middle call_1 {"input": "first"}"#,
            r#"tool: ask_inner call_2 {"input": "second"}"#,
            r#"instructions: ask_middle call_1 {"input": "first"}"#,
            "condition: no call",
        ]
    );
}

/// The names and errors of the spans of agents and tools, in start order.
async fn marked(agent: &Agent, model: ScriptedModel) -> Vec<String> {
    let tracer = MemoryTracer::new();
    let runner = Runner::new(agent).model(model).tracer(tracer.clone());
    runner.run("x").await.unwrap_err();
    let spans = tracer
        .take()
        .into_iter()
        .filter_map(|span| match span.data {
            SpanData::Agent { name, .. } | SpanData::Function { name, .. } => {
                let error = span.error.map_or("-".to_owned(), |error| error.message);
                Some(format!("{name}: {error}"))
            }
            _ => None,
        });
    spans.collect()
}

#[tokio::test]
async fn the_failure_of_an_inner_run_that_ends_the_run_is_marked_where_it_happened() {
    let expert: Agent = Agent::new("Expert").tool(tool("look").run(|_ctx, (): ()| "x"));
    let clerk = |ask: AgentTool| Agent::new("Clerk").tool(ask.fail_run());
    let ask = r#"{"input": "x"}"#;

    let turns = clerk(expert.as_tool("ask").max_turns(1));
    let model = ScriptedModel::new().call("ask", ask).call("look", "{}");
    assert_eq!(
        marked(&turns, model).await,
        [
            "Clerk: Error in agent run",
            "ask: Error running tool",
            "Expert: Max turns exceeded",
            "look: -",
        ]
    );

    let guardrail = OutputGuardrail::new("no", |_ctx, _agent, _output| OutputVerdict::trip("no"));
    let guarded = clerk(expert.output_guardrail(guardrail).as_tool("ask"));
    let model = ScriptedModel::new().call("ask", ask).say("It is so.");
    assert_eq!(
        marked(&guarded, model).await,
        [
            "Clerk: -",
            "ask: Error running tool",
            "Expert: Guardrail tripwire triggered",
        ]
    );
}

#[tokio::test]
async fn a_guardrail_that_trips_on_a_call_or_its_output_fails_the_call() {
    let on_call = ToolGuardrail::on_call("in", |_ctx| ToolVerdict::trip("no"));
    let on_output = ToolGuardrail::on_output("out", |_ctx, _output| ToolVerdict::trip("no"));
    for guardrail in [on_call, on_output] {
        let look = tool("look").guardrail(guardrail).run(|_ctx, (): ()| "x");
        let agent: Agent = Agent::new("Clerk").tool(look);
        let model = ScriptedModel::new().call("look", "{}");
        assert_eq!(
            marked(&agent, model).await,
            [
                "Clerk: Guardrail tripwire triggered",
                "look: Error running tool",
            ]
        );
    }
}

#[tokio::test]
async fn the_model_is_told_why_an_inner_run_failed_without_its_private_error() {
    let trip = || {
        InputGuardrail::new("secret_rule", |_ctx, _agent, _input| {
            Verdict::trip("private")
        })
    };
    let looping = || tool("look").run(|_ctx, (): ()| "1");
    let failing = || {
        tool("look")
            .fail_run()
            .run(|_ctx, (): ()| Err::<&str, _>("private"))
    };
    let call = || ScriptedModel::new().call("look", "{}").call("look", "{}");
    let cases: [(Agent, &str); 4] = [
        (
            Agent::new("Expert").tool(looping()).model(call()),
            "The agent did not finish: it reached its limit of turns.",
        ),
        (
            Agent::new("Expert").model(ScriptedModel::new().fail("private")),
            "The agent could not answer: its model failed. Try again later.",
        ),
        (
            Agent::new("Expert").input_guardrail(trip()).model(call()),
            "A guardrail of the agent refused the request.",
        ),
        (
            Agent::new("Expert").tool(failing()).model(call()),
            "The agent did not finish: one of its tools failed.",
        ),
    ];
    for (expert, expected) in cases {
        let model = ScriptedModel::new()
            .call("ask", r#"{"input": "?"}"#)
            .say("Sorry.");
        let desk = Agent::new("Desk").tool(expert.as_tool("ask").max_turns(1));
        let runner = Runner::new(&desk.model(model.clone()));
        runner.run("Help").await.unwrap();
        let shown = described(&model.requests()[1].input);
        assert!(shown[2].ends_with(expected), "{shown:?}");
        assert!(!shown[2].contains("private") && !shown[2].contains("secret_rule"));
    }
}

#[tokio::test]
async fn a_run_inside_that_ended_the_run_goes_on_where_it_was() {
    let paid = Arc::new(AtomicUsize::new(0));
    let count = paid.clone();
    let pay = tool::<()>("pay").run(move |_ctx, (): ()| {
        count.fetch_add(1, Ordering::SeqCst);
        "paid"
    });
    let expert: Agent = Agent::new("Expert")
        .model(
            ScriptedModel::new()
                .call("pay", "{}")
                .fail("the provider is down")
                .say("Paid."),
        )
        .tool(pay);
    let extracted = Arc::new(AtomicUsize::new(0));
    let count = extracted.clone();
    // The answer is taken from the run at the second attempt.
    let ask = expert
        .as_tool("ask")
        .fail_run()
        .answer_with(
            move |_ctx, result| match count.fetch_add(1, Ordering::SeqCst) {
                0 => Err("the database is down"),
                _ => Ok(result.final_text().into_owned()),
            },
        );
    let desk: Agent = Agent::new("Desk")
        .model(
            ScriptedModel::new()
                .call("ask", r#"{"input":"?"}"#)
                .say("Done."),
        )
        .tool(ask);
    let runner = Runner::new(&desk);
    let error = runner.run("Hi").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    let error = runner
        .resume(stored(error.run().unwrap()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tool);
    let result = runner.resume(stored(error.run().unwrap())).await.unwrap();
    assert_eq!(result.final_text(), "Done.");
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}
