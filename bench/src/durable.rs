//! Durable runs: the cost of a step on each engine, the size of journals, and runs that wait.
//!
//! A process does one kind of work on one engine and store, whenever it is asked to, so that others can be measured in
//! between. The model is part of the process and answers at once.

mod bare;
mod check;
mod counting;
#[cfg(feature = "engines")]
mod engines;
mod load;
mod sizes;
mod team;
mod waiting;

use std::error::Error;
use std::io::BufRead as _;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::Runner;
use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRunner, Embedded};

pub use check::check_durable;
pub use sizes::journal_sizes;
pub use waiting::{recover_waiting, store_waiting};

use counting::{CountingStore, Counts};
use load::{Work, work};
use team::{ANSWER, MESSAGE, team};

type Failed = Box<dyn Error + Send + Sync>;

/// The number of runs before the first measurement.
const WARM_UP: u32 = 16;

/// The place of the work.
#[derive(Debug, Clone, Copy)]
pub struct DurablePlace<'a> {
    /// `embedded`, `restate` or `dbos`.
    pub engine: &'a str,
    /// The address of a store.
    pub store: &'a str,
    /// The addresses of a Restate server: its ingress, and the one for its administration.
    pub restate: Option<(&'a str, &'a str)>,
}

/// Does work whenever a line comes in: `AT_ONCE SECONDS`. Prints a line of JSON when it is ready, and one for each
/// measurement.
///
/// The work is the conversation as durable runs (`durable`), as plain runs whose conversation is stored (`plain`), or
/// without them: as many empty steps on the bare engine (`bare`), or the same commits to the store (`commits`).
///
/// # Errors
/// An error if the work is unknown or fails.
pub fn work_durably(name: &str, place: DurablePlace<'_>) -> Result<(), Failed> {
    let runtime = runtime()?;
    let _entered = runtime.enter();
    let counts = runtime.block_on(count())?;
    let work = runtime.block_on(work_named(name, place, &counts))?;
    runtime.block_on(load::measure(&work, 4, f64::INFINITY, WARM_UP))?;
    println!("{}", counts.to_json());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (at_once, seconds) = line.split_once(' ').ok_or("AT_ONCE SECONDS")?;
        let measured = load::measure(&work, at_once.parse()?, seconds.parse()?, u32::MAX);
        println!("{}", runtime.block_on(measured)?);
    }
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime, Failed> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}

async fn work_named(name: &str, place: DurablePlace<'_>, counts: &Counts) -> Result<Work, Failed> {
    #[cfg(feature = "engines")]
    match (name, place.engine) {
        ("durable", "restate") => return engines::restate(place).await,
        ("bare", "restate") => return engines::bare_restate(place, counts.steps).await,
        ("durable", "dbos") => return engines::dbos(place).await,
        ("bare", "dbos") => return engines::bare_dbos(place, counts.steps).await,
        _ => {}
    }
    let store = switchboard_sessions::open(place.store).await?;
    match (name, place.engine) {
        ("durable", "embedded") => Ok(durable(DurableRunner::new(Embedded::new(store), team()))),
        ("plain", _) => Ok(plain(store)),
        ("bare", "embedded") => Ok(bare::empty_steps(store, counts)),
        ("commits", "embedded") => bare::same_commits(store).await,
        (name, engine) => Err(format!(
            "there is no work {name:?} on {engine:?}, or it needs the feature \"engines\""
        )
        .into()),
    }
}

/// The conversation as durable runs.
fn durable(runner: DurableRunner) -> Work {
    work(move |name| {
        let runner = runner.clone();
        async move {
            let run = runner.start(&name, "m1", MESSAGE).await?;
            let ended = run.wait().await?;
            match ended.text().as_deref() {
                Some(ANSWER) => Ok(()),
                _ => Err(format!("a run is {:?}", ended.status).into()),
            }
        }
    })
}

/// The conversation as runs that are not durable.
fn plain(store: Conversations) -> Work {
    let runner: Arc<Runner> = team().into();
    work(move |name| {
        let (runner, session) = (runner.clone(), store.get(name));
        async move {
            let result = runner
                .as_ref()
                .clone()
                .session(&session)
                .run(MESSAGE)
                .await?;
            match &*result.final_text() {
                ANSWER => Ok(()),
                other => Err(format!("a run has answered {other:?}").into()),
            }
        }
    })
}

/// Counts the calls of a store that one durable run makes.
async fn count() -> Result<Counts, Failed> {
    let store = CountingStore::new(Conversations::in_memory());
    let engine = Embedded::new(Conversations::new(store.clone()));
    let runner = DurableRunner::new(engine, team());
    durable(runner)("counted".to_owned()).await?;
    Ok(store.counts())
}

impl Counts {
    fn to_json(self) -> Value {
        json!({
            "steps": self.steps, "events": self.events, "journal_commits": self.journal_commits,
            "step_commits": self.step_commits, "journal_bytes": self.journal_bytes, "step_bytes": self.step_bytes,
            "conversation_commits": self.conversation_commits, "leases": self.leases, "heads": self.heads,
            "reads": self.reads,
        })
    }
}
