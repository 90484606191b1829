//! Starting, watching, cancelling and taking over runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::journal::Transient;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Runner, Session as _, Tool, tool};
use switchboard_durable::{
    DurableErrorKind, DurableRun, DurableRunner, Embedded, RunEvent, RunStatus, Teams,
};
use tokio::sync::Notify;

use crate::world::LEASE;

fn agent(model: &ScriptedModel) -> Agent {
    Agent::new("Support").model(model.clone())
}

/// The text that a reader shows who obeys retractions, and the last position.
async fn shown(run: &DurableRun, after: Option<u64>) -> (String, Option<u64>) {
    let mut events = run.events(after);
    let mut texts: Vec<(u64, String)> = Vec::new();
    let mut last = after;
    while let Some(event) = events.next().await.unwrap() {
        last = Some(event.position());
        match event {
            RunEvent::Event {
                position, event, ..
            } => {
                if let EventKind::TextDelta { text, .. } = event.kind {
                    texts.push((position, text));
                }
            }
            RunEvent::Retracted { from, to, .. } => {
                texts.retain(|(position, _)| !(from..to).contains(position));
            }
            _ => {}
        }
    }
    (texts.into_iter().map(|(_, text)| text).collect(), last)
}

#[tokio::test]
async fn a_message_with_a_known_key_is_answered_once() {
    let model = ScriptedModel::new().say("Hello!").say("Again!");
    let store = Conversations::in_memory();
    let durable = DurableRunner::new(Embedded::new(store.clone()), &agent(&model));
    let first = durable.start("talk", "m1", "Hi").await.unwrap();
    let second = durable.start("talk", "m1", "Hi").await.unwrap();
    assert_eq!(first.id(), second.id());
    assert_eq!(
        first.wait().await.unwrap().text().as_deref(),
        Some("Hello!")
    );
    assert_eq!(
        second.wait().await.unwrap().text().as_deref(),
        Some("Hello!")
    );
    assert_eq!(model.requests().len(), 1);

    let third = durable.start("talk", "m2", "Hi again").await.unwrap();
    assert_eq!(
        third.wait().await.unwrap().text().as_deref(),
        Some("Again!")
    );
    assert_eq!(model.requests()[1].input.len(), 3);
    // Journals are no conversations.
    assert_eq!(store.list(None).await.unwrap().len(), 1);
    assert_eq!(durable.list(None).await.unwrap().len(), 2);
    let missing = durable.attach("talk/m3").await.unwrap_err();
    assert_eq!(missing.kind(), DurableErrorKind::NotFound);
}

#[tokio::test]
async fn a_reader_that_comes_again_continues_where_it_was() {
    let model = ScriptedModel::new().call("send", "{}").say("It is sent.");
    let send: Tool = tool("send").needs_approval().run(|_ctx, (): ()| "sent");
    let agent = agent(&model).tool(send);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Send it").await.unwrap();
    let (text, last) = shown(&run, None).await;
    assert_eq!(text, "");
    let RunStatus::Waiting { interruptions } = run.wait().await.unwrap().status else {
        panic!("the call waits");
    };
    run.decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("It is sent."));
    let (text, _) = shown(&run, last).await;
    assert_eq!(text, "It is sent.");
    let (whole, _) = shown(&run, None).await;
    assert_eq!(whole, "It is sent.");
    let late = run
        .decide(&interruptions[0], Decision::approve())
        .await
        .unwrap_err();
    assert_eq!(late.kind(), DurableErrorKind::NotWaiting);
}

#[tokio::test]
async fn a_reader_continues_after_any_event() {
    let look: Tool = tool("look").run(|_ctx, (): ()| "There are 7.");
    // More parts than an entry of a journal has events.
    let long = "word ".repeat(1_500);
    let model = ScriptedModel::new().call("look", "{}").say(&long);
    let agent = agent(&model).tool(look);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "How many?").await.unwrap();
    run.wait().await.unwrap();
    let all = read_all(&run, None).await;
    assert!(all.len() > 1_500, "{}", all.len());
    let (whole, _) = shown(&run, None).await;
    assert_eq!(whole, long);
    for (read, event) in all.iter().enumerate().step_by(97) {
        assert_eq!(
            read_all(&run, Some(event.position())).await,
            all[read + 1..]
        );
    }
    assert_eq!(read_all(&run, Some(u64::MAX)).await, []);
}

