//! The size of journals.

use std::sync::Arc;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{ConversationStore as _, Conversations, JOURNAL_PREFIX};
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, Runner, tool};
use switchboard_durable::{DurableRunner, Embedded, RunStatus};

use crate::fault_store::FaultStore;

/// A model that calls a tool a number of times, and then answers.
struct Caller(usize);

impl Model for Caller {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let calls = request
            .input
            .iter()
            .filter(|item| item.output().is_some())
            .count();
        let item = if calls < self.0 {
            Item::function_call(&format!("call_{calls:06}"), "look", "{}")
        } else {
            Item::output_message("m1", "Done.")
        };
        Ok(ModelResponse::new([item]))
    }
}

/// Does a run of so many turns, and returns its identifier.
async fn run_of(turns: usize, store: &Conversations) -> String {
    let look = tool::<()>("look").run(|_ctx, (): ()| "There are 7 of them.");
    let agent = Agent::new("Counter").tool(look);
    let runner = Runner::new(&agent)
        .model(Caller(turns))
        .max_turns(turns as u32 + 1);
    let durable = DurableRunner::new(Embedded::new(store.clone()), runner);
    let run = durable.start("long", "m1", "Count").await.unwrap();
    let record = run.wait().await.unwrap();
    assert_eq!(
        record.status,
        RunStatus::Done {
            output: "Done.".into()
        }
    );
    run.id().to_owned()
}

/// The bytes of the journal for each turn of a run.
async fn bytes_per_turn(turns: usize) -> usize {
    let store = Conversations::in_memory();
    let id = run_of(turns, &store).await;
    let name: Arc<str> = format!("{JOURNAL_PREFIX}{id}").into();
    let head = store.head(&name).await.unwrap().unwrap();
    let entries = store.read(&name, 0..head.revision.next).await.unwrap();
    let bytes: usize = entries
        .iter()
        .map(|entry| entry.content.as_json().len())
        .sum();
    bytes / turns
}

#[tokio::test]
async fn a_step_takes_the_same_room_however_long_the_history_is() {
    let sizes = [
        bytes_per_turn(10).await,
        bytes_per_turn(100).await,
        bytes_per_turn(1_000).await,
    ];
    // The start and the end of the run count less in longer runs, and numbers have more digits.
    assert!(
        sizes[2] <= sizes[1] + 32 && sizes[1] <= sizes[0],
        "{sizes:?}"
    );
    assert!(sizes[2] < 4_000, "{sizes:?}");
}

#[tokio::test]
async fn commits_to_the_conversation_are_recorded_without_writes_of_their_own() {
    let counted = FaultStore::new(Conversations::in_memory(), None, None);
    let turns = 100;
    run_of(turns, &Conversations::new(counted.clone())).await;
    // A model answer, a tool's output and the commit of each turn; a few more for the start, the end, and events that are
    // written because time has passed.
    let writes = counted.writes();
    assert!(
        (3 * turns..3 * turns + turns / 2).contains(&writes),
        "{writes}"
    );
}
