//! Stored conversations of different lengths, in a SQLite file.

use std::sync::Arc;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::Conversations;
use switchboard_core::{Agent, Item, ModelResponse, Runner, Session as _};
use switchboard_sessions::SqliteStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::measure::{Measurement, measure};
use crate::models::Replay;

/// The number of entries that are shown, and of items that the model is shown.
const SHOWN: usize = 50;

/// The number of items that are stored at once.
const BATCH: usize = 1_000;

/// Work on a stored conversation: `session_open_ITEMS` opens the file and shows the last entries,
/// `session_message_ITEMS` sends a message to a model that is shown the last items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCase {
    work: SessionWork,
    items: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionWork {
    Open,
    Message,
}

impl SessionCase {
    /// Returns the case of this name.
    pub fn named(name: &str) -> Option<Self> {
        let (work, items) = match name.strip_prefix("session_")?.split_once('_')? {
            ("open", items) => (SessionWork::Open, items),
            ("message", items) => (SessionWork::Message, items),
            _ => return None,
        };
        let items = items.parse().ok().filter(|items| *items >= SHOWN)?;
        Some(Self { work, items })
    }

    /// Stores a conversation, which is not counted, and does the work for about this many seconds of CPU
    /// time.
    ///
    /// # Errors
    /// An error of the store.
    ///
    /// # Panics
    /// Panics if the work fails later.
    pub fn measure(self, seconds: f64) -> Result<Measurement, BoxError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let folder = runtime.block_on(stored(self.items))?;
        match self.work {
            SessionWork::Open => Ok(measure(seconds, || {
                let shown = runtime.block_on(open_and_show(&folder));
                assert!(matches!(shown, Ok(SHOWN)), "{shown:?}");
            })),
            SessionWork::Message => measure_messages(&runtime, &folder, seconds),
        }
    }
}

async fn open(folder: &TempDir) -> Result<Conversations, BoxError> {
    let store = SqliteStore::open(folder.path().join("conversations.db")).await?;
    Ok(Conversations::new(store))
}

/// The folder of a conversation with this many items.
async fn stored(items: usize) -> Result<TempDir, BoxError> {
    let folder = tempfile::tempdir()?;
    let conversations = open(&folder).await?;
    let session = conversations.get("c");
    let item = Item::user("A message of a customer, about as long as most of them are.");
    let said = vec![item; items];
    for batch in said.chunks(BATCH) {
        session.append(batch).await?;
    }
    conversations.close().await;
    Ok(folder)
}

async fn open_and_show(folder: &TempDir) -> Result<usize, BoxError> {
    let conversations = open(folder).await?;
    let shown = conversations.get("c").record(SHOWN).await?;
    conversations.close().await;
    Ok(shown.len())
}

fn measure_messages(
    runtime: &Runtime,
    folder: &TempDir,
    seconds: f64,
) -> Result<Measurement, BoxError> {
    let conversations = runtime.block_on(open(folder))?;
    let answer = ModelResponse::new([Item::output_message("msg_1", "Hello.")]);
    let model = Arc::new(Replay::new(vec![answer], false));
    let agent: Agent = Agent::new("Support");
    let runner = Runner::new(&agent)
        .model(model)
        .session(conversations.get("c"))
        .session_limit(SHOWN)
        .tracing_off();
    let measured = measure(seconds, || {
        let result = runtime.block_on(runner.run("Hi"));
        assert!(result.is_ok(), "{result:?}");
    });
    runtime.block_on(conversations.close());
    Ok(measured)
}
