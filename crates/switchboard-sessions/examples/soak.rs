//! Runs many conversations at once for a while, and prints the memory of the process.
//!
//! `cargo run --release -p switchboard-sessions --example soak [CONVERSATIONS] [SECONDS] [ADDRESS]`
//!
//! Each task has a conversation of its own: it sends a message to a team that hands off, waits a little as
//! for a slow model, and begins a new conversation after ten messages. At the end everything is dropped,
//! and the memory is printed once more. Linux only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use switchboard_core::callback::BoxError;
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, Runner, Team};

/// Hands off with the first request of a conversation, and then answers.
#[derive(Clone)]
struct SlowModel;

impl Model for SlowModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20 + number % 80)).await;
        let mut response = ModelResponse::default();
        let is_first = request.agent.as_deref() == Some("Triage");
        response.output.push(if is_first {
            Item::function_call(&format!("call_{number}"), "transfer_to_billing", "{}")
        } else {
            Item::output_message(&format!("msg_{number}"), &"An answer. ".repeat(20))
        });
        Ok(response)
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let tasks: u64 = args.next().map_or(Ok(2_000), |text| text.parse())?;
    let seconds: u64 = args.next().map_or(Ok(60), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("soak.db");
    let address = args
        .next()
        .unwrap_or_else(|| format!("sqlite:{}", file.display()));
    println!("at the start: {:.1} MB", resident());
    {
        let conversations = switchboard_sessions::open(&address).await?;
        let team: Team = Team::new()
            .agent(Agent::new("Triage").handoff("Billing"))
            .agent(Agent::new("Billing").handoff("Triage"))
            .build()?;
        let runner = Runner::new(&team["Triage"]).model(SlowModel).tracing_off();
        let is_done = Arc::new(AtomicBool::new(false));
        let messages = Arc::new(AtomicU64::new(0));
        let mut running = tokio::task::JoinSet::new();
        for task in 0..tasks {
            let (conversations, runner) = (conversations.clone(), runner.clone());
            let (is_done, messages) = (is_done.clone(), messages.clone());
            running.spawn(async move {
                for round in 0_u64.. {
                    let session = conversations.get(format!("{task}-{}", round / 10));
                    let run = runner.clone().session(&session).run("My bill is wrong");
                    run.await.map_err(|error| error.to_string())?;
                    messages.fetch_add(1, Ordering::Relaxed);
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                }
                Ok::<(), String>(())
            });
        }
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(seconds) {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let count = messages.load(Ordering::Relaxed);
            let at = started.elapsed().as_secs();
            println!("after {at} s: {:.1} MB, {count} messages", resident());
        }
        is_done.store(true, Ordering::Relaxed);
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        println!("all tasks ended: {:.1} MB", resident());
        conversations.close().await;
    }
    println!("everything dropped: {:.1} MB", resident());
    Ok(())
}

/// The resident memory of the process in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}
