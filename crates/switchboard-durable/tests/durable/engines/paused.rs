//! Runs that wait for a time, and messages to them whose senders have ended.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::callback::{BoxError, BoxFuture};
use switchboard_core::journal::Later;
use switchboard_core::{
    Agent, Item, Model, ModelRequest, ModelResponse, Runner, Tool, ToolContext, tool,
};
use switchboard_durable::{
    DurableError, DurableRun, DurableRunner, Executor, IntoEngine, RunRecord, RunStatus, RunStore,
};
use tokio::time::{sleep, timeout};

use super::worker::{Engine, Place, Team};
use super::{LONG, silent};
use crate::world::Note;

/// Asks for a reminder, unless the user greets.
struct Patient;

impl Model for Patient {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let text = request
            .input
            .last()
            .and_then(|item| Some(item.text()?.into_owned()));
        let is_greeting = text.as_deref() == Some("Hello");
        let item = if is_greeting {
            Item::output_message("m", "Hello!")
        } else {
            Item::function_call("c1", "remind", "{}")
        };
        Ok(ModelResponse::new([item]))
    }
}

/// A team whose tool has finished after an hour.
pub(super) fn team(note: &Note) -> Runner {
    let note = note.clone();
    let remind: Tool = tool("remind").run(move |_ctx: ToolContext, (): ()| {
        note("asked");
        Err::<&str, _>(Later::at(SystemTime::now() + Duration::from_secs(3600)))
    });
    let agent: Agent = Agent::new("Desk").model(Patient).tool(remind);
    Runner::new(&agent)
}

/// The engine of a process that ends before it submits or wakes a run.
pub(super) struct WakesNobody {
    pub(super) name: String,
    pub(super) runs: RunStore,
}

impl IntoEngine for WakesNobody {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn into_engine(self, _executor: Executor) -> Arc<dyn switchboard_durable::Engine> {
        Arc::new(self)
    }
}

impl switchboard_durable::Engine for WakesNobody {
    fn runs(&self) -> &RunStore {
        &self.runs
    }

    fn submit<'a>(&'a self, _run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async { Ok(()) })
    }

    fn wake<'a>(&'a self, _run: &'a RunRecord) -> BoxFuture<'a, Result<(), DurableError>> {
        Box::pin(async { Ok(()) })
    }

    fn recover(&self) -> BoxFuture<'_, Result<usize, DurableError>> {
        Box::pin(async { Ok(0) })
    }

    fn work(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn drain(&self, _time: Duration) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }
}

/// Waits for a state of a run.
async fn until(run: &DurableRun, is_reached: impl Fn(&RunRecord) -> bool) {
    let reached = async {
        while !is_reached(&run.record().await.unwrap()) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    if timeout(LONG, reached).await.is_err() {
        panic!("{:#?}", run.record().await);
    }
}

pub(super) async fn a_run_that_waits_for_a_time_notices_messages_without_being_woken(
    engine: Engine,
) {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::new(engine, "paused", folder.path());
    place.team = Team::Patient;
    let durable = place.client().await;
    let _worker = place.worker(None);
    let run = durable.start("talk", "m1", "Remind me").await.unwrap();
    let is_paused = |times: usize| {
        let place = place.clone();
        move |run: &RunRecord| {
            let is_pending = matches!(run.status, RunStatus::Pending { reason: Some(_) });
            is_pending && place.effects().len() == times
        }
    };
    until(&run, is_paused(1)).await;

    // Stores messages, and wakes nobody.
    let engine = WakesNobody {
        name: run.record().await.unwrap().engine.unwrap(),
        runs: RunStore::new(place.store().await),
    };
    let sender = DurableRunner::new(engine, team(&silent()));
    let sent = sender.attach(run.id()).await.unwrap();
    sent.resume().await.unwrap();
    until(&run, is_paused(2)).await;

    let store = RunStore::new(place.store().await);
    store.cancel(run.id()).await.unwrap();
    until(&run, |run| run.status == RunStatus::Cancelled).await;
    let next = durable.start("talk", "m2", "Hello").await.unwrap();
    let record = timeout(LONG, next.wait()).await.unwrap().unwrap();
    assert_eq!(record.text().as_deref(), Some("Hello!"), "{record:?}");
}
