//! A run whose process ends in the middle of a turn goes on in the next process, and pays back once.
//!
//! `cargo run --features durable,sqlite --example durable_run`

use std::path::Path;
use std::sync::Arc;

use switchboard::callback::BoxError;
use switchboard::conversation::Conversations;
use switchboard::durable::{DurableRunner, Embedded};
use switchboard::sessions::SqliteStore;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, Tool, ToolContext, tool};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("conversations.db");

    println!("first process");
    let sending = Arc::new(Notify::new());
    let first = Runtime::new()?;
    first.block_on(async {
        let model = ScriptedModel::new()
            .call("transfer_to_billing", "{}")
            .call("refund", "{}")
            .call("send_receipt", "{}");
        let durable = runner(&file, &model, Some(&sending)).await?;
        // Once this returns, the message is answered, whatever happens to this process.
        durable
            .start("customer-42", "message-1", "I want my money back")
            .await?;
        sending.notified().await;
        Ok::<(), BoxError>(())
    })?;
    // As if it were killed: nothing is awaited, and nothing is put in order.
    first.shutdown_background();

    println!("second process");
    Runtime::new()?.block_on(async {
        // The model is not asked again for what it has answered.
        let model = ScriptedModel::new().say("I have paid back your money.");
        let durable = runner(&file, &model, None).await?;
        let worker = durable.clone();
        tokio::spawn(async move { worker.work().await });
        let run = durable.attach("customer-42/message-1").await?;
        let ended = run.wait().await?;
        println!("{}", ended.text().unwrap_or_default());
        Ok::<(), BoxError>(())
    })
}

/// The team of a process, on the journals in a file. With `sending`, the process ends while a receipt is sent.
async fn runner(
    file: &Path,
    model: &ScriptedModel,
    sending: Option<&Arc<Notify>>,
) -> Result<DurableRunner, BoxError> {
    let refund: Tool = tool("refund").run(|ctx: ToolContext, (): ()| {
        // The payment service gets this key, which is the same if the call begins again.
        let key = ctx.idempotency_key();
        println!("  refund, with a key: {}", !key.is_empty());
        "paid back"
    });
    let sending = sending.cloned();
    let receipt: Tool = tool("send_receipt").run(move |_ctx, (): ()| {
        let sending = sending.clone();
        async move {
            println!("  send_receipt begins");
            if let Some(sending) = sending {
                sending.notify_one();
                std::future::pending::<()>().await;
            }
            println!("  send_receipt ends");
            "sent"
        }
    });
    let billing = Agent::new("Billing")
        .model(model.clone())
        .tool(refund)
        .tool(receipt);
    let triage: Agent = Agent::new("Triage").model(model.clone()).handoff(billing);
    let store = Conversations::new(SqliteStore::open(file).await?);
    // A short lease: the second process need not wait for long until it may take the run.
    let engine = Embedded::new(store).lease(std::time::Duration::from_secs(1));
    Ok(DurableRunner::new(engine, &triage))
}
