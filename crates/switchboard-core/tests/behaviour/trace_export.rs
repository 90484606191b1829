//! Exporting traces: batches, limits, and the reference's JSON.

use std::error::Error;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchboard_core::guardrail::InputGuardrail;
use switchboard_core::model::Usage;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{
    BatchSettings, BatchTracer, JsonExporter, Trace, TraceExporter, TraceRecord,
};
use switchboard_core::{Agent, Item, ModelResponse, Runner, tool};

const SOON: Duration = Duration::from_secs(10);

/// An exporter that records the names of what it gets, and waits for a permission if it has a gate.
struct Recording {
    batches: Batches,
    gate: Option<Receiver<()>>,
}

type Batches = Arc<Mutex<Vec<Vec<String>>>>;

impl TraceExporter for Recording {
    fn export(&mut self, batch: Vec<TraceRecord>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        let names = batch.iter().map(|record| match record {
            TraceRecord::Trace(trace) => format!("trace {}", trace.name),
            TraceRecord::Span(span) => json!(span.data)["name"].as_str().unwrap().to_owned(),
            other => panic!("{other:?}"),
        });
        self.batches.lock().unwrap().push(names.collect());
        match batch.len() {
            3 => Err("three is too many".into()),
            4 => panic!("four is far too many"),
            _ => Ok(()),
        }
    }
}

fn settings(max_queue: usize, max_batch: usize) -> BatchSettings {
    BatchSettings {
        max_queue: max_queue.try_into().unwrap(),
        max_batch: max_batch.try_into().unwrap(),
        delay: Duration::from_secs(3600),
    }
}

fn recording(settings: BatchSettings) -> (BatchTracer, Batches) {
    let batches = Batches::default();
    let exporter = Recording {
        batches: batches.clone(),
        gate: None,
    };
    (BatchTracer::with_settings(exporter, settings), batches)
}

/// A tracer whose exporter waits for a message for each batch.
fn gated(settings: BatchSettings) -> (BatchTracer, Batches, Sender<()>) {
    let (batches, (open, gate)) = (Batches::default(), channel());
    let exporter = Recording {
        batches: batches.clone(),
        gate: Some(gate),
    };
    let tracer = BatchTracer::with_settings(exporter, settings);
    (tracer, batches, open)
}

fn wait_until(mut is_done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < SOON, "it takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_came_is_exported_in_batches_when_it_is_asked_for() {
    let (tracer, batches) = recording(settings(100, 2));
    let trace = Trace::builder("T").tracer(tracer.clone()).start();
    for name in ["a", "b", "c", "d"] {
        trace.custom_span(name, Value::Null).end();
    }
    tracer.flush(SOON).unwrap();
    assert_eq!(
        *batches.lock().unwrap(),
        [vec!["trace T", "a"], vec!["b", "c"], vec!["d"]]
    );
    trace.custom_span("e", Value::Null).end();
    trace.end();
    tracer.shutdown(SOON).unwrap();
    assert_eq!(batches.lock().unwrap()[3..], [["e"]]);
    assert_eq!(tracer.dropped(), 0);
    // It can be shut down twice.
    tracer.shutdown(SOON).unwrap();
    tracer.flush(SOON).unwrap();
}

#[test]
fn a_full_batch_is_exported_at_once_and_others_after_the_delay() {
    let (tracer, batches) = recording(settings(100, 2));
    let trace = Trace::builder("T").tracer(tracer.clone()).start();
    trace.custom_span("a", Value::Null).end();
    wait_until(|| batches.lock().unwrap().len() == 1);

    let delay = Duration::from_millis(5);
    let (tracer, batches) = recording(BatchSettings {
        delay,
        ..settings(100, 50)
    });
    let trace = Trace::builder("T").tracer(tracer.clone()).start();
    wait_until(|| batches.lock().unwrap().len() == 1);
    drop(trace);
}

