//! `cargo run --example over_the_wire`
//!
//! The same team over both of OpenAI's protocols, streamed, and across them: the first
//! agent speaks Responses, the second Chat Completions. The server here is a scripted one; for a
//! real one, name its address, or set OPENAI_API_KEY and use `Providers::from_env()`.

use std::error::Error;
use std::io::Write as _;

use fake_provider::{FakeProvider, Reply};
use switchboard::model::ModelHandle;
use switchboard::models::{Endpoint, Providers};
use switchboard::{Agent, EventKind, Runner, tool};

fn triage(first: &ModelHandle, second: &ModelHandle) -> Agent {
    let billing = Agent::new("Billing")
        .instructions("You handle bills.")
        .model(second)
        .tool(tool("open_bill").run(|_ctx, (): ()| "42 euros, due on Friday"));
    Agent::new("Triage")
        .instructions("Route the user.")
        .model(first)
        .handoff(billing)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = FakeProvider::start().await?;
    for (first, second) in [
        ("openai/gpt-5.2", "openai/gpt-5.2"),
        ("chat/llama3.1", "chat/llama3.1"),
        ("openai/gpt-5.2", "chat/llama3.1"),
    ] {
        let key = format!("{first}-{second}");
        server.script(
            &key,
            [
                Reply::call("call_1", "transfer_to_billing", "{}"),
                Reply::call("call_2", "open_bill", "{}"),
                Reply::text("You owe 42 euros, due on Friday.").pieces(8),
            ],
        );
        let providers = Providers::new().endpoint(Endpoint::at(server.url()).key(&key));
        let agent = triage(&providers.model(first)?, &providers.model(second)?);

        print!("{first}, then {second}: ");
        let mut stream = Runner::new(&agent).stream("What do I owe?");
        while let Some(event) = stream.next().await {
            if let EventKind::TextDelta { text, .. } = event.kind {
                print!("{text}|");
                std::io::stdout().flush()?;
            }
        }
        let result = stream.finish().await?;
        println!(
            "\n{} answered after {} turns",
            result.last_agent().name(),
            result.run().turns()
        );
    }
    // Every request was valid for the real API.
    server.assert_valid();
    for request in server.requests() {
        println!("{} {}", request.path, request.body["model"]);
    }
    Ok(())
}
