//! Traces: what they are called, which runs are in one, and the spans of the application in them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::model::Usage;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{
    MemoryTracer, Span, SpanData, Trace, TraceInfo, Tracer, TracerKey, Tracers,
};
use switchboard_core::{Agent, Item, ModelResponse, Runner, Step, tool};
use tokio::time::timeout;

use crate::stored;

/// A tracer that notes in which order it is called. Clones share the calls.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<String>>>, TracerKey);

impl Default for Log {
    fn default() -> Self {
        Self(Arc::default(), TracerKey::generate())
    }
}

impl Log {
    fn add(&self, what: &str, name: &str) {
        self.0.lock().unwrap().push(format!("{what} {name}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The calls for traces.
    fn take_traces(&self) -> Vec<String> {
        let mut calls = self.take();
        calls.retain(|call| call.starts_with("trace"));
        calls
    }
}

impl Tracer for Log {
    fn identity(&self) -> Option<TracerKey> {
        Some(self.1)
    }

    fn trace_start(&self, trace: &TraceInfo) {
        self.add("trace starts:", &trace.name);
    }

    fn trace_end(&self, trace: &TraceInfo) {
        self.add("trace ends:", &trace.name);
    }

    fn start(&self, span: &Span) {
        self.add("start", span.data.kind());
    }

    fn end(&self, span: Span) {
        self.add("end", span.data.kind());
    }
}

fn answer(item: Item) -> ModelResponse {
    ModelResponse::new([item]).usage(Usage {
        requests: 1,
        input_tokens: 10,
        output_tokens: 3,
        ..Usage::default()
    })
}

/// The usage of the spans of a kind.
fn usages(spans: &[Span], kind: &str) -> Vec<(u64, u64)> {
    let of_kind = spans.iter().filter(|span| span.data.kind() == kind);
    of_kind
        .map(|span| match &span.data {
            SpanData::Task { usage, .. } | SpanData::Turn { usage, .. } => {
                (usage.requests, usage.total_tokens())
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn a_run_is_a_trace_with_a_task_at_its_root() {
    let agent: Agent = Agent::new("A");
    let log = Log::default();
    let runner = Runner::new(&agent).tracer(log.clone());
    let runner = runner.model(ScriptedModel::new().say("ok"));
    runner.workflow_name("Desk").run("x").await.unwrap();
    assert_eq!(
        log.take(),
        [
            "trace starts: Desk",
            "start task",
            "start agent",
            "start turn",
            "start generation",
            "end generation",
            "end turn",
            "end agent",
            "end task",
            "trace ends: Desk",
        ]
    );
}

#[tokio::test]
async fn tracers_get_the_name_group_identifier_and_metadata_of_a_trace() {
    let agent: Agent = Agent::new("A");
    let tracer = MemoryTracer::new();
    let plain = Runner::new(&agent).tracer(tracer.clone());
    let plain = plain.model(ScriptedModel::new().say("1").say("2").say("3"));
    let named = plain
        .clone()
        .workflow_name("Desk")
        .trace_group("chat_7")
        .trace_id("trace_of_mine")
        .trace_metadata("customer", "c_42")
        .trace_metadata("tries", 2);
    for runner in [&plain, &plain, &named] {
        runner.run("x").await.unwrap();
    }
    let traces = tracer.traces();
    let described: Vec<Value> = traces.iter().map(|trace| json!(trace)).collect();
    assert_ne!(traces[0].id, traces[1].id);
    assert_eq!(
        described[1..],
        [
            json!({"id": traces[1].id, "name": "Agent workflow"}),
            json!({"id": "trace_of_mine", "name": "Desk", "group": "chat_7",
                   "metadata": {"customer": "c_42", "tries": 2}}),
        ]
    );
    let spans = tracer.spans();
    let own = spans.iter().filter(|span| *span.trace == traces[2]);
    assert_eq!(own.count(), 4);
    let SpanData::Task { name, .. } = &spans[8].data else {
        panic!("{:?}", spans[8]);
    };
    assert_eq!(&**name, "Desk");
}

#[tokio::test]
async fn tasks_and_turns_have_their_usage_with_that_of_agents_inside_tools() {
    let expert: Agent = Agent::new("Expert");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask"));
    let model = ScriptedModel::new()
        .respond_with(answer(Item::function_call(
            "c1",
            "ask",
            r#"{"input": "x"}"#,
        )))
        .respond_with(answer(Item::output_message("m1", "inner")))
        .respond_with(answer(Item::output_message("m2", "outer")));
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&clerk).model(model).tracer(tracer.clone());
    runner.run("x").await.unwrap();
    let spans = tracer.take();
    assert_eq!(usages(&spans, "task"), [(3, 39), (1, 13)]);
    assert_eq!(usages(&spans, "turn"), [(2, 26), (1, 13), (1, 13)]);
}

#[tokio::test]
async fn the_spans_of_a_cancelled_run_have_the_usage_so_far_and_its_trace_ends() {
    let agent: Agent = Agent::new("A").tool(tool("wait").run(|_ctx, (): ()| async {
        std::future::pending::<()>().await;
        "never"
    }));
    let (tracer, log) = (MemoryTracer::new(), Log::default());
    let model = ScriptedModel::new().respond_with(answer(Item::function_call("c", "wait", "{}")));
    let runner = Runner::new(&agent).model(model);
    let runner = runner.tracer(tracer.clone()).tracer(log.clone());
    let run = runner.run("x");
    assert!(timeout(Duration::from_millis(30), run).await.is_err());
    let spans = tracer.take();
    assert_eq!(usages(&spans, "task"), [(1, 13)]);
    assert_eq!(usages(&spans, "turn"), [(1, 13)]);
    assert_eq!(log.take().last().unwrap(), "trace ends: Agent workflow");
}

#[tokio::test]
async fn a_resumed_run_goes_on_in_its_trace_which_does_not_begin_again() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    for is_streamed in [false, true] {
        let model = ScriptedModel::new()
            .respond_with(answer(Item::function_call("c", "t", "{}")))
            .fail("overloaded")
            .respond_with(answer(Item::output_message("m", "ok")));
        let (tracer, log) = (MemoryTracer::new(), Log::default());
        let first = Runner::new(&agent).model(model);
        let first = first.tracer(tracer.clone()).tracer(log.clone());
        let named = first.clone().workflow_name("Desk").trace_group("chat_7");
        let error = named.run("x").await.unwrap_err();
        let run = stored(error.run().unwrap());
        assert_eq!(run.trace(), Some(&tracer.traces()[0]));
        // The settings of the trace come from the run.
        let result = if is_streamed {
            first.resume_stream(run).unwrap().finish().await.unwrap()
        } else {
            first.resume(run).await.unwrap()
        };
        assert_eq!(result.final_text(), "ok");
        assert_eq!(
            log.take_traces(),
            ["trace starts: Desk", "trace ends: Desk"]
        );
        let spans = tracer.spans();
        assert!(spans.iter().all(|span| *span.trace == tracer.traces()[0]));
        // Each task has the usage of its part of the run.
        assert_eq!(usages(&spans, "task"), [(1, 13), (1, 13)]);
    }
}

#[tokio::test]
async fn a_run_that_is_resumed_under_another_name_begins_its_trace_again() {
    let agent: Agent = Agent::new("A");
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&agent).model(ScriptedModel::new().fail("busy").say("ok"));
    let runner = runner.tracer(tracer.clone());
    let error = runner.run("x").await.unwrap_err();
    let run = stored(error.run().unwrap());
    let renamed = runner.workflow_name("Second try");
    renamed.resume(run).await.unwrap();
    let traces = tracer.traces();
    assert_eq!(traces[0].id, traces[1].id);
    assert_eq!(
        [&*traces[0].name, &*traces[1].name],
        ["Agent workflow", "Second try"]
    );
}

#[tokio::test]
async fn a_run_that_began_in_another_process_begins_its_trace_in_this_one() {
    let agent: Agent = Agent::new("A");
    let log = Log::default();
    let runner = Runner::new(&agent).model(ScriptedModel::new().fail("busy").say("ok"));
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.run().unwrap().trace(), None);
    let mut run = serde_json::to_value(error.run().unwrap()).unwrap();
    run["run"]["trace"] =
        json!({"info": {"id": "trace_of_elsewhere", "name": "Desk"}, "is_ended": true});
    let run = serde_json::from_value(run).unwrap();
    runner.tracer(log.clone()).resume(run).await.unwrap();
    assert_eq!(
        log.take_traces(),
        ["trace starts: Desk", "trace ends: Desk"]
    );
}

#[tokio::test]
async fn a_trace_begins_and_ends_once_for_each_tracer_that_a_run_is_resumed_with() {
    let agent: Agent = Agent::new("A");
    let (first, second) = (Log::default(), Log::default());
    let plain = Runner::new(&agent).workflow_name("Desk");
    let plain = plain.model(ScriptedModel::new().fail("busy").fail("busy").say("ok"));
    let started = ["trace starts: Desk", "trace ends: Desk"];
    let error = plain.clone().tracer(first.clone()).run("x").await;
    let run = stored(error.unwrap_err().run().unwrap());
    assert_eq!(first.take_traces(), started);

    let both = plain.tracer(first.clone()).tracer(second.clone());
    let error = both.resume(run).await.unwrap_err();
    assert_eq!(first.take_traces(), [""; 0]);
    assert_eq!(second.take_traces(), started);

    let run = stored(error.run().unwrap());
    both.resume(run).await.unwrap();
    assert_eq!(
        (first.take_traces(), second.take_traces()),
        (vec![], vec![])
    );
}

#[tokio::test]
async fn a_run_that_is_taken_step_by_step_is_one_trace() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let (tracer, log) = (MemoryTracer::new(), Log::default());
    let runner = Runner::new(&agent).model(ScriptedModel::new().call("t", "{}").say("ok"));
    let runner = runner.tracer(tracer.clone()).tracer(log.clone());
    let mut run = runner.begin("x");
    let mut steps = 0;
    while !matches!(run.step(), Step::Done(_)) {
        runner.step(&mut run).await.unwrap();
        run = stored(&run);
        steps += 1;
        let is_done = matches!(run.step(), Step::Done(_));
        let ends = log
            .take()
            .iter()
            .filter(|call| call.starts_with("trace ends"))
            .count();
        assert_eq!(ends, usize::from(is_done), "after step {steps}");
    }
    assert_eq!(tracer.traces().len(), 1);
    let spans = tracer.take();
    assert_eq!(usages(&spans, "task").len(), steps);
    assert!(spans.iter().all(|span| Some(&*span.trace) == run.trace()));
}

#[tokio::test]
async fn several_runs_and_spans_of_the_application_are_one_trace() {
    let agent: Agent = Agent::new("A");
    let (tracer, log) = (MemoryTracer::new(), Log::default());
    let ignored = MemoryTracer::new();
    let runner = Runner::new(&agent).model(ScriptedModel::new().say("1").say("2").say("3"));
    let runner = runner.tracer(ignored.clone()).workflow_name("Run");
    let trace = Trace::builder("Order")
        .id("trace_order_7")
        .metadata("customer", "c_42")
        .tracer(tracer.clone())
        .tracer(log.clone())
        .start();
    runner.clone().within_trace(&trace).run("x").await.unwrap();
    let mut span = trace.custom_span("check", json!({"rows": 1}));
    let under_span = runner.clone().within_trace(&span);
    under_span.stream("x").finish().await.unwrap();
    span.custom_span("inner", Value::Null).end();
    span.fail("No rows", json!({"table": "orders"}));
    span.set_data(json!({"rows": 0}));
    drop(span);
    let silent = runner.within_trace(&trace).tracing_off();
    silent.run("x").await.unwrap();
    assert_eq!(log.take_traces(), ["trace starts: Order"]);
    trace.end();
    assert_eq!(log.take_traces(), ["trace ends: Order"]);

    assert!(ignored.spans().is_empty() && ignored.traces().is_empty());
    let spans = tracer.take();
    assert!(
        spans
            .iter()
            .all(|span| span.trace.id.as_str() == "trace_order_7")
    );
    let name = |span: &Span| match &span.data {
        SpanData::Task { name, .. } | SpanData::Custom { name, .. } => name.to_string(),
        other => other.kind().to_owned(),
    };
    let parent = |span: &Span| {
        let parent = spans.iter().find(|other| Some(other.id) == span.parent);
        parent.map_or("none".to_owned(), name)
    };
    let tree: Vec<(String, String)> = spans
        .iter()
        .map(|span| (name(span), parent(span)))
        .collect();
    let tree: Vec<(&str, &str)> = tree.iter().map(|(one, other)| (&**one, &**other)).collect();
    assert_eq!(
        tree,
        [
            ("Run", "none"),
            ("agent", "Run"),
            ("turn", "agent"),
            ("generation", "turn"),
            ("check", "none"),
            ("Run", "check"),
            ("agent", "Run"),
            ("turn", "agent"),
            ("generation", "turn"),
            ("inner", "check"),
        ]
    );
    let check = &spans[4];
    assert!(matches!(&check.data, SpanData::Custom { data, .. } if *data == json!({"rows": 0})));
    let error = check.error.as_ref().unwrap();
    assert_eq!(
        (&*error.message, &error.data),
        ("No rows", &json!({"table": "orders"}))
    );
}

#[tokio::test]
async fn spans_of_tasks_and_turns_can_be_left_out() {
    let expert: Agent = Agent::new("Expert");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask"));
    let script = || {
        ScriptedModel::new()
            .call("ask", r#"{"input": "x"}"#)
            .say("inner")
            .call("nothing", "{}")
    };
    let tree = |spans: &[Span]| -> Vec<(String, String)> {
        let kind = |span: &Span| span.data.kind().to_owned();
        let parent = |span: &Span| {
            let parent = spans.iter().find(|other| Some(other.id) == span.parent);
            parent.map_or("none".to_owned(), kind)
        };
        spans
            .iter()
            .map(|span| (kind(span), parent(span)))
            .collect()
    };
    for is_streamed in [false, true] {
        let (tracer, log) = (MemoryTracer::new(), Log::default());
        let runner = Runner::new(&clerk)
            .model(script())
            .workflow_name("Desk")
            .tracer(tracer.clone())
            .tracer(log.clone())
            .trace_tasks_and_turns(false);
        let error = if is_streamed {
            runner.stream("x").finish().await.unwrap_err()
        } else {
            runner.run("x").await.unwrap_err()
        };
        assert!(error.is_model_behavior());
        assert_eq!(
            log.take_traces(),
            ["trace starts: Desk", "trace ends: Desk"]
        );
        let spans = tracer.take();
        let expected = [
            ("agent", "none"),
            ("generation", "agent"),
            ("function", "agent"),
            ("agent", "function"),
            ("generation", "agent"),
            ("generation", "agent"),
        ];
        let expected = expected.map(|(kind, parent)| (kind.to_owned(), parent.to_owned()));
        assert_eq!(tree(&spans), expected);
        let failure = spans[0].error.as_ref().unwrap();
        assert_eq!(failure.message, "The model broke the rules");
    }

    let tracer = MemoryTracer::new();
    let trace = Trace::builder("Order").tracer(tracer.clone()).start();
    let span = trace.custom_span("check", Value::Null);
    let runner = Runner::new(&expert)
        .model(ScriptedModel::new().say("ok"))
        .within_trace(&span)
        .trace_tasks_and_turns(false);
    runner.run("x").await.unwrap();
    span.end();
    let expected = [
        ("custom", "none"),
        ("agent", "custom"),
        ("generation", "agent"),
    ];
    let expected = expected.map(|(kind, parent)| (kind.to_owned(), parent.to_owned()));
    assert_eq!(tree(&tracer.take()), expected);
}

#[tokio::test]
async fn a_run_that_failed_in_a_trace_of_the_application_goes_on_in_it() {
    let agent: Agent = Agent::new("A");
    let (tracer, log) = (MemoryTracer::new(), Log::default());
    let runner = Runner::new(&agent).model(ScriptedModel::new().fail("busy").say("ok"));
    let trace = Trace::builder("Order")
        .tracer(tracer.clone())
        .tracer(log.clone())
        .start();
    let error = runner
        .clone()
        .within_trace(&trace)
        .run("x")
        .await
        .unwrap_err();
    trace.end();
    let run = stored(error.run().unwrap());
    let later = runner.tracer(tracer.clone()).tracer(log.clone());
    later.resume(run).await.unwrap();
    assert_eq!(
        log.take_traces(),
        ["trace starts: Order", "trace ends: Order"]
    );
    assert!(
        tracer
            .spans()
            .iter()
            .all(|span| *span.trace == tracer.traces()[0])
    );
}

#[tokio::test]
async fn a_tool_opens_spans_under_its_call() {
    let agent: Agent = Agent::new("A").tool(tool::<()>("find").run(|ctx, (): ()| async move {
        let mut span = ctx.custom_span("query", json!({"table": "orders"}));
        tokio::task::yield_now().await;
        span.set_data(json!({"rows": 3}));
        "3 orders"
    }));
    let tracer = MemoryTracer::new();
    let model = ScriptedModel::new().call("find", "{}").say("ok");
    let runner = Runner::new(&agent).model(model).tracer(tracer.clone());
    runner.run("x").await.unwrap();
    let spans = tracer.take();
    let of_kind = |kind| spans.iter().find(|span| span.data.kind() == kind).unwrap();
    let (call, query) = (of_kind("function"), of_kind("custom"));
    assert_eq!(query.parent, Some(call.id));
    assert_eq!(
        json!(query.data),
        json!({"type": "custom", "name": "query", "data": {"rows": 3}})
    );
    assert!(query.ended.unwrap() <= call.ended.unwrap());
}

#[tokio::test]
async fn nobody_has_to_listen() {
    let agent: Agent = Agent::new("A").tool(tool::<()>("find").run(|ctx, (): ()| {
        let mut span = ctx.custom_span("query", Value::Null);
        span.set_data("rows");
        span.id().map_or("no span", |_| "a span")
    }));
    let trace = Trace::builder("Silent").start();
    assert_eq!(trace.info(), None);
    let model = ScriptedModel::new().call("find", "{}").say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .within_trace(&trace);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.run().trace(), None);
    let input = &model.requests()[1].input;
    assert_eq!(
        input.iter().next_back().unwrap().output().unwrap(),
        "no span"
    );
}

#[tokio::test]
async fn every_tracer_of_a_runner_is_called_also_when_another_panics() {
    struct Booming;
    impl Tracer for Booming {
        fn trace_start(&self, _trace: &TraceInfo) {
            panic!("boom");
        }
        fn trace_end(&self, _trace: &TraceInfo) {
            panic!("boom");
        }
        fn start(&self, _span: &Span) {
            panic!("boom");
        }
        fn end(&self, _span: Span) {
            panic!("boom");
        }
    }
    let agent: Agent = Agent::new("A");
    let (before, after, member) = (Log::default(), Log::default(), Log::default());
    let members = Tracers::new();
    members.add(Booming);
    members.add(member.clone());
    let runner = Runner::new(&agent)
        .tracer(before.clone())
        .tracer(Booming)
        .tracer(members)
        .tracer(after.clone());
    let model = ScriptedModel::new().say("ok").say("ok");
    let runner = runner.model(model);
    runner.run("x").await.unwrap();
    let calls = before.take();
    assert_eq!(calls.len(), 10);
    assert_eq!((after.take(), member.take()), (calls.clone(), calls));

    runner.tracing_off().run("x").await.unwrap();
    assert!(before.take().is_empty() && after.take().is_empty() && member.take().is_empty());
}

#[tokio::test]
async fn tracers_come_and_go_while_runs_use_them() {
    let tracers = Tracers::new();
    let (always, at_times) = (Log::default(), Log::default());
    tracers.add(always.clone());
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent).tracer(tracers.clone());
    let runner = runner.model(ScriptedModel::new().say("1").say("2").say("3"));
    runner.run("x").await.unwrap();
    let key = tracers.add(at_times.clone());
    runner.run("x").await.unwrap();
    assert!(tracers.remove(key));
    assert!(!tracers.remove(key));
    runner.run("x").await.unwrap();
    assert_eq!((always.take().len(), at_times.take().len()), (30, 10));
    tracers.clear();
    assert!(tracers.is_empty());
}
