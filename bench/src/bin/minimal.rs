//! The smallest program that hands a conversation over: for its size, and how long it takes to start.

use std::error::Error;

use futures_util::FutureExt as _;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner};

fn main() -> Result<(), Box<dyn Error>> {
    let billing: Agent = Agent::new("Billing").instructions("You handle bills.");
    let triage = Agent::new("Triage")
        .instructions("Route.")
        .handoff(&billing);
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Done.");
    let run = Runner::new(&triage).model(model).run("My bill is wrong");
    let result = run
        .now_or_never()
        .ok_or("the model did not answer at once")??;
    println!("{}", result.final_text());
    Ok(())
}
