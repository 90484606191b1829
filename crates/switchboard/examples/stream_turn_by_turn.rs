//! A run that is streamed turn by turn. After each turn it is stored as JSON; the next turn starts
//! from the stored text, so it could as well be taken by another process.
//!
//! `cargo run --example stream_turn_by_turn`

use switchboard::run::RunStatus;
use switchboard::testing::ScriptedModel;
use switchboard::{Agent, EventKind, Run, Runner, StreamEvent, tool};

fn print_event(event: &StreamEvent) {
    match &event.kind {
        EventKind::TurnStarted { .. } => println!("turn {}: {}", event.turn, event.agent),
        EventKind::ToolEnded { tool, output, .. } => println!("  {tool} returned {output}"),
        EventKind::Handoff(handoff) => println!("  {} hands over to {}", handoff.from, handoff.to),
        EventKind::Item {
            text: Some(text), ..
        } => println!("  says: {text}"),
        EventKind::RunStopped { .. } => println!("  stopped"),
        EventKind::RunFinished { .. } => println!("  finished"),
        _ => {}
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("open_bill", "{}")
        .say("You owe 42 euros, due on Friday.");
    let billing: Agent =
        Agent::new("Billing").tool(tool("open_bill").run(|_ctx, (): ()| "42 euros, due on Friday"));
    let triage = Agent::new("Triage").handoff(billing);
    let runner = Runner::new(&triage).model(model);

    let mut stream = runner.stream("What do I owe?");
    loop {
        stream.stop_after_turn();
        while let Some(event) = stream.next().await {
            print_event(&event);
        }
        let result = stream.finish().await?;
        if result.status() == RunStatus::Completed {
            println!("{}: {}", result.last_agent().name(), result.final_text());
            return Ok(());
        }
        let stored = serde_json::to_string(result.run())?;

        let run: Run = serde_json::from_str(&stored)?;
        println!(
            "-- read from JSON: {} turns, with {}",
            run.turns(),
            run.agent()
        );
        stream = runner.resume_stream(run)?;
    }
}
