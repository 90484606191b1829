//! Measures what a message costs in conversations of different lengths in a SQLite file.
//!
//! `cargo run --release -p switchboard-sessions --example long_conversations [FOLDER]`
//!
//! For each length: opening the file and showing the last 50 entries, and a message to a model that is
//! shown the last 50 items, as CPU time of the process.

use std::path::Path;

use cpu_time::ProcessTime;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, Session as _};
use switchboard_sessions::SqliteStore;

const LENGTHS: [usize; 3] = [1_000, 10_000, 100_000];
const ROUNDS: u32 = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let folder = match std::env::args_os().nth(1) {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir()?,
    };
    println!("items    open and show 50 (CPU µs)  take a message (CPU µs)");
    for items in LENGTHS {
        let path = folder.path().join(format!("{items}.db"));
        fill(&path, items).await?;
        let (shown, sent) = measure(&path).await?;
        println!("{items:7}  {shown:25.0}  {sent:23.0}");
    }
    Ok(())
}

async fn fill(path: &Path, items: usize) -> Result<(), BoxError> {
    let conversations = Conversations::new(SqliteStore::open(path).await?);
    let session = conversations.get("c");
    let text = "A message of a customer, about as long as most of them are.";
    let said: Vec<Item> = (0..items).map(|_| Item::user(text)).collect();
    for batch in said.chunks(1_000) {
        session.append(batch).await?;
    }
    conversations.close().await;
    Ok(())
}

/// The CPU time in microseconds of opening and showing, and of a message.
async fn measure(path: &Path) -> Result<(f64, f64), BoxError> {
    let start = ProcessTime::now();
    for _ in 0..ROUNDS {
        let conversations = Conversations::new(SqliteStore::open(path).await?);
        let entries = conversations.get("c").record(50).await?;
        assert_eq!(entries.len(), 50);
        conversations.close().await;
    }
    let shown = micros(start);

    let conversations = Conversations::new(SqliteStore::open(path).await?);
    let session = conversations.get("c");
    let mut model = ScriptedModel::new();
    for _ in 0..ROUNDS {
        model = model.say("Hello.");
    }
    let agent: Agent = Agent::new("Support");
    let runner = Runner::new(&agent)
        .model(model)
        .session(&session)
        .session_limit(50);
    let start = ProcessTime::now();
    for _ in 0..ROUNDS {
        runner.run("Hi").await?;
    }
    let sent = micros(start);
    conversations.close().await;
    Ok((shown, sent))
}

fn micros(start: ProcessTime) -> f64 {
    start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
}
