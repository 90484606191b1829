//! Runs on an engine with a log of its own, which compares the calls of an execution with those of the one before.

mod behind;
pub(crate) mod engine;
mod retries;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{ConversationStore as _, Conversations, JOURNAL_PREFIX};
use switchboard_core::journal::{Later, Transient};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::ToolContext;
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, Runner, Tool, tool};
use switchboard_durable::{DurableRun, DurableRunner, Embedded, RunEvent, RunStatus};
use tokio::sync::Notify;

use self::engine::{Call, Logged};
use crate::fault_store::Moment;
use crate::world::{Note, check_effects, decide_until_ended, outcome, runner, undisturbed};

/// Runs a conversation whose process is gone at a batch, and goes on in another one. Returns the outcome, the side
/// effects and the number of batches.
async fn interrupted(
    team: impl Fn(&Note) -> Runner,
    crash: Option<(usize, Moment)>,
) -> (Vec<String>, Vec<String>, usize) {
    let store = Conversations::in_memory();
    let (note, notes) = noting();
    let settings = Logged::new(&store, crash);
    let first = DurableRunner::new(settings.clone(), team(&note));
    let run = first.start("talk", "m1", "Hello").await.unwrap();
    tokio::select! {
        _ = decide_until_ended(&run) => {}
        () = settings.crashed.notified() => {}
    }
    let second = DurableRunner::new(settings.after_crash(), team(&note));
    let run = second.start("talk", "m1", "Hello").await.unwrap();
    let record = decide_until_ended(&run).await;
    let lines = outcome(&store, &record).await;
    let unread = settings.ended(1).await;
    assert!(unread.iter().all(|unread| *unread == 0), "{unread:?}");
    let batches = settings
        .log(&run.record().await.unwrap().log_name())
        .batches
        .lock()
        .unwrap()
        .len();
    let notes = notes.lock().unwrap().clone();
    (lines, notes, batches)
}

fn noting() -> (Note, Arc<Mutex<Vec<String>>>) {
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = notes.clone();
    let note: Note = Arc::new(move |effect: &str| noted.lock().unwrap().push(effect.to_owned()));
    (note, notes)
}

#[tokio::test]
async fn a_run_with_a_log_that_loses_its_process_at_any_batch_ends_as_one_that_does_not() {
    for seed in [1, 4] {
        let team = |note: &Note| runner(seed, note);
        let (expected, _) = undisturbed(seed).await;
        let (lines, _, batches) = interrupted(team, None).await;
        assert_eq!(lines, expected, "seed {seed}");
        for at in (1..=batches).step_by(2) {
            for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
                let (lines, notes, _) = interrupted(team, Some((at, moment))).await;
                assert_eq!(lines, expected, "seed {seed}, batch {at}, {moment:?}");
                check_effects(&notes);
            }
        }
    }
}

/// Calls a tool with many steps and an agent that pays, at once.
struct BusyModel;

impl Model for BusyModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let is_first = request.input.iter().all(|item| item.output().is_none());
        Ok(ModelResponse::new(match request.agent.as_deref() {
            Some("Desk") if is_first => vec![
                Item::function_call("c1", "work", "{}"),
                Item::function_call("c2", "ask", r#"{"input":"Pay"}"#),
            ],
            Some("Cashier") if is_first => vec![Item::function_call("c3", "pay", "{}")],
            _ => vec![Item::output_message("m1", "Done.")],
        }))
    }
}

fn busy_team(note: &Note) -> Runner {
    let work: Tool = tool("work").run(|ctx: ToolContext, (): ()| async move {
        for part in 0..24 {
            let part = async move { Ok::<u32, BoxError>(part) };
            ctx.run_context().step("part", part).await?;
        }
        Ok::<&str, BoxError>("worked")
    });
    let note = note.clone();
    let pay: Tool = tool("pay")
        .at_most_once()
        .run(move |ctx: ToolContext, (): ()| {
            note(&format!("pay {}", ctx.idempotency_key()));
            "paid"
        });
    let cashier: Agent = Agent::new("Cashier").tool(pay);
    let desk: Agent = Agent::new("Desk").tool(work).tool(cashier.as_tool("ask"));
    Runner::new(&desk).model(BusyModel)
}