#[test]
fn what_exceeds_the_queue_is_dropped_and_counted() {
    let (tracer, batches, open) = gated(settings(2, 1));
    let trace = Trace::builder("T").tracer(tracer.clone()).start();
    // The exporter holds the trace, and two spans wait.
    assert_eq!(tracer.flush(Duration::from_millis(30)).unwrap_err().left, 1);
    for name in ["a", "b", "c", "d"] {
        trace.custom_span(name, Value::Null).end();
    }
    assert_eq!(tracer.dropped(), 2);
    drop(open);
    tracer.shutdown(SOON).unwrap();
    assert_eq!(*batches.lock().unwrap(), [["trace T"], ["a"], ["b"]]);
    trace.custom_span("late", Value::Null).end();
    assert_eq!(tracer.dropped(), 3);
}

#[test]
fn shutting_down_does_not_wait_longer_than_asked_for() {
    let (tracer, batches, open) = gated(settings(10, 1));
    let trace = Trace::builder("T").tracer(tracer.clone()).start();
    trace.custom_span("a", Value::Null).end();
    trace.custom_span("b", Value::Null).end();
    let error = tracer.shutdown(Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.left, 3);
    assert!(error.to_string().contains("3 traces and spans"), "{error}");
    assert_eq!(tracer.dropped(), 2);
    // What the exporter had then is not lost.
    drop(open);
    tracer.shutdown(SOON).unwrap();
    assert_eq!(*batches.lock().unwrap(), [["trace T"]]);
}

#[test]
fn an_exporter_that_fails_or_panics_gets_the_next_batch() {
    let (tracer, batches) = recording(settings(100, 100));
    for spans in [2, 3, 0] {
        let trace = Trace::builder("T").tracer(tracer.clone()).start();
        for _ in 0..spans {
            trace.custom_span("a", Value::Null).end();
        }
        tracer.flush(SOON).unwrap();
    }
    let sizes: Vec<usize> = batches.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [3, 4, 1]);
    assert_eq!(tracer.dropped(), 7);
}

#[test]
fn a_tracer_that_is_dropped_exports_what_waits() {
    let (tracer, batches) = recording(settings(100, 100));
    let trace = Trace::builder("T").tracer(tracer).start();
    trace.custom_span("a", Value::Null).end();
    drop(trace);
    wait_until(|| *batches.lock().unwrap() == [["trace T", "a"]]);
}