#[tokio::test]
async fn a_call_is_decided_once_also_before_a_process_takes_the_decision() {
    let model = ScriptedModel::new()
        .calls([("send", "{}"), ("send", "{}")])
        .say("Both are sent.");
    let send: Tool = tool("send").needs_approval().run(|_ctx, (): ()| "sent");
    let agent = agent(&model).tool(send);
    let engine = Embedded::new(Conversations::in_memory());
    let durable = DurableRunner::new(engine.clone(), &agent);
    let run = durable.start("talk", "m1", "Send both").await.unwrap();
    let RunStatus::Waiting { interruptions } = run.wait().await.unwrap().status else {
        panic!("the calls wait");
    };
    // No process has the run from now on.
    assert!(durable.drain(Duration::from_secs(30)).await);
    for waiting in &interruptions {
        run.decide(waiting, Decision::approve()).await.unwrap();
    }
    let refused = run.decide(&interruptions[0], Decision::reject()).await;
    assert_eq!(refused.unwrap_err().kind(), DurableErrorKind::NotWaiting);

    let other = DurableRunner::new(engine, &agent);
    assert_eq!(other.recover().await.unwrap(), 1);
    let run = other.attach(run.id()).await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Both are sent."));
}

async fn read_all(run: &DurableRun, after: Option<u64>) -> Vec<RunEvent> {
    let mut events = run.events(after);
    let mut read = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        read.push(event);
    }
    read
}

#[tokio::test]
async fn a_run_is_cancelled_while_a_tool_runs_and_while_it_waits() {
    let started = Arc::new(Notify::new());
    let slow: Tool = tool("slow").run({
        let started = started.clone();
        move |_ctx, (): ()| {
            let started = started.clone();
            async move {
                started.notify_one();
                std::future::pending::<&str>().await
            }
        }
    });
    let send: Tool = tool("send").needs_approval().run(|_ctx, (): ()| "sent");
    let model = ScriptedModel::new().call("slow", "{}").call("send", "{}");
    let agent = agent(&model).tool(slow).tool(send);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Go").await.unwrap();
    started.notified().await;
    run.cancel().await.unwrap();
    assert_eq!(run.wait().await.unwrap().status, RunStatus::Cancelled);

    let run = durable.start("other", "m1", "Send").await.unwrap();
    assert!(matches!(
        run.wait().await.unwrap().status,
        RunStatus::Waiting { .. }
    ));
    run.cancel().await.unwrap();
    let cancelled = loop {
        let record = run.wait().await.unwrap();
        if record.is_ended() {
            break record;
        }
    };
    assert_eq!(cancelled.status, RunStatus::Cancelled);
}

/// An agent whose tool notes the name of its process, and waits.
fn worker(
    name: &'static str,
    calls: &Arc<Mutex<Vec<&'static str>>>,
    may_end: &Arc<Notify>,
) -> Agent {
    let (calls, may_end) = (calls.clone(), may_end.clone());
    let work: Tool = tool("work").run(move |_ctx, (): ()| {
        let (calls, may_end) = (calls.clone(), may_end.clone());
        async move {
            calls.lock().unwrap().push(name);
            may_end.notified().await;
            format!("done by {name}")
        }
    });
    let model = ScriptedModel::new().call("work", "{}").say("Done.");
    Agent::new("Worker").model(model).tool(work)
}

