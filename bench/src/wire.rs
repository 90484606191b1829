//! Runs over HTTP on loopback, and the same requests without an engine: ready-made bytes sent with the
//! same HTTP client.

mod bare;

use std::error::Error;
use std::sync::Arc;

use cpu_time::ProcessTime;
use fake_provider::{FakeProvider, Protocol, Reply, Rules};
use switchboard_core::{Agent, Input, ModelHandle, Runner};
use switchboard_models::{ChatModel, Endpoint, ResponsesModel};

use crate::history::history;
use crate::measure::{Measured, clocked, runs_in};
use bare::Bare;

const KEY: &str = "bench";

/// How many pieces a streamed answer has.
const PIECES: usize = 200;

/// What only the second agent says, so that the provider knows whose turn it is.
const SECOND: &str = "You handle bills.";

type Failed = Box<dyn Error + Send + Sync>;

/// Starts the provider of these cases. It belongs in a process of its own: its CPU time is not what
/// is measured.
///
/// # Errors
/// Where there is no free port.
pub fn provider() -> std::io::Result<FakeProvider> {
    let [first, second] = replies();
    FakeProvider::ready_on_thread([(SECOND, second), ("", first)])
}

fn replies() -> [Reply; 2] {
    let text = "word ".repeat(PIECES);
    [
        Reply::call("call_1", "transfer_to_billing", "{}"),
        Reply::text(&text).pieces(5),
    ]
}

/// One handoff over HTTP, in one of the forms of it.
pub struct WireCase {
    is_bare: bool,
    protocol: Protocol,
    is_streamed: bool,
    items: usize,
    at_once: u32,
}

impl WireCase {
    /// The case of this name, like `responses_streamed_20_x64` or `bare_chat_plain_1000_x1`.
    pub fn named(name: &str) -> Option<Self> {
        let (is_bare, name) = match name.strip_prefix("bare_") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let [protocol, form, items, at_once] = name.split('_').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Self {
            is_bare,
            protocol: match protocol {
                "responses" => Protocol::Responses,
                "chat" => Protocol::Chat,
                _ => return None,
            },
            is_streamed: match form {
                "plain" => false,
                "streamed" => true,
                _ => return None,
            },
            items: items.parse().ok()?,
            at_once: at_once.strip_prefix('x')?.parse().ok()?,
        })
    }

    /// Runs it for about this many seconds of CPU time against a provider at `url`.
    ///
    /// # Errors
    /// Where the provider is not there, or a run fails.
    pub fn measured(&self, url: &str, seconds: f64) -> Result<Measured, Failed> {
        runtime()?.block_on(async {
            let doer = Arc::new(self.doer(url).await?);
            // Connections are opened, and it shows how long a run takes.
            batch(&doer, self.at_once, self.at_once * 2).await?;
            let warm = batch(&doer, self.at_once, self.at_once * 4).await?;
            batch(&doer, self.at_once, runs_in(seconds, &warm)).await
        })
    }

    /// Runs it so many times, and nothing else.
    ///
    /// # Errors
    /// Where the provider is not there, or a run fails.
    pub fn done(&self, url: &str, runs: u32) -> Result<(), Failed> {
        runtime()?.block_on(async {
            let doer = Arc::new(self.doer(url).await?);
            batch(&doer, self.at_once, runs).await.map(drop)
        })
    }

    async fn doer(&self, url: &str) -> Result<Doer, Failed> {
        let engine = Engine::new(self, url)?;
        if !self.is_bare {
            return Ok(Doer::Engine(engine));
        }
        let path = match self.protocol {
            Protocol::Responses => "responses",
            Protocol::Chat => "chat/completions",
        };
        let bodies = self.bodies().await?;
        Ok(Doer::Bare(Bare::new(url, path, bodies, self.is_streamed)?))
    }

    /// What the engine sends, as a provider that writes everything down got it.
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

/// Does one run after another in each of `at_once` tasks, `runs` in all.
async fn batch(doer: &Arc<Doer>, at_once: u32, runs: u32) -> Result<Measured, Failed> {
    let each = runs.div_ceil(at_once);
    let start = ProcessTime::now();
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let doer = doer.clone();
            tokio::spawn(async move {
                let mut waits = Vec::with_capacity(each as usize);
                for _ in 0..each {
                    let (done, wait) = clocked(doer.run()).await;
                    done?;
                    waits.push(wait);
                }
                Ok::<_, Failed>(waits)
            })
        })
        .collect();
    let mut measured = Measured::default();
    for task in tasks {
        measured.waits.extend(task.await??);
    }
    measured.runs = each * at_once;
    measured.cpu = start.elapsed().as_secs_f64();
    Ok(measured)
}

enum Doer {
    Engine(Engine),
    Bare(Bare),
}

impl Doer {
    async fn run(&self) -> Result<(), Failed> {
        match self {
            Self::Engine(engine) => engine.run().await,
            Self::Bare(bare) => bare.run().await,
        }
    }
}

/// Runs of Switchboard.
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