#[tokio::test]
async fn a_tool_that_may_run_once_begins_after_that_is_recorded_beside_other_steps() {
    let (expected, notes, batches) = interrupted(busy_team, None).await;
    assert_eq!(notes.len(), 1);
    for at in 1..=batches {
        let (lines, notes, _) = interrupted(busy_team, Some((at, Moment::BeforeWrite))).await;
        check_effects(&notes);
        assert_eq!(lines, expected, "batch {at}");
    }
}

/// A run of a random team that has begun to wait, and the number of executions before it.
async fn waiting(settings: &Logged, note: &Note) -> (DurableRun, usize) {
    for number in 0.. {
        let durable = DurableRunner::new(settings.clone(), runner(0, note));
        let message = format!("Hello, this is number {number}");
        let run = durable.start(&number.to_string(), "m1", &*message).await;
        let run = run.unwrap();
        if !run.wait().await.unwrap().is_ended() {
            return (run, number);
        }
        settings.ended(number + 1).await;
    }
    unreachable!("some run waits")
}

#[tokio::test]
async fn an_execution_of_a_run_that_has_ended_makes_the_calls_of_before_and_nothing_else() {
    let store = Conversations::in_memory();
    let (note, notes) = noting();
    let settings = Logged::new(&store, None);
    let (run, before) = waiting(&settings, &note).await;
    let ended = decide_until_ended(&run).await;
    settings.ended(before + 1).await;
    let (log, effects) = (
        settings.log(&run.record().await.unwrap().log_name()),
        notes.lock().unwrap().clone(),
    );
    let batches = log.batches.lock().unwrap().clone();

    let again = DurableRunner::new(settings.clone(), runner(0, &note));
    let run = again
        .start(&ended.conversation, "m1", "Hello")
        .await
        .unwrap();
    assert_eq!(settings.ended(before + 2).await[before + 1], 0);
    // The last commit to the conversation is not recorded, as the state of the run says enough: that it is not is another call.
    let calls = log.batches.lock().unwrap().clone();
    let (before, after) = calls.split_at(batches.len());
    assert_eq!(before, batches);
    assert_eq!(after, [(Call::Next, "[]".to_owned())]);
    assert_eq!(*notes.lock().unwrap(), effects);
    assert_eq!(run.record().await.unwrap(), ended);
}

#[tokio::test]
async fn a_run_that_waits_in_a_log_is_cancelled_by_its_execution_or_the_next_one() {
    let store = Conversations::in_memory();
    let (note, _) = noting();
    let settings = Logged::new(&store, None);
    let (run, before) = waiting(&settings, &note).await;
    run.cancel().await.unwrap();
    assert_eq!(settings.ended(before + 1).await[before], 0);
    assert_eq!(run.record().await.unwrap().status, RunStatus::Cancelled);
    // The end of its execution was lost.
    let again = DurableRunner::new(settings.clone(), runner(0, &note));
    let conversation = run.record().await.unwrap().conversation;
    again.start(&conversation, "m1", "Hello").await.unwrap();
    assert_eq!(settings.ended(before + 2).await[before + 1], 0);

    // Cancelled while no process has it.
    let batches = settings
        .log(&run.record().await.unwrap().log_name())
        .batches
        .lock()
        .unwrap()
        .clone();
    let wait = batches.iter().position(|(call, _)| *call == Call::Wait);
    let crash = Some((wait.unwrap() + 1, Moment::AfterWrite));
    let store = Conversations::in_memory();
    let settings = Logged::new(&store, crash);
    let first = DurableRunner::new(settings.clone(), runner(0, &note));
    let message = format!("Hello, this is number {conversation}");
    let run = first.start(&conversation, "m1", &*message).await.unwrap();
    settings.crashed.notified().await;
    run.cancel().await.unwrap();
    let second = DurableRunner::new(settings.after_crash(), runner(0, &note));
    let run = second.start(&conversation, "m1", &*message).await.unwrap();
    assert_eq!(settings.ended(1).await, [0]);
    assert_eq!(run.record().await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_run_that_was_cancelled_and_whose_log_breaks_is_ended_by_its_next_execution() {
    let breaks = Arc::new(Notify::new());
    let mut settings = Logged::new(&Conversations::in_memory(), None);
    settings.breaks = Some((2, breaks.clone()));
    let model = ScriptedModel::new().call("look", "{}");
    let look: Tool = tool("look").run(|_ctx, (): ()| "nothing");
    let agent: Agent = Agent::new("Support").model(model).tool(look);
    let durable = DurableRunner::new(settings.clone(), &agent);
    let run = durable.start("talk", "m1", "Look").await.unwrap();
    settings.crashed.notified().await;
    run.cancel().await.unwrap();
    // Long enough for the run to learn of it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    breaks.notify_one();
    settings.ended(1).await;
    // The log has not what the run did last, so that the run has not ended.
    let record = run.record().await.unwrap();
    assert_eq!(record.status, RunStatus::Running {});

    let again = DurableRunner::new(settings.after_crash(), &agent);
    again.start("talk", "m1", "Look").await.unwrap();
    assert_eq!(settings.ended(2).await[1], 0);
    let record = run.record().await.unwrap();
    assert_eq!(record.status, RunStatus::Cancelled);
}

/// Calls a tool that has not finished at first, beside one that pays, and then another one.
struct PatientModel;

impl Model for PatientModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let outputs = request.input.iter().filter(|item| item.output().is_some());
        Ok(ModelResponse::new(match outputs.count() {
            0 => vec![
                Item::function_call("c1", "remind", "{}"),
                Item::function_call("c2", "pay", "{}"),
            ],
            2 => vec![Item::function_call("c3", "remind", "{}")],
            _ => vec![Item::output_message("m1", "Done.")],
        }))
    }
}

