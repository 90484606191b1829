//! Streams of events, beside steps that are written.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::model::ModelEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, EventKind, Item, Model, ModelRequest, ModelResponse, Tool, ToolContext, tool,
};
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunEvent, RunStatus};
use tokio::time::{Instant, sleep};

use crate::fault_store::FaultStore;

#[tokio::test]
async fn what_a_tool_reports_just_before_it_ends_is_not_retracted() {
    let import: Tool = tool("import").run(|ctx: ToolContext, (): ()| async move {
        // Until everything before is stored.
        sleep(Duration::from_millis(150)).await;
        ctx.report_progress(json!({"files": 3}));
        "imported"
    });
    let send: Tool = tool("send").needs_approval().run(|_ctx, (): ()| "sent");
    let model = ScriptedModel::new()
        .call("import", "{}")
        .call("send", "{}")
        .say("Sent.");
    let agent: Agent = Agent::new("Desk").model(model).tool(import).tool(send);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Send it").await.unwrap();
    let RunStatus::Waiting { interruptions } = run.wait().await.unwrap().status else {
        panic!("the call waits");
    };
    // The journal is read again.
    run.decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    ended(&run).await;
    let (mut reports, mut retracted) = (0, 0);
    let mut events = run.events(None);
    while let Some(event) = events.next().await.unwrap() {
        match event {
            RunEvent::Event { event, .. } => {
                let is_report = matches!(event.kind, EventKind::ToolProgress { .. });
                reports += usize::from(is_report);
            }
            _ => retracted += 1,
        }
    }
    assert_eq!((reports, retracted), (1, 0));
}

async fn ended(run: &DurableRun) {
    while !run.wait().await.unwrap().is_ended() {}
}

/// A model that answers in 100 pieces, for two seconds.
struct Talker;

impl Model for Talker {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(answer())
    }

    fn stream(
        &self,
        _request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let pieces = stream::iter(0..100).then(|_| async {
            sleep(Duration::from_millis(20)).await;
            Ok(ModelEvent::TextDelta {
                item: "m1".into(),
                text: "a".to_owned(),
            })
        });
        pieces.chain(stream::iter([Ok(ModelEvent::Completed(answer()))]))
    }
}

fn answer() -> ModelResponse {
    ModelResponse::new([Item::output_message("m1", &"a".repeat(100))])
}

#[tokio::test(start_paused = true)]
async fn steps_do_not_wait_for_writes_of_events_that_a_slow_store_has_not_kept_up_with() {
    let latency = Duration::from_millis(200);
    let store = Conversations::new(FaultStore::slow(Conversations::in_memory(), latency));
    let agent: Agent = Agent::new("Talker").model(Talker);
    let durable = DurableRunner::new(Embedded::new(store), &agent);
    let begun = Instant::now();
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    ended(&run).await;
    // Two seconds of the model, and a few calls before and after it.
    let time = begun.elapsed();
    assert!(time < Duration::from_millis(4_500), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_interrupted_more_often_than_the_store_answers_gets_on() {
    let latency = Duration::from_millis(200);
    let store = Conversations::new(FaultStore::slow(Conversations::in_memory(), latency));
    let agent: Agent = Agent::new("Talker").model(Talker);
    let durable = DurableRunner::new(Embedded::new(store), &agent);
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    let mut events = run.events(None);
    let (mut text, begun) = (String::new(), Instant::now());
    while begun.elapsed() < Duration::from_secs(10) {
        let event = tokio::select! {
            event = events.next() => event.unwrap(),
            () = sleep(Duration::from_millis(50)) => continue,
        };
        let Some(event) = event else { break };
        if let RunEvent::Event { event, .. } = event
            && let EventKind::TextDelta { text: piece, .. } = event.kind
        {
            text.push_str(&piece);
        }
    }
    assert_eq!(text, "a".repeat(100));
}
