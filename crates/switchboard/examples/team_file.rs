//! `cargo run --features team-files --example team_file`
//!
//! A team from a file, with a hook written in Rust; then the diagnostics of a file with mistakes.

use switchboard::RunContext;
use switchboard::hooks::{HookResult, RunHooks, Transfer};
use switchboard::team_files::{Context, TeamFile};

const TEAM: &str = r#"
[context]
tier = "basic"

[agents.Triage]
instructions = "Route the customer."
handoffs = [
    "Billing",
    { to = "Manager", when = "tier == 'premium'", description = "A manager, for complaints." },
]

[agents.Billing]
description = "Bills, charges and refunds."
knowledge = [{ title = "Charged twice", text = "The second charge is reversed in three days." }]

[agents.Manager]
description = "A manager, for complaints."
knowledge = [{ title = "complaint, manager", text = "I call you back within the hour." }]
"#;

const MISTAKEN: &str = r#"
[agents.Triage]
handoffs = ["Biling"]
instructons = "Route the customer."

[agents.Billing]
handoffs = [{ to = "Triage", filters = ["remove_tools"] }]
"#;

struct PrintHandoffs;

impl RunHooks<Context> for PrintHandoffs {
    async fn on_handoff(
        &self,
        ctx: &RunContext<Context>,
        transfer: &Transfer<'_, Context>,
    ) -> HookResult {
        let tier = ctx.get("tier").and_then(|tier| tier.as_str());
        let tier = tier.unwrap_or_default();
        let (from, to) = (transfer.from.name(), transfer.to.name());
        println!("{from} → {to} ({tier} customer)");
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = TeamFile::parse(TEAM, "team.toml")?;
    for tier in ["basic", "premium"] {
        let team = file.open_options().context("tier", tier)?.open()?;
        let runner = team.runner().hooks(PrintHandoffs);
        for message in ["I was charged twice", "I want to complain to a manager"] {
            let result = runner.run(message).await?;
            println!("{}: {}", result.last_agent().name(), result.final_text());
        }
        println!();
    }
    if let Err(problems) = TeamFile::parse(MISTAKEN, "team.toml") {
        print!("{problems}");
    }
    Ok(())
}