fn patient_team(note: &Note, pause: Duration) -> Runner {
    let remind: Tool = tool("remind").run(move |ctx: ToolContext, (): ()| async move {
        let begin = async { Ok::<_, BoxError>(SystemTime::now()) };
        let due = ctx.run_context().step("begin", begin).await? + pause;
        if SystemTime::now() < due {
            return Err(Later::at(due).into());
        }
        Ok::<_, BoxError>("It is time.")
    });
    let note = note.clone();
    let pay: Tool = tool("pay")
        .at_most_once()
        .run(move |ctx: ToolContext, (): ()| {
            note(&format!("pay {}", ctx.idempotency_key()));
            "pay is done"
        });
    let desk: Agent = Agent::new("Desk").tool(remind).tool(pay);
    Runner::new(&desk).model(PatientModel)
}

#[tokio::test]
async fn a_run_that_waits_for_times_and_loses_its_process_at_any_batch_ends_as_one_that_does_not() {
    // Long enough that nothing delays the tool until it has finished.
    let team = |note: &Note| patient_team(note, Duration::from_millis(500));
    let (expected, notes, batches) = interrupted(team, None).await;
    assert_eq!(notes.len(), 1);
    // Three answers, three tools, and two waits, each with a mark, a beginning and an end.
    assert!(batches >= 12, "{batches}");
    let team = |note: &Note| patient_team(note, Duration::from_millis(8));
    for at in 1..=batches {
        for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
            let (lines, notes, _) = interrupted(team, Some((at, moment))).await;
            assert_eq!(lines, expected, "batch {at}, {moment:?}");
            check_effects(&notes);
        }
    }
}

/// Reports progress, has not finished at first, and then fails for a reason that may pass.
fn unfinished_team() -> Agent {
    let calls = AtomicUsize::new(0);
    let work: Tool = tool("work").run(move |ctx: ToolContext, (): ()| {
        ctx.report_progress(json!({"part": 1}));
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Later::after(Duration::from_millis(20)).into()),
            1 => Err(Transient::new("the disk is full").into()),
            _ => Ok::<_, BoxError>("worked"),
        }
    });
    let model = ScriptedModel::new().call("work", "{}").say("It is done.");
    Agent::new("Desk").model(model).tool(work)
}

/// The events of a run that has ended, without those that were retracted, and the number of these.
async fn events(run: &DurableRun) -> (Vec<Value>, usize) {
    let mut events = run.events(None);
    let (mut shown, mut retracted) = (Vec::new(), 0);
    while let Some(event) = events.next().await.unwrap() {
        match event {
            RunEvent::Event {
                position, event, ..
            } => {
                let mut json = serde_json::to_value(&event).unwrap();
                // The duration of a tool.
                json.as_object_mut().unwrap().remove("seconds");
                shown.push((position, json));
            }
            RunEvent::Retracted { from, to, .. } => {
                let before = shown.len();
                shown.retain(|(position, _)| !(from..to).contains(position));
                retracted += before - shown.len();
            }
            _ => {}
        }
    }
    (shown.into_iter().map(|(_, json)| json).collect(), retracted)
}

