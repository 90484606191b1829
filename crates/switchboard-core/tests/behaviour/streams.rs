//! What a streamed run tells.

use futures_util::StreamExt as _;
use futures_util::stream;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, BoxError, Item, Model, ModelEvent, ModelRequest, ModelResponse, Runner, StreamEvent,
    tool,
};

fn name(event: &StreamEvent) -> String {
    match event {
        StreamEvent::AgentUpdated(agent) => format!("agent {}", agent.name()),
        StreamEvent::Item(event, _) => event.as_str().to_owned(),
        StreamEvent::Model(ModelEvent::TextDelta { text, .. }) => format!("delta {text:?}"),
        StreamEvent::Model(ModelEvent::Completed(_)) => "completed".to_owned(),
        other => format!("{other:?}"),
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
    let runner = Runner::new(&a).model(model);
    let mut stream = runner.stream("x");
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(name(&event));
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
async fn a_stream_is_a_stream() {
    let a: Agent = Agent::new("A");
    let model = ScriptedModel::new().say("Hi");
    let events: Vec<String> = Runner::new(&a)
        .model(model)
        .stream("x")
        .map(|e| name(&e))
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
async fn nothing_is_waited_for_after_the_complete_answer() {
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
async fn an_answer_that_breaks_off_is_not_taken_for_complete() {
    let a: Agent = Agent::new("A").model(Broken);
    let error = Runner::new(&a).stream("x").finish().await.unwrap_err();
    assert!(error.is_model_behavior() && error.to_string().contains("without a complete answer"));
}
