//! What runs cost over HTTP on loopback: the CPU time of the client's thread, with a provider on a
//! thread of its own.

use std::error::Error;

use cpu_time::ThreadTime;
use fake_provider::{FakeProvider, Reply, Rules};
use switchboard_core::{Agent, Input, ModelHandle, Runner};
use switchboard_models::{ChatModel, Client, Endpoint, ResponsesModel};

use crate::work::history;

const KEY: &str = "bench";

/// How many pieces a streamed answer has.
const PIECES: usize = 200;

/// Prints the table.
pub(crate) fn table() -> Result<(), Box<dyn Error>> {
    let provider = FakeProvider::on_thread_with(Rules::none())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let client = Endpoint::at(provider.url()).key(KEY).connect()?;
    println!("{:<34} {:>12}", "one handoff over HTTP", "CPU µs/run");
    for (protocol, model) in models(&client) {
        let cases: [(&str, Input, bool, u32); 3] = [
            ("", "Hi".into(), false, 400),
            (", streamed, 200 pieces", "Hi".into(), true, 100),
            (", 1,000 items", history(1000, 500).into(), false, 40),
        ];
        for (what, input, streamed, times) in cases {
            let case = Case {
                provider: &provider,
                model: model.clone(),
                input,
                streamed,
            };
            runtime.block_on(case.rounds(times / 10))?;
            let micros = runtime.block_on(case.rounds(times))?;
            println!("{:<34} {micros:>12.0}", format!("{protocol}{what}"));
        }
    }
    Ok(())
}

fn models(client: &Client) -> [(&'static str, ModelHandle); 2] {
    [
        ("Responses", ResponsesModel::new(client, "m").into()),
        ("Chat Completions", ChatModel::new(client, "m").into()),
    ]
}

struct Case<'a> {
    provider: &'a FakeProvider,
    model: ModelHandle,
    input: Input,
    streamed: bool,
}

impl Case<'_> {
    /// CPU time of a run, in microseconds: the median of five rounds.
    async fn rounds(&self, times: u32) -> Result<f64, Box<dyn Error>> {
        let mut rounds = Vec::new();
        for _ in 0..5 {
            self.provider.clear();
            for _ in 0..times {
                let text = "word ".repeat(PIECES);
                self.provider.script(
                    KEY,
                    [
                        Reply::call("call_1", "transfer_to_billing", "{}"),
                        Reply::text(&text).pieces(5),
                    ],
                );
            }
            let start = ThreadTime::now();
            for _ in 0..times {
                self.run().await?;
            }
            rounds.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(times.max(1)));
        }
        rounds.sort_by(f64::total_cmp);
        Ok(rounds[rounds.len() / 2])
    }

    async fn run(&self) -> Result<(), Box<dyn Error>> {
        let billing: Agent = Agent::new("Billing").instructions("You handle bills.");
        let triage = Agent::new("Triage").instructions("Route.").handoff(billing);
        let runner = Runner::new(&triage).model(&self.model).tracing_off();
        match self.streamed {
            false => runner.run(self.input.clone()).await?,
            true => {
                let mut stream = runner.stream(self.input.clone());
                while stream.next().await.is_some() {}
                stream.finish().await?
            }
        };
        Ok(())
    }
}