#[tokio::test]
async fn a_process_that_has_a_run_keeps_it() {
    let engine = Embedded::new(Conversations::in_memory());
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let may_end = Arc::new(Notify::new());
    let first = DurableRunner::new(engine.clone(), &worker("first", &calls, &may_end));
    let run = first.start("talk", "m1", "Go").await.unwrap();
    while calls.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let second = DurableRunner::new(engine, &worker("second", &calls, &may_end));
    assert_eq!(second.recover().await.unwrap(), 0);
    let attached = second.attach(run.id()).await.unwrap();
    // This asks for the run to go on, and it does where it is.
    attached.resume().await.unwrap();
    may_end.notify_one();
    let ended = attached.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Done."));
    assert_eq!(*calls.lock().unwrap(), ["first"]);
}

#[tokio::test]
async fn of_two_processes_that_fight_for_a_run_one_wins_and_the_writes_of_the_other_are_refused() {
    let store = Conversations::in_memory();
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let (first_may_end, second_may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    // Its lease is over as soon as it is taken.
    let short = Embedded::new(store.clone()).lease(Duration::ZERO);
    let first = DurableRunner::new(short, &worker("first", &calls, &first_may_end));
    let run = first.start("talk", "m1", "Go").await.unwrap();
    while calls.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let engine = Embedded::new(store.clone());
    let second = DurableRunner::new(engine, &worker("second", &calls, &second_may_end));
    while calls.lock().unwrap().len() < 2 {
        second.recover().await.unwrap();
        tokio::task::yield_now().await;
    }
    first_may_end.notify_one();
    second_may_end.notify_one();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Done."));
    assert_eq!(*calls.lock().unwrap(), ["first", "second"]);
    let items = store.get("talk").load(None).await.unwrap();
    let outputs: Vec<_> = items.iter().filter_map(|item| item.output_text()).collect();
    assert_eq!(outputs, ["done by second"]);
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_and_others_are_not() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let book: Tool = tool("book").run({
        let attempts = attempts.clone();
        move |_ctx, (): ()| match attempts.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Transient::new("the database restarts")),
            _ => Ok("booked"),
        }
    });
    let model = ScriptedModel::new().call("book", "{}").say("It is booked.");
    let agent = agent(&model).tool(book);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &agent);
    let run = durable.start("talk", "m1", "Book it").await.unwrap();
    assert_eq!(
        run.wait().await.unwrap().text().as_deref(),
        Some("It is booked.")
    );
    assert_eq!(
        (attempts.load(Ordering::SeqCst), model.requests().len()),
        (2, 2)
    );

    let broken = Agent::new("Broken").model(ScriptedModel::new().fail("no such model"));
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), &broken);
    let run = durable.start("talk", "m1", "Hi").await.unwrap();
    let status = run.wait().await.unwrap().status;
    assert!(
        matches!(&status, RunStatus::Failed { message, .. } if message.contains("no such model"))
    );
}

#[tokio::test]
async fn a_team_that_has_changed_is_told_and_the_old_one_goes_on() {
    let store = Conversations::in_memory();
    let team = |name: &'static str, model: &ScriptedModel| {
        let send: Tool = tool(name).needs_approval().run(|_ctx, (): ()| "sent");
        let look: Tool = tool("look").run(|_ctx, (): ()| "seen");
        agent(model).tool(send).tool(look)
    };
    let engine = Embedded::new(store.clone()).lease(LEASE);
    let model = ScriptedModel::new()
        .call("send", "{}")
        .call("look", "{}")
        .say("Sent.");
    let old = team("send", &model);
    let first = DurableRunner::new(engine.clone(), &old);
    let run = first.start("talk", "m1", "Send it").await.unwrap();
    let RunStatus::Waiting { interruptions } = run.wait().await.unwrap().status else {
        panic!("the call waits");
    };
    drop(first);

    let renamed = DurableRunner::new(engine.clone(), &team("post", &ScriptedModel::new()));
    let attached = renamed.attach(run.id()).await.unwrap();
    attached
        .decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    let stopped = loop {
        let record = attached.wait().await.unwrap();
        if !matches!(record.status, RunStatus::Waiting { .. }) {
            break record;
        }
    };
    let RunStatus::Stopped { reason } = &stopped.status else {
        panic!("{stopped:?}");
    };
    assert!(reason.contains("send"), "{reason}");

    let again = DurableRunner::new(engine, &old);
    let attached = again.attach(run.id()).await.unwrap();
    attached.resume().await.unwrap();
    let ended = loop {
        let record = attached.wait().await.unwrap();
        if record.is_ended() {
            break record;
        }
    };
    assert_eq!(ended.text().as_deref(), Some("Sent."));
}

