//! Sessions for tests.

use std::time::Duration;

use switchboard_core::run::ContextSource;
use switchboard_realtime::model::RealtimeModelCommand;
use switchboard_realtime::testing::ScriptedRealtimeModel;
use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner, RealtimeSession};

/// Opens a session with the default policy.
pub(crate) async fn connect(
    agent: &RealtimeAgent,
    model: &ScriptedRealtimeModel,
) -> RealtimeSession {
    open(RealtimeRunner::new(agent), model).await
}

/// Opens a session of a runner.
pub(crate) async fn open<C: Send + Sync + 'static, S: ContextSource<C>>(
    runner: RealtimeRunner<C, S>,
    model: &ScriptedRealtimeModel,
) -> RealtimeSession<C> {
    runner.model(model.clone()).connect().await.unwrap()
}

/// Reads events until one that `is_last` accepts, which is the last of the list.
pub(crate) async fn read_until<C: Send + Sync + 'static>(
    session: &mut RealtimeSession<C>,
    is_last: impl Fn(&RealtimeEvent) -> bool,
) -> Vec<RealtimeEvent> {
    let mut events = Vec::new();
    let read = async {
        while let Some(event) = session.next().await {
            events.push(event.unwrap());
            if events.last().is_some_and(&is_last) {
                return;
            }
        }
        panic!("the events have ended");
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    assert!(
        read.is_ok(),
        "the event did not come; so far: {:?}",
        names(&events)
    );
    events
}

/// Reads events until one of this name.
pub(crate) async fn read_until_event<C: Send + Sync + 'static>(
    session: &mut RealtimeSession<C>,
    name: &str,
) -> Vec<RealtimeEvent> {
    read_until(session, |event| event.name() == name).await
}

/// Reads events until the agent of this name has answered.
pub(crate) async fn read_answer_of<C: Send + Sync + 'static>(
    session: &mut RealtimeSession<C>,
    name: &str,
) -> Vec<RealtimeEvent> {
    let is_end = |event: &RealtimeEvent| matches!(event, RealtimeEvent::AgentEnd { agent } if **agent == *name);
    read_until(session, is_end).await
}

/// The names of events.
pub(crate) fn names(events: &[RealtimeEvent]) -> Vec<&'static str> {
    events.iter().map(RealtimeEvent::name).collect()
}

/// Waits until `is_so` holds.
pub(crate) async fn eventually(is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen");
}

/// The outputs of calls that were sent: the call, the output, and whether it asks for a response.
pub(crate) fn outputs(model: &ScriptedRealtimeModel) -> Vec<(String, String, bool)> {
    let sent = model.sent().into_iter();
    let outputs = sent.filter_map(|command| match command {
        RealtimeModelCommand::ToolOutput(output) => Some((
            output.tool_call.call_id.to_string(),
            output.output.to_string(),
            output.start_response,
        )),
        _ => None,
    });
    outputs.collect()
}

/// The instructions of the session updates that were sent.
pub(crate) fn updates(model: &ScriptedRealtimeModel) -> Vec<String> {
    let sent = model.sent().into_iter();
    let updates = sent.filter_map(|command| match command {
        RealtimeModelCommand::UpdateSession { settings, .. } => {
            Some(settings.instructions.unwrap_or_default().to_string())
        }
        _ => None,
    });
    updates.collect()
}
