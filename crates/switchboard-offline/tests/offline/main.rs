//! The offline model's behaviour. Test names continue the name of their module.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod answers;
mod handoffs;
mod items;
mod structured_answers;
mod tools;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_core::agent::Knowledge;
use switchboard_core::items::{ItemKind, Items};
use switchboard_core::model::{ModelEvent, ToolChoice};
use switchboard_core::{
    Agent, Item, Model as _, ModelRequest, ModelResponse, ModelSettings, RunResult, Runner, Tool,
    handoff, tool,
};
use switchboard_offline::OfflineModel;

async fn run(agent: &Agent, input: &str) -> RunResult {
    Runner::new(agent)
        .model(OfflineModel::new())
        .run(input)
        .await
        .unwrap()
}

async fn reply(agent: &Agent, input: &str) -> String {
    run(agent, input).await.final_text().into_owned()
}

/// A tool that answers with its arguments.
fn echo(name: &str, description: &str, parameters: Value) -> Tool {
    tool::<()>(name)
        .description(description)
        .strict(false)
        .run_raw(&parameters, |ctx| {
            let arguments = ctx.arguments().to_owned();
            async move { format!("called with {arguments}") }
        })
}

fn track() -> Tool {
    echo(
        "track_order",
        "Looks up where an order or parcel is.",
        json!({
            "type": "object",
            "properties": {"order_id": {"type": "string", "description": "The order's number"}},
            "required": ["order_id"],
        }),
    )
}

fn shop() -> Agent {
    Agent::new("Shop")
        .knowledge(Knowledge::new(
            "refund processing time",
            "Refunds take five days.",
        ))
        .knowledge(Knowledge::new("退款多久到账", "退款需要五天。"))
        .knowledge(Knowledge::new("opening hours", "We are open from 9 to 5."))
}
