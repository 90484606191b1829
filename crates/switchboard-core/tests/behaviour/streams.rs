//! Streamed runs and their events.

mod events;
mod handoffs;
mod held_back;
mod inner_events;
mod json;
mod last_event;
mod progress;
mod run_so_far;
mod threads;
mod tools;
mod turn_by_turn;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::stream;
use futures_util::task::{ArcWake, AtomicWaker, waker};
use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ModelEvent, Usage};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, EventKind, Item, Model, ModelRequest, ModelResponse, RunStream, Runner, StreamEvent,
    tool,
};

/// Returns the remaining events of a stream.
async fn collect(stream: &mut RunStream) -> Vec<StreamEvent> {
    stream.by_ref().collect().await
}

/// The events as JSON, without the times that tools took.
fn to_json(events: &[StreamEvent]) -> Vec<Value> {
    let to_json = |event| {
        let mut json = serde_json::to_value(event).unwrap();
        json.as_object_mut().unwrap().remove("seconds");
        json
    };
    events.iter().map(to_json).collect()
}

/// The type of an event in JSON.
fn type_of(event: &StreamEvent) -> String {
    #[derive(serde::Deserialize)]
    struct Typed {
        r#type: String,
    }
    let json = serde_json::to_string(event).unwrap();
    serde_json::from_str::<Typed>(&json).unwrap().r#type
}

/// A counter that a listener increments and a tool waits for.
#[derive(Clone, Default)]
struct Signal(Arc<(AtomicUsize, AtomicWaker)>);

impl Signal {
    fn increment(&self) {
        let (count, waiting) = &*self.0;
        count.fetch_add(1, Ordering::SeqCst);
        waiting.wake();
    }

    /// Waits until the counter has been incremented `times` times.
    async fn wait_for(&self, times: usize) {
        let (count, waiting) = &*self.0;
        poll_fn(|cx| {
            waiting.register(cx.waker());
            if count.load(Ordering::SeqCst) >= times {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// A response that used one request, 10 tokens of input and 2 of output.
fn response(items: impl IntoIterator<Item = Item>) -> ModelResponse {
    ModelResponse::new(items).usage(Usage {
        requests: 1,
        input_tokens: 10,
        output_tokens: 2,
        ..Usage::default()
    })
}

/// A short form of the events of agents, messages and items; `None` for the others.
fn short_form(event: StreamEvent) -> Option<String> {
    match event.kind {
        EventKind::AgentUpdated { .. } => Some(format!("agent {}", event.agent)),
        EventKind::Item { name, .. } => Some(name.as_str().to_owned()),
        EventKind::TextDelta { text, .. } => Some(format!("delta {text:?}")),
        EventKind::Usage { .. } => Some("completed".to_owned()),
        _ => None,
    }
}

#[tokio::test]
async fn events_come_in_the_order_things_happen() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A")
        .handoff(&b)
        .tool(tool("t").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .calls([("t", "{}"), ("transfer_to_b", "{}")])
        .say("All done.");
    let mut stream = Runner::new(&a).model(model).stream("x");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.extend(short_form(event));
    }
    assert_eq!(
        events,
        [
            "agent A",
            "completed",
            "tool_called",
            "handoff_requested",
            "tool_output",
            "handoff_occured",
            "agent B",
            "delta \"All \"",
            "delta \"done.\"",
            "completed",
            "message_output_created",
        ]
    );
    assert_eq!(stream.finish().await.unwrap().final_text(), "All done.");
}

#[tokio::test]
async fn a_run_stream_implements_stream() {
    let a: Agent = Agent::new("A");
    let model = ScriptedModel::new().say("Hi");
    let events: Vec<String> = Runner::new(&a)
        .model(model)
        .stream("x")
        .filter_map(|event| std::future::ready(short_form(event)))
        .collect()
        .await;
    assert_eq!(
        events,
        [
            "agent A",
            "delta \"Hi\"",
            "completed",
            "message_output_created"
        ]
    );
}

/// Counts how often it is woken.
#[derive(Debug, Default)]
struct Wakes(AtomicUsize);

impl ArcWake for Wakes {
    fn wake_by_ref(this: &Arc<Self>) {
        this.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_task_that_reads_a_stream_does_not_wake_itself() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(&b);
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .say("Seven.");
    let mut stream = Runner::new(&a).model(model).stream("How many?");
    let wakes: Arc<Wakes> = Arc::default();
    let waker = waker(wakes.clone());
    let mut context = Context::from_waker(&waker);
    let mut events = 0;
    while let Poll::Ready(Some(_)) = stream.poll_next_unpin(&mut context) {
        events += 1;
    }
    assert!(events > 8, "{events}");
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
}

/// A model that keeps the connection open after its answer.
struct Lingering;

impl Model for Lingering {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(ModelResponse::new([Item::output_message("m", "x")]))
    }

    fn stream(
        &self,
        _request: ModelRequest,
    ) -> impl stream::Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let answer = ModelResponse::new([Item::output_message("m", "x")]);
        stream::iter([Ok(ModelEvent::Completed(answer))]).chain(stream::pending())
    }
}

#[tokio::test]
async fn nothing_is_read_after_the_complete_answer() {
    let a: Agent = Agent::new("A").model(Lingering);
    let finished = tokio::time::timeout(
        std::time::Duration::from_secs(5),
        Runner::new(&a).stream("x").finish(),
    );
    assert_eq!(finished.await.unwrap().unwrap().final_text(), "x");
}

/// A model whose stream ends early.
struct Broken;

impl Model for Broken {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(ModelResponse::new([Item::output_message("m", "x")]))
    }

    fn stream(
        &self,
        _request: ModelRequest,
    ) -> impl stream::Stream<Item = Result<ModelEvent, BoxError>> + Send {
        stream::iter([Ok(ModelEvent::text_delta("m", "half"))])
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_complete() {
    let a: Agent = Agent::new("A").model(Broken);
    let error = Runner::new(&a).stream("x").finish().await.unwrap_err();
    assert!(error.is_model_behavior() && error.to_string().contains("without a complete answer"));
}
