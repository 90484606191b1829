//! Fills a store with conversations of a team with a handoff, for tests of what reads large stores.
//!
//! `cargo run -p switchboard-sessions --example fill_store ADDRESS [CONVERSATIONS] [ITEMS]`
//!
//! Each of the conversations has one message and a handoff. One more, `long`, has at least `ITEMS` items, most of them
//! input. All are made by runs, 64 at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use switchboard_core::callback::BoxError;
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, Runner, Team};

/// The number of runs at once.
const AT_ONCE: usize = 64;

/// The items that a run of the long conversation begins with.
const INPUT: u64 = 99;

/// Hands off with the first request of a conversation, and then answers in Markdown.
#[derive(Clone)]
struct QuickModel;

impl Model for QuickModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let is_first = request.agent.as_deref() == Some("Triage");
        Ok(ModelResponse::new([if is_first {
            Item::function_call(&format!("call_{number}"), "transfer_to_billing", "{}")
        } else {
            Item::output_message(&format!("msg_{number}"), &answer(number))
        }]))
    }
}

/// Texts of different lengths.
fn answer(number: u64) -> String {
    let words = usize::try_from(number % 40).unwrap_or_default();
    format!(
        "Answer {number}\n\n- with a **list**\n- of two\n\n{}",
        "and more ".repeat(words)
    )
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let address = args.next().ok_or("the address of the store is missing")?;
    let count: u64 = args.next().map_or(Ok(10_000), |text| text.parse())?;
    let items: u64 = args.next().map_or(Ok(5_000), |text| text.parse())?;
    let conversations = switchboard_sessions::open(&address).await?;
    let team: Team = Team::new()
        .agent(Agent::new("Triage").handoff("Billing"))
        .agent(Agent::new("Billing").handoff("Triage"))
        .build()?;
    let runner = Runner::new(&team["Triage"])
        .model(QuickModel)
        .team_name("support")
        .tracing_off();
    let run = async |name: String, input: Vec<Item>| {
        let conversation = conversations.get(name);
        runner.clone().session(&conversation).run(input).await
    };
    let all = stream::iter(0..count).map(|number| {
        let question = Item::user(format!("Question {number}"));
        run(format!("conversation-{number}"), vec![question])
    });
    all.buffer_unordered(AT_ONCE)
        .try_for_each(async |_| Ok(()))
        .await?;
    for round in 0..items.div_ceil(INPUT + 1) {
        let numbers = round * INPUT..(round + 1) * INPUT;
        let input = numbers.enumerate().map(|(at, number)| match at % 2 {
            0 => Item::user(format!("Message {number} of the user")),
            _ => Item::assistant(answer(number)),
        });
        run("long".to_owned(), input.collect()).await?;
    }
    conversations.close().await;
    Ok(())
}
