//! Workers that are asked to end while tools run.

use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::callback::BoxError;
use switchboard_core::{
    Agent, Item, Model, ModelRequest, ModelResponse, Runner, Tool, ToolContext, tool,
};
use switchboard_durable::{DurableRun, RunStatus};
use tokio::time::{sleep, timeout};

use super::LONG;
use super::worker::{Engine, Place, Team, Worker};
use crate::world::{Note, UNKNOWN};

/// The time that the tool takes.
const STEP: Duration = Duration::from_secs(3);

/// Calls the tool that the user names, and answers with its output.
struct Clerk;

impl Model for Clerk {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let last = request.input.last();
        let word = last
            .and_then(|item| Some(item.text()?.into_owned()))
            .unwrap_or_default();
        Ok(ModelResponse::new([match last.and_then(Item::output) {
            Some(output) => Item::output_message("m", &output),
            None => Item::function_call("c1", &word, "{}"),
        }]))
    }
}

/// A team with a tool that may run once and takes a while, and one that needs approval.
pub(super) fn team(note: &Note) -> Runner {
    let note = note.clone();
    let pay: Tool = tool("pay")
        .at_most_once()
        .run(move |_ctx: ToolContext, (): ()| {
            let note = note.clone();
            async move {
                note("pay begins");
                sleep(STEP).await;
                note("pay ends");
                "it is paid"
            }
        });
    let send: Tool = tool("send")
        .needs_approval()
        .run(|_ctx, (): ()| "it is sent");
    let agent: Agent = Agent::new("Desk").model(Clerk).tool(pay).tool(send);
    Runner::new(&agent)
}

async fn has_effect(place: &Place, effect: &str) {
    let has = async {
        while !place.effects().iter().any(|line| line == effect) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, has).await.unwrap();
}

pub(super) async fn gone(mut worker: Worker) {
    let gone = async {
        while !worker.is_gone() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, gone).await.unwrap();
}

async fn text_of(run: &DurableRun) -> String {
    let record = timeout(LONG, run.wait()).await.unwrap().unwrap();
    let text = record.text().map(|text| text.into_owned());
    text.unwrap_or_else(|| panic!("{record:?}"))
}

pub(super) async fn a_worker_that_is_asked_to_end_lets_its_tool_end_and_another_goes_on(
    engine: Engine,
) {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(engine, "drained", folder.path());
    place.team = Team::Slow;
    let durable = place.client().await;
    let first = place.worker(None);
    let waiting = durable.start("other", "m1", "send").await.unwrap();
    let record = timeout(LONG, waiting.wait()).await.unwrap().unwrap();
    let RunStatus::Waiting { interruptions } = record.status else {
        panic!("{record:?}");
    };
    let run = durable.start("talk", "m1", "pay").await.unwrap();
    has_effect(&place, "pay begins").await;
    place.end_workers(Duration::from_secs(20));
    gone(first).await;
    assert_eq!(place.effects(), ["pay begins", "pay ends", "drained true"]);
    assert!(!run.record().await.unwrap().is_ended());

    place.let_workers_begin();
    let _second = place.worker(None);
    let text = text_of(&run).await;
    assert!(text.contains("it is paid"), "{text}");
    assert_eq!(place.effects().len(), 3, "the tool has run once");
    let decided = waiting.decide(&interruptions[0], Decision::approve());
    decided.await.unwrap();
    let sent = async {
        while !waiting.record().await.unwrap().is_ended() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, sent).await.unwrap();
    assert!(text_of(&waiting).await.contains("it is sent"));
}

pub(super) async fn a_worker_whose_tool_takes_too_long_ends_without_it(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(engine, "cut", folder.path());
    place.team = Team::Slow;
    let durable = place.client().await;
    let first = place.worker(None);
    let run = durable.start("talk", "m1", "pay").await.unwrap();
    has_effect(&place, "pay begins").await;
    place.end_workers(Duration::from_millis(200));
    gone(first).await;
    assert_eq!(place.effects(), ["pay begins", "drained false"]);

    place.let_workers_begin();
    let _second = place.worker(None);
    let text = text_of(&run).await;
    assert!(text.contains(UNKNOWN), "{text}");
    assert_eq!(place.effects().len(), 2, "the tool has begun once");
}
