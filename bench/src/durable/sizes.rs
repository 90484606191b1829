//! The size of journals over conversations and runs of different lengths.

use serde_json::{Value, json};
use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRunner, Embedded};

use super::counting::{CountingStore, Counts};
use super::team::{ANSWER, LOOK, MESSAGE, team};
use super::{Failed, runtime};

/// Counts the bytes of the journals of a conversation with so many messages, and of one run with so many turns.
///
/// # Errors
/// An error if a run fails.
pub fn journal_sizes(turns: usize) -> Result<Value, Failed> {
    let runtime = runtime()?;
    let (all, last) = runtime.block_on(of_messages(turns))?;
    let one = runtime.block_on(of_one_run(turns))?;
    Ok(json!({
        "turns": turns,
        "messages": all.to_json(),
        "last_message": last.to_json(),
        "one_run": one.to_json(),
    }))
}

/// One conversation, with a run for each message: the counts of all runs, and of the last one.
async fn of_messages(messages: usize) -> Result<(Counts, Counts), Failed> {
    let store = CountingStore::new(Conversations::in_memory());
    let runner = runner(&store);
    let mut before = Counts::default();
    for message in 0..messages {
        before = store.counts();
        // All keys are equally long.
        answered(&runner, &format!("m{message:06}"), MESSAGE).await?;
    }
    let all = store.counts();
    Ok((all, all.since(before)))
}

/// One run, whose first agent calls a tool so many times.
async fn of_one_run(turns: usize) -> Result<Counts, Failed> {
    let store = CountingStore::new(Conversations::in_memory());
    answered(&runner(&store), "m000000", &format!("{LOOK}{turns}")).await?;
    Ok(store.counts())
}

fn runner(store: &CountingStore) -> DurableRunner {
    DurableRunner::new(Embedded::new(Conversations::new(store.clone())), team())
}

async fn answered(runner: &DurableRunner, key: &str, message: &str) -> Result<(), Failed> {
    let run = runner.start("long", key, message).await?;
    let ended = run.wait().await?;
    match ended.text().as_deref() {
        Some(ANSWER) => Ok(()),
        _ => Err(format!("the run \"{key}\" is {:?}", ended.status).into()),
    }
}

impl Counts {
    /// The differences that the sizes need.
    fn since(self, before: Self) -> Self {
        Self {
            steps: self.steps - before.steps,
            events: self.events - before.events,
            journal_commits: self.journal_commits - before.journal_commits,
            step_commits: self.step_commits - before.step_commits,
            journal_bytes: self.journal_bytes - before.journal_bytes,
            step_bytes: self.step_bytes - before.step_bytes,
            conversation_commits: self.conversation_commits - before.conversation_commits,
            leases: self.leases - before.leases,
            heads: self.heads - before.heads,
            reads: self.reads - before.reads,
        }
    }
}