/// A writer into memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a conversation, and returns the lines that are exported.
async fn exported(trace_sensitive_data: bool) -> Vec<Value> {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .input_guardrail(InputGuardrail::new("polite", |_ctx, _agent, _input| ()))
        .tool(tool::<()>("find").run(|ctx, (): ()| {
            ctx.custom_span("query", json!({"rows": 3})).end();
            "3 orders"
        }))
        .tool(tool("broken").run(|_ctx, (): ()| Err::<String, _>("row 7 is locked")))
        .handoff(&boss);
    let usage = Usage {
        requests: 1,
        input_tokens: 10,
        cached_tokens: 4,
        output_tokens: 3,
        reasoning_tokens: 1,
        ..Usage::default()
    };
    let calls = [
        Item::function_call("c1", "find", "{}"),
        Item::function_call("c2", "broken", "{}"),
        Item::function_call("c3", "transfer_to_boss", "{}"),
    ];
    let model = ScriptedModel::new()
        .respond_with(ModelResponse::new(calls).usage(usage))
        .respond_with(ModelResponse::new([Item::output_message("m", "Done.")]).usage(usage));
    let written = Shared::default();
    let tracer = BatchTracer::new(JsonExporter::new(written.clone()));
    let runner = Runner::new(&clerk)
        .model(model)
        .trace_sensitive_data(trace_sensitive_data)
        .workflow_name("Desk")
        .trace_group("chat_7")
        .trace_id("trace_of_mine")
        .trace_metadata("agent_harness_id", "h_1")
        .trace_metadata("customer", "c_42")
        .tracer(tracer.clone());
    runner.run("Hi").await.unwrap();
    tracer.shutdown(SOON).unwrap();
    let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let lines = written.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn traces_and_spans_are_written_as_the_reference_exports_them() {
    let lines = exported(true).await;
    assert_eq!(
        lines[0],
        json!({
            "object": "trace",
            "id": "trace_of_mine",
            "workflow_name": "Desk",
            "group_id": "chat_7",
            "metadata": {"agent_harness_id": "h_1", "customer": "c_42"},
        })
    );
    let spans = &lines[1..];
    for span in spans {
        let fields: Vec<&str> = span.as_object().unwrap().keys().map(|key| &**key).collect();
        assert_eq!(
            fields,
            [
                "object",
                "id",
                "trace_id",
                "parent_id",
                "started_at",
                "ended_at",
                "span_data",
                "error",
                "metadata"
            ]
        );
        assert_eq!(span["object"], "trace.span");
        assert_eq!(span["trace_id"], "trace_of_mine");
        assert_eq!(span["metadata"], json!({"agent_harness_id": "h_1"}));
        assert!(span["id"].as_str().unwrap().starts_with("span_"));
        assert_eq!(span["started_at"].as_str().unwrap().len(), 32, "{span}");
    }
    let data: Vec<&Value> = spans.iter().map(|span| &span["span_data"]).collect();
    let one = json!({"requests": 1, "input_tokens": 10, "output_tokens": 3, "total_tokens": 13,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1}});
    let of_turn = json!({"input_tokens": 10, "output_tokens": 3, "cached_input_tokens": 4,
        "cache_write_input_tokens": 0});
    assert_eq!(
        *data[0],
        json!({"type": "guardrail", "name": "polite", "triggered": false})
    );
    assert_eq!(
        *data[1],
        json!({"type": "generation", "input": [{"content": "Hi", "role": "user"}],
            "output": data[1]["output"], "model": "scripted", "model_config": null, "usage": one})
    );
    assert_eq!(data[1]["output"].as_array().unwrap().len(), 3);
    assert_eq!(
        *data[2],
        json!({"type": "custom", "name": "query", "data": {"rows": 3}})
    );
    assert_eq!(
        *data[3],
        json!({"type": "function", "name": "find", "input": "{}", "output": "3 orders",
            "mcp_data": null})
    );
    assert_eq!(
        spans[4]["error"],
        json!({"message": "Error running tool (non-fatal)",
            "data": {"tool_name": "broken", "error": "row 7 is locked"}})
    );
    assert_eq!(
        *data[5],
        json!({"type": "handoff", "from_agent": "Clerk", "to_agent": "Boss"})
    );
    assert_eq!(
        *data[6],
        json!({"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "turn": 1,
            "agent_name": "Clerk", "usage": of_turn}})
    );
    assert_eq!(
        *data[7],
        json!({"type": "agent", "name": "Clerk", "handoffs": ["Boss"],
            "tools": ["find", "broken"], "output_type": "str"})
    );
    assert_eq!(
        *data[11],
        json!({"type": "custom", "name": "task", "data": {"sdk_span_type": "task",
            "name": "Desk", "usage": {"input_tokens": 20, "output_tokens": 6,
            "cached_input_tokens": 8, "cache_write_input_tokens": 0, "requests": 2,
            "total_tokens": 26}}})
    );
    assert_eq!(
        (spans[11]["parent_id"].clone(), spans.len()),
        (Value::Null, 12)
    );
    assert_eq!(spans[7]["parent_id"], spans[11]["id"]);
}

#[tokio::test]
async fn nothing_of_the_conversation_is_written_without_sensitive_data() {
    let lines = exported(false).await;
    let generations = lines
        .iter()
        .filter(|line| line["span_data"]["type"] == "generation");
    for line in generations {
        let data = &line["span_data"];
        assert_eq!(
            (&data["input"], &data["output"]),
            (&Value::Null, &Value::Null)
        );
    }
    let text = Value::from(lines).to_string();
    for secret in ["Hi", "Done.", "3 orders", "row 7"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
