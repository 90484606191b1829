//! The store of a run with a log, which gets the steps after the log.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::model::ModelEvent;
use switchboard_core::{
    Agent, EventKind, Item, Model, ModelRequest, ModelResponse, Runner, Tool, tool,
};
use switchboard_durable::{DurableRun, DurableRunner, RunEvent, RunStatus, Teams};
use tokio::time::sleep;

use super::engine::Logged;
use super::{busy_team, noting};
use crate::fault_store::{FaultStore, Moment};
use crate::world::{check_effects, decide_until_ended};

/// The number of turns, of which each but the last calls a tool.
const TURNS: usize = 3;

/// A model that says a word in each turn, in pieces that take longer than events wait to be stored.
struct Talker;

fn answer(request: &ModelRequest) -> (String, ModelResponse) {
    let outputs = request.input.iter().filter(|item| item.output().is_some());
    let turn = outputs.count();
    let word = format!("<turn {turn}>");
    let mut items = vec![Item::output_message(&format!("m{turn}"), &word)];
    if turn + 1 < TURNS {
        items.push(Item::function_call(&format!("c{turn}"), "look", "{}"));
    }
    (word, ModelResponse::new(items))
}

impl Model for Talker {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(answer(&request).1)
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let (word, response) = answer(&request);
        let pieces: Vec<String> = word.chars().map(String::from).collect();
        let pieces = stream::iter(pieces).then(|piece| async {
            sleep(Duration::from_millis(9)).await;
            Ok(ModelEvent::TextDelta {
                item: "m".into(),
                text: piece,
            })
        });
        pieces.chain(stream::iter([Ok(ModelEvent::Completed(response))]))
    }
}

fn team() -> Runner {
    let look: Tool = tool("look").run(|_ctx, (): ()| "There are 7 of them.");
    let agent: Agent = Agent::new("Counter").model(Talker).tool(look);
    Runner::new(&agent)
}

/// The events of a run that count.
async fn counting_events(run: &DurableRun) -> Vec<EventKind> {
    let mut events = run.events(None);
    let mut counting = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        match event {
            RunEvent::Event {
                position, event, ..
            } => {
                counting.push((position, event.kind));
            }
            RunEvent::Retracted { from, to, .. } => {
                counting.retain(|(position, _)| !(from..to).contains(position));
            }
            _ => panic!("another event"),
        }
    }
    counting.into_iter().map(|(_, kind)| kind).collect()
}

fn text(events: &[EventKind]) -> String {
    let pieces = events.iter().filter_map(|kind| match kind {
        EventKind::TextDelta { text, .. } => Some(&**text),
        _ => None,
    });
    pieces.collect()
}

/// The events as text, without the time that a tool took.
fn names(events: &[EventKind]) -> Vec<String> {
    let names = events.iter().map(|kind| match kind {
        EventKind::ToolEnded { call_id, .. } => format!("ToolEnded {call_id}"),
        kind => format!("{kind:?}"),
    });
    names.collect()
}

/// A run whose process is gone at a batch, and that goes on in another one. Returns its events, and the number of batches.
async fn interrupted(crash: Option<(usize, Moment)>) -> (Vec<EventKind>, usize) {
    let store = Conversations::in_memory();
    let settings = Logged::new(&store, crash);
    let first = DurableRunner::new(settings.clone(), team());
    let run = first.start("talk", "m1", "Count").await.unwrap();
    tokio::select! {
        ended = run.wait() => drop(ended.unwrap()),
        () = settings.crashed.notified() => {}
    }
    let second = DurableRunner::new(settings.after_crash(), team());
    let run = second.start("talk", "m1", "Count").await.unwrap();
    let record = run.wait().await.unwrap();
    let last = format!("<turn {}>", TURNS - 1);
    assert_eq!(record.text().as_deref(), Some(&*last));
    let result = run.result().await.unwrap().unwrap();
    assert_eq!(result.final_output().unwrap().to_value(), last.as_str());
    let events = counting_events(&run).await;
    let batches = settings.log(&record.log_name());
    let batches = batches.batches.lock().unwrap().len();
    (events, batches)
}