#[tokio::test]
async fn a_run_with_a_log_that_pauses_sends_each_event_once_and_retracts_those_of_attempts() {
    let embedded = Embedded::new(Conversations::in_memory());
    let stored = DurableRunner::new(embedded, &unfinished_team());
    let run = stored.start("talk", "m1", "Work").await.unwrap();
    run.wait().await.unwrap();
    let expected = events(&run).await;
    assert_eq!(expected.1, 2);

    let store = Conversations::in_memory();
    let settings = Logged::new(&store, None);
    let durable = DurableRunner::new(settings.clone(), &unfinished_team());
    let run = durable.start("talk", "m1", "Work").await.unwrap();
    run.wait().await.unwrap();
    settings.ended(1).await;
    assert_eq!(events(&run).await, expected);

    // An execution that makes the calls of before sends nothing.
    let journal = format!("{JOURNAL_PREFIX}{}", run.id());
    let before = store.head(&journal).await.unwrap().unwrap();
    durable.start("talk", "m1", "Work").await.unwrap();
    assert_eq!(settings.ended(2).await[1], 0);
    let after = store.head(&journal).await.unwrap().unwrap();
    assert_eq!(after.revision, before.revision);
}

#[tokio::test]
async fn a_tool_that_may_begin_once_and_has_not_finished_is_called_again_by_a_run_with_a_log() {
    let settings = Logged::new(&Conversations::in_memory(), None);
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let remind: Tool = tool("remind").at_most_once().run({
        let calls = calls.clone();
        move |ctx: ToolContext, (): ()| {
            let mut calls = calls.lock().unwrap();
            calls.push(ctx.idempotency_key());
            match calls.len() {
                1 => Err(Later::after(Duration::from_millis(20)).into()),
                _ => Ok::<_, BoxError>("It is time."),
            }
        }
    });
    let model = ScriptedModel::new().call("remind", "{}").say("Done.");
    let agent: Agent = Agent::new("Support").model(model.clone()).tool(remind);
    let durable = DurableRunner::new(settings.clone(), &agent);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Done."));
    let requests = model.requests();
    let output = requests[1].input.last().unwrap().output().unwrap();
    assert!(output.to_string().contains("It is time."), "{output:?}");
    // An execution that makes it all again finds the same calls.
    settings.ended(1).await;
    let again = DurableRunner::new(settings.clone(), &agent);
    again.start("talk", "m1", "Remind me").await.unwrap();
    settings.ended(2).await;
    let calls = calls.lock().unwrap().clone();
    assert!(calls.len() == 2 && calls[0] == calls[1], "{calls:?}");
}

