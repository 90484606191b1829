//! Tools that have not finished: their runs pause, and the tools are called again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{ConversationStore as _, Conversations};
use switchboard_core::journal::{Later, Transient};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, Session as _, Tool, ToolContext, tool};
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunEvent, RunRecord, RunStatus};

/// A tool that has finished this long after it was called first. Notes the keys of its calls.
fn reminder(pause: Duration, keys: &Arc<Mutex<Vec<String>>>) -> Tool {
    let keys = keys.clone();
    tool("remind").run(move |ctx: ToolContext, (): ()| {
        keys.lock().unwrap().push(ctx.idempotency_key());
        async move {
            let begin = async { Ok::<_, BoxError>(SystemTime::now()) };
            let due = ctx.run_context().step("begin", begin).await? + pause;
            if SystemTime::now() < due {
                return Err(Later::at(due).into());
            }
            Ok::<_, BoxError>("It is time.")
        }
    })
}

fn agent(model: &ScriptedModel, tool: Tool) -> Agent {
    Agent::new("Support").model(model.clone()).tool(tool)
}

fn script() -> ScriptedModel {
    ScriptedModel::new()
        .call("remind", "{}")
        .say("You are reminded.")
}

/// Waits until a run has paused.
async fn paused(run: &DurableRun) -> RunRecord {
    loop {
        let record = run.record().await.unwrap();
        if matches!(&record.status, RunStatus::Pending { reason: Some(_) }) {
            return record;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_tool_that_has_not_finished_is_called_again_with_the_same_key() {
    let (model, keys) = (script(), Arc::default());
    let agent = agent(&model, reminder(Duration::from_millis(60), &keys));
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    let record = paused(&run).await;
    let RunStatus::Pending { reason } = &record.status else {
        panic!("{record:?}");
    };
    assert!(reason.as_ref().unwrap().contains("remind"), "{reason:?}");
    assert!(record.due > Some(record.changed) && record.failures == 0);
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("You are reminded."));
    let keys = keys.lock().unwrap().clone();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_tool_that_may_begin_once_and_says_that_it_has_not_finished_is_called_again() {
    let (model, calls) = (script(), Arc::new(AtomicUsize::new(0)));
    let remind: Tool = tool("remind").at_most_once().run({
        let calls = calls.clone();
        move |_ctx, (): ()| {
            let number = calls.fetch_add(1, Ordering::SeqCst);
            async move {
                match number {
                    0 => Err(Later::after(Duration::from_millis(20)).into()),
                    1 => Err(Transient::new("the calendar restarts").into()),
                    _ => Ok::<_, BoxError>("It is time."),
                }
            }
        }
    });
    let agent = agent(&model, remind);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("You are reminded."));
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let requests = model.requests();
    let output = requests[1].input.last().unwrap().output().unwrap();
    assert!(output.to_string().contains("It is time."), "{output:?}");
}

#[tokio::test]
async fn a_message_behind_a_run_that_waits_for_long_is_in_no_memory_either() {
    let (model, keys) = (script(), Arc::default());
    let agent = agent(&model, reminder(Duration::from_secs(24 * 3600), &keys));
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store), &agent);
    let first = durable.start("talk", "m1", "Remind me").await.unwrap();
    paused(&first).await;
    let second = durable.start("talk", "m2", "Hi").await.unwrap();
    let soon = SystemTime::now() + Duration::from_secs(30);
    let put_off = loop {
        let record = second.record().await.unwrap();
        if record.due > Some(soon) {
            break record;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(put_off.status, RunStatus::Pending { reason: None });
    // Not for the whole day: the first may be resumed before.
    assert!(put_off.due < Some(soon + Duration::from_secs(60)));
    assert_eq!(durable.recover().await.unwrap(), 0);
    // Nothing is left to drain.
    assert!(durable.drain(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_run_that_waits_for_long_is_in_no_memory_and_goes_on_when_it_is_due_or_asked_to() {
    let (model, keys) = (script(), Arc::default());
    let agent = agent(&model, reminder(Duration::from_secs(24 * 3600), &keys));
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    paused(&run).await;
    // Nothing is left to drain, and it is not due.
    assert!(durable.drain(Duration::from_secs(5)).await);
    // The first answer is recorded.
    let (rest, more) = (
        ScriptedModel::new().say("You are reminded."),
        Arc::default(),
    );
    let other = self::agent(&rest, reminder(Duration::ZERO, &more));
    let durable = DurableRunner::new(Embedded::new(store), &other);
    assert_eq!(durable.recover().await.unwrap(), 0);
    assert_eq!(keys.lock().unwrap().len(), 1);
    // The work that the tool waits for has ended early.
    durable
        .attach(run.id())
        .await
        .unwrap()
        .resume()
        .await
        .unwrap();
    let attached = durable.attach(run.id()).await.unwrap();
    let ended = attached.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("You are reminded."));
    assert_eq!(*more.lock().unwrap(), *keys.lock().unwrap());
}

#[tokio::test]
async fn a_run_that_waits_for_long_is_cancelled_and_the_next_message_is_answered() {
    let model = script().say("Hello!");
    let agent = agent(
        &model,
        reminder(Duration::from_secs(24 * 3600), &Arc::default()),
    );
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    paused(&run).await;
    run.cancel().await.unwrap();
    assert_eq!(run.wait().await.unwrap().status, RunStatus::Cancelled);
    let next = durable.start("talk", "m2", "Hi").await.unwrap();
    let ended = next.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("You are reminded."));
}

#[tokio::test]
async fn a_run_inside_a_tool_that_has_not_finished_pauses_the_run_around_it() {
    let keys = Arc::default();
    let model = ScriptedModel::new()
        .call("ask", r#"{"input":"Remind me"}"#)
        .call("remind", "{}")
        .say("The inner one is reminded.")
        .say("You are reminded.");
    let inner = agent(&model, reminder(Duration::from_millis(40), &keys));
    let outer: Agent = Agent::new("Desk")
        .model(model.clone())
        .tool(inner.as_tool("ask"));
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &outer);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(
        ended.text().as_deref(),
        Some("You are reminded."),
        "{ended:?}"
    );
    assert_eq!((keys.lock().unwrap().len(), model.requests().len()), (2, 4));
}

#[tokio::test]
async fn a_run_without_a_journal_waits_where_it_is() {
    let calls = Arc::new(AtomicUsize::new(0));
    let poll: Tool = tool("remind").run({
        let calls = calls.clone();
        move |_ctx, (): ()| match calls.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(Later::after(Duration::from_millis(5))),
            _ => Ok("done"),
        }
    });
    let agent = agent(&script(), poll);
    let result = Runner::new(&agent).run("Remind me").await.unwrap();
    assert_eq!(result.final_text(), "You are reminded.");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_message_waits_for_the_one_before_that_has_paused() {
    let (model, keys) = (script().say("Hello!"), Arc::default());
    let agent = agent(&model, reminder(Duration::from_millis(300), &keys));
    let store = Conversations::in_memory();
    let first = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let run = first.start("talk", "m1", "Remind me").await.unwrap();
    paused(&run).await;
    // In this process, and in another.
    let second = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let next = second.start("talk", "m2", "Hi").await.unwrap();
    let ended = next.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Hello!"));
    assert_eq!(
        run.record().await.unwrap().text().as_deref(),
        Some("You are reminded.")
    );
    let items = store.get("talk").load(None).await.unwrap();
    let texts: Vec<String> = items
        .iter()
        .map(|item| {
            item.text()
                .map(|text| text.into_owned())
                .unwrap_or_default()
        })
        .filter(|text| !text.is_empty())
        .collect();
    assert_eq!(texts, ["Remind me", "You are reminded.", "Hi", "Hello!"]);
}

#[tokio::test]
async fn a_message_behind_a_run_that_has_paused_writes_nothing_while_it_waits() {
    let agent = agent(
        &script(),
        reminder(Duration::from_secs(3600), &Arc::default()),
    );
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    paused(&run).await;
    let next = durable.start("talk", "m2", "Hi").await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let journal = store
        .head("switchboard-run:talk/m2")
        .await
        .unwrap()
        .unwrap();
    // The message itself.
    assert_eq!(journal.revision.next, 1);
    let status = next.record().await.unwrap().status;
    assert_eq!(status, RunStatus::Pending { reason: None });
}

#[tokio::test]
async fn the_stream_of_a_run_that_pauses_does_not_tell_that_it_has_failed() {
    let agent = agent(
        &script(),
        reminder(Duration::from_millis(40), &Arc::default()),
    );
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    run.wait().await.unwrap();
    let mut kinds = Vec::new();
    let mut events = run.events(None);
    while let Some(event) = events.next().await.unwrap() {
        if let RunEvent::Event { event, .. } = event {
            let json = serde_json::to_value(&*event).unwrap();
            kinds.push(json["type"].as_str().unwrap().to_owned());
        }
    }
    assert!(!kinds.iter().any(|kind| kind == "run_failed"), "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("run_finished"));
}

#[tokio::test]
async fn a_message_that_is_sent_again_while_its_run_pauses_does_not_shorten_the_pause() {
    let keys = Arc::default();
    let agent = agent(&script(), reminder(Duration::from_secs(3600), &keys));
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    paused(&run).await;
    for _ in 0..3 {
        durable.start("talk", "m1", "Remind me").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(keys.lock().unwrap().len(), 1);
}
