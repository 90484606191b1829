//! Runs over HTTP on loopback, and the same requests without an engine: recorded bodies sent with the
//! same HTTP client.

mod bare;

use std::error::Error;
use std::sync::Arc;

use cpu_time::ProcessTime;
use fake_provider::{FakeProvider, Protocol, Reply, Rules};
use switchboard_core::model::ModelHandle;
use switchboard_core::{Agent, Input, Runner};
use switchboard_models::{ChatModel, Endpoint, ResponsesModel};

use crate::history::history;
use crate::measure::{Measurement, runs_in, timed};
use bare::{Bare, Reading};

const KEY: &str = "bench";

/// The number of text deltas in a streamed reply.
const PIECES: usize = 200;

/// The instructions of the second agent, by which the provider recognizes its requests.
const SECOND: &str = "You handle bills.";

type Failed = Box<dyn Error + Send + Sync>;

/// Starts the provider for these cases. It should run in its own process, so that its CPU time is not
/// measured.
///
/// # Errors
/// Returns an error if no port is free.
pub fn provider() -> std::io::Result<FakeProvider> {
    let [first, second] = replies();
    FakeProvider::prepared_on_thread([(SECOND, second), ("", first)])
}

fn replies() -> [Reply; 2] {
    let text = "word ".repeat(PIECES);
    [
        Reply::call("call_1", "transfer_to_billing", "{}"),
        Reply::text(&text).pieces(5),
    ]
}

/// The sender of a case's requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Engine,
    /// The HTTP client alone.
    Bare,
    /// The HTTP client alone, with the answers parsed.
    Reading,
}

/// A variant of one handoff over HTTP.
pub struct WireCase {
    sender: Sender,
    protocol: Protocol,
    is_streamed: bool,
    items: usize,
    at_once: u32,
}

impl WireCase {
    /// Parses the name of a case, like `responses_streamed_20_x64`, `bare_chat_plain_1000_x1` or
    /// `reading_chat_plain_20_x1`. Streams are not parsed.
    pub fn named(name: &str) -> Option<Self> {
        let (sender, name) = if let Some(name) = name.strip_prefix("bare_") {
            (Sender::Bare, name)
        } else if let Some(name) = name.strip_prefix("reading_") {
            (Sender::Reading, name)
        } else {
            (Sender::Engine, name)
        };
        let [protocol, form, items, at_once] = name.split('_').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Self {
            sender,
            protocol: match protocol {
                "responses" => Protocol::Responses,
                "chat" => Protocol::Chat,
                _ => return None,
            },
            is_streamed: match form {
                "plain" => false,
                "streamed" if sender != Sender::Reading => true,
                _ => return None,
            },
            items: items.parse().ok()?,
            at_once: at_once.strip_prefix('x')?.parse().ok()?,
        })
    }

    /// Measures the case for about this many seconds of CPU time with the provider at `url`.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached or a run fails.
    pub fn measure(&self, url: &str, seconds: f64) -> Result<Measurement, Failed> {
        runtime()?.block_on(async {
            let client = Arc::new(self.client(url).await?);
            // Opens the connections, then estimates the time of a run.
            batch(&client, self.at_once, self.at_once * 2).await?;
            let warm_up = batch(&client, self.at_once, self.at_once * 4).await?;
            batch(&client, self.at_once, runs_in(seconds, &warm_up)).await
        })
    }

    /// Runs the case this many times without measuring.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached or a run fails.
    pub fn run(&self, url: &str, runs: u32) -> Result<(), Failed> {
        runtime()?.block_on(async {
            let client = Arc::new(self.client(url).await?);
            batch(&client, self.at_once, runs).await.map(drop)
        })
    }

    async fn client(&self, url: &str) -> Result<Client, Failed> {
        let engine = Engine::new(self, url)?;
        let reading = match self.sender {
            Sender::Engine => return Ok(Client::Engine(engine)),
            Sender::Bare if self.is_streamed => Reading::Lines,
            Sender::Bare => Reading::Bytes,
            Sender::Reading => Reading::Answer(self.protocol),
        };
        let path = match self.protocol {
            Protocol::Responses => "responses",
            Protocol::Chat => "chat/completions",
        };
        let bodies = self.bodies().await?;
        Ok(Client::Bare(Bare::new(url, path, bodies, reading)?))
    }

    /// The request bodies of the engine, as a recording provider received them.
    async fn bodies(&self) -> Result<Vec<String>, Failed> {
        let provider = FakeProvider::start_with(Rules::none()).await?;
        provider.script(KEY, replies());
        Engine::new(self, &provider.url())?.run().await?;
        let requests = provider.requests();
        Ok(requests.iter().map(|r| r.body.to_string()).collect())
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Runs `at_once` tasks that together make `runs` runs, each one after another.
async fn batch(client: &Arc<Client>, at_once: u32, runs: u32) -> Result<Measurement, Failed> {
    let each = runs.div_ceil(at_once);
    let start = ProcessTime::now();
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::with_capacity(each as usize);
                for _ in 0..each {
                    let (result, latency) = timed(client.run()).await;
                    result?;
                    latencies.push(latency);
                }
                Ok::<_, Failed>(latencies)
            })
        })
        .collect();
    let mut measurement = Measurement::default();
    for task in tasks {
        measurement.latencies.extend(task.await??);
    }
    measurement.runs = each * at_once;
    measurement.cpu = start.elapsed().as_secs_f64();
    Ok(measurement)
}

enum Client {
    Engine(Engine),
    Bare(Bare),
}

impl Client {
    async fn run(&self) -> Result<(), Failed> {
        match self {
            Self::Engine(engine) => engine.run().await,
            Self::Bare(bare) => bare.run().await,
        }
    }
}

/// A client that uses Switchboard.
struct Engine {
    runner: Runner,
    input: Input,
    is_streamed: bool,
}

impl Engine {
    fn new(case: &WireCase, url: &str) -> Result<Self, Failed> {
        let client = Endpoint::at(url).key(KEY).connect()?;
        let model: ModelHandle = match case.protocol {
            Protocol::Responses => ResponsesModel::new(&client, "m").into(),
            Protocol::Chat => ChatModel::new(&client, "m").into(),
        };
        let billing: Agent = Agent::new("Billing").instructions(SECOND);
        let triage = Agent::new("Triage").instructions("Route.").handoff(billing);
        Ok(Self {
            runner: Runner::new(&triage).model(model).tracing_off(),
            input: history(case.items).into(),
            is_streamed: case.is_streamed,
        })
    }

    async fn run(&self) -> Result<(), Failed> {
        let input = self.input.clone();
        if self.is_streamed {
            let mut stream = self.runner.stream(input);
            while stream.next().await.is_some() {}
            stream.finish().await?
        } else {
            self.runner.run(input).await?
        };
        Ok(())
    }
}
