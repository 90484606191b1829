//! Tools that fail: what the model is told, what you are told, and failures that end the run.
//!
//! `cargo run --example failing_tools`

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard::testing::ScriptedModel;
use switchboard::tool::ToolFailure;
use switchboard::{Agent, EventKind, Runner, tool};

#[derive(Deserialize, JsonSchema)]
struct Refund {
    order: u32,
    #[schemars(range(min = 1, max = 500))]
    amount: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Arguments are validated before the code runs. Of an error only a `ToolFailure` has words for
    // the model; everything else stays with you.
    let refund = tool("refund")
        .description("Refunds an order.")
        .run(|_ctx, refund: Refund| match refund.order {
            404 => Err(ToolFailure::new("There is no such order.").caused_by("row 404 is missing")),
            order => Ok(format!("{} refunded for order {order}", refund.amount)),
        });
    // A failure of this one ends the run, and what ran before it is kept.
    let charge = tool("charge")
        .description("Charges a card.")
        .fail_run()
        .run(|_ctx, (): ()| Err::<String, _>("the bank is closed"));
    let agent: Agent = Agent::new("Billing").tool(refund).tool(charge);

    let model = ScriptedModel::new()
        .call("refund", r#"{"order": 7, "amount": 1000}"#)
        .call("refund", r#"{"order": 404, "amount": 10}"#)
        // A number that is sent as text is read as a number.
        .call("refund", r#"{"order": "7", "amount": "10"}"#)
        .call("charge", "{}");
    let mut stream = Runner::new(&agent).model(model).stream("Refund my order.");
    while let Some(event) = stream.next().await {
        if let EventKind::ToolEnded { output, error, .. } = event.kind {
            println!("the model gets: {output}");
            if let Some(error) = error {
                println!("        you get: {error}");
            }
        }
    }
    match stream.finish().await {
        Ok(result) => println!("{}", result.final_text()),
        Err(error) => println!("the run ends: {error}"),
    }
    Ok(())
}