#[tokio::test]
async fn a_run_that_waits_for_a_time_in_a_log_is_resumed_and_cancelled_before_it() {
    for is_cancelled in [true, false] {
        let settings = Logged::new(&Conversations::in_memory(), None);
        let (note, _) = noting();
        let team = patient_team(&note, Duration::from_secs(24 * 3600));
        let durable = DurableRunner::new(settings.clone(), team);
        let run = durable.start("talk", "m1", "Remind me").await.unwrap();
        let paused = async || loop {
            let record = run.record().await.unwrap();
            if matches!(record.status, RunStatus::Pending { reason: Some(_) }) {
                return record;
            }
            tokio::task::yield_now().await;
        };
        let before = paused().await;
        assert_eq!(before.wake.as_deref(), Some("wake"));
        if is_cancelled {
            run.cancel().await.unwrap();
            assert_eq!(settings.ended(1).await, [0]);
            assert_eq!(run.record().await.unwrap().status, RunStatus::Cancelled);
        } else {
            // The tool is asked again, and has still not finished.
            run.resume().await.unwrap();
            while paused().await.changed == before.changed {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test]
async fn the_result_of_a_run_with_a_log_is_made_again_from_the_store() {
    let settings = Logged::new(&Conversations::in_memory(), None);
    let (note, notes) = noting();
    let durable = DurableRunner::new(settings.clone(), runner(0, &note));
    for number in 0..4 {
        let message = format!("Hello, this is number {number}");
        let run = durable.start(&number.to_string(), "m1", &*message).await;
        let run = run.unwrap();
        let ended = decide_until_ended(&run).await;
        let effects = notes.lock().unwrap().clone();
        let result = run.result().await.unwrap();
        assert_eq!(*notes.lock().unwrap(), effects, "nothing takes place again");
        match (&ended.status, result) {
            (RunStatus::Done { output }, Ok(result)) => {
                assert_eq!(result.final_output().unwrap().to_value(), *output);
            }
            (RunStatus::Failed { kind, .. }, Err(error)) => assert_eq!(error.kind(), *kind),
            (status, _) => panic!("{status:?}"),
        }
    }
}

#[tokio::test]
async fn a_run_with_a_log_that_has_stopped_goes_on_with_a_new_log_and_its_steps() {
    let store = Conversations::in_memory();
    let settings = Logged::new(&store, None);
    let effects: Arc<Mutex<Vec<&str>>> = Arc::default();
    let team = |name: &'static str, model: &ScriptedModel| {
        let effects = effects.clone();
        let noted = move |effect| {
            let effects = effects.clone();
            move |_ctx, (): ()| {
                effects.lock().unwrap().push(effect);
                "done"
            }
        };
        let look: Tool = tool("look").run(noted("look"));
        let send: Tool = tool(name).needs_approval().run(noted("send"));
        let agent: Agent = Agent::new("Support")
            .model(model.clone())
            .tool(look)
            .tool(send);
        agent
    };
    let model = ScriptedModel::new()
        .call("look", "{}")
        .call("send", "{}")
        .say("Sent.");
    let first = DurableRunner::new(settings.clone(), &team("send", &model));
    let run = first.start("talk", "m1", "Send it").await.unwrap();
    let RunStatus::Waiting { interruptions } = run.wait().await.unwrap().status else {
        panic!("the call waits");
    };
    // Its process is gone; the tool has another name in the next one.
    assert_eq!(run.record().await.unwrap().log, 0);
    let renamed = DurableRunner::new(settings.clone(), &team("post", &ScriptedModel::new()));
    renamed.start("talk", "m1", "Send it").await.unwrap();
    let other = renamed.attach(run.id()).await.unwrap();
    other
        .decide(&interruptions[0], Decision::approve())
        .await
        .unwrap();
    let stopped = loop {
        let record = other.record().await.unwrap();
        if !matches!(
            record.status,
            RunStatus::Waiting { .. } | RunStatus::Running {}
        ) {
            break record;
        }
        tokio::task::yield_now().await;
    };
    let RunStatus::Stopped { reason } = &stopped.status else {
        panic!("{stopped:?}");
    };
    assert!(reason.contains("send"), "{reason}");

    let again = DurableRunner::new(settings.clone(), &team("send", &model));
    again
        .attach(run.id())
        .await
        .unwrap()
        .resume()
        .await
        .unwrap();
    let ended = again.attach(run.id()).await.unwrap().wait().await.unwrap();
    assert_eq!(ended.text().as_deref(), Some("Sent."), "{ended:?}");
    assert_eq!(ended.log, 1);
    assert_ne!(ended.log_name(), stopped.log_name());
    assert_eq!(*effects.lock().unwrap(), ["look", "send"]);
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn the_key_of_a_run_that_was_deleted_is_that_of_a_new_run_with_a_new_log() {
    let settings = Logged::new(&Conversations::in_memory(), None);
    let model = ScriptedModel::new().say("One.").say("Two.");
    let agent: Agent = Agent::new("Support").model(model);
    let durable = DurableRunner::new(settings.clone(), &agent);
    let mut texts = Vec::new();
    for _ in 0..2 {
        let run = durable.start("talk", "m1", "Hi").await.unwrap();
        texts.push(run.wait().await.unwrap().text().unwrap().into_owned());
        settings.ended(texts.len()).await;
        run.delete().await.unwrap();
    }
    assert_eq!(texts, ["One.", "Two."]);
}