#[tokio::test(start_paused = true)]
async fn what_a_step_has_shown_counts_once_wherever_its_process_ends() {
    let (expected, batches) = interrupted(None).await;
    assert_eq!(text(&expected), "<turn 0><turn 1><turn 2>");
    for at in 1..=batches {
        for moment in [Moment::BeforeWrite, Moment::AfterWrite] {
            let (events, _) = interrupted(Some((at, moment))).await;
            assert_eq!(
                names(&events),
                names(&expected),
                "batch {at} of {batches}, {moment:?}"
            );
        }
    }
}

/// A run whose process is gone at a batch, that stops in one with another version of the team, and is resumed in one with its
/// own.
#[tokio::test]
async fn a_run_that_stops_before_its_log_is_read_repeats_no_effect_when_it_is_resumed() {
    let mut number_stopped = 0;
    for at in 1.. {
        let store = Conversations::in_memory();
        let (note, notes) = noting();
        let settings = Logged::new(&store, Some((at, Moment::AfterWrite)));
        let versioned = |version: &str| Teams::new(busy_team(&note)).version(version);
        let first = DurableRunner::new(settings.clone(), versioned("1"));
        let run = first.start("talk", "m1", "Hello").await.unwrap();
        let has_ended = tokio::select! {
            ended = run.wait() => ended.unwrap().is_ended(),
            () = settings.crashed.notified() => false,
        };
        if has_ended {
            break;
        }
        let other = DurableRunner::new(settings.after_crash(), versioned("2"));
        let run = other.start("talk", "m1", "Hello").await.unwrap();
        let record = run.wait().await.unwrap();
        if let RunStatus::Stopped { .. } = record.status {
            number_stopped += 1;
            let own = DurableRunner::new(settings.after_crash(), versioned("1"));
            let run = own.attach(run.id()).await.unwrap();
            run.resume().await.unwrap();
            let record = decide_until_ended(&run).await;
            assert!(
                matches!(record.status, RunStatus::Done { .. }),
                "{record:?}"
            );
            assert_eq!(record.log, 1);
        }
        check_effects(&notes.lock().unwrap());
    }
    assert!(number_stopped > 20, "{number_stopped}");
}

/// A model that calls a tool a number of times, at once.
struct Caller(usize);

impl Model for Caller {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let outputs = request.input.iter().filter(|item| item.output().is_some());
        let calls = outputs.count();
        Ok(ModelResponse::new([if calls < self.0 {
            Item::function_call(&format!("c{calls}"), "look", "{}")
        } else {
            Item::output_message("m", "Done.")
        }]))
    }
}

#[tokio::test(start_paused = true)]
async fn steps_share_the_writes_to_the_store() {
    let turns = 50;
    let counted = FaultStore::new(Conversations::in_memory(), None, None);
    let settings = Logged::new(&Conversations::new(counted.clone()), None);
    let look: Tool = tool("look").run(|_ctx, (): ()| "There are 7 of them.");
    let agent: Agent = Agent::new("Counter").model(Caller(turns)).tool(look);
    let team = Runner::new(&agent).max_turns(turns as u32 + 1);
    let durable = DurableRunner::new(settings, team);
    let run = durable.start("talk", "m1", "Count").await.unwrap();
    let record = run.wait().await.unwrap();
    assert!(
        matches!(record.status, RunStatus::Done { .. }),
        "{record:?}"
    );
    // Of each turn a commit to the conversation, and one before the tool is called; a few for the start and the end.
    let writes = counted.writes();
    assert!(writes <= 2 * turns + 5, "{writes}");
    let result = run.result().await.unwrap().unwrap();
    assert_eq!(result.final_output().unwrap().to_value(), "Done.");
}
