//! A cascade: 前台 (the front desk) hands over to 技术支持 (technical support), which hands over to
//! 架构专家 (the architect); each handoff has its own filter. The agents' names are Chinese, and
//! `ToolNames::Readable` transliterates them for the names of the tools.
//!
//! `cargo run --example cascade`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::handoff::ToolNames;
use switchboard::hooks::{HookResult, RunHooks, Transfer};
use switchboard::testing::{ScriptedModel, describe_item};
use switchboard::{Agent, Item, RunContext, Runner, filters, handoff, tool};

#[derive(Deserialize, JsonSchema)]
struct Service {
    service: String,
}

/// Hooks see every handoff, also those that a filter removes from the history.
struct PrintHandoffs;

impl RunHooks<()> for PrintHandoffs {
    async fn on_handoff(&self, _ctx: &RunContext, transfer: &Transfer<'_>) -> HookResult {
        println!("{} → {}", transfer.from.name(), transfer.to.name());
        Ok(())
    }
}

fn front_desk() -> Agent {
    let architect = Agent::new("架构专家")
        .instructions("You decide how the system should be built.")
        .handoff_description("Questions of architecture.");
    let technical = Agent::new("技术支持")
        .instructions("You find out what is wrong. Ask the architect about how it should be.")
        .handoff_description("Errors and outages.")
        .tool(
            tool("read_metrics")
                .description("Reads the metrics of a service.")
                .run(|_ctx, args: Service| format!("{}: p99 is 4200 ms", args.service)),
        )
        // The architect sees the first item and the last four: the measurement and this handoff,
        // each a call and its output.
        .handoff(handoff(&architect).filter(filters::keep_first_and_last(1, 4)));
    Agent::new("前台")
        .instructions("Greet the customer, look them up and pass them on.")
        .tool(
            tool("look_up_contract")
                .description("Looks up the customer's contract.")
                .run(|_ctx, (): ()| "contract 77, contact ann@example.com"),
        )
        // The contract and the customer's address are for the front desk only.
        .handoff(
            handoff(&technical).filter(filters::remove_all_tools().then(filters::redact_pii())),
        )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names = ToolNames::Readable;
    let model = ScriptedModel::new()
        .call("look_up_contract", "{}")
        .call(&names.default_name("技术支持"), "{}")
        .call("read_metrics", r#"{"service": "search"}"#)
        .call(&names.default_name("架构专家"), "{}")
        .say("Put a cache in front of the search service. I send you a drawing.");

    let result = Runner::new(&front_desk())
        .model(model.clone())
        .tool_names(names)
        .hooks(PrintHandoffs)
        .run(vec![
            Item::user("Search is slow. My address is ann@example.com."),
            Item::assistant("Since when?"),
            Item::user("Since we have ten times the users."),
        ])
        .await?;

    for request in model.requests() {
        let agent = request.agent.as_deref().unwrap_or_default();
        let offered = request.handoffs.first().map(|handoff| &*handoff.tool_name);
        println!("\n{agent}, offered {}, saw:", offered.unwrap_or("nobody"));
        for item in &request.input {
            println!("  {}", describe_item(item));
        }
    }
    println!("\n{}: {}", result.last_agent().name(), result.final_text());
    Ok(())
}
