//! Many runs that wait for a person.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use switchboard_core::approval::Decision;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore as _, Conversations, EntryContent, Expected,
    JOURNAL_PREFIX,
};
use switchboard_durable::{DurableRunner, Embedded, RunStatus};

use super::team::{ANSWER, APPROVE, team};
use super::{Failed, runtime};
use crate::measure::resident_bytes;

/// The number of runs that are stored at the same time.
const AT_ONCE: usize = 200;

/// The time for which a process looks for runs after it has recovered.
const WORK: Duration = Duration::from_secs(2);

/// Stores runs that wait for an approval. The first one is made; the others are copies of it under other names.
///
/// # Errors
/// An error of the store.
pub fn store_waiting(address: &str, runs: usize) -> Result<Value, Failed> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let store = switchboard_sessions::open(address).await?;
        let runner = DurableRunner::new(Embedded::new(store.clone()), team());
        let name = name(0);
        let run = runner.start(&name, "m1", APPROVE).await?;
        let waiting = run.wait().await?;
        if !matches!(waiting.status, RunStatus::Waiting { .. }) {
            return Err(format!("the run is {:?}", waiting.status).into());
        }
        let journal = format!("{JOURNAL_PREFIX}{}", run.id());
        // The journal has the revision of the conversation.
        let conversation = Record::read(&store, &name).await?;
        let records = [conversation, Record::read(&store, &journal).await?];
        let bytes: usize = records.iter().map(|record| size(&record.commit)).sum();
        let (store, records) = (&store, &records);
        let copies = stream::iter(1..runs)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, |number| copy(store, records, number));
        copies.await?;
        store.close().await;
        Ok(json!({"runs": runs, "bytes_per_run": bytes}))
    })
}

fn name(number: usize) -> String {
    format!("customer-{number:07}")
}

/// A record as one commit.
struct Record {
    id: String,
    epoch: u64,
    commit: Commit,
}

impl Record {
    async fn read(store: &Conversations, id: &str) -> Result<Self, Failed> {
        let head = store.head(id).await?.ok_or("a record is missing")?;
        let entries = store.read(id, 0..head.revision.next).await?;
        let mut commit = Commit::new(Expected::New, entries);
        commit.agent = Some(head.agent);
        commit.details = head.details;
        Ok(Self {
            id: id.to_owned(),
            epoch: head.revision.epoch,
            commit,
        })
    }
}

async fn copy(
    store: &Conversations,
    [conversation, journal]: &[Record; 2],
    number: usize,
) -> Result<(), Failed> {
    let id = name(number);
    let Committed::At(revision) = store.commit(&id, conversation.commit.clone()).await? else {
        return Err("a conversation cannot be copied".into());
    };
    let copied = |text: &str| {
        let epoch = revision.epoch.to_string();
        text.replace(&name(0), &id)
            .replace(&conversation.epoch.to_string(), &epoch)
    };
    let mut commit = journal.commit.clone();
    commit.details = commit.details.map(|details| copied(&details).into());
    for entry in &mut commit.entries {
        if let EntryContent::Step(json) = &entry.content {
            entry.content = EntryContent::Step(copied(json).into());
        }
    }
    store.commit(&copied(&journal.id), commit).await?;
    Ok(())
}

fn size(commit: &Commit) -> usize {
    let entries = commit.entries.iter();
    let entries: usize = entries.map(|entry| entry.content.as_json().len()).sum();
    entries + commit.details.as_ref().map_or(0, |details| details.len())
}

/// Starts a process on a store with runs that wait, or none: recovers, looks for runs for a while, and approves one.
///
/// # Errors
/// An error of the store, or if the approved run does not end.
pub fn recover_waiting(address: &str, runs: usize) -> Result<Value, Failed> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let started = Instant::now();
        let store = switchboard_sessions::open(address).await?;
        let runner = DurableRunner::new(Embedded::new(store.clone()), team());
        let opened = started.elapsed();
        let taken = runner.recover().await?;
        let recovered = started.elapsed();
        let worker = runner.clone();
        let working = tokio::spawn(async move { worker.work().await });
        tokio::time::sleep(WORK).await;
        let resident = resident_bytes();
        let mut decided = Value::Null;
        if runs > 0 {
            let begun = Instant::now();
            approve(&runner, &format!("{}/m1", name(runs / 2))).await?;
            decided = json!(begun.elapsed().as_secs_f64() * 1e3);
        }
        runner.drain(Duration::from_secs(5)).await;
        working.await?;
        store.close().await;
        Ok(json!({
            "runs": runs, "taken": taken, "open_ms": opened.as_secs_f64() * 1e3,
            "recover_ms": (recovered - opened).as_secs_f64() * 1e3, "resident": resident, "decided_ms": decided,
        }))
    })
}

/// Approves what a run waits for, and waits until it has ended.
async fn approve(runner: &DurableRunner, id: &str) -> Result<(), Failed> {
    let run = runner.attach(id).await?;
    let RunStatus::Waiting { interruptions } = run.record().await?.status else {
        return Err(format!("the run \"{id}\" does not wait").into());
    };
    let waiting = interruptions.first().ok_or("nothing waits")?;
    run.decide(waiting, Decision::approve()).await?;
    let ended = loop {
        let record = run.wait().await?;
        if record.is_ended() {
            break record;
        }
        tokio::task::yield_now().await;
    };
    match ended.text().as_deref() {
        Some(ANSWER) => Ok(()),
        _ => Err(format!("the run \"{id}\" is {:?}", ended.status).into()),
    }
}
