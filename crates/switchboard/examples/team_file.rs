//! `cargo run --features team-files --example team_file`
//!
//! A team from a file, with a hook written in Rust; and what is said of a file with mistakes.

use switchboard::team_files::{Context, TeamFile};
use switchboard::{Agent, HandoffCall, HookResult, RunContext, RunHooks};

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
        from: &Agent<Context>,
        to: &Agent<Context>,
        _call: &HandoffCall,
    ) -> HookResult {
        let tier = ctx.get("tier").and_then(|tier| tier.as_str());
        let tier = tier.unwrap_or_default();
        println!("{} → {} ({tier} customer)", from.name(), to.name());
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = TeamFile::parse(TEAM, "team.toml")?;
    for tier in ["basic", "premium"] {
        let team = file.opening().context("tier", tier)?.open()?;
        let runner = team.runner().hooks(PrintHandoffs);
        for said in ["I was charged twice", "I want to complain to a manager"] {
            let result = runner.run(said).await?;
            println!("{}: {}", result.last_agent().name(), result.final_text());
        }
        println!();
    }
    if let Err(problems) = TeamFile::parse(MISTAKEN, "team.toml") {
        print!("{problems}");
    }
    Ok(())
}