#[tokio::test]
async fn a_process_that_drains_lets_its_step_end_and_another_goes_on() {
    let store = Conversations::in_memory();
    let (started, may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let work: Tool = tool("work").run({
        let (started, may_end) = (started.clone(), may_end.clone());
        move |_ctx, (): ()| {
            let (started, may_end) = (started.clone(), may_end.clone());
            async move {
                started.notify_one();
                may_end.notified().await;
                "done"
            }
        }
    });
    let model = ScriptedModel::new().call("work", "{}").say("Finished.");
    let agent = agent(&model).tool(work);
    let engine = Embedded::new(store);
    let first = DurableRunner::new(engine.clone(), &agent);
    let run = first.start("talk", "m1", "Go").await.unwrap();
    started.notified().await;
    let drained = first.drain(Duration::from_secs(30));
    may_end.notify_one();
    assert!(drained.await);
    assert!(matches!(
        run.record().await.unwrap().status,
        RunStatus::Pending { .. }
    ));

    let second = DurableRunner::new(engine, &agent);
    assert_eq!(second.recover().await.unwrap(), 1);
    let attached = second.attach(run.id()).await.unwrap();
    assert_eq!(
        attached.wait().await.unwrap().text().as_deref(),
        Some("Finished.")
    );
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn code_in_a_tool_can_have_steps_of_its_own() {
    let done: Arc<Mutex<Vec<&str>>> = Arc::default();
    let book: Tool = tool("book").run({
        let done = done.clone();
        move |ctx: switchboard_core::ToolContext, (): ()| {
            let done = done.clone();
            async move {
                let reserve = async {
                    done.lock().unwrap().push("reserve");
                    Ok(7_u32)
                };
                let seat = ctx.run_context().step("reserve", reserve).await?;
                if done.lock().unwrap().len() == 1 {
                    done.lock().unwrap().push("fail");
                    return Err(Transient::new("charging failed").into());
                }
                Ok::<_, switchboard_core::callback::BoxError>(format!("seat {seat}"))
            }
        }
    });
    let model = ScriptedModel::new().call("book", "{}").say("Booked.");
    let agent = agent(&model).tool(book);
    let runner = Runner::new(&agent);
    let durable = DurableRunner::new(Embedded::new(Conversations::in_memory()), runner);
    let run = durable.start("talk", "m1", "Book").await.unwrap();
    assert_eq!(run.wait().await.unwrap().text().as_deref(), Some("Booked."));
    assert_eq!(*done.lock().unwrap(), ["reserve", "fail"]);
}

#[tokio::test]
async fn tools_that_have_run_are_stored_when_a_run_fails_for_good() {
    let refund: Tool = tool("refund").run(|_ctx, (): ()| "paid back");
    let book: Tool =
        tool("book").run(|_ctx, (): ()| Err::<&str, _>(Transient::new("the database restarts")));
    let model = ScriptedModel::new().calls([("refund", "{}"), ("book", "{}")]);
    let agent = agent(&model).tool(refund).tool(book);
    let store = Conversations::in_memory();
    let teams = Teams::new(&agent).retries(1);
    let durable = DurableRunner::new(Embedded::new(store.clone()), teams);
    let run = durable.start("talk", "m1", "Pay it back").await.unwrap();
    let ended = run.wait().await.unwrap();
    assert!(
        matches!(ended.status, RunStatus::Failed { .. }),
        "{ended:?}"
    );
    let items = store.get("talk").load(None).await.unwrap();
    let outputs: Vec<_> = items.iter().filter_map(|item| item.output_text()).collect();
    assert!(
        outputs.iter().any(|output| output == "paid back"),
        "{outputs:?}"
    );
}
